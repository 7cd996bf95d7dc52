#include "harness/soak/bank.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "harness/provenance/sha256.h"
#include "workloads/random.h"

namespace assay {
namespace {

constexpr std::uint64_t kFirstBalance = 1000;
constexpr std::uint64_t kMostMoved = 100;
constexpr std::size_t kValueBytes = 64;
constexpr std::size_t kFillBatch = 500;
constexpr auto kBetweenChecks = std::chrono::milliseconds(100);
constexpr std::string_view kAccount = "account";
constexpr std::string_view kClient = "client";

std::string key_of(std::string_view kind, std::uint64_t number) {
  return fmt::format("{}{:08}", kind, number);
}

/// A number, and filling: values are not all of the size of a number.
std::string value_of(std::uint64_t number) {
  std::string value(kValueBytes, '.');
  std::memcpy(value.data(), &number, sizeof number);
  return value;
}

Result<std::uint64_t> number_in(std::string_view key, std::string_view value) {
  if (value.size() != kValueBytes) {
    return fail(ErrorKind::wrong_contents, fmt::format("{} has a value of {} bytes, not of {}",
                                                       printable(key), value.size(), kValueBytes));
  }
  std::uint64_t number = 0;
  std::memcpy(&number, value.data(), sizeof number);
  return number;
}

/// Numbers by their keys, for one kind of them.
class Numbers final : public ScanSink {
 public:
  explicit Numbers(std::string_view kind) : kind_(kind) {}
  bool entry(std::string_view key, std::string_view value) override {
    if (!key.starts_with(kind_)) {
      status_ = fail(ErrorKind::wrong_contents,
                     fmt::format("there is a key \"{}\" that nobody wrote", printable(key)));
      return false;
    }
    const Result<std::uint64_t> number = number_in(key, value);
    if (!number) {
      status_ = fail(number.error());
      return false;
    }
    sum += *number;
    values.emplace(std::string(key), *number);
    return true;
  }
  /// Reads them from one snapshot.
  Status read(Session& session) {
    const std::string first(kind_);
    const std::string last = first + '\x7f';
    ScanRange range;
    range.first = first;
    range.last = last;
    range.from_start = range.to_end = false;
    ASSAY_TRY(session.scan(range, *this));
    return status_;
  }

  std::uint64_t sum = 0;
  std::map<std::string, std::uint64_t> values;

