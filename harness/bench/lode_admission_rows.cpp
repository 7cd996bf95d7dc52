// Rows of lode_speed_benchmark about a bounded data file: what the promise that every acknowledged
// commit can be flushed costs, against none (unreserved) and against counting each time (recount).
#include "harness/bench/lode_speed_rig.h"

namespace assay {
namespace {

constexpr const char* kPolicies[] = {"unreserved", "weighted", "recount"};
constexpr std::uint64_t kPageBytes = 8192;

Rigs policy_rigs(const Plan& plan, DurabilityClass durability, std::uint64_t entries,
                 std::uint64_t max_bytes) {
  Rigs rigs;
  for (const char* policy : kPolicies) {
    auto rig = std::make_unique<Rig>();
    rig->name = policy;
    rig->scratch = std::make_unique<TemporaryDirectory>(plan.directory.string());
    OpenOptions options = options_for(plan, rig->scratch->path(), durability, entries);
    options.settings["admission"] = policy;
    options.settings["max_bytes"] = std::to_string(max_bytes);
    options.settings["overlay_bytes"] = std::to_string(std::uint64_t{1} << 30);
    rig->store = take(take(find_driver("lode"))->open(options));
    rigs.push_back(std::move(rig));
  }
  return rigs;
}

/// Commits of `keys` new or known keys each; seconds in all.
double commits(const Plan& plan, Session& session, std::uint64_t count, std::uint64_t keys,
               const std::function<std::uint64_t(std::uint64_t)>& entry) {
  const std::string value(plan.value_bytes, 'w');
  std::vector<std::string> names(count * keys);
  for (std::uint64_t i = 0; i < names.size(); ++i) names[i] = key_of(entry(i), plan.key_bytes());
  std::vector<Mutation> mutations(keys);
  return seconds_of([&] {
    for (std::uint64_t i = 0; i < count; ++i) {
      for (std::uint64_t k = 0; k < keys; ++k) {
        mutations[k] = {Mutation::Kind::put, names[i * keys + k], value};
      }
      take(session.apply(mutations));
    }
  });
}

void show_policies(const std::string& row, const Rigs& rigs) {
  std::string line = fmt::format("{:<28}", row);
  for (const auto& rig : rigs) {
    line += fmt::format("  {} {:.4g}/s", rig->name, median(rig->rates));
    if (rig == rigs.front()) continue;
    std::vector<double> ratios;
    for (std::size_t i = 0; i < rig->rates.size(); ++i) {
      ratios.push_back(rig->rates[i] / rigs.front()->rates[i]);
    }
    line += fmt::format(" (x{:.3f})", median(ratios));
  }
  const auto counters = rigs[1]->store->counters();
  line += fmt::format("  weighted: {} fast, {} fallbacks", counters.at("admission_fast_accepts"),
                      counters.at("admission_exact_fallbacks"));
  fmt::print("{}\n", line);
  (void)std::fflush(stdout);
}

}  // namespace

void admission_row(const Plan& plan) {
  constexpr std::uint64_t arena_bytes = 32'768 * kPageBytes;
  constexpr std::uint64_t single = 128;
  constexpr std::uint64_t hot = 256;
  for (const std::uint64_t entries : {4'096, 16'384, 65'536}) {
    Rigs rigs = policy_rigs(plan, DurabilityClass::power, entries, arena_bytes);
    for (auto& rig : rigs) {
      load(plan, *take(rig->store->session()), entries);
      take(rig->store->settle());
    }
    for (const bool uniform : {false, true}) {
      take_turns(plan, rigs, [&](Rig& rig, int round) {
        const auto session = take(rig.store->session());
        const std::uint64_t from = static_cast<std::uint64_t>(round) * single;
        return static_cast<double>(single) /
               commits(plan, *session, single, 1, [&](std::uint64_t i) {
                 return mixed(from + i) % (uniform ? entries : hot);
               });
      });
      show_policies(fmt::format("admission {} {}", entries, uniform ? "uniform" : "hot"), rigs);
    }
  }
  constexpr std::uint64_t batches = 64;
  constexpr std::uint64_t batch = 128;
  Rigs rigs = policy_rigs(plan, DurabilityClass::power, 0, arena_bytes);
  take_turns(plan, rigs, [&](Rig& rig, int round) {
    const std::uint64_t from = static_cast<std::uint64_t>(round) * batches * batch;
    const double seconds = commits(plan, *take(rig.store->session()), batches, batch,
                                   [&](std::uint64_t i) { return from + i; });
    take(rig.store->checkpoint());  // outside of the time; the next round begins with none pending
    return static_cast<double>(batches) / seconds;
  });
  show_policies("admission growth 64 x 128", rigs);
}

void admission_pending_row(const Plan& plan) {
  for (std::uint64_t pending = 1'000; pending <= 1'000'000; pending *= 10) {
    Rigs rigs = policy_rigs(plan, DurabilityClass::volatile_, pending, std::uint64_t{8} << 30);
    for (auto& rig : rigs) {
      if (rig->name == "recount") {  // one commit, for each is counted
        const auto session = take(rig->store->session());
        (void)commits(plan, *session, 1, pending, [](std::uint64_t i) { return i; });
      } else {
        load(plan, *take(rig->store->session()), pending);
      }
    }
    take_turns(plan, rigs, [&](Rig& rig, int round) {
      const bool counts = rig.name == "recount";
      const std::uint64_t count = counts ? std::max<std::uint64_t>(1, 20'000 / pending) : 20'000;
      const std::uint64_t from = static_cast<std::uint64_t>(round) * count;
      return static_cast<double>(count) /
             commits(plan, *take(rig.store->session()), count, 1,
                     [&](std::uint64_t i) { return mixed(from + i) % pending; });
    });
    std::string line = fmt::format("admission-pending {:<10}", pending);
    for (const auto& rig : rigs) {
      line += fmt::format("  {} {:.4g} ns", rig->name, 1e9 / median(rig->rates));
    }
    fmt::print("{}\n", line);
    (void)std::fflush(stdout);
  }
}

}  // namespace assay
