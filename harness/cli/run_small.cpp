#include "harness/cli/run_small.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "harness/cli/experiment_run.h"
#include "harness/cli/print_json.h"
#include "harness/cli/terminal_width.h"
#include "harness/experiment/result_place.h"
#include "harness/experiment/small_scale.h"
#include "harness/experiment/stop_signal.h"
#include "harness/ledger/directory_lock.h"
#include "harness/ledger/durable_file.h"
#include "harness/ledger/ledger.h"
#include "harness/provenance/sha256.h"
#include "harness/report/model.h"
#include "harness/report/write_report.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kStatus = "small scale, exploratory";

/// One experiment, read and lowered; or why it cannot be run.
struct Small {
  std::string name;
  Result<Plan> plan;
  std::vector<std::string> reduced;
  std::string digest;
};

Small read_small(const std::string& file) {
  Small one{fs::absolute(file).parent_path().filename().string(),
            load_plan(file, plan_environment()),
            {},
            {}};
  if (!one.plan) return one;
  one.name = one.plan->name;
  one.reduced = make_small(*one.plan);
  one.digest = plan_digest(to_json(*one.plan));
  return one;
}

class SmallRun {
 public:
  SmallRun(const SmallRunOptions& options, std::vector<Small> all)
      : options_(options), all_(std::move(all)) {}
  Result<ExitStatus> go();

 private:
  Status choose_folder();
  Status lock();
  [[nodiscard]] bool can_go_on(const json& state) const;
  [[nodiscard]] json* done(const Small& one);
  Result<json> run(const Small& one, const std::atomic<bool>& stop);
  Status save();
  void show() const;
  [[nodiscard]] ExitStatus status() const;
  [[nodiscard]] json names() const;

  const SmallRunOptions& options_;
  std::vector<Small> all_;
  std::string binary_sha256_;
  std::string folder_;
  std::optional<DirectoryLock> lock_;
  json state_;
  bool stopped_ = false;
};

std::string state_file(const fs::path& folder) {
  return (folder / "small.json").string();
}

json read_state(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(state_file(folder), error)) return {};
  const auto text = read_whole_file(state_file(folder));
  json state = text ? json::parse(*text, nullptr, false) : json();
  return state.is_object() ? state : json();
}

json SmallRun::names() const {
  json names = json::array();
  for (const Small& one : all_) names.push_back(one.name);
  return names;
}

bool SmallRun::can_go_on(const json& state) const {
  return state.is_object() && !state.value("complete", true) &&
         state.value("binary_sha256", "") == binary_sha256_ &&
         state.value("names", json()) == names();
}

/// The folder of a stopped run of the same experiments by the same program, else a new one.
Status SmallRun::choose_folder() {
  auto binary = sha256_file("/proc/self/exe");
  if (!binary) return fail(binary.error());
  binary_sha256_ = std::move(*binary);
  std::error_code error;
  if (!options_.out.empty()) {
    folder_ = options_.out;
    state_ = options_.fresh ? json() : read_state(folder_);
    if (can_go_on(state_)) return lock();
    if (fs::exists(folder_, error) && !fs::is_empty(folder_, error)) {
      return fail(Error(ErrorKind::bad_input,
                        "this holds something other than a stopped small run of these experiments")
                      .at(folder_)
                      .hint("give --out a new or empty directory"));
    }
  } else {
    std::vector<fs::path> earlier;
    for (const auto& entry : fs::directory_iterator("runs", error)) {
      if (entry.path().filename().string().starts_with("small-")) earlier.push_back(entry.path());
    }
    std::sort(earlier.rbegin(), earlier.rend());
    for (const fs::path& path : earlier) {
      if (options_.fresh) break;
      state_ = read_state(path);
      folder_ = path.string();
      if (can_go_on(state_)) return lock();
    }
    std::string time = utc_now();
    std::erase_if(time, [](char letter) { return letter == '-' || letter == ':'; });
    folder_ = "runs/small-" + time;
    for (int number = 2; fs::exists(folder_, error); ++number) {
      folder_ = fmt::format("runs/small-{}-{}", time, number);
    }
  }
  state_ = {{"schema", 1},
            {"scale", "small"},
            {"status", kStatus},
            {"binary_sha256", binary_sha256_},
            {"names", names()},
            {"complete", false},
            {"experiments", json::array()}};
  ASSAY_TRY(make_directories_durably(folder_));
  ASSAY_TRY(lock());
  return save();
}

Status SmallRun::lock() {
  auto taken = DirectoryLock::take(folder_);
  if (!taken) return fail(taken.error());
  lock_.emplace(std::move(*taken));
  // What another run has done since the state was read.
  if (const json now = read_state(folder_); can_go_on(now)) state_ = now;
  return {};
}

