#include "harness/report/model.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "harness/ledger/durable_file.h"
#include "harness/ledger/ledger.h"
#include "harness/ledger/machines.h"
#include "harness/ledger/raw_files.h"
#include "harness/provenance/sha256.h"
#include "harness/report/record_reading.h"

namespace assay::report {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Without a verdict there is nothing to report: say what there is instead.
Error no_such_verdict(const std::vector<LedgerRecord>& lines, const std::string& path,
                      const std::string& wanted) {
  std::vector<std::string> judged;
  std::vector<std::string> begun;
  for (const LedgerRecord& line : lines) {
    if (line.kind == "verdict") judged.push_back(result_of(line));
    if (line.kind == "plan") begun.push_back(result_of(line));
  }
  std::string what = wanted.empty() ? "the ledger holds no verdict yet"
                                    : fmt::format("the ledger holds no result \"{}\"", wanted);
  if (std::find(begun.begin(), begun.end(), wanted) != begun.end()) {
    what = fmt::format("result \"{}\" has no verdict: its run is not complete", wanted);
  }
  Error error(ErrorKind::bad_input, std::move(what));
  error.at(path);
  if (judged.empty()) {
    error.hint("run the experiment to its end; running it again resumes where it stopped");
  } else {
    const std::string near = nearest_name(wanted, judged);
    error.hint(fmt::format("{}results with a verdict: {}",
                           near.empty() ? "" : fmt::format("did you mean {}? ", near),
                           fmt::join(judged, ", ")));
  }
  return error;
}

/// Two machines may have begun one plan in the same second: their results share a name.
Status check_one_machine(const std::vector<LedgerRecord>& lines, const std::string& path,
                         const std::string& wanted, const std::string& machine) {
  std::set<std::string> machines;
  for (const LedgerRecord& line : lines) {
    const bool meant = line.kind == "verdict" && result_of(line) == wanted;
    if (meant && line.machine.starts_with(machine)) machines.insert(line.machine);
  }
  if (machines.size() < 2) return {};
  std::vector<std::string> names;
  for (const std::string& one : machines) names.push_back(one.substr(0, 12));
  return fail(Error(ErrorKind::bad_input,
                    fmt::format("{} machines have a result \"{}\"", machines.size(), wanted))
                  .at(path)
                  .hint(fmt::format("--machine takes one of {}", fmt::join(names, ", "))));
}

/// The ledger by its last folders, as ledgers/demo/ledger.jsonl: a page must be the same bytes
/// wherever the tree stands and from wherever it is made.
std::string path_in_tree(const std::string& ledger_path) {
  std::error_code ignored;
  const fs::path whole = fs::absolute(ledger_path, ignored).lexically_normal();
  const fs::path folder = whole.parent_path();
  return (folder.parent_path().filename() / folder.filename() / whole.filename()).string();
}

/// As the user named the ledger: from where they stand, or from the root.
std::string as_named(const fs::path& place, const std::string& ledger_path) {
  std::error_code ignored;
  if (fs::path(ledger_path).is_absolute() || place.is_relative()) return place.string();
  return place.lexically_proximate(fs::current_path(ignored)).string();
}

Result<Trial> read_trial(const std::string& ledger_path, const RawFiles& raws,
                         const LedgerRecord& line, ReportModel& model) {
  const json& body = line.body;
  Trial trial;
  trial.arm = body.value("arm", "");
  trial.index = body.value("index", std::uint64_t{0});
  trial.seed = body.value("seed", std::uint64_t{0});
  if (body.contains("block") && body["block"].is_number()) {
    trial.block = body["block"].get<std::uint64_t>();
  }
  trial.status = body.value("status", "");
  trial.reason = body.value("reason", "");
  trial.started = body.value("started", "");
  trial.raw_path = body.at("raw").at("path").get<std::string>();
  trial.raw_sha256 = body.at("raw").at("sha256").get<std::string>();
  const fs::path path = raws.file_of(line, trial.raw_path);
  if (model.result_directory.empty()) {
    model.result_directory = path.parent_path().parent_path().string();
  }
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) {
    trial.raw_missing = true;
    read_raw_record(body, model.measured_phase, trial);
    return trial;
  }
  const Result<std::string> bytes = read_whole_file(path.string());
  if (!bytes) return fail(bytes.error());
  if (const std::string found = sha256_hex(*bytes); found != trial.raw_sha256) {
    return fail(Error(ErrorKind::ledger, "the raw record was changed after it was recorded")
                    .at(as_named(path, ledger_path))
                    .hint(fmt::format("SHA-256 is {:.12}, the ledger holds {:.12}", found,
                                      trial.raw_sha256)));
  }
  const json raw = json::parse(*bytes, nullptr, false);
  if (!raw.is_object()) {
    return fail(Error(ErrorKind::ledger, "no JSON object").at(as_named(path, ledger_path)));
  }
  read_raw_record(raw, model.measured_phase, trial);
  return trial;
}

