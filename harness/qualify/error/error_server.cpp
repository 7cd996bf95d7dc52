#include "harness/qualify/error/error_server.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/qualify/bundle.h"
#include "harness/qualify/directory_image.h"
#include "harness/qualify/kill/call_stop.h"
#include "harness/qualify/kill/kill_server.h"
#include "harness/qualify/perform.h"

namespace assay::qualify::error {
namespace {

namespace fs = std::filesystem;
using Kind = Finding::Kind;

constexpr std::uint64_t kReceipts = 256;
constexpr std::size_t kTextBytes = std::size_t{16} << 20;
constexpr std::uint32_t kTransactionsAfter = 2;
constexpr std::uint64_t kBaseTransactions = 8;
/// A life takes milliseconds: what takes longer than this hangs.
constexpr std::uint32_t kLongest_ms = 10'000;

constexpr std::uint64_t kWritersOneIn = 4;

constexpr int kCannotGoOn = 4;
constexpr std::uint64_t kShardsMax = 100'000;  ///< as --shard takes it

/// As it is where only plain characters are in it.
std::string quoted_for_a_shell(const std::string& text) {
  if (text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                             "_-./=:,") == std::string::npos)
    return text;
  std::string quoted = "'";
  for (const char one : text) quoted += one == '\'' ? std::string("'\\''") : std::string(1, one);
  return quoted + "'";
}

}  // namespace

/// One case: what is done, and what was found.
struct ErrorServer::Case {
  Case(History of, std::uint64_t index, bool recovers_a_store)
      : history(std::move(of)), history_index(index), recovers(recovers_a_store) {}

  Fault fault;
  History history;
  std::uint64_t history_index;
  bool recovers;
  LifeOrder order;
  InjectorSeen seen;
  LifeReport report;
  Acknowledgements known;
  bool ended_well = false;
  std::uint32_t left_behind = 0;
  std::uint64_t acknowledged_after_failed_sync = 0;
  bool cut_checked = false;
  bool keeps_image = false;
  /// What no contract allows: name of the kind, and a sentence.
  std::vector<std::pair<std::string, std::string>> findings;
  Judgement judgement;            ///< the worst
  std::string failing_directory;  ///< of a state that shows it again; empty = none does
  Loss failing_allowed = Loss::intact;

  [[nodiscard]] std::string fault_text() const {
    if (seen.times == 0) return "no fault was reached";
    return fmt::format(
        "{} at call {} of its sort, {} of {}, in stage {} of a life that {} its store",
        fault.shape.text(), fault.number, seen.call, seen.file, seen.stage,
        recovers ? "recovers" : "creates");
  }
};

nlohmann::json to_json(const ErrorRequest& request) {
  nlohmann::json json = qualify::to_json(request.base);
  json["level"] = "E";
  json["allowed_after_power_loss"] = qualify::to_string(request.allowed_after_power_loss);
  return json;
}

Result<ErrorRequest> error_request_from_json(const nlohmann::json& json) {
  Result<KillRequest> base = kill_request_from_json(json);
  if (!base) return fail(base.error());
  const Result<Loss> allowed = parse_loss(json.value("allowed_after_power_loss", ""));
  if (!allowed) return fail(allowed.error());
  return ErrorRequest{std::move(*base), *allowed};
}

bool is_error_request(const nlohmann::json& json) {
  return json.is_object() && json.value("level", "") == "E";
}

Result<ErrorServer> ErrorServer::make(ErrorRequest request, const Driver& driver) {
  ASSAY_TRY(adopt_orphans());
  std::error_code code;
  // As /proc tells it.
  request.base.directory = fs::canonical(request.base.directory, code).string();
  if (code) return fail(ErrorKind::environment, "no directory: " + code.message());
  Result<SharedReceipts> receipts =
      SharedReceipts::make(History(request.base.seed, request.base.shape), kReceipts);
  if (!receipts) return fail(receipts.error());
  Result<SharedText> text = SharedText::make(kTextBytes);
  if (!text) return fail(text.error());
  return ErrorServer(std::move(request), driver, std::move(*receipts), std::move(*text));
}

