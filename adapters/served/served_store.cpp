#include "adapters/served/served_store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "adapters/opening.h"
#include "adapters/served/client.h"
#include "adapters/served/daemon.h"
#include "adapters/served/spawned_client.h"

namespace assay {
namespace {

using served::Client;
using served::Daemon;
using served::Op;
using served::SpawnedClient;

constexpr const char* kOf = "of";
constexpr const char* kCommand = "command";
constexpr const char* kClient = "client";
constexpr const char* kClientProgram = "assay_client";  ///< beside the command
/// Of a frame, for what stands beside a value.
constexpr std::uint64_t kBesideValueBytes = std::uint64_t{1} << 20;

Settings without_own(Settings settings) {
  settings.erase(kOf);
  settings.erase(kCommand);
  settings.erase(kClient);
  return settings;
}

class ServedStore;

/// A connection; tells its store when it is gone. Keeps to the limits that the driver declares, for
/// the store behind may take larger keys.
class ServedSession final : public Session {
 public:
  ServedSession(std::unique_ptr<Session> client, std::atomic<int>& open, const EntryLimits& limits)
      : client_(std::move(client)), open_(open), limits_(limits) {
    open_.fetch_add(1);
  }
  ~ServedSession() override { open_.fetch_sub(1); }
  Result<bool> get(std::string_view key, std::string_view& value) override {
    return client_->get(key, value);
  }
  Status put(std::string_view key, std::string_view value) override {
    ASSAY_TRY(check(key, value));
    return client_->put(key, value);
  }
  Status erase(std::string_view key) override {
    ASSAY_TRY(check(key, {}));
    return client_->erase(key);
  }
  Status apply(std::span<const Mutation> mutations) override {
    ASSAY_TRY(check(mutations));
    return client_->apply(mutations);
  }
  Status rollback(std::span<const Mutation> mutations) override {
    ASSAY_TRY(check(mutations));
    return client_->rollback(mutations);
  }
  Result<std::uint64_t> scan(const ScanRange& range, ScanSink& sink) override {
    return client_->scan(range, sink);
  }

 private:
  [[nodiscard]] Status check(std::string_view key, std::string_view value) const {
    if (limits_.accepts(key, value)) return {};
    return fail(limits_.refusal(key, value));
  }
  [[nodiscard]] Status check(std::span<const Mutation> mutations) const {
    for (const Mutation& one : mutations) ASSAY_TRY(check(one.key, one.value));
    return {};
  }

  const std::unique_ptr<Session> client_;
  std::atomic<int>& open_;
  const EntryLimits& limits_;
};

class ServedStore final : public Store {
 public:
  ServedStore(std::string directory, EntryLimits limits, std::string socket, Settings own,
              std::string client, std::unique_ptr<Daemon> daemon, std::unique_ptr<Client> control)
      : Store(std::move(directory)),
        limits_(std::move(limits)),
        socket_(std::move(socket)),
        own_(std::move(own)),
        client_(std::move(client)),
        daemon_(std::move(daemon)),
        control_(std::move(control)) {}

  Result<std::unique_ptr<Session>> session() override {
    if (own_.at(kClient) == "process") {
      return std::make_unique<ServedSession>(std::make_unique<SpawnedClient>(client_, socket_),
                                             sessions_, limits_);
    }
    Result<std::unique_ptr<Client>> client = Client::connect(socket_);
    if (!client) return std::unexpected(client.error());
    ASSAY_TRY((*client)->ask(Op::session));  // the store's refusal belongs here
    return std::make_unique<ServedSession>(std::move(*client), sessions_, limits_);
  }
  Status sync() override { return tell(Op::sync); }
  Status checkpoint() override { return tell(Op::checkpoint); }
  Status settle() override { return tell(Op::settle); }
  std::map<std::string, double> counters() const override;
  Result<Settings> effective_settings() override;
  Status close() override;

