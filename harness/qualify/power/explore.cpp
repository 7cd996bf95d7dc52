#include "harness/qualify/power/explore.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

namespace assay::qualify::power {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

struct Candidate {
  Choice choice;  ///< at the latest cut at which the image was legal
  int rank = 0;   ///< of the class with the fewest lost calls that gave it
};

struct DigestHash {
  std::size_t operator()(const Digest& digest) const { return digest.low; }
};

/// Nothing pending and everything pending come first: at each cut, what the store is owed by its
/// own syncs alone. Then classes in which few calls are lost, then pairs, then random ones.
constexpr int kRankOfOneLost = 1;
constexpr int kRankOfTwoLost = 2;
int rank(StateClass kind) {
  switch (kind) {
    case StateClass::all:
    case StateClass::none:
      return 0;
    case StateClass::drop_two:
      return kRankOfTwoLost;
    case StateClass::seeded:
      return kRankOfTwoLost + 1;
    default:
      return kRankOfOneLost;
  }
}

/// Places equal ranks in an order that has nothing to do with cuts, and nothing with the image:
/// stores put random numbers into their files, so that the same state has another digest each time.
std::uint64_t place_of(const Choice& choice) {
  std::uint64_t mixed = 0x9e37'79b9'7f4a'7c15ULL;
  for (const std::uint64_t part :
       {std::uint64_t{choice.cut}, static_cast<std::uint64_t>(choice.kind), std::uint64_t{choice.a},
        std::uint64_t{choice.b}, choice.seed}) {
    mixed = (mixed ^ part) * 0xff51'afd7'ed55'8ccdULL;
    mixed ^= mixed >> 32;
  }
  return mixed;
}

/// The last event that is done at a cut.
std::uint32_t known_at(const Choice& choice) {
  return choice.cut == 0 ? 0 : choice.cut - 1;
}

class Explorer {
 public:
  Explorer(const Trace& trace, const Acknowledgements& receipts, const ExplorePlan& plan)
      : trace_(trace), receipts_(receipts), plan_(plan), cuts_(cuts_of(trace)) {}

  Result<Exploration> run() {
    const Clock::time_point begin = Clock::now();
    if (trace_.events.empty()) return std::move(out_);
    build_listed();
    build_seeded();
    std::vector<Candidate> mine = select();
    out_.seconds_building = seconds_since(begin);
    const Clock::time_point checking = Clock::now();
    ASSAY_TRY(check(mine));
    out_.seconds_checking = seconds_since(checking);
    return std::move(out_);
  }

 private:
  void offer(const Disk& disk, const Choice& choice) {
    ++out_.built;
    const Digest digest = state_of(disk, kept_by(disk, choice)).digest();
    const auto [found, fresh] =
        seen_.try_emplace(digest, static_cast<std::uint32_t>(candidates_.size()));
    if (fresh) {
      candidates_.push_back({choice, rank(choice.kind)});
      return;
    }
    Candidate& known = candidates_[found->second];
    const bool later = choice.cut > known.choice.cut;
    const bool simpler =
        choice.cut == known.choice.cut && rank(choice.kind) < rank(known.choice.kind);
    if (later || simpler) known.choice = choice;
    known.rank = std::min(known.rank, rank(choice.kind));
  }

  [[nodiscard]] bool stopped() const { return plan_.stop != nullptr && plan_.stop->load(); }

  void build_listed() {
    Disk disk(trace_, plan_.profile, plan_.suppressed);
    Omitted omitted;
    out_.cuts = cuts_.size();
    for (const std::uint32_t cut : cuts_) {
      while (disk.position() < cut) disk.step();
      const std::vector<Choice> choices = list_choices(disk, plan_.limits, omitted);
      const std::uint64_t groups = groups_of(disk).size();
      out_.pending_most = std::max(out_.pending_most, groups);
      out_.legal_log2 = std::max(out_.legal_log2, static_cast<double>(disk.pending().size()));
      for (const Choice& choice : choices) {
        // Far more than will ever be looked at is not worth the time.
        if (choice.kind == StateClass::drop_two && candidates_.size() > 4 * plan_.states_max) {
          omitted.pairs = true;
          break;
        }
        offer(disk, choice);
      }
      if (stopped()) return;
    }
    out_.singles_exhaustive = !omitted.singles;
    out_.pairs_exhaustive = !omitted.pairs;
  }

  /// Rounds over all cuts, until there is enough or nothing new comes.
  void build_seeded() {
    for (std::uint64_t round = 0; candidates_.size() < plan_.states_max && !stopped(); ++round) {
      const std::size_t before = candidates_.size();
      Disk disk(trace_, plan_.profile, plan_.suppressed);
      for (const std::uint32_t cut : cuts_) {
        while (disk.position() < cut) disk.step();
        if (disk.pending().size() < 3) continue;
        for (std::uint64_t count = 0; count < 16; ++count) {
          Choice choice{cut, StateClass::seeded, 0, 0, 0};
          choice.seed = (plan_.seed * 1'000'003 + round) * 1'000'003 + cut * 16 + count;
          offer(disk, choice);
        }
        if (candidates_.size() >= plan_.states_max) return;
      }
      if (candidates_.size() - before < cuts_.size() / 4 + 1) return;
    }
  }