std::chrono::milliseconds ErrorServer::patience() const {
  return std::chrono::milliseconds(std::min(request_.base.open_timeout_ms, kLongest_ms));
}

/// Every other history: with one writer an error is followed by what the history would have done
/// next, with several by what others were about to be told.
bool ErrorServer::has_writers(std::uint64_t index) const {
  return request_.base.shape.writers > 1 && index % 2 == 1;
}

History ErrorServer::history_of(std::uint64_t index) const {
  const std::uint64_t seed = request_.base.seed;
  std::seed_seq seeds{seed & 0xffffffff, seed >> 32, index & 0xffffffff, index >> 32};
  HistoryShape shape = request_.base.shape;
  if (!has_writers(index)) shape.writers = 1;
  return {std::mt19937_64(seeds)(), shape};
}

Result<nlohmann::json> ErrorServer::describe() {
  nlohmann::json description;
  {
    Result<KillServer> server = KillServer::make(request_.base, driver_);
    if (!server) return fail(server.error());
    Result<nlohmann::json> described = server->describe();
    if (!described) return fail(described.error());
    description = std::move(*described);
  }
  if (!description.value("calls", false)) return description;
  for (const bool recovers : {false, true}) {
    const Result<Counts> counts = count_calls(recovers);
    if (!counts) return fail(counts.error());
    counts_[recovers ? 1 : 0] = *counts;
    for (std::size_t sort = 0; sort < kCallSorts; ++sort)
      description["calls_of_a_life"][recovers ? "recovers" : "creates"]
                 [std::string(to_string(static_cast<CallSort>(sort)))] = (*counts)[sort];
  }
  return description;
}

/// A life without a fault.
Result<ErrorServer::Counts> ErrorServer::count_calls(bool recovers) {
  Case now(history_of(0), 0, recovers);
  ASSAY_TRY(begin(now));
  ASSAY_TRY(live(now, false));
  if (!now.ended_well || now.report.failed > 0)
    return fail(ErrorKind::store,
                "the store fails although no call of it does: " +
                    (now.report.errors.empty()
                         ? now.findings.empty() ? std::string("no report") : now.findings[0].second
                         : now.report.errors[0]));
  return now.seen.calls;
}

/// A directory that a life of this history has left without closing.
Result<std::string> ErrorServer::recovered_base(std::uint64_t index) {
  const std::size_t place = index % bases_.size();
  std::string path = fmt::format("{}/base-{}", request_.base.directory, place);
  if (bases_[place] == index + 1) return path;
  std::error_code code;
  fs::create_directories(path, code);
  ASSAY_TRY(empty_directory(path));
  const History history = history_of(index);
  receipts_.restart(history);
  text_.clear();
  Result<Forked> fork = Forked::start([&] {
    const OpenOptions options = qualification_options(
        path, request_.base.durability, request_.base.settings, request_.base.shape.key_kind);
    const auto store = driver_.open(options);
    if (!store) {
      text_.set(store.error().message());
      return kCannotGoOn;
    }
    LifePlan plan;
    plan.first.assign(history.shape().writers, 1);
    plan.transactions = kBaseTransactions;
    plan.checkpoint_every = 5;
    const Status done = perform(**store, history, plan, receipts_);
    if (!done) text_.set(done.error().message());
    ::_exit(done ? 0 : kCannotGoOn);
  });
  if (!fork) return fail(fork.error());
  const ForkEnd end = fork->wait(patience());
  if (end.exit_status != 0)
    return fail(ErrorKind::store, fmt::format("the store fails although no call of it does: {}, {}",
                                              end.text(), text_.get()));
  bases_[place] = index + 1;
  return path;
}