 private:
  /// The server's own latencies, daemon_COMMAND_FIGURE; under the lock.
  void add_telemetry(std::map<std::string, double>& counters) const;
  Status tell(Op op) {
    const std::scoped_lock hold(lock_);
    ASSAY_TRY(control_->ask(op));
    return {};
  }

  const EntryLimits limits_;
  const std::string socket_;
  const Settings own_;
  const std::string client_;  ///< the program
  std::atomic<int> sessions_{0};
  std::unique_ptr<Daemon> daemon_;
  mutable std::mutex lock_;  ///< of the control connection
  std::unique_ptr<Client> control_;
};

std::map<std::string, double> ServedStore::counters() const {
  std::map<std::string, double> counters;
  const std::scoped_lock hold(lock_);
  if (control_ == nullptr) return counters;
  const Result<std::string_view> payload = control_->ask(Op::counters);
  const Result<Settings> pairs =
      payload ? served::decode_pairs(*payload) : Result<Settings>(Settings{});
  if (!pairs) return counters;
  for (const auto& [name, bytes] : *pairs) {
    double value = 0;
    if (bytes.size() != sizeof(value)) continue;
    std::memcpy(&value, bytes.data(), sizeof(value));
    counters.emplace(name, value);
  }
  add_telemetry(counters);
  return counters;
}

void ServedStore::add_telemetry(std::map<std::string, double>& counters) const {
  const Result<std::string_view> payload = control_->ask(Op::stats);
  if (!payload) return;
  const nlohmann::json stats = nlohmann::json::parse(*payload, nullptr, false);
  if (!stats.is_object() || !stats.contains("commands")) return;
  for (const nlohmann::json& one : stats.at("commands")) {
    const std::string prefix = fmt::format("daemon_{}_", one.at("command").get<std::string>());
    for (const auto& [figure, value] : one.items()) {
      if (value.is_number()) counters.emplace(prefix + figure, value.get<double>());
    }
  }
}

Result<Settings> ServedStore::effective_settings() {
  const std::scoped_lock hold(lock_);
  const Result<std::string_view> payload = control_->ask(Op::settings);
  if (!payload) return std::unexpected(payload.error());
  Result<Settings> settings = served::decode_pairs(*payload);
  if (settings) settings->insert(own_.begin(), own_.end());
  return settings;
}

Status ServedStore::close() {
  if (daemon_ == nullptr) return {};
  if (sessions_.load() != 0) {
    return fail(Error(ErrorKind::store, "served: closed while sessions are open").at(directory_));
  }
  const Status told = tell(Op::shutdown);
  Status closed = told ? daemon_->wait() : told;
  control_.reset();
  daemon_.reset();
  return closed;
}

class ServedDriver final : public Driver {
 public:
  ServedDriver(std::string_view of, const Driver& behind) : of_(of), behind_(behind) {}

  std::string name() const override { return fmt::format("{}{}", kServedPrefix, behind_.name()); }
  std::string version() const override { return behind_.version(); }
  Capabilities capabilities() const override {
    Capabilities can = behind_.capabilities();
    can.tables = false;  // the protocol has none
    can.max_key_bytes = std::min(can.max_key_bytes, kBesideValueBytes / 2);
    can.max_value_bytes =
        std::min<std::uint64_t>(can.max_value_bytes, served::kFrameBytesMax - kBesideValueBytes);
    return can;
  }
  std::vector<Setting> settings(DurabilityClass durability) const override {
    std::vector<Setting> all = behind_.settings(durability);
    const std::string source = "adapters/served/served_store.h";
    all.push_back(
        {kOf, of_, "the store behind the daemon; another one is served-NAME", source, {of_}});
    all.push_back(
        {kCommand, "auto", "the program with the verb serve; auto: the one that runs", source, {}});
    all.push_back(
        {kClient,
         "connection",
         "connection: a session keeps one; process: each command of a session is a client "
         "process that starts, connects, asks and ends",
         source,
         {"connection", "process"}});
    return all;
  }
  Result<std::unique_ptr<Store>> open(const OpenOptions& options) const override;
  Status check_settings(const OpenOptions& options, std::uint32_t sessions) const override {
    ASSAY_TRY(resolve_settings(*this, options.durability, options.settings));
    return behind_.check_settings(inner(options), sessions);
  }
  DurabilityClass durability_under(DurabilityClass asked,
                                   const Settings& effective) const override {
    return behind_.durability_under(asked, without_own(effective));
  }
  Status drop_index(const OpenOptions& options) const override {
    return behind_.drop_index(inner(options));
  }
  Result<std::uint64_t> rebuild_index(const OpenOptions& options) const override {
    return behind_.rebuild_index(inner(options));
  }