  std::vector<Candidate> select() {
    out_.distinct = candidates_.size();
    // Stable: candidates came in the order in which the classes are listed.
    std::stable_sort(
        candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
          return std::pair(a.rank, place_of(a.choice)) < std::pair(b.rank, place_of(b.choice));
        });
    if (candidates_.size() > plan_.states_max) {
      const int first_left_out = candidates_[plan_.states_max].rank;
      out_.singles_exhaustive = out_.singles_exhaustive && first_left_out > kRankOfOneLost;
      out_.pairs_exhaustive = out_.pairs_exhaustive && first_left_out > kRankOfTwoLost;
      candidates_.resize(plan_.states_max);
    }
    out_.selected = candidates_.size();
    std::vector<Candidate> mine;
    for (const Candidate& candidate : candidates_) {
      if (place_of(candidate.choice) % plan_.shards == plan_.shard) mine.push_back(candidate);
    }
    out_.mine = mine.size();
    return mine;
  }

  void judged(const Candidate& candidate, Judgement judgement) {
    ++out_.checked;
    ++out_.by_loss[static_cast<std::size_t>(judgement.loss)];
    out_.checked_digest +=
        place_of(candidate.choice) * (static_cast<std::uint64_t>(judgement.loss) + 1);
    if (judgement.creation_not_atomic) ++out_.creation_not_atomic;
    out_.worst = std::max(out_.worst, judgement.loss);
    out_.lost_most = std::max(out_.lost_most, judgement.lost_acknowledged);
    // Where everything may be lost, nothing that is left has to make sense.
    const bool anything = plan_.allowed == Loss::unopenable;
    if (!anything && !judgement.allowed(plan_.allowed)) {
      ++out_.failures;
      failed_ = true;
      // Few lost calls make the better story.
      out_.kept_failures.push_back(
          {candidate.choice, known_at(candidate.choice), std::move(judgement)});
      std::sort(out_.kept_failures.begin(), out_.kept_failures.end(),
                [](const Failure& a, const Failure& b) {
                  return std::tuple(rank(a.choice.kind), a.choice.cut, a.choice.kind, a.choice.a,
                                    a.choice.b, a.choice.seed) <
                         std::tuple(rank(b.choice.kind), b.choice.cut, b.choice.kind, b.choice.a,
                                    b.choice.b, b.choice.seed);
                });
      if (out_.kept_failures.size() > plan_.failures_kept) out_.kept_failures.pop_back();
    } else if (!out_.worst_legal || *out_.worst_legal < judgement.loss) {
      out_.worst_legal = judgement.loss;
    }
  }

  Status check(std::vector<Candidate>& mine) {
    CheckPool pool(plan_.pool, [&](std::uint64_t token, Judgement judgement) {
      judged(mine[token], std::move(judgement));
    });
    const Clock::time_point begin = Clock::now();
    // In pieces, each sorted by cut: within a piece the disk walks forward once.
    constexpr std::size_t kPiece = 512;
    for (std::size_t from = 0; from < mine.size(); from += kPiece) {
      const std::size_t to = std::min(mine.size(), from + kPiece);
      std::sort(mine.begin() + static_cast<std::ptrdiff_t>(from),
                mine.begin() + static_cast<std::ptrdiff_t>(to),
                [](const Candidate& a, const Candidate& b) {
                  return std::pair(a.choice.cut, place_of(a.choice)) <
                         std::pair(b.choice.cut, place_of(b.choice));
                });
      Disk disk(trace_, plan_.profile, plan_.suppressed);
      for (std::size_t index = from; index < to; ++index) {
        const bool late = plan_.time && Clock::now() - begin >= *plan_.time;
        if (stopped() || late || (plan_.stop_at_failure && failed_)) {
          out_.stopped = true;
          out_.singles_exhaustive = out_.pairs_exhaustive = false;
          pool.drain();
          return {};
        }
        const Candidate& candidate = mine[index];
        while (disk.position() < candidate.choice.cut) disk.step();
        const Tree tree = state_of(disk, kept_by(disk, candidate.choice));
        ASSAY_TRY(
            pool.submit(tree, receipts_at(trace_, receipts_, known_at(candidate.choice)), index));
        if (plan_.on_progress && index % 64 == 0) {
          plan_.on_progress(out_.checked, mine.size(), out_.worst);
        }
      }
      pool.drain();  // the next piece is sorted: no token may be out
    }
    return {};
  }

  const Trace& trace_;
  const Acknowledgements& receipts_;
  const ExplorePlan& plan_;
  std::vector<std::uint32_t> cuts_;
  std::unordered_map<Digest, std::uint32_t, DigestHash> seen_;
  std::vector<Candidate> candidates_;
  bool failed_ = false;
  Exploration out_;
};

}  // namespace