/// The directory and the receipts as they are when the life begins.
Status ErrorServer::begin(Case& now) {
  std::error_code code;
  fs::create_directories(data(), code);
  ASSAY_TRY(empty_directory(data()));
  now.order.driver = &driver_;
  now.order.history = &now.history;
  now.order.options = qualification_options(data(), request_.base.durability,
                                            request_.base.settings, request_.base.shape.key_kind);
  std::string base;
  if (now.recovers) {
    Result<std::string> made = recovered_base(now.history_index);
    if (!made) return fail(made.error());
    base = std::move(*made);
  }
  receipts_.restart(now.history);
  if (!now.recovers) return {};
  ASSAY_TRY(copy_directory(base, data()));
  receipts_.stage(Stage::open);
  for (std::uint64_t number = 1; number <= kBaseTransactions; ++number) {
    for (std::uint32_t writer = 0; writer < now.history.shape().writers; ++writer) {
      receipts_.begun(writer, number);
      receipts_.acknowledged(writer, number);
    }
  }
  now.order.first = kBaseTransactions + 1;
  now.order.options.create = false;
  now.order.crashes = {receipts_.notes()};
  return {};
}

Status ErrorServer::live(Case& now, bool wants_cut) {
  Result<FaultInjector> injector = FaultInjector::make();
  if (!injector) return fail(injector.error());
  std::error_code code;
  fs::remove_all(cut(), code);
  text_.clear();
  receipts_.stage(Stage::starting);
  Result<Forked> fork = Forked::start([&] {
    if (!injector->install(now.fault)) return kCannotGoOn;
    const LifeReport report = live_with_errors(now.order, receipts_);
    text_.set(to_json(report).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return 0;
  });
  if (!fork) return fail(fork.error());
  FaultInjector::Watch watch;
  watch.directory = data();
  watch.cut_directory = wants_cut ? cut() : std::string();
  watch.fault = now.fault;
  watch.timeout = patience();
  Result<InjectorSeen> seen = injector->serve(*fork, watch, receipts_);
  const ForkEnd end = fork->wait(std::chrono::seconds(10));
  if (!seen) return fail(seen.error());
  now.seen = std::move(*seen);
  now.left_behind += end.left_behind;
  if (now.seen.failed || end.exit_status == kCannotGoOn)
    return fail(ErrorKind::environment, "the kernel takes the filter of calls no longer");
  const std::string where = fmt::format("in stage {}", to_string(receipts_.stage()));
  if (now.seen.timed_out) {
    now.findings.emplace_back("hung", fmt::format("the store's process did not end within {} s, {}",
                                                  patience().count() / 1000, where));
  } else if (end.exit_status != 0) {
    now.findings.emplace_back("crashed",
                              fmt::format("the store's process died {}: {}", where, end.text()));
  } else {
    Result<LifeReport> report =
        life_report_from_json(nlohmann::json::parse(text_.get(), nullptr, false));
    if (!report) return fail(report.error());
    now.report = std::move(*report);
    now.ended_well = true;
  }
  now.known = receipts_.read();
  now.known.crashes = now.order.crashes;
  now.known.synced_at_crashes.assign(now.order.crashes.size(), 0);
  return {};
}

/// What the life itself has seen.
void ErrorServer::judge_life(Case& now) {
  if (now.report.failed > 0 && now.seen.times == 0)
    now.findings.emplace_back("failed-without-a-fault", now.report.errors.front());
  if (!now.report.wrong.empty())
    now.findings.emplace_back("lost-in-the-same-life", now.report.wrong);
  const Judgement& read = now.report.worst;
  now.judgement = read;
  if (!read.allowed(request_.base.allowed))
    now.findings.emplace_back("lost-in-the-same-life", read.findings.empty()
                                                           ? std::string(to_string(read.loss))
                                                           : read.findings[0].text);
  if (now.seen.sync_failed_at == 0) return;
  for (std::uint32_t writer = 0; writer < now.known.writers.size(); ++writer) {
    const Acknowledgements::Writer& of = now.known.writers[writer];
    for (std::uint64_t index = 0; index < of.since.size(); ++index)
      if (of.since[index].acknowledged >= now.seen.sync_failed_at &&
          !now.history.transaction(writer, of.base.number + 1 + index).rolled_back)
        ++now.acknowledged_after_failed_sync;
  }
}

Status ErrorServer::check(Case& now, const std::string& directory, Loss allowed,
                          const std::string& kind) {
  if (now.keeps_image && now.failing_directory.empty()) {
    std::error_code code;
    fs::remove_all(image_of(directory), code);
    ASSAY_TRY(copy_directory(directory, image_of(directory)));
  }
  text_.clear();
  receipts_.stage(Stage::starting);
  Result<Forked> fork = Forked::start([&] {
    CheckRequest request;
    request.driver = &driver_;
    request.options = qualification_options(directory, request_.base.durability,
                                            request_.base.settings, request_.base.shape.key_kind);
    request.history = &now.history;
    request.acknowledgements = now.known;
    request.transactions_after = kTransactionsAfter;
    request.sink = nullptr;
    text_.set(qualify::to_json(check_directory(request))
                  .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return 0;
  });
  if (!fork) return fail(fork.error());
  const ForkEnd end = fork->wait(patience() * 2);
  now.left_behind += end.left_behind;
  Judgement judged;
  if (end.timed_out || end.exit_status != 0) {
    judged = judge_unopened(now.known, end.timed_out ? Kind::hung : Kind::crashed,
                            "a fresh process: " + end.text());
  } else {
    Result<Judgement> read =
        judgement_from_json(nlohmann::json::parse(text_.get(), nullptr, false));
    if (!read) return fail(read.error());
    judged = std::move(*read);
  }
  if (!judged.allowed(allowed)) {
    for (const Finding& finding : judged.findings)
      now.findings.emplace_back(kind.empty() ? std::string(to_string(finding.kind)) : kind,
                                finding.text);
    if (judged.findings.empty())
      now.findings.emplace_back(kind, std::string(to_string(judged.loss)));
    if (now.failing_directory.empty()) {
      now.failing_directory = directory;
      now.failing_allowed = allowed;
      now.judgement = judged;
    }
  }
  if (now.failing_directory.empty() && judged.loss >= now.judgement.loss)
    now.judgement = std::move(judged);
  return {};
}

Status ErrorServer::run_case(std::uint64_t number, const std::string& bundle,
                             const std::function<void(const nlohmann::json&)>& say) {
  const std::vector<FaultShape>& shapes = fault_shapes();
  const FaultShape shape = shapes[number % shapes.size()];
  const std::uint64_t turn = number / shapes.size();
  const bool recovers = turn % 2 == 1;
  const std::uint64_t count = counts_[recovers ? 1 : 0][static_cast<std::size_t>(shape.sort)];
  if (count == 0) return {};
  // Of four cases of a sort one has several writers where the campaign has; both rows of them come
  // to each call once.
  const std::uint64_t place = turn / 2;
  const bool writers = request_.base.shape.writers > 1 && place % kWritersOneIn == 0;
  const std::uint64_t before = (place + kWritersOneIn - 1) / kWritersOneIn;
  const bool mixed = request_.base.shape.writers > 1;
  const std::uint64_t at = !mixed ? place : writers ? place / kWritersOneIn : place - before;
  const std::uint64_t history = mixed ? at / count * 2 + (writers ? 1 : 0) : at / count;
  Case now(history_of(history), history, recovers);
  now.fault = {shape, spread(at, count)};
  now.keeps_image = !bundle.empty();
  ASSAY_TRY(begin(now));
  ASSAY_TRY(live(now, true));
  judge_life(now);
  ASSAY_TRY(check(now, data(), request_.base.allowed, {}));
  if (now.seen.dropped.value_or(0) > 0 && now.ended_well) {
    now.cut_checked = true;
    ASSAY_TRY(check(now, cut(), request_.allowed_after_power_loss,
                    now.acknowledged_after_failed_sync > 0 ? "acknowledged-after-a-failed-sync"
                                                           : "lost-after-a-failed-sync"));
  }
  nlohmann::json round = told(now, number);
  if (!now.findings.empty() && !bundle.empty()) {
    ASSAY_TRY(keep(now, number, bundle));
    round["bundle"] = bundle;
  }
  say(round);
  return {};
}

nlohmann::json ErrorServer::told(const Case& now, std::uint64_t number) const {
  nlohmann::json findings = nlohmann::json::array();
  for (const auto& [kind, text] : now.findings)
    findings.push_back({{"kind", kind}, {"text", text}});
  return {{"case", number},
          {"shape", now.fault.shape.text()},
          {"fault", now.fault_text()},
          {"reached", now.seen.times > 0},
          {"call", now.seen.call},
          {"stage", now.seen.stage},
          {"recovers", now.recovers},
          {"writers", now.history.shape().writers},
          {"opened", now.report.opened},
          {"reported", now.report.failed},
          {"unread", now.report.unread},
          {"acknowledged", now.known.acknowledged_commits()},
          {"acknowledged_after_failed_sync", now.acknowledged_after_failed_sync},
          {"cut_checked", now.cut_checked},
          {"unseen_calls", now.seen.unseen_calls},
          {"left_behind", now.left_behind},
          {"loss", to_string(now.judgement.loss)},
          {"lost", now.judgement.lost_acknowledged},
          {"findings", std::move(findings)}};
}

/// A command that runs this case alone.
std::string ErrorServer::again(std::uint64_t number) const {
  std::string command = "assay qualify --store " + quoted_for_a_shell(request_.base.store);
  for (const auto& [name, value] : request_.base.settings)
    command += " --set " + quoted_for_a_shell(name + "=" + value);
  return command + fmt::format(" --durability {} --level E --seed {} --shard {}/{} --budget 1",
                               to_string(request_.base.durability), request_.base.seed, number + 1,
                               std::max<std::uint64_t>(number + 1, kShardsMax));
}

Status ErrorServer::keep(const Case& now, std::uint64_t number, const std::string& bundle) const {
  Bundle kept;
  kept.level = "E";
  kept.store = request_.base.store;
  kept.version = driver_.version();
  kept.durability = request_.base.durability;
  kept.settings = request_.base.settings;
  kept.allowed = now.failing_directory.empty() ? request_.base.allowed : now.failing_allowed;
  kept.seed = now.history.seed();
  kept.shape = now.history.shape();
  kept.acknowledgements = now.known;
  kept.judgement = now.judgement;
  const std::uint32_t writers = now.history.shape().writers;
  kept.story.push_back(now.recovers ? fmt::format("a process made {} transactions and was gone "
                                                  "without closing its store; another opened it",
                                                  kBaseTransactions * writers)
                                    : std::string("a process created its store"));
  if (writers > 1) kept.story.push_back(fmt::format("{} threads of it wrote", writers));
  kept.story.push_back("the system answered " + now.fault_text());
  for (const std::string& error : now.report.errors)
    kept.story.push_back("the store reported: " + error);
  if (now.report.errors.empty()) kept.story.emplace_back("the store reported no error");
  // Of a life that crashed, hung or read wrongly the directory may be all right.
  if (now.failing_directory.empty())
    for (const auto& [kind, text] : now.findings)
      kept.story.push_back(fmt::format("{}: {}", kind, text));
  if (now.failing_directory == cut())
    kept.story.push_back(
        fmt::format("it acknowledged {} commits after the failed sync; then power was lost: {} "
                    "pages that only failed syncs had covered were as before",
                    now.acknowledged_after_failed_sync, now.seen.dropped.value_or(0)));
  else
    kept.story.emplace_back("the process ended; a fresh one opened the store on a disk that works");
  kept.transactions_after = kTransactionsAfter;
  kept.open_timeout_ms = request_.base.open_timeout_ms;
  kept.origin = {{"seed", request_.base.seed}, {"case", number}, {"fault", now.fault.number}};
  if (now.failing_directory.empty()) kept.origin["only_in_the_life"] = again(number);
  return write_bundle(bundle, kept,
                      image_of(now.failing_directory.empty() ? data() : now.failing_directory));
}

}  // namespace assay::qualify::error
