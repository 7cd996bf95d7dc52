#include "harness/qualify/kill/kill_server.h"

#include <filesystem>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "harness/qualify/bundle.h"
#include "harness/qualify/directory_image.h"

namespace assay::qualify {
namespace {

namespace fs = std::filesystem;
using Kind = Finding::Kind;

constexpr std::uint64_t kReceipts = 4096;  ///< transactions of a writer between two checks
constexpr std::size_t kTextBytes = std::size_t{16} << 20;
constexpr std::uint32_t kRounds = 12;
constexpr std::uint32_t kTransactionsAfter = 2;

/// Exit statuses of a life: what its text is.
constexpr int kStoreFailed = 3;
constexpr int kCannotGoOn = 4;

void follow(double& average, double seen) {
  average += (seen - average) * 0.2;
}

bool is_of_machine(ErrorKind kind) {
  return kind == ErrorKind::environment || kind == ErrorKind::bad_input ||
         kind == ErrorKind::unsupported;
}

}  // namespace

/// What one round did, for its verdict, the record and the story.
struct KillServer::Round {
  std::uint64_t number = 0;
  bool one_writer = false;
  nlohmann::json kills = nlohmann::json::array();
  std::vector<std::string> story;
  std::vector<Finding> of_lives;
  Acknowledgements acknowledgements;
  Judgement judgement;
  std::uint64_t image_hash = 0;
  std::uint32_t left_behind = 0;

