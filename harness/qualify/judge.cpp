// judge(): finds the largest set of transactions that explains what a store holds.
//
// Every transaction begun since the baseline is either there as a whole or not at all. A key's
// value names who wrote it, so it forces that transaction in and every later one that changes the
// key out; a key that is not there forces out whoever wrote it last without an erase behind it.
// What is left after that (a fixed point, for taking one out may force out another) contains every
// set that could explain the contents; if it does not explain them, none does, and the transaction
// that is both forced in and out is torn.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "harness/qualify/oracle.h"

namespace assay::qualify {
namespace {

using Kind = Finding::Kind;

/// What one transaction leaves of one key: the position of its last put, or an erase.
struct Effect {
  std::uint64_t number = 0;
  std::optional<std::uint32_t> put_position;  ///< nothing: it erases the key
};

class WriterJudge {
 public:
  WriterJudge(const History& history, const Acknowledgements::Writer& known, std::uint32_t writer)
      : history_(history),
        known_(known),
        writer_(writer),
        found_(history.keys_of_writer()),
        present_(known.since.size(), true),
        forced_by_(known.since.size()) {
    effects_.resize(history.keys_of_writer());
    for (std::uint64_t index = 0; index < known.since.size(); ++index) {
      const Transaction made = history.transaction(writer, known.base.number + 1 + index);
      rolled_back_.push_back(made.rolled_back);
      if (made.rolled_back) continue;
      std::map<std::uint32_t, Effect> last;
      for (std::uint32_t position = 0; position < made.changes.size(); ++position) {
        Effect effect{made.number, std::nullopt};
        if (!made.changes[position].erase) effect.put_position = position;
        last[made.changes[position].key] = effect;
      }
      for (const auto& [key, effect] : last) effects_[key].push_back(effect);
    }
  }

  /// One key of this writer that the store holds.
  void holds(KeyId key, const std::string& value) {
    const std::optional<Version> version = history_.writer_of(key, value);
    if (!version) {
      add(Kind::wrong_value,
          fmt::format("key {} holds {} bytes that nobody wrote{}", name(key.index), value.size(),
                      claimed_writer(key, value)));
      unexplained_.insert(key.index);
      return;
    }
    found_[key.index] = *version;
  }

  void solve() {
    for (std::uint32_t key = 0; key < found_.size(); ++key)
      if (!unexplained_.contains(key)) look_at_version(key);
    bool changed = true;
    while (changed) {
      changed = false;
      for (std::uint32_t key = 0; key < found_.size(); ++key)
        if (found_[key].number == 0 && !unexplained_.contains(key))
          changed = look_at_absence(key) || changed;
    }
    for (std::uint64_t index = 0; index < present_.size(); ++index)
      if (!present_[index] && forced_by_[index]) tell_torn(index);
  }

  [[nodiscard]] bool torn() const { return !findings_.empty(); }
  [[nodiscard]] const std::vector<Finding>& findings() const { return findings_; }
  /// A transaction that was rolled back is neither there nor missing.
  [[nodiscard]] bool counts(std::uint64_t index) const { return !rolled_back_[index]; }
  [[nodiscard]] bool present(std::uint64_t index) const { return present_[index]; }
  /// A key shows it; what is present without that may as well be missing under later commits.
  [[nodiscard]] bool shown(std::uint64_t index) const { return forced_by_[index].has_value(); }
  [[nodiscard]] const Receipt& receipt(std::uint64_t index) const { return known_.since[index]; }
  [[nodiscard]] std::uint64_t size() const { return known_.since.size(); }
  [[nodiscard]] std::string label(std::uint64_t index) const {
    return transaction_name(known_.base.number + 1 + index);
  }
  [[nodiscard]] Baseline baseline() const {
    return {.number = known_.base.number + known_.since.size(), .state = found_};
  }

 private:
  std::string name(std::uint32_t key) const {
    return history_.shape().key_kind == KeyKind::u64 ? fmt::format("{}:{}", writer_, key)
                                                     : history_.key_bytes({writer_, key});
  }
  std::string transaction_name(std::uint64_t number) const {
    return fmt::format("{} of writer {}", number, writer_);
  }
  void add(Kind kind, std::string text) { findings_.push_back({kind, std::move(text)}); }