/// As it would be typed.
std::string shell_word(const std::string& argument) {
  const bool plain = !argument.empty() && argument.find_first_not_of(
                                              "abcdefghijklmnopqrstuvwxyz"
                                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                              "0123456789-_./=,:+@%") == std::string::npos;
  if (plain) return argument;
  std::string quoted = "'";
  for (const char c : argument) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

void read_plan(const LedgerRecord& line, ReportModel& model) {
  model.plan_digest = line.body.value("digest", "");
  model.plan_time = line.time;
  model.plan_json = line.body.dump();
  const json experiment = line.body.value("experiment", json::object());
  model.plan = flatten(experiment);
  model.measured_phase = experiment.value("/workload/measured_phase"_json_pointer, std::string());
  const json provenance = line.body.value("provenance", json::object());
  model.provenance = flatten(provenance);
  const json arguments = provenance.value("/process/command_line"_json_pointer, json::array());
  for (const json& argument : arguments) {
    if (!argument.is_string()) continue;
    if (!model.command_line.empty()) model.command_line += ' ';
    model.command_line += shell_word(argument.get<std::string>());
  }
}

Result<ReportModel> assemble(const std::vector<LedgerRecord>& lines, std::size_t verdict,
                             const std::string& path) {
  ReportModel model;
  model.ledger_path = path_in_tree(path);
  model.head_hash = lines.back().hash;
  // A carried record keeps the name that it was published under.
  model.verdict_hash = origin_hash(lines[verdict]);
  model.verdict_time = lines[verdict].time;
  model.verdict_json = lines[verdict].body.dump();
  read_verdict(lines[verdict].body, model);
  RawFiles raws(path);
  for (const LedgerRecord& line : lines) raws.take(line);
  const std::string& machine = lines[verdict].machine;
  if (!lines[verdict].source.is_null()) {
    // Not into the folder of the ledger that it was carried from, whose pages tell that ledger.
    model.machine = fmt::format("{:.12}", machine);
    model.result_directory =
        (fs::path(folder_of(path)) / fmt::format("{}-{}", model.result, model.machine)).string();
  }
  for (std::size_t i = 0; i < verdict; ++i) {
    if (result_of(lines[i]) != model.result || lines[i].machine != machine) continue;
    if (lines[i].kind == "plan") read_plan(lines[i], model);
    if (lines[i].kind != "trial") continue;
    Result<Trial> trial = read_trial(path, raws, lines[i], model);
    if (!trial) return fail(trial.error());
    model.trials.push_back(std::move(*trial));
  }
  if (model.result_directory.empty()) {
    model.result_directory = fs::path(path).parent_path().string();
  }
  if (const std::string missing = missing_raws_text(model); !missing.empty()) {
    model.warnings.push_back(missing);
  }
  return model;
}

}  // namespace

