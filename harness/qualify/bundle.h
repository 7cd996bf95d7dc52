// A failure that can be shown again: a directory with
//   bundle.json   store, settings, history, what was acknowledged, what was found, how it was cut
//   image/        the store's directory as the crash left it
// Replaying opens a copy of the image in a fresh process and asks the oracle again.
// Stateless; any thread.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "adapters/store.h"
#include "harness/qualify/history.h"
#include "harness/qualify/oracle.h"

namespace assay::qualify {

class SharedText;

struct Bundle {
  std::string level;  ///< "K", "F", ...
  std::string profile;
  std::string store;
  std::string version;
  DurabilityClass durability = DurabilityClass::power;
  Settings settings;
  Loss allowed = Loss::intact;
  std::uint64_t seed = 0;  ///< of the history, not of the campaign
  HistoryShape shape;
  Acknowledgements acknowledgements;
  Judgement judgement;
  /// How the state came about, a sentence a step.
  std::vector<std::string> story;
  std::uint32_t transactions_after = 0;
  std::uint32_t open_timeout_ms = 30'000;
  nlohmann::json origin;  ///< campaign's seed, case, round: free-form, for the reader
};

/// Writes the bundle with a copy of `image` to `path`, which must not be there. Whole or not at
/// all.
[[nodiscard]] Status write_bundle(const std::string& path, const Bundle& bundle,
                                  const std::string& image);
[[nodiscard]] Result<Bundle> read_bundle(const std::string& path);

/// Opens a copy of the image, made below `root`, in a forked process and judges it. Call it from a
/// process with one thread.
[[nodiscard]] Result<Judgement> replay_bundle(const std::string& path, const Bundle& bundle,
                                              const Driver& driver, const std::string& root);

/// Opens `directory` itself in a forked process, by the settings and for the history of `bundle`,
/// and judges it by its acknowledgements. Adds the processes that it left behind.
[[nodiscard]] Result<Judgement> judge_in_fork(const Bundle& bundle, const Driver& driver,
                                              const std::string& directory, SharedText& text,
                                              std::uint32_t& left_behind);

/// Of a failure that was seen in the life of the store's process and not in what it left: the
/// command that runs this life again. Else empty.
[[nodiscard]] std::string case_command(const Bundle& bundle);

/// What happened, for a person: what was acknowledged, how it was cut, what came back.
[[nodiscard]] std::string bundle_story(const Bundle& bundle, const Judgement& now);

}  // namespace assay::qualify