 private:
  std::string_view kind_;
  Status status_;
};

}  // namespace

Bank::Bank(const SoakPlan& plan, SoakShared& shared, Store& store)
    : plan_(plan), shared_(shared), store_(store), locks_(plan.accounts) {}

Status Bank::fill() {
  const Result<std::unique_ptr<Session>> session = store_.session();
  if (!session) return fail(session.error());
  const std::string value = value_of(kFirstBalance);
  std::vector<std::string> keys;
  std::vector<Mutation> batch;
  for (std::uint64_t first = 0; first < plan_.accounts; first += kFillBatch) {
    keys.clear();
    batch.clear();
    const std::uint64_t last = std::min(plan_.accounts, first + kFillBatch);
    for (std::uint64_t at = first; at < last; ++at) keys.push_back(key_of(kAccount, at));
    for (const std::string& key : keys) batch.push_back({Mutation::Kind::put, key, value});
    ASSAY_TRY((*session)->apply(batch));
  }
  return {};
}

Status Bank::check_sum(Session& session) {
  Numbers accounts(kAccount);
  ASSAY_TRY(accounts.read(session));
  const std::uint64_t expected = plan_.accounts * kFirstBalance;
  if (accounts.values.size() != plan_.accounts || accounts.sum != expected) {
    return fail(ErrorKind::wrong_contents,
                fmt::format("{} accounts hold {} in all, and {} held {} at the beginning",
                            accounts.values.size(), accounts.sum, plan_.accounts, expected));
  }
  shared_.checks.fetch_add(1);
  return {};
}

Status Bank::check_everything() {
  const Result<std::unique_ptr<Session>> session = store_.session();
  if (!session) return fail(session.error());
  ASSAY_TRY(check_sum(**session));
  Numbers clients(kClient);
  ASSAY_TRY(clients.read(**session));
  for (std::uint32_t client = 0; client < kSoakClientsMost; ++client) {
    const auto found = clients.values.find(key_of(kClient, client));
    const std::uint64_t stored = found == clients.values.end() ? 0 : found->second;
    const std::uint64_t told = shared_.acknowledged[client].load();
    // The transfer that was under way when the process died may have been made.
    if (stored != told && stored != told + 1) {
      return fail(ErrorKind::wrong_contents,
                  fmt::format("client {} has made {} transfers by the store, and {} were "
                              "acknowledged",
                              client, stored, told));
    }
    shared_.acknowledged[client].store(stored);
  }
  return {};
}

Status Bank::transfer(Session& session, std::uint64_t from, std::uint64_t to, std::uint64_t draw,
                      std::uint32_t client) {
  const std::scoped_lock hold(locks_[std::min(from, to)], locks_[std::max(from, to)]);
  const std::array<std::string, 3> keys{key_of(kAccount, from), key_of(kAccount, to),
                                        key_of(kClient, client)};
  std::array<std::uint64_t, 2> balances{};
  for (std::size_t at = 0; at < balances.size(); ++at) {
    std::string_view value;
    const Result<bool> found = session.get(keys[at], value);
    if (!found) return fail(found.error());
    if (!*found) return fail(ErrorKind::wrong_contents, fmt::format("{} is gone", keys[at]));
    const Result<std::uint64_t> balance = number_in(keys[at], value);
    if (!balance) return fail(balance.error());
    balances[at] = *balance;
  }
  const std::uint64_t moved = draw % (std::min(balances[0], kMostMoved) + 1);
  const std::uint64_t made = shared_.acknowledged[client].load() + 1;
  const std::array<std::string, 3> values{value_of(balances[0] - moved),
                                          value_of(balances[1] + moved), value_of(made)};
  std::array<Mutation, 3> batch;
  for (std::size_t at = 0; at < batch.size(); ++at)
    batch[at] = {Mutation::Kind::put, keys[at], values[at]};
  ASSAY_TRY(session.apply(batch));
  shared_.acknowledged[client].store(made);
  shared_.transfers.fetch_add(1);
  return {};
}

Status Bank::transfer_until_stop(std::uint32_t client) {
  const Result<std::unique_ptr<Session>> session = store_.session();
  if (!session) return fail(session.error());
  shared_.working.fetch_add(1);
  Random random(derive_seed(plan_.seed, (shared_.acknowledged[client].load() << 16) + client));
  while (!shared_.stop.load(std::memory_order_relaxed)) {
    const std::uint64_t from = random.bounded(plan_.accounts);
    const std::uint64_t step = 1 + random.bounded(plan_.accounts - 1);
    ASSAY_TRY(transfer(**session, from, (from + step) % plan_.accounts, random.next(), client));
  }
  return {};
}

Status Bank::check_until_stop() {
  const Result<std::unique_ptr<Session>> session = store_.session();
  if (!session) return fail(session.error());
  while (!shared_.stop.load()) {
    ASSAY_TRY(check_sum(**session));
    std::this_thread::sleep_for(kBetweenChecks);
  }
  return {};
}

Status Bank::work(std::uint32_t clients) {
  std::vector<std::thread> threads;
  const auto run = [this](Status status) {
    if (!status) shared_.fail_with(status.error());
  };
  for (std::uint32_t client = 0; client < clients; ++client)
    threads.emplace_back([this, run, client] { run(transfer_until_stop(client)); });
  threads.emplace_back([this, run] { run(check_until_stop()); });
  for (std::thread& thread : threads) thread.join();
  return {};
}

namespace {
class Everything final : public ScanSink {
 public:
  bool entry(std::string_view key, std::string_view value) override {
    text += fmt::format("{} {} ", key.size(), value.size());
    text += key;
    text += value;
    return true;
  }
  std::string text;
};
}  // namespace

Result<std::string> Bank::digest() {
  const Result<std::unique_ptr<Session>> session = store_.session();
  if (!session) return fail(session.error());
  Everything everything;
  ASSAY_TRY((*session)->scan({}, everything));
  return sha256_hex(everything.text);
}

}  // namespace assay