  /// The stamp in front of a value that is not right: what it was, before it was damaged.
  std::string claimed_writer(KeyId key, const std::string& value) const {
    for (std::uint64_t back = 0; back < known_.since.size(); ++back) {
      const std::uint64_t number = known_.base.number + known_.since.size() - back;
      for (const Change& change : history_.transaction(writer_, number).changes)
        if (change.key == key.index && !change.erase &&
            value.substr(0, kStampBytes) == change.value.substr(0, kStampBytes))
          return fmt::format(" (the beginning is that of transaction {})",
                             transaction_name(number));
    }
    return {};
  }

  void take_out(std::uint64_t number, Kind why, std::string because) {
    const std::uint64_t index = number - known_.base.number - 1;
    if (!present_[index]) return;
    present_[index] = false;
    reasons_[index] = {why, std::move(because)};
  }

  /// A key that holds a version, or that the baseline says nobody wrote.
  void look_at_version(std::uint32_t key) {
    const Version version = found_[key];
    if (version.number == 0) return;
    const bool settled = version.number <= known_.base.number;
    if (settled && version != known_.base.state[key]) {
      add(Kind::resurrected_erase,
          fmt::format("key {} holds what transaction {} wrote, which was gone before this life",
                      name(key), transaction_name(version.number)));
      unexplained_.insert(key);
      return;
    }
    if (version.number > known_.base.number + known_.since.size()) {
      add(Kind::never_begun_visible,
          fmt::format("key {} holds what transaction {} writes, which was not begun", name(key),
                      transaction_name(version.number)));
      unexplained_.insert(key);
      return;
    }
    if (!settled) {
      const std::uint64_t index = version.number - known_.base.number - 1;
      if (rolled_back_[index]) {
        add(Kind::rolled_back_visible,
            fmt::format("key {} holds what transaction {} wrote, which was rolled back", name(key),
                        transaction_name(version.number)));
        unexplained_.insert(key);
        return;
      }
      if (!forced_by_[index]) forced_by_[index] = key;
    }
    for (const Effect& effect : effects_[key]) {
      if (effect.number < version.number) continue;
      if (effect.number == version.number) {
        if (effect.put_position == version.position) continue;
        add(Kind::torn_transaction,
            fmt::format("transaction {} is there up to its change {} only: key {}",
                        transaction_name(version.number), version.position, name(key)));
        continue;
      }
      const std::string still =
          fmt::format("key {} still holds what transaction {} wrote", name(key), version.number);
      take_out(effect.number,
               effect.put_position ? Kind::torn_transaction : Kind::resurrected_erase, still);
    }
  }

  /// A key that is not there; true when that forced a transaction out.
  bool look_at_absence(std::uint32_t key) {
    const std::vector<Effect>& effects = effects_[key];
    for (auto effect = effects.rbegin(); effect != effects.rend(); ++effect) {
      if (!present_[effect->number - known_.base.number - 1]) continue;
      if (!effect->put_position) return false;
      take_out(effect->number, Kind::torn_transaction,
               fmt::format("key {}, which it wrote, is not there", name(key)));
      return true;
    }
    if (known_.base.state[key].number != 0 && !missing_told_.contains(key)) {
      missing_told_.insert(key);
      add(Kind::lost_after_reopen,
          fmt::format("key {}, settled by transaction {}, is gone and nobody erased it", name(key),
                      transaction_name(known_.base.state[key].number)));
    }
    return false;
  }

  void tell_torn(std::uint64_t index) {
    const auto& [kind, because] = reasons_.at(index);
    add(kind, fmt::format("transaction {} is there in part: key {} shows it, but {}", label(index),
                          name(*forced_by_[index]), because));
  }