 private:
  static OpenOptions inner(OpenOptions options) {
    options.settings = without_own(std::move(options.settings));
    return options;
  }
  [[nodiscard]] std::vector<std::string> arguments(const OpenOptions& options,
                                                   const std::string& socket) const;

  const std::string of_;
  const Driver& behind_;
};

std::vector<std::string> ServedDriver::arguments(const OpenOptions& options,
                                                 const std::string& socket) const {
  std::vector<std::string> words{"serve",
                                 of_,
                                 "--durability",
                                 std::string(to_string(options.durability)),
                                 "--socket",
                                 socket,
                                 "--child",
                                 std::to_string(::getpid()),
                                 "--data",
                                 options.directory,
                                 "--keys",
                                 options.key_kind == KeyKind::u64 ? "u64" : "bytes",
                                 "--memory-bytes",
                                 std::to_string(options.memory_bytes),
                                 "--expected-bytes",
                                 std::to_string(options.expected_bytes),
                                 "--value-bytes",
                                 std::to_string(options.value_bytes)};
  if (!options.create) words.emplace_back("--existing");
  for (const auto& [name, value] : without_own(options.settings)) {
    words.emplace_back("--set");
    words.push_back(fmt::format("{}={}", name, value));
  }
  return words;
}

Result<std::unique_ptr<Store>> ServedDriver::open(const OpenOptions& options) const {
  const Result<Settings> all = resolve_settings(*this, options.durability, options.settings);
  if (!all) return std::unexpected(all.error());
  const std::string& command = all->at(kCommand);
  const std::string program = command == "auto" ? "/proc/self/exe" : command;
  // An abstract name leaves no file, whatever becomes of this process, and is never too long.
  std::error_code unknown;  // a program that cannot be found is told when it is started
  const std::filesystem::path file = command == "auto"
                                         ? std::filesystem::read_symlink(program, unknown)
                                         : std::filesystem::path(program);
  static std::atomic<std::uint64_t> next{0};
  const std::string socket = fmt::format("@assay-served-{}-{}", ::getpid(), next.fetch_add(1));
  Result<std::unique_ptr<Daemon>> daemon = Daemon::start(program, arguments(options, socket));
  if (!daemon) return std::unexpected(daemon.error());
  Result<std::unique_ptr<Client>> control = Client::connect(socket);
  if (!control) return std::unexpected(control.error());
  return std::make_unique<ServedStore>(
      options.directory, EntryLimits(name(), capabilities(), options.key_kind), socket,
      Settings{{kOf, of_}, {kCommand, command}, {kClient, all->at(kClient)}},
      (file.parent_path() / kClientProgram).string(), std::move(*daemon), std::move(*control));
}

}  // namespace

bool is_served(const Driver& driver) {
  return dynamic_cast<const ServedDriver*>(&driver) != nullptr;
}

const Driver& served_driver(std::string_view of, const Driver& behind) {
  static std::mutex lock;
  static std::map<std::string, ServedDriver, std::less<>> drivers;
  const std::scoped_lock hold(lock);
  const auto found = drivers.find(of);
  if (found != drivers.end()) return found->second;
  return drivers.try_emplace(std::string(of), of, behind).first->second;
}

}  // namespace assay