void add(Exploration& sum, const Exploration& one) {
  sum.cuts += one.cuts;
  sum.built += one.built;
  sum.distinct += one.distinct;
  sum.selected += one.selected;
  sum.mine += one.mine;
  sum.checked_digest += one.checked_digest;
  sum.checked += one.checked;
  sum.pending_most = std::max(sum.pending_most, one.pending_most);
  sum.singles_exhaustive = sum.singles_exhaustive && one.singles_exhaustive;
  sum.pairs_exhaustive = sum.pairs_exhaustive && one.pairs_exhaustive;
  for (std::size_t loss = 0; loss < sum.by_loss.size(); ++loss)
    sum.by_loss[loss] += one.by_loss[loss];
  sum.failures += one.failures;
  sum.worst = std::max(sum.worst, one.worst);
  sum.lost_most = std::max(sum.lost_most, one.lost_most);
  sum.seconds_building += one.seconds_building;
  sum.seconds_checking += one.seconds_checking;
  sum.legal_log2 = std::max(sum.legal_log2, one.legal_log2);
  sum.creation_not_atomic += one.creation_not_atomic;
  sum.stopped = sum.stopped || one.stopped;
}

void add_shard(Exploration& sum, const Exploration& other) {
  Exploration more = other;
  // Every shard builds all states and looks at its own.
  for (std::uint64_t Exploration::* const same :
       {&Exploration::cuts, &Exploration::built, &Exploration::distinct, &Exploration::selected}) {
    sum.*same = std::max(sum.*same, more.*same);
    more.*same = 0;
  }
  add(sum, more);
}

nlohmann::json to_json(const Exploration& exploration) {
  nlohmann::json losses = nlohmann::json::object();
  for (std::size_t loss = 0; loss < exploration.by_loss.size(); ++loss) {
    if (exploration.by_loss[loss] == 0) continue;
    losses[std::string(to_string(static_cast<Loss>(loss)))] = exploration.by_loss[loss];
  }
  return {{"cuts", exploration.cuts},
          {"states_built", exploration.built},
          {"distinct_images", exploration.distinct},
          {"states_selected", exploration.selected},
          {"states_of_this_shard", exploration.mine},
          {"states_checked", exploration.checked},
          {"checked_digest", fmt::format("{:016x}", exploration.checked_digest)},
          {"pending_calls_most", exploration.pending_most},
          {"legal_states_log2_bound", exploration.legal_log2},
          {"one_lost_call_exhaustive", exploration.singles_exhaustive},
          {"two_lost_calls_exhaustive", exploration.pairs_exhaustive},
          {"by_loss", losses},
          {"creation_not_atomic", exploration.creation_not_atomic},
          {"failures", exploration.failures},
          {"worst", to_string(exploration.worst)},
          {"lost_most", exploration.lost_most},
          {"stopped", exploration.stopped},
          {"seconds_building", exploration.seconds_building},
          {"seconds_checking", exploration.seconds_checking}};
}

Result<Exploration> exploration_from_json(const nlohmann::json& json) {
  Exploration made;
  try {
    json.at("cuts").get_to(made.cuts);
    json.at("states_built").get_to(made.built);
    json.at("distinct_images").get_to(made.distinct);
    json.at("states_of_this_shard").get_to(made.mine);
    json.at("states_checked").get_to(made.checked);
    json.at("states_selected").get_to(made.selected);
    made.checked_digest = std::stoull(json.at("checked_digest").get<std::string>(), nullptr, 16);
    json.at("pending_calls_most").get_to(made.pending_most);
    json.at("legal_states_log2_bound").get_to(made.legal_log2);
    json.at("one_lost_call_exhaustive").get_to(made.singles_exhaustive);
    json.at("two_lost_calls_exhaustive").get_to(made.pairs_exhaustive);
    for (std::size_t loss = 0; loss < made.by_loss.size(); ++loss) {
      const std::string name(to_string(static_cast<Loss>(loss)));
      made.by_loss[loss] = json.at("by_loss").value(name, std::uint64_t{0});
    }
    json.at("creation_not_atomic").get_to(made.creation_not_atomic);
    json.at("failures").get_to(made.failures);
    const Result<Loss> worst = parse_loss(json.at("worst").get<std::string>());
    if (!worst) return fail(worst.error());
    made.worst = *worst;
    json.at("lost_most").get_to(made.lost_most);
    json.at("stopped").get_to(made.stopped);
    json.at("seconds_building").get_to(made.seconds_building);
    json.at("seconds_checking").get_to(made.seconds_checking);
  } catch (const std::exception& exception) {  // of the JSON or of the number in it
    return fail(ErrorKind::bad_input, fmt::format("not what was explored: {}", exception.what()));
  }
  return made;
}

Result<Exploration> explore(const Trace& trace, const Acknowledgements& receipts,
                            const ExplorePlan& plan) {
  return Explorer(trace, receipts, plan).run();
}

}  // namespace assay::qualify::power
