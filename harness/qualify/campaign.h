// A campaign: one store under one setting, at one or more levels, until the budget is spent.
//
// A campaign is a row of cases. Case c follows from the campaign's seed and c alone, so that shards
// (c modulo n) are parts of the same campaign and a stopped one goes on where it was. A level knows
// how to run its cases; this header knows nothing of how a directory gets into the state that a
// crash leaves.
// Threads: run_campaign() is called by one thread at a time in a process.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "adapters/store.h"
#include "harness/qualify/history.h"
#include "harness/qualify/oracle.h"

namespace assay::qualify {

enum class Level : std::uint8_t { kill, power_files, power_blocks, errors, rot };
/// "K", "F", "B", "E" or "R".
[[nodiscard]] std::string_view to_string(Level level);
[[nodiscard]] Result<Level> parse_level(std::string_view text);

enum class Verdict : std::uint8_t {
  pass,           ///< nothing worse than the contract was reached
  fail,           ///< worse was reached
  inconclusive,   ///< too few states, or what was recorded was incomplete
  harness_error,  ///< a control misbehaved, the disk lied, or the harness itself failed
  skipped,        ///< the machine lacks what the level needs: neither passed nor failed
};
/// "PASS", "FAIL", "INCONCLUSIVE", "HARNESS-ERROR" or "SKIPPED".
[[nodiscard]] std::string_view to_string(Verdict verdict);

/// When a level ends. Both unset: the level's own default.
struct Budget {
  std::optional<std::chrono::milliseconds> time;
  std::optional<std::uint64_t> cases;  ///< kills, states, cuts: what the level counts
};
/// "60s", "5m", "1h", "500ms"; "1000" or "1000 cases" counts.
[[nodiscard]] Result<Budget> parse_budget(std::string_view text);
[[nodiscard]] nlohmann::json to_json(const Budget& budget);

struct Shard {
  std::uint64_t index = 0;  ///< from 0
  std::uint64_t count = 1;
};
/// "1/4" to "4/4".
[[nodiscard]] Result<Shard> parse_shard(std::string_view text);

/// Commits that were acknowledged when the power failed, at least and at most.
struct CutRegion {
  std::uint64_t least = 0;
  std::uint64_t most = 0;
};

struct CampaignPlan {
  std::string store;                                    ///< as find_driver takes it
  DurabilityClass durability = DurabilityClass::power;  ///< what the store is opened for
  Settings settings;
  Settings settings_in_force;  ///< all of them, as resolve_settings() gives them
  DurabilityClass claimed = DurabilityClass::power;  ///< what the settings leave of it
  std::vector<Level> levels;
  std::uint64_t seed = 1;
  Budget budget;  ///< of each level; cases are those of all shards together
  Shard shard;
  HistoryShape shape;
  std::vector<std::string> file_systems = {"ext4"};  ///< of level B, which shares its budget
  /// Of level B: its first history alone, and only cuts of this region.
  std::optional<CutRegion> region;
  std::string root;                        ///< where stores live while they are qualified
  std::string ledger;                      ///< where records go; empty = `out`/ledger.jsonl
  std::string out;                         ///< directory of bundles, state and ledger
  std::uint32_t jobs = 2;                  ///< cases at the same time
  std::uint32_t open_timeout_ms = 30'000;  ///< a store that takes longer to open hangs
  std::uint64_t failures_max = 50;         ///< a level ends early: more say nothing new
  std::uint32_t bundles_max = 3;           ///< failures that are kept as bundles
  std::string binary;  ///< run as `BINARY qualify-worker`; empty = the running one
};
/// What decides whether a stopped campaign may be resumed: everything but budget, shard's places,
/// jobs and paths.
[[nodiscard]] nlohmann::json identity_json(const CampaignPlan& plan);

/// What one level found, so far or at its end.
struct LevelOutcome {
  Level level = Level::kill;
  std::string profile;  ///< of the persistence model; empty where there is none
  Verdict verdict = Verdict::inconclusive;
  std::string reason;                     ///< for all but PASS: a sentence
  Loss allowed = Loss::intact;            ///< by what is claimed
  Loss observed = Loss::intact;           ///< the worst that was reached
  std::uint64_t lost_most = 0;            ///< acknowledged commits missing at once, at most
  std::optional<DurabilityClass> proven;  ///< by this level alone
  std::uint64_t cases = 0;                ///< kills, distinct states, cuts
  std::uint64_t failures = 0;             ///< of them, beyond the contract
  double elapsed_s = 0.0;
  nlohmann::json store;     ///< {"store", "version", "settings"}: in force, read back
  nlohmann::json coverage;  ///< counts by name; shown as they are
  std::vector<std::string> bundles;
  bool finished = false;  ///< false: stopped; `resume` continues it
  nlohmann::json resume;  ///< what the level needs to go on
};
/// Adds to a number of `coverage`, which begins with 0.
void count(nlohmann::json& coverage, const std::string& name, std::uint64_t more = 1);
[[nodiscard]] nlohmann::json to_json(const LevelOutcome& outcome);
[[nodiscard]] Result<LevelOutcome> level_outcome_from_json(const nlohmann::json& json);

/// Told about a running campaign. The base class is silent. One thread at a time.
class CampaignObserver {
 public:
  virtual ~CampaignObserver() = default;
  virtual void level_begins(Level /*level*/, const std::string& /*profile*/) {}
  /// `fraction` of the budget; `sentence` says what was found so far.
  virtual void progress(double /*fraction*/, const std::string& /*sentence*/) {}
  virtual void note(const std::string& /*sentence*/) {}
  /// What could be resumed if this process died now; the level tells it now and then.
  virtual void so_far(const LevelOutcome& /*outcome*/) {}
  virtual void level_ends(const LevelOutcome& /*outcome*/) {}
};

/// Runs one level from `from` (empty, or what it returned when it was stopped) until its budget is
/// spent or `stop`; one outcome a profile. What the machine lacks is Verdict::skipped with a
/// reason, not an error.
using RunLevel = std::function<Result<std::vector<LevelOutcome>>(
    const CampaignPlan& plan, const std::vector<LevelOutcome>& from, const std::atomic<bool>& stop,
    CampaignObserver& observer)>;

/// The levels that there are. A new level is one line here.
[[nodiscard]] RunLevel find_level(Level level);

/// The outcome of one level and profile from those of all its shards: sums, and the verdict anew.
using MergeLevel = std::function<Result<LevelOutcome>(const CampaignPlan& whole,
                                                      const std::vector<LevelOutcome>& shards)>;
[[nodiscard]] MergeLevel find_merge(Level level);

struct CampaignOutcome {
  std::vector<LevelOutcome> levels;
  bool interrupted = false;
  std::vector<nlohmann::json> records;  ///< bodies of kind "qualification", one a level and profile
  std::string ledger_path;              ///< where they were appended
};

/// Runs the plan's levels, keeps `out`/campaign.json so that it can be resumed, and appends the
/// records to the ledger. Stale directories of killed campaigns are removed first.
[[nodiscard]] Result<CampaignOutcome> run_campaign(const CampaignPlan& plan,
                                                   const std::vector<std::string>& command_line,
                                                   const std::atomic<bool>& stop,
                                                   CampaignObserver& observer);

/// Keeps what was found and appends its records, as run_campaign() does at its end. `outcome` gets
/// records and ledger.
[[nodiscard]] Status record_campaign(const CampaignPlan& plan,
                                     const std::vector<std::string>& command_line,
                                     CampaignOutcome& outcome);

/// What a campaign of the same identity found that has ended and is recorded below `plan.out`;
/// empty where there is none.
[[nodiscard]] std::vector<LevelOutcome> ended_campaign(const CampaignPlan& plan);

/// The class that a store has shown whose worst loss after power loss was `worst`.
[[nodiscard]] std::optional<DurabilityClass> class_proven_by(Loss worst);

/// The worst verdict of the levels: HARNESS-ERROR, FAIL, INCONCLUSIVE, SKIPPED, PASS.
[[nodiscard]] Verdict worst_verdict(const std::vector<LevelOutcome>& levels);

}  // namespace assay::qualify