  [[nodiscard]] nlohmann::json to_json(std::uint64_t case_number, Loss allowed) const {
    nlohmann::json findings = nlohmann::json::array();
    for (const Finding& finding : judgement.findings)
      findings.push_back({{"kind", to_string(finding.kind)}, {"text", finding.text}});
    return {{"case", case_number},
            {"round", number},
            {"kills", kills},
            {"loss", to_string(judgement.loss)},
            {"lost", judgement.lost_acknowledged},
            {"acknowledged", judgement.acknowledged},
            {"in_flight", judgement.in_flight},
            {"in_flight_kept", judgement.in_flight_kept},
            {"creation_not_atomic", judgement.creation_not_atomic},
            {"beyond", !judgement.allowed(allowed)},
            {"image", image_hash},
            {"left_behind", left_behind},
            {"findings", std::move(findings)}};
  }
};

Result<KillServer> KillServer::make(KillRequest request, const Driver& driver) {
  ASSAY_TRY(adopt_orphans());
  Result<SharedReceipts> receipts =
      SharedReceipts::make(History(request.seed, request.shape), kReceipts);
  if (!receipts) return fail(receipts.error());
  Result<SharedText> text = SharedText::make(kTextBytes);
  if (!text) return fail(text.error());
  return KillServer(std::move(request), driver, std::move(*receipts), std::move(*text));
}

OpenOptions KillServer::options() const {
  return qualification_options(data(), request_.durability, request_.settings,
                               request_.shape.key_kind);
}

std::chrono::milliseconds KillServer::patience() const {
  return std::chrono::milliseconds(request_.open_timeout_ms);
}

Result<nlohmann::json> KillServer::describe() {
  std::error_code code;
  fs::create_directories(data(), code);
  ASSAY_TRY(empty_directory(data()));
  receipts_.restart(History(request_.seed, request_.shape));
  text_.clear();
  Result<Forked> fork = Forked::start([this] {
    receipts_.stage(Stage::opening);
    const auto store = driver_.open(options());
    const auto settings =
        store ? (*store)->effective_settings() : Result<Settings>(fail(store.error()));
    receipts_.stage(Stage::open);
    if (!settings) {
      text_.set(settings.error().message());
      return is_of_machine(settings.error().kind()) ? kCannotGoOn : kStoreFailed;
    }
    text_.set(nlohmann::json(*settings).dump());
    receipts_.stage(Stage::closing);
    const bool closed = (*store)->close().has_value();
    receipts_.stage(Stage::closed);
    return closed ? 0 : kStoreFailed;
  });
  if (!fork) return fail(fork.error());
  const ForkEnd end = fork->wait(patience());
  const std::string text = text_.get();
  if (end.exit_status == kCannotGoOn) return fail(ErrorKind::bad_input, text);
  if (end.timed_out)
    return fail(Error(ErrorKind::store, fmt::format("the store does not open within {} s",
                                                    request_.open_timeout_ms / 1000))
                    .hint("--open-timeout gives it longer"));
  if (end.exit_status != 0)
    return fail(ErrorKind::store, "the store cannot be opened and closed once: " +
                                      (text.empty() ? end.text() : text));
  learn_pace({}, false);
  return nlohmann::json{{"store", driver_.name()},
                        {"version", driver_.version()},
                        {"settings", nlohmann::json::parse(text, nullptr, false)},
                        {"calls", can_stop_calls()}};
}

Status KillServer::run_case(std::uint64_t number, const std::string& bundle,
                            const std::function<void(const nlohmann::json&)>& say) {
  std::seed_seq seeds{request_.seed & 0xffffffff, request_.seed >> 32, number & 0xffffffff,
                      number >> 32};
  std::mt19937_64 random(seeds);
  HistoryShape shape = request_.shape;
  // Every other case is single-threaded as far as the store is, so that it can be had again.
  if (number % 2 == 0) shape.writers = 1;
  const History history(random(), shape);
  ASSAY_TRY(empty_directory(data()));
  receipts_.restart(history);
  for (std::uint32_t at = 0; at < kRounds; ++at) {
    Round round;
    round.number = at;
    round.one_writer = shape.writers == 1;
    ASSAY_TRY(run_round(history, random, !bundle.empty(), round));
    const bool beyond = !round.judgement.allowed(request_.allowed);
    nlohmann::json told = round.to_json(number, request_.allowed);
    if (beyond && !bundle.empty()) {
      ASSAY_TRY(keep(history, number, bundle, round));
      told["bundle"] = bundle;
    }
    say(told);
    if (beyond || round.judgement.found.empty()) break;
    receipts_.settle(round.judgement.found);
  }
  return {};
}

Status KillServer::run_round(const History& history, std::mt19937_64& random, bool keep_image,
                             Round& round) {
  const bool calls = can_stop_calls();
  std::vector<std::uint64_t> crashes;
  std::vector<std::uint64_t> synced;
  for (std::uint32_t life = 0; life < 4; ++life) {
    const Aim aim = choose_aim(random, pace_, life, calls);
    const LifePlan plan = plan_for(aim, random, receipts_, history.shape().writers);
    ASSAY_TRY(run_life(history, aim, plan, random(), round));
    crashes.push_back(receipts_.notes());
    synced.push_back(receipts_.read().synced);
    if (!round.of_lives.empty() || random() % 3 != 0) break;
  }
  round.acknowledgements = receipts_.read();
  round.acknowledgements.crashes = std::move(crashes);
  round.acknowledgements.synced_at_crashes = std::move(synced);
  const Result<std::uint64_t> hash = directory_hash(data());
  if (!hash) return fail(hash.error());
  round.image_hash = *hash;
  if (keep_image) {
    std::error_code code;
    fs::remove_all(image(), code);
    ASSAY_TRY(copy_directory(data(), image()));
  }
  return check(history, round);
}

int KillServer::live(const History& history, const Aim& aim, const LifePlan& plan,
                     const CallStops* stops) {
  if (stops != nullptr && !stops->install()) return kCannotGoOn;
  AimedReceipts sink(receipts_, aim);
  const auto failed = [this](const Error& error) {
    text_.set(error.message());
    return is_of_machine(error.kind()) ? kCannotGoOn : kStoreFailed;
  };
  OpenOptions how = options();
  how.create = !receipts_.read().created;
  sink.stage(Stage::opening);
  Result<std::unique_ptr<Store>> store = driver_.open(how);
  if (!store) return failed(store.error());
  sink.stage(Stage::open);
  if (const Status done = perform(**store, history, plan, sink); !done) return failed(done.error());
  sink.stage(Stage::closing);
  if (const Status closed = (*store)->close(); !closed) return failed(closed.error());
  sink.stage(Stage::closed);
  return 0;
}

Status KillServer::run_life(const History& history, const Aim& aim, const LifePlan& plan,
                            std::uint64_t random, Round& round) {
  text_.clear();
  const std::uint64_t notes_before = receipts_.notes();
  const bool by_call = aim.kind == Aim::Kind::call;
  std::unique_ptr<CallStops> stops;
  if (by_call) {
    Result<CallStops> made = CallStops::make();
    if (!made) return fail(made.error());
    stops = std::make_unique<CallStops>(std::move(*made));
  }
  receipts_.stage(Stage::starting);
  Result<Forked> fork = Forked::start([&] { return live(history, aim, plan, stops.get()); });
  if (!fork) return fail(fork.error());
  CallStops::Seen seen;
  if (by_call) seen = stops->serve(*fork, aim, receipts_, random, patience());
  const ForkEnd end = fork->wait(patience());
  const Stage stage = receipts_.stage();
  round.left_behind += end.left_behind;
  if (by_call && seen.failed)
    return fail(ErrorKind::environment, "the kernel takes the filter of calls no longer");
  if (end.exit_status == kCannotGoOn) return fail(ErrorKind::environment, text_.get());
  learn_pace(seen, by_call);
  std::string how = end.killed && !end.timed_out
                        ? fmt::format("killed {} (stage: {})", aim.text(), to_string(stage))
                        : "ended by itself: " + end.text();
  if (seen.reached)
    how += fmt::format(", {} {}", seen.torn ? "part way into" : "before its call", seen.call);
  round.story.push_back(
      fmt::format("a process opened the store, noted {} beginnings and "
                  "acknowledgements, and was {}",
                  receipts_.notes() - notes_before, how));
  round.kills.push_back({{"aim", to_string(aim.kind)},
                         {"stage", to_string(stage)},
                         {"killed", end.killed && !end.timed_out},
                         {"call", seen.call},
                         {"torn", seen.torn}});
  const std::string where = fmt::format("in stage {}", to_string(stage));
  if (end.timed_out)
    round.of_lives.push_back(
        {Kind::hung, fmt::format("a process of the store did not end within {} s, {}",
                                 request_.open_timeout_ms / 1000, where)});
  else if (end.exit_status == kStoreFailed)
    round.of_lives.push_back({Kind::failed_while_running, where + ": " + text_.get()});
  else if (!end.killed && end.exit_status != 0)
    round.of_lives.push_back({Kind::crashed, where + ": " + end.text()});
  return {};
}

void KillServer::learn_pace(const CallStops::Seen& seen, bool calls) {
  const auto span_us = [this](Stage from, Stage to) {
    const std::uint64_t begin = receipts_.stage_began_ns(from);
    const std::uint64_t end = receipts_.stage_began_ns(to);
    return begin == 0 || end < begin ? -1.0 : static_cast<double>(end - begin) / 1000.0;
  };
  if (calls) {
    // Stopped calls are slow, so such a life says nothing about times.
    if (receipts_.stage() > Stage::opening && seen.opening > 0)
      follow(pace_.open_calls, static_cast<double>(seen.opening));
    return;
  }
  if (const double us = span_us(Stage::opening, Stage::open); us >= 0) follow(pace_.open_us, us);
  if (const double us = span_us(Stage::closing, Stage::closed); us >= 0) follow(pace_.close_us, us);
  if (const double us = span_us(Stage::checkpoint, Stage::open); us >= 0)
    follow(pace_.checkpoint_us, us);
}

Status KillServer::check(const History& history, Round& round) {
  text_.clear();
  receipts_.stage(Stage::starting);
  Result<Forked> fork = Forked::start([&] {
    CheckRequest request;
    request.driver = &driver_;
    request.options = options();
    request.history = &history;
    request.acknowledgements = round.acknowledgements;
    request.transactions_after = kTransactionsAfter;
    // Its own commits are part of its answer; only its stages are of use here.
    request.sink = &receipts_;
    text_.set(qualify::to_json(check_directory(request)).dump());
    return 0;
  });
  if (!fork) return fail(fork.error());
  const ForkEnd end = fork->wait(patience() * 2);
  const std::string where = fmt::format("in stage {}", to_string(receipts_.stage()));
  if (end.timed_out) {
    round.judgement = judge_unopened(round.acknowledgements, Kind::hung,
                                     fmt::format("a fresh process did not end within {} s, {}",
                                                 request_.open_timeout_ms * 2 / 1000, where));
  } else if (end.exit_status != 0) {
    round.judgement = judge_unopened(round.acknowledgements, Kind::crashed,
                                     fmt::format("a fresh process died {}: {}", where, end.text()));
  } else {
    Result<Judgement> judged =
        judgement_from_json(nlohmann::json::parse(text_.get(), nullptr, false));
    if (!judged) return fail(judged.error());
    round.judgement = std::move(*judged);
    learn_pace({}, false);
  }
  for (Finding& finding : round.of_lives) {
    round.judgement.broken = true;
    round.judgement.findings.push_back(std::move(finding));
  }
  return {};
}

Status KillServer::keep(const History& history, std::uint64_t number, const std::string& bundle,
                        const Round& round) const {
  Bundle kept;
  kept.level = "K";
  kept.store = request_.store;
  kept.version = driver_.version();
  kept.durability = request_.durability;
  kept.settings = request_.settings;
  kept.allowed = request_.allowed;
  kept.seed = history.seed();
  kept.shape = history.shape();
  kept.acknowledgements = round.acknowledgements;
  kept.judgement = round.judgement;
  kept.story = round.story;
  kept.transactions_after = kTransactionsAfter;
  kept.open_timeout_ms = request_.open_timeout_ms;
  kept.origin = {{"seed", request_.seed}, {"case", number}, {"round", round.number}};
  return write_bundle(bundle, kept, image());
}

}  // namespace assay::qualify