  const History& history_;
  const Acknowledgements::Writer& known_;
  std::uint32_t writer_;
  std::vector<Version> found_;                ///< by key
  std::vector<std::vector<Effect>> effects_;  ///< by key, in the order of transactions
  std::vector<bool> rolled_back_;             ///< by transaction since the baseline, as below
  std::vector<bool> present_;
  std::vector<std::optional<std::uint32_t>> forced_by_;  ///< the key that shows it
  std::map<std::uint64_t, std::pair<Kind, std::string>> reasons_;
  std::set<std::uint32_t> unexplained_;  ///< keys that say nothing about transactions any more
  std::set<std::uint32_t> missing_told_;
  std::vector<Finding> findings_;
};

struct Missing {
  const WriterJudge* writer = nullptr;
  std::uint64_t index = 0;
};

/// A commit of the same life that is there although `missing`, acknowledged before it began, is
/// not.
std::string later_one(const std::vector<WriterJudge>& writers, const Acknowledgements& known,
                      const Missing& missing) {
  const std::uint64_t acknowledged = missing.writer->receipt(missing.index).acknowledged;
  for (const WriterJudge& writer : writers)
    for (std::uint64_t index = 0; index < writer.size(); ++index)
      if (writer.counts(index) && writer.present(index) && writer.shown(index) &&
          writer.receipt(index).begun > acknowledged &&
          known.life_of(writer.receipt(index).begun) == known.life_of(acknowledged))
        return writer.label(index);
  return {};
}

void weigh(const std::vector<WriterJudge>& writers, const Acknowledgements& known,
           Judgement& judgement) {
  std::vector<Missing> missing;
  std::map<std::size_t, std::uint64_t> of_life;
  for (const WriterJudge& writer : writers) {
    for (std::uint64_t index = 0; index < writer.size(); ++index) {
      const Receipt& receipt = writer.receipt(index);
      if (!writer.counts(index)) continue;
      if (receipt.acknowledged == 0) {
        ++judgement.in_flight;
        judgement.in_flight_kept += writer.present(index) ? 1 : 0;
        continue;
      }
      ++judgement.acknowledged;
      if (writer.present(index)) continue;
      missing.push_back({&writer, index});
      ++of_life[known.life_of(receipt.acknowledged)];
      if (receipt.acknowledged <= known.synced_in_life_of(receipt.acknowledged))
        ++judgement.lost_after_sync;
    }
  }
  judgement.lost_acknowledged = missing.size();
  if (missing.empty()) return;
  judgement.loss = Loss::last;
  for (const auto& [life, count] : of_life)
    if (count > 1) judgement.loss = Loss::suffix;
  judgement.findings.push_back(
      {Kind::lost_commits,
       fmt::format("{} of {} acknowledged commits {} missing; the first is transaction {}",
                   missing.size(), judgement.acknowledged, missing.size() == 1 ? "is" : "are",
                   missing.front().writer->label(missing.front().index))});
  for (const Missing& one : missing) {
    const std::string later = later_one(writers, known, one);
    if (later.empty()) continue;
    judgement.loss = Loss::hole;
    judgement.findings.push_back(
        {Kind::hole, fmt::format("transaction {} is missing although transaction {}, which began "
                                 "after it was acknowledged, is there",
                                 one.writer->label(one.index), later)});
    break;
  }
  if (judgement.lost_after_sync > 0) {
    judgement.broken = true;
    judgement.findings.push_back(
        {Kind::lost_after_sync,
         fmt::format("{} of the missing commits were acknowledged before a sync of the whole store "
                     "that returned",
                     judgement.lost_after_sync)});
  }
}

}  // namespace

Judgement judge(const History& history, const Acknowledgements& acknowledgements,
                const Contents& contents) {
  ASSAY_CHECK(acknowledgements.writers.size() == history.shape().writers,
              "acknowledgements of every writer");
  Judgement judgement;
  judgement.findings = contents.findings;
  judgement.broken = !contents.findings.empty();
  std::vector<WriterJudge> writers;
  writers.reserve(history.shape().writers);
  for (std::uint32_t writer = 0; writer < history.shape().writers; ++writer)
    writers.emplace_back(history, acknowledgements.writers[writer], writer);
  bool torn = !contents.findings.empty();
  for (const auto& [key, value] : contents.entries) {
    const std::optional<KeyId> id = history.key_of(key);
    if (id) {
      writers[id->writer].holds(*id, value);
      continue;
    }
    torn = true;
    judgement.findings.push_back(
        {Kind::ghost_key, fmt::format("there is a key of {} bytes that nobody wrote", key.size())});
  }
  for (WriterJudge& writer : writers) {
    writer.solve();
    torn = torn || writer.torn();
    judgement.findings.insert(judgement.findings.end(), writer.findings().begin(),
                              writer.findings().end());
    judgement.found.push_back(writer.baseline());
  }
  weigh(writers, acknowledgements, judgement);
  if (torn) {
    judgement.loss = Loss::torn;
    judgement.found.clear();
  }
  return judgement;
}

}  // namespace assay::qualify
