#include "harness/qualify/rot/rot_server.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/qualify/bundle.h"
#include "harness/qualify/directory_image.h"
#include "harness/qualify/kill/kill_server.h"
#include "harness/qualify/perform.h"
#include "harness/qualify/rot/damage.h"

namespace assay::qualify::rot {
namespace {

namespace fs = std::filesystem;
using Kind = Finding::Kind;

constexpr std::uint64_t kReceipts = 256;
constexpr std::size_t kTextBytes = std::size_t{16} << 20;
constexpr std::uint64_t kTransactions = 40;
constexpr std::uint64_t kCasesOfAHistory = 64;
/// Reading takes milliseconds: what takes longer than this hangs.
constexpr std::uint32_t kLongest_ms = 10'000;

bool is_an_error(Kind kind) {
  return kind == Kind::refuses_to_open || kind == Kind::fails_while_reading ||
         kind == Kind::not_usable;
}

Effect effect_of(const Judgement& judged, bool repaired) {
  const auto said = [](const Finding& finding) { return is_an_error(finding.kind); };
  for (const Finding& finding : judged.findings) {
    if (finding.kind == Kind::crashed) return Effect::crashed;
    if (finding.kind == Kind::hung) return Effect::hung;
  }
  if (judged.loss == Loss::unopenable || std::ranges::any_of(judged.findings, said))
    return judged.loss == Loss::torn || judged.loss == Loss::hole ? Effect::wrong_data
                                                                  : Effect::detected;
  if (judged.loss == Loss::intact && !judged.broken)
    return repaired ? Effect::repaired : Effect::harmless;
  return judged.loss == Loss::last || judged.loss == Loss::suffix ? Effect::lost_an_end
                                                                  : Effect::wrong_data;
}

}  // namespace

std::string_view to_string(Effect effect) {
  switch (effect) {
    case Effect::harmless:
      return "harmless";
    case Effect::repaired:
      return "repaired";
    case Effect::detected:
      return "detected";
    case Effect::lost_an_end:
      return "lost-an-end";
    case Effect::wrong_data:
      return "wrong-data";
    case Effect::crashed:
      return "crashed";
    case Effect::hung:
      return "hung";
  }
  return "harmless";
}

nlohmann::json rot_request_json(const KillRequest& request) {
  nlohmann::json json = to_json(request);
  json["level"] = "R";
  return json;
}

bool is_rot_request(const nlohmann::json& json) {
  return json.is_object() && json.value("level", "") == "R";
}

Result<RotServer> RotServer::make(KillRequest request, const Driver& driver) {
  ASSAY_TRY(adopt_orphans());
  request.shape.writers = 1;
  request.open_timeout_ms = std::min(request.open_timeout_ms, kLongest_ms);
  Result<SharedReceipts> receipts =
      SharedReceipts::make(History(request.seed, request.shape), kReceipts);
  if (!receipts) return fail(receipts.error());
  Result<SharedText> text = SharedText::make(kTextBytes);
  if (!text) return fail(text.error());
  return RotServer(std::move(request), driver, std::move(*receipts), std::move(*text));
}

History RotServer::history_of(std::uint64_t index) const {
  const std::uint64_t seed = request_.seed;
  std::seed_seq seeds{seed & 0xffffffff, seed >> 32, index & 0xffffffff, index >> 32};
  return {std::mt19937_64(seeds)(), request_.shape};
}

Result<nlohmann::json> RotServer::describe() {
  Result<KillServer> server = KillServer::make(request_, driver_);
  if (!server) return fail(server.error());
  return server->describe();
}

Status RotServer::make_base(std::uint64_t index) {
  if (base_is_ == index + 1) return {};
  std::error_code code;
  fs::create_directories(base(), code);
  ASSAY_TRY(empty_directory(base()));
  const History history = history_of(index);
  receipts_.restart(history);
  text_.clear();
  Result<Forked> fork = Forked::start([&] {
    const auto store = driver_.open(qualification_options(
        base(), request_.durability, request_.settings, request_.shape.key_kind));
    Status done = store ? Status{} : Status(fail(store.error()));
    receipts_.stage(Stage::open);
    LifePlan plan;
    plan.first = {1};
    plan.transactions = kTransactions;
    // The last commits are in the log of some stores, in the data of others.
    plan.checkpoint_every = index % 2 == 0 ? 7 : 10;
    if (done) done = perform(**store, history, plan, receipts_);
    if (done) done = (*store)->close();
    if (!done) text_.set(done.error().message());
    return done ? 0 : 1;
  });
  if (!fork) return fail(fork.error());
  const ForkEnd end = fork->wait(std::chrono::milliseconds(request_.open_timeout_ms));
  if (end.exit_status != 0)
    return fail(ErrorKind::store, fmt::format("the store fails although nothing is damaged: {}, {}",
                                              end.text(), text_.get()));
  known_ = receipts_.read();
  base_is_ = index + 1;
  return {};
}

Status RotServer::run_case(std::uint64_t number, const std::string& bundle,
                           const std::function<void(const nlohmann::json&)>& say) {
  const std::uint64_t index = number / kCasesOfAHistory;
  ASSAY_TRY(make_base(index));
  std::error_code code;
  fs::create_directories(data(), code);
  ASSAY_TRY(empty_directory(data()));
  ASSAY_TRY(copy_directory(base(), data()));
  std::seed_seq seeds{request_.seed & 0xffffffff, request_.seed >> 32, number & 0xffffffff,
                      number >> 32, std::uint64_t{'R'}};
  std::mt19937_64 random(seeds);
  const auto done = do_damage(data(), static_cast<DamageKind>(number % kDamageKinds), random);
  if (!done) return fail(done.error());
  if (!*done) return {};
  const Damage& damage = **done;
  const std::string image = request_.directory + "/image";
  fs::remove_all(image, code);
  if (!bundle.empty()) ASSAY_TRY(copy_directory(data(), image));

  Bundle kept;
  kept.level = "R";
  kept.store = request_.store;
  kept.version = driver_.version();
  kept.durability = request_.durability;
  kept.settings = request_.settings;
  kept.allowed = request_.allowed;
  const History history = history_of(index);
  kept.seed = history.seed();
  kept.shape = request_.shape;
  kept.acknowledgements = known_;
  kept.open_timeout_ms = request_.open_timeout_ms;
  kept.story = {fmt::format("a process made {} transactions and closed its store", kTransactions),
                damage.text(), "a fresh process opened the store and read everything"};
  kept.origin = {{"seed", request_.seed}, {"case", number}};
  std::uint32_t left_behind = 0;
  Result<Judgement> judged = judge_in_fork(kept, driver_, data(), text_, left_behind);
  if (!judged) return fail(judged.error());
  kept.judgement = std::move(*judged);
  const Effect effect = effect_of(kept.judgement, is_repaired(data(), damage));
  const bool beyond =
      request_.allowed != Loss::unopenable &&
      (effect == Effect::wrong_data || effect == Effect::crashed || effect == Effect::hung ||
       (effect == Effect::lost_an_end && !kept.judgement.allowed(request_.allowed)));
  nlohmann::json round = {
      {"case", number},
      {"kind", to_string(damage.kind)},
      {"damage", damage.text()},
      {"effect", to_string(effect)},
      {"beyond", beyond},
      {"loss", to_string(kept.judgement.loss)},
      {"lost", kept.judgement.lost_acknowledged},
      {"left_behind", left_behind},
      {"text",
       kept.judgement.findings.empty() ? std::string() : kept.judgement.findings.front().text}};
  if (beyond && !bundle.empty()) {
    ASSAY_TRY(write_bundle(bundle, kept, image));
    round["bundle"] = bundle;
  }
  say(round);
  return {};
}

}  // namespace assay::qualify::rot