Result<ReportModel> load_report(const std::string& ledger_path, const std::string& result_id,
                                const std::string& machine) {
  const Result<LedgerContents> ledger = read_ledger(ledger_path);
  if (!ledger) return fail(ledger.error());
  const std::vector<LedgerRecord>& records = ledger->records;
  ASSAY_TRY(check_one_machine(records, ledger_path, result_id, machine));
  for (std::size_t i = records.size(); i-- > 0;) {
    if (records[i].kind != "verdict") continue;
    if (!result_id.empty() && result_of(records[i]) != result_id) continue;
    if (!records[i].machine.starts_with(machine)) continue;
    try {
      Result<ReportModel> model = assemble(records, i, ledger_path);
      if (model && !ledger->torn.empty()) {
        model->warnings.push_back("the ledger ends in an unfinished record: a writer was killed");
      }
      return model;
    } catch (const json::exception& broken) {
      return fail(Error(ErrorKind::ledger, fmt::format("a record is malformed: {}", broken.what()))
                      .at(ledger_path));
    }
  }
  Error error = no_such_verdict(records, ledger_path, result_id);
  if (!machine.empty()) error.in(fmt::format("of machine {}", machine));
  if (!ledger->torn.empty()) {
    error.hint("its last line is unfinished: a writer was killed; " + error.hint_text());
  }
  return fail(std::move(error));
}

std::string missing_raws_text(const ReportModel& model) {
  const auto is_missing = [](const Trial& trial) { return trial.raw_missing; };
  const auto missing = std::count_if(model.trials.begin(), model.trials.end(), is_missing);
  if (missing == 0) return {};
  const auto first = std::find_if(model.trials.begin(), model.trials.end(), is_missing);
  return fmt::format(
      "{} of {} raw records {} missing (the first: {}); latency curves and time series need them "
      "and are left out for the arms concerned, every other figure is the ledger's own",
      missing, model.trials.size(), missing == 1 ? "is" : "are", first->raw_path);
}

Result<std::string> find_ledger(const std::string& name) {
  std::error_code ignored;
  if (fs::is_regular_file(name, ignored)) return name;
  const fs::path candidates[] = {fs::path(name) / "ledger.jsonl",
                                 fs::path("ledgers") / name / "ledger.jsonl",
                                 fs::path("runs") / name / "ledger.jsonl"};
  for (const fs::path& candidate : candidates) {
    if (fs::is_regular_file(candidate, ignored)) return candidate.string();
    if (fs::is_directory(candidate, ignored)) {
      return fail(Error(ErrorKind::bad_input, "this is a directory, not a ledger")
                      .at(candidate.string())
                      .hint("a ledger is a file of records, which a run writes"));
    }
  }
  std::vector<std::string> known;
  for (const char* folder : {"ledgers", "runs"}) {
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      if (fs::is_regular_file(entry.path() / "ledger.jsonl", ignored)) {
        known.push_back(entry.path().filename().string());
      }
    }
  }
  std::sort(known.begin(), known.end());
  const bool folder = fs::is_directory(name, ignored);
  Error error(ErrorKind::bad_input,
              folder ? fmt::format("the directory \"{}\" holds no ledger.jsonl", name)
                     : fmt::format("there is no ledger \"{}\"", name));
  const std::string near = nearest_name(name, known);
  if (!near.empty()) {
    error.hint(fmt::format("did you mean {}?", near));
  } else if (known.empty()) {
    error.hint("give the path of a ledger.jsonl; none is below ledgers/ or runs/ here");
  } else {
    error.hint(fmt::format("known here: {}", fmt::join(known, ", ")));
  }
  return fail(error);
}

bool shows_ahead(const ReportModel& model, const std::string& arm, const std::string& other) {
  return std::any_of(model.comparisons.begin(), model.comparisons.end(), [&](const Comparison& c) {
    return (c.a == arm && c.b == other && c.verdict == "superior") ||
           (c.b == arm && c.a == other && c.verdict == "inferior");
  });
}

std::string row_title(const Row& row) {
  const std::string store = row.version.empty() ? row.store : row.store + " " + row.version;
  const std::string& name = row.base.empty() ? row.arm : row.base;  // the cell is told above it
  if (row.a_a_twin) return fmt::format("{} ({}, A/A)", name, store);
  if (row.control) return fmt::format("{} ({}, positive control)", name, store);
  if (name == row.store || row.store.empty()) return row.version.empty() ? name : store;
  return fmt::format("{} ({})", name, store);
}

std::string durability_text(const Row& row) {
  if (row.proof.empty()) return row.durability;
  if (row.proof_record.empty()) return fmt::format("{} ({})", row.durability, row.proof);
  return fmt::format("{} ({} by {:.12})", row.durability, row.proof, row.proof_record);
}

}  // namespace assay::report
