// Is what a store gives back after a crash allowed by what it acknowledged?
//
// The oracle does not ask how the directory came about: it is given a store that was opened on it,
// what was acknowledged and what was merely begun at that point. With one writer the contents must
// be the state after some prefix of its transactions; with several, each writer's own, and the
// order across them must hold: a commit that is there although one that was acknowledged before it
// began is missing makes a hole. judge() is a pure function; check_directory() opens and reads.
// Stateless; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "adapters/store.h"
#include "harness/qualify/history.h"
#include "harness/qualify/receipts.h"

namespace assay::qualify {

/// What was lost, from nothing to everything. A contract is the worst that is allowed.
enum class Loss : std::uint8_t {
  intact,      ///< every acknowledged commit is there, whole
  last,        ///< at most the last acknowledged commit is missing
  suffix,      ///< a suffix of the acknowledged commits is missing
  hole,        ///< a commit is missing although a later one is there
  torn,        ///< part of a commit is there, or a value nobody wrote
  unopenable,  ///< the store refuses to open, crashes or hangs while opening
};
[[nodiscard]] std::string_view to_string(Loss loss);
[[nodiscard]] Result<Loss> parse_loss(std::string_view text);

enum class Crash : std::uint8_t { kill, power };
/// The worst that a store of this class may lose.
[[nodiscard]] Loss allowed_loss(DurabilityClass durability, Crash crash);

/// One thing that was found wrong, or worth telling.
struct Finding {
  enum class Kind : std::uint8_t {
    lost_commits,         ///< acknowledged, not there
    lost_after_sync,      ///< ... although Store::sync() had returned
    hole,                 ///< missing although a later commit is there
    torn_transaction,     ///< some of its changes are there, some are not
    resurrected_erase,    ///< a key is there that a commit which is there has erased
    wrong_value,          ///< bytes that nobody wrote
    ghost_key,            ///< a key that nobody wrote
    rolled_back_visible,  ///< a change that was rolled back
    never_begun_visible,  ///< a transaction that was not begun yet
    scan_disagrees,       ///< order, direction, or scan and get differ
    refuses_to_open,
    fails_while_reading,
    not_usable,            ///< after recovery a commit, a close or a reopen failed
    lost_after_reopen,     ///< there after recovery, not there after close and reopen
    crashed,               ///< the process died on its own while opening or reading
    hung,                  ///< ... or did not end in time
    creation_not_atomic,   ///< cut before the store was there for the first time; no commit lost
    lost_beyond_bound,     ///< more acknowledged commits than the settings bound
    failed_while_running,  ///< an operation failed although nothing was wrong with the disk
  };
  Kind kind = Kind::lost_commits;
  std::string text;  ///< a sentence without a trailing full stop
};
[[nodiscard]] std::string_view to_string(Finding::Kind kind);

/// What a store holds, by key. Values that somebody of the history wrote are told by their stamp.
struct Contents {
  std::map<std::string, std::string> entries;
  std::vector<Finding> findings;  ///< of reading: order, scan against get
};
/// Reads all of it: forward scan, backward scan and gets must agree. Without scans (Capabilities::
/// ordered) every key of the history is asked for, and a key that nobody wrote is not found.
[[nodiscard]] Result<Contents> read_contents(Session& session, const Capabilities& capabilities,
                                             const History& history);

struct Judgement {
  Loss loss = Loss::intact;
  std::uint64_t acknowledged = 0;       ///< commits since the baseline
  std::uint64_t lost_acknowledged = 0;  ///< of them, not there
  std::uint64_t lost_after_sync = 0;    ///< of them, acknowledged before a sync that returned
  std::uint64_t in_flight = 0;          ///< begun, not acknowledged
  std::uint64_t in_flight_kept = 0;     ///< of them, there
  /// Apart from durability: the store could not be opened because it was cut while being created.
  bool creation_not_atomic = false;
  /// A fault that no contract allows (a store that does not work after recovery, a wrong scan, a
  /// commit lost although it was synced); `loss` alone does not show it.
  bool broken = false;
  std::vector<Finding> findings;  ///< the gravest first
  std::vector<Baseline> found;  ///< what there is now, a writer each; empty when it makes no sense

  /// Where nothing is promised, nothing can be broken.
  [[nodiscard]] bool allowed(Loss most) const {
    return most == Loss::unopenable || (loss <= most && !broken);
  }
};
[[nodiscard]] nlohmann::json to_json(const Judgement& judgement);
[[nodiscard]] Result<Judgement> judgement_from_json(const nlohmann::json& json);

/// Compares `contents` with what may be there.
[[nodiscard]] Judgement judge(const History& history, const Acknowledgements& acknowledgements,
                              const Contents& contents);

/// A loss of more than `most` acknowledged commits is broken, whatever the class allows.
void hold_to_bound(Judgement& judgement, std::uint64_t most);

/// The verdict about a store that does not open: creation_not_atomic when nothing had been
/// acknowledged yet, else Loss::unopenable.
[[nodiscard]] Judgement judge_unopened(const Acknowledgements& acknowledgements, Finding::Kind kind,
                                       const std::string& why);

struct CheckRequest {
  const Driver* driver = nullptr;
  /// The directory and all else; `create` is set by what has been acknowledged.
  OpenOptions options;
  const History* history = nullptr;
  Acknowledgements acknowledgements;
  /// After the verdict: this many transactions of every writer, a close, a reopen, and all of it
  /// must be there. 0: the store is closed only.
  std::uint32_t transactions_after = 0;
  /// Told of stages (opening, open, ...), so that a kill can be aimed; may be null.
  ReceiptSink* sink = nullptr;
};
/// Opens the directory in this process, reads, judges, and sees whether the store still works. Not
/// safe against a store that crashes or hangs: that is for the process that started this one.
[[nodiscard]] Judgement check_directory(const CheckRequest& request);

}  // namespace assay::qualify
