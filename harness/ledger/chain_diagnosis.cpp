#include "harness/ledger/chain_diagnosis.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "harness/ledger/ledger.h"

namespace assay {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

class Diagnosis {
 public:
  Diagnosis(const std::vector<LinkedLine>& lines, const std::vector<std::uint64_t>& unreadable)
      : lines_(lines), unreadable_(unreadable) {}

  std::vector<ChainFinding> run() {
    link();
    measure();
    walk();
    tell_beside_the_way();
    tell_moved();
    std::stable_sort(findings_.begin(), findings_.end(),
                     [](const ChainFinding& a, const ChainFinding& b) { return a.line < b.line; });
    return std::move(findings_);
  }

 private:
  void tell(std::size_t at, const char* code, std::string what) {
    findings_.push_back({lines_[at].number, code, std::move(what)});
  }

  /// Parents and children; a line that is there twice counts once.
  void link() {
    std::unordered_map<std::string, std::size_t> by_hash;
    repeated_.assign(lines_.size(), false);
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const auto [first, added] = by_hash.try_emplace(lines_[i].hash, i);
      if (added) continue;
      repeated_[i] = true;
      tell(i, "repeated", fmt::format("this line repeats line {}", lines_[first->second].number));
    }
    parent_.assign(lines_.size(), kNone);
    children_.assign(lines_.size(), {});
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (repeated_[i]) continue;
      const auto parent = by_hash.find(lines_[i].previous);
      if (parent == by_hash.end()) {
        roots_.push_back(i);
      } else {
        parent_[i] = parent->second;
        children_[parent->second].push_back(i);
      }
    }
  }

  /// How many lines follow each, along the longest way. Hashes cannot run in a circle.
  void measure() {
    follow_.assign(lines_.size(), 0);
    std::vector<std::size_t> order = roots_;  // parents before children
    for (std::size_t done = 0; done < order.size(); ++done) {
      for (const std::size_t child : children_[order[done]]) order.push_back(child);
    }
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      if (parent_[*at] == kNone) continue;
      follow_[parent_[*at]] = std::max(follow_[parent_[*at]], follow_[*at] + 1);
    }
    std::stable_sort(roots_.begin(), roots_.end(), [&](std::size_t a, std::size_t b) {
      if (lines_[a].seq != lines_[b].seq) return lines_[a].seq < lines_[b].seq;
      return follow_[a] > follow_[b];
    });
  }

  [[nodiscard]] std::size_t longest(const std::vector<std::size_t>& among) const {
    std::size_t best = kNone;
    for (const std::size_t one : among) {
      if (best == kNone || follow_[one] > follow_[best]) best = one;
    }
    return best;
  }

  /// The piece of history that comes next: of those that begin behind `seq`, the nearest; of
  /// several at one place the longest.
  [[nodiscard]] std::size_t next_piece(std::optional<std::uint64_t> seq) const {
    const auto next = std::partition_point(roots_.begin(), roots_.end(), [&](std::size_t root) {
      return seq && lines_[root].seq <= *seq;
    });
    return next == roots_.end() ? kNone : *next;
  }

  [[nodiscard]] std::size_t first_piece() const {
    std::vector<std::size_t> beginnings;
    for (const std::size_t root : roots_) {
      if (lines_[root].previous == genesis_hash()) beginnings.push_back(root);
    }
    return beginnings.empty() ? next_piece(std::nullopt) : longest(beginnings);
  }

  void walk() {
    on_way_.assign(lines_.size(), false);
    std::size_t at = first_piece();
    if (at == kNone) return;
    if (lines_[at].previous != genesis_hash()) tell_break(kNone, 0, at);
    // What a line says its number is may have been changed; its place on the way tells.
    for (std::uint64_t seq = lines_[at].seq; at != kNone; ++seq) {
      on_way_[at] = true;
      way_.push_back(at);
      if (lines_[at].seq != seq) {
        tell(at, "changed",
             fmt::format("this line was changed: it says that it is record {}, and is record {}",
                         lines_[at].seq, seq));
      }
      const std::size_t before = at;
      at = longest(children_[before]);
      if (at != kNone) continue;
      at = next_piece(seq);
      if (at == kNone) return;
      tell_break(before, seq + 1, at);
      seq = lines_[at].seq - 1;
    }
  }

  /// How many lines that are no records stand between two lines of the file.
  [[nodiscard]] std::uint64_t unreadable_between(std::uint64_t low, std::uint64_t high) const {
    return static_cast<std::uint64_t>(
        std::lower_bound(unreadable_.begin(), unreadable_.end(), high) -
        std::lower_bound(unreadable_.begin(), unreadable_.end(), low));
  }

  /// `seq`: of the record that belongs behind `before`.
  void tell_break(std::size_t before, std::uint64_t seq, std::size_t after) {
    const std::uint64_t missing = lines_[after].seq - seq;
    const std::uint64_t low = before == kNone ? 0 : lines_[before].number;
    if (missing > 0 && unreadable_between(low, lines_[after].number) >= missing) return;
    if (missing == 1) {
      tell(after, "removed", fmt::format("record {} was removed before this line", seq));
    } else if (missing > 1) {
      tell(after, "removed",
           fmt::format("records {} to {} were removed before this line", seq,
                       lines_[after].seq - 1));
    } else if (before == kNone) {
      tell(after, "changed", "this line was changed: it is the first, but names one before it");
    } else if (children_[after].empty() && begins_a_piece(lines_[after].seq + 1)) {
      tell(after, "changed",
           "this line was changed: neither the line before nor the one after it fits");
      told_changed_ = after;
    } else if (before != told_changed_) {
      tell(before, "changed",
           fmt::format("this line was changed: it hashes to {:.12}..., and line {} recorded "
                       "{:.12}...",
                       lines_[before].hash, lines_[after].number, lines_[after].previous));
    }
  }

  [[nodiscard]] bool begins_a_piece(std::uint64_t seq) const {
    const auto first = std::partition_point(
        roots_.begin(), roots_.end(), [&](std::size_t root) { return lines_[root].seq < seq; });
    return first != roots_.end() && lines_[*first].seq == seq;
  }

  void tell_beside_the_way() {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (on_way_[i] || repeated_[i]) continue;
      const std::size_t parent = parent_[i];
      const std::size_t rival = parent == kNone ? kNone : longest(children_[parent]);
      tell(i, "inserted",
           rival == kNone || !on_way_[rival]
               ? "this line was inserted: no record of the history names it"
               : fmt::format("this line was inserted: line {} is what follows line {}",
                             lines_[rival].number, lines_[parent].number));
    }
  }

  /// The fewest lines to move are those outside of the longest run of rising line numbers.
  void tell_moved() {
    std::vector<std::size_t> tails;  // of the best run of each length: position in way_
    std::vector<std::size_t> before(way_.size(), kNone);
    for (std::size_t i = 0; i < way_.size(); ++i) {
      const auto place = std::partition_point(tails.begin(), tails.end(), [&](std::size_t tail) {
        return lines_[way_[tail]].number < lines_[way_[i]].number;
      });
      if (place != tails.begin()) before[i] = *(place - 1);
      if (place == tails.end()) {
        tails.push_back(i);
      } else {
        *place = i;
      }
    }
    std::vector<bool> in_order(way_.size(), false);
    for (std::size_t at = tails.empty() ? kNone : tails.back(); at != kNone; at = before[at]) {
      in_order[at] = true;
    }
    for (std::size_t i = 0; i < way_.size(); ++i) {
      if (in_order[i]) continue;
      tell(way_[i], "moved",
           i == 0 ? std::string("this line was moved: it holds the first record")
                  : fmt::format("this line was moved: it belongs behind line {}",
                                lines_[way_[i - 1]].number));
    }
  }

  const std::vector<LinkedLine>& lines_;
  const std::vector<std::uint64_t>& unreadable_;
  std::vector<bool> repeated_;
  std::vector<bool> on_way_;
  std::vector<std::size_t> parent_;
  std::vector<std::vector<std::size_t>> children_;
  std::vector<std::size_t> roots_;
  std::vector<std::size_t> follow_;
  std::vector<std::size_t> way_;
  std::size_t told_changed_ = kNone;  ///< by the break before it
  std::vector<ChainFinding> findings_;
};

bool is_sound(const std::vector<LinkedLine>& lines) {
  std::string expected = genesis_hash();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].seq != i || lines[i].previous != expected) return false;
    expected = lines[i].hash;
  }
  return true;
}

}  // namespace

std::vector<ChainFinding> diagnose_chain(const std::vector<LinkedLine>& lines,
                                         const std::vector<std::uint64_t>& unreadable) {
  if (is_sound(lines) && unreadable.empty()) return {};
  return Diagnosis(lines, unreadable).run();
}

}  // namespace assay