Status SmallRun::save() {
  return write_file_durably(state_file(folder_),
                            state_.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}

json* SmallRun::done(const Small& one) {
  for (json& entry : state_["experiments"]) {
    if (entry.value("name", "") == one.name && entry.value("digest", "") == one.digest)
      return &entry;
  }
  return nullptr;
}

/// So few trials rarely pass an A/A gate, and by how much says nothing: that is told in two words.
std::string void_text(const json& reasons) {
  for (const json& reason : reasons) {
    const std::string text = reason.get<std::string>();
    if (text.find("A/A gate") == std::string::npos) return "void: " + text;
  }
  return "ran; no verdict: too few trials for the A/A gate";
}

/// What the verdict says, in a few words.
std::string outcome_text(const RunOutcome& outcome) {
  const json& verdict = outcome.verdict;
  if (outcome.end == RunEnd::void_experiment)
    return void_text(verdict.value("void_reasons", json::array()));
  if (outcome.end == RunEnd::disqualified) {
    for (const json& row : verdict.value("rows", json::array())) {
      if (!row.value("disqualified", false)) continue;
      return fmt::format("DISQUALIFIED: {}: {}", row.value("arm", ""), row.value("reason", ""));
    }
  }
  std::size_t claims = 0;
  std::size_t decided = 0;
  for (const json& one : verdict.value("comparisons", json::array())) {
    ++claims;
    decided += one.value("claim", "") == "shown" || one.value("claim", "") == "refuted" ? 1 : 0;
  }
  return fmt::format("ran; {} of {} claims decided", decided, claims);
}

Result<json> SmallRun::run(const Small& one, const std::atomic<bool>& stop) {
  json entry = {{"name", one.name}, {"digest", one.digest}, {"reduced", one.reduced}};
  const auto begun = std::chrono::steady_clock::now();
  RunRequest request;
  request.out = (fs::path(folder_) / one.name).string();
  ProgressLine progress = ProgressLine::standard_error();
  const auto outcome = one.plan ? run_experiment(*one.plan, request,
                                                 RunServices::real(command_line()), stop, progress)
                                : Result<RunOutcome>(fail(one.plan.error()));
  if (!outcome && outcome.error().kind() == ErrorKind::interrupted) return fail(outcome.error());
  entry["seconds"] =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  if (!outcome) {
    entry["outcome"] = "not run: " + outcome.error().message();
    entry["exit_status"] = static_cast<int>(exit_status(outcome.error().kind()));
    return entry;
  }
  entry["outcome"] = outcome_text(*outcome);
  entry["verdict"] = outcome->verdict.value("outcome", "");
  // Two trials judge nothing: only contents that were wrong count.
  entry["exit_status"] = static_cast<int>(
      outcome->end == RunEnd::disqualified ? ExitStatus::wrong_contents : ExitStatus::done);
  entry["ledger"] = outcome->ledger_path;
  entry["result"] = outcome->result;
  if (options_.no_report) return entry;
  const auto model = report::load_report(outcome->ledger_path, outcome->result);
  if (!model) return fail(model.error());
  const auto written = report::write_report(*model, outcome->directory);
  if (!written) return fail(written.error());
  entry["report"] = written->html;
  return entry;
}

void SmallRun::show() const {
  std::vector<std::vector<std::string>> rows = {{"experiment", "outcome", "time", "lowered"}};
  double seconds = 0.0;
  for (const Small& one : all_) {
    const json* found = nullptr;
    for (const json& entry : state_["experiments"]) {
      if (entry.value("name", "") == one.name) found = &entry;
    }
    if (found == nullptr) {
      rows.push_back({one.name, "not yet run", "-", "-"});
      continue;
    }
    seconds += found->value("seconds", 0.0);
    rows.push_back(
        {one.name, found->value("outcome", ""),
         fmt::format("{:.1f} s", found->value("seconds", 0.0)),
         one.reduced.empty() ? "nothing" : fmt::format("{}", fmt::join(one.reduced, "; "))});
  }
  fmt::print(
      "SMALL SCALE, EXPLORATORY: whether every experiment runs; none of its figures is a "
      "result\n\n");
  print_table(rows);
  fmt::print("\n{} of {} experiments in {}\nin {}\n", state_["experiments"].size(), all_.size(),
             duration_text(static_cast<std::uint64_t>(seconds)), folder_);
  if (stopped_) fmt::print("stopped: the same command goes on\n");
}

ExitStatus SmallRun::status() const {
  if (stopped_) return ExitStatus::interrupted;
  ExitStatus first = ExitStatus::done;
  for (const json& entry : state_["experiments"]) {
    const auto one = static_cast<ExitStatus>(entry.value("exit_status", 0));
    if (one == ExitStatus::wrong_contents) return one;
    if (first == ExitStatus::done) first = one;
  }
  return first;
}

Result<ExitStatus> SmallRun::go() {
  ASSAY_TRY(choose_folder());
  const StopOnSignal stop;
  for (const Small& one : all_) {
    if (done(one) != nullptr) continue;
    auto entry = stop.flag().load()
                     ? Result<json>(fail(ErrorKind::interrupted, "stopped between experiments"))
                     : run(one, stop.flag());
    if (!entry && entry.error().kind() == ErrorKind::interrupted) {
      stopped_ = true;
      break;
    }
    if (!entry) return fail(entry.error());
    json& entries = state_["experiments"];
    for (std::size_t i = entries.size(); i-- > 0;) {  // of the file as it was before a change
      if (entries[i].value("name", "") == one.name) entries.erase(i);
    }
    entries.push_back(std::move(*entry));
    ASSAY_TRY(save());
  }
  state_["complete"] = !stopped_;
  ASSAY_TRY(save());
  if (options_.json) {
    state_["directory"] = folder_;
    print_json(state_);
  } else {
    show();
  }
  return status();
}

}  // namespace

Result<ExitStatus> run_small(const SmallRunOptions& options) {
  std::vector<Small> all;
  for (const std::string& file : options.files) all.push_back(read_small(file));
  return SmallRun(options, std::move(all)).go();
}

}  // namespace assay::cli
