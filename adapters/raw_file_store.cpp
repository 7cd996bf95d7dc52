#include "adapters/raw_file_store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <shared_mutex>
#include <unordered_map>

#include "adapters/opening.h"
#include "adapters/raw_file_log.h"

namespace assay {
namespace {

constexpr std::string_view kName = "raw-file";
constexpr std::size_t kGroupBytes = 1 << 20;  // a group of commits grows no further
constexpr std::size_t kCommitBytesMost = std::size_t{1} << 30;

/// Where the newest value of every key lies. Any number of readers, or one writer.
class RawIndex {
 public:
  struct Place {
    int file = -1;
    std::uint32_t bytes = 0;
    std::uint64_t offset = 0;
  };
  [[nodiscard]] bool built() const { return built_.load(std::memory_order_acquire); }
  void set_built() { built_.store(true, std::memory_order_release); }

  [[nodiscard]] bool find(std::string_view key, Place& place) const {
    const std::shared_lock lock(mutex_);
    const auto found = places_.find(key);
    if (found == places_.end()) return false;
    place = found->second;
    return true;
  }
  void add(int file, std::uint64_t payload_offset, std::string_view payload) {
    const std::unique_lock lock(mutex_);
    visit_entries(payload, [&](const RawEntry& entry) {
      const auto found = places_.find(entry.key);
      if (entry.erased) {
        if (found != places_.end()) places_.erase(found);
        return;
      }
      const Place place{file, entry.value_bytes, payload_offset + entry.value_offset};
      if (found != places_.end()) {
        found->second = place;
      } else {
        places_.emplace(entry.key, place);
      }
    });
  }
  [[nodiscard]] std::size_t size() const {
    const std::shared_lock lock(mutex_);
    return places_.size();
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  mutable std::shared_mutex mutex_;
  std::unordered_map<std::string, Place, Hash, std::equal_to<>> places_;
  std::atomic<bool> built_{false};
};

class RawFileStore;

class RawFileSession final : public Session {
 public:
  explicit RawFileSession(RawFileStore& store);
  ~RawFileSession() override;

  Result<bool> get(std::string_view key, std::string_view& value) override;
  Status put(std::string_view key, std::string_view value) override;
  Status erase(std::string_view key) override;
  Status apply(std::span<const Mutation> mutations) override;
  Status rollback(std::span<const Mutation>) override {
    return fail(ErrorKind::unsupported, "raw-file cannot roll back: it is a log, not a database");
  }
  Result<std::uint64_t> scan(const ScanRange&, ScanSink&) override {
    return fail(ErrorKind::unsupported, "raw-file cannot scan: its log has no order of keys");
  }

 private:
  RawFileStore& store_;
  const EntryLimits& limits_;
  RawFrame frame_;
  std::string value_;
};

class RawFileStore final : public Store {
 public:
  RawFileStore(const OpenOptions& options, const Capabilities& capabilities, int lock_handle)
      : Store(options.directory),
        limits_(std::string(kName), capabilities, options.key_kind),
        lock_handle_(lock_handle) {}
  ~RawFileStore() override {
    log_.reset();
    if (lock_handle_ >= 0) ::close(lock_handle_);
  }

  [[nodiscard]] Status open(const RawLog::Options& options, bool fresh, RawProbe probe);
  Result<std::unique_ptr<Session>> session() override {
    return std::make_unique<RawFileSession>(*this);
  }
  Status sync() override {
    const std::scoped_lock lock(log_mutex_);
    return log_->sync();
  }
  Status checkpoint() override { return {}; }  // the log is the main structure
  Status settle() override { return {}; }
  std::map<std::string, double> counters() const override;
  Result<Settings> effective_settings() override;
  Status close() override;

 private:
  friend class RawFileSession;

  /// One writer in the queue. The front one leads: it writes for all that it finds behind it.
  struct Waiter {
    RawFrame* frame;
    bool done = false;
    Status status;
    std::condition_variable wake;
  };
  Status commit(RawFrame& frame);
  Status write_group(std::span<RawFrame* const> frames);
  Status build_index();

  const EntryLimits limits_;
  int lock_handle_;
  RawLog::Options options_;
  RawProbe probe_;
  std::unique_ptr<RawLog> log_;
  mutable std::mutex log_mutex_;  // who holds it uses log_; taken after queue_mutex_ is released
  std::mutex queue_mutex_;
  std::deque<Waiter*> queue_;
  RawIndex index_;
  std::atomic<int> sessions_{0};
  std::uint64_t groups_ = 0;  // guarded by log_mutex_
};

// ---- session ----

RawFileSession::RawFileSession(RawFileStore& store) : store_(store), limits_(store.limits_) {
  store_.sessions_.fetch_add(1);
}

RawFileSession::~RawFileSession() {
  store_.sessions_.fetch_sub(1);
}

Result<bool> RawFileSession::get(std::string_view key, std::string_view& value) {
  if (!store_.index_.built()) ASSAY_TRY(store_.build_index());
  RawIndex::Place place;
  if (!store_.index_.find(key, place)) return false;
  ASSAY_TRY(RawLog::read(place.file, place.offset, place.bytes, value_));
  value = value_;
  return true;
}

Status RawFileSession::put(std::string_view key, std::string_view value) {
  if (!limits_.accepts(key, value)) return fail(limits_.refusal(key, value));
  frame_.clear();
  frame_.put(key, value);
  return store_.commit(frame_);
}

Status RawFileSession::erase(std::string_view key) {
  if (!limits_.accepts(key)) return fail(limits_.refusal(key, {}));
  frame_.clear();
  frame_.erase(key);
  return store_.commit(frame_);
}

Status RawFileSession::apply(std::span<const Mutation> mutations) {
  if (mutations.empty()) return {};
  frame_.clear();
  for (const Mutation& mutation : mutations) {
    if (!limits_.accepts(mutation.key, mutation.value)) {
      return fail(limits_.refusal(mutation.key, mutation.value));
    }
    if (mutation.kind == Mutation::Kind::put) {
      frame_.put(mutation.key, mutation.value);
    } else {
      frame_.erase(mutation.key);
    }
    if (frame_.size() > kCommitBytesMost) {
      return fail(Error(ErrorKind::bad_input,
                        fmt::format("raw-file: a batch of more than {} bytes", kCommitBytesMost)));
    }
  }
  return store_.commit(frame_);
}

// ---- store ----

Status RawFileStore::open(const RawLog::Options& options, bool fresh, RawProbe probe) {
  options_ = options;
  probe_ = std::move(probe);
  Result<std::unique_ptr<RawLog>> log = RawLog::open(options, fresh);
  if (!log) return std::unexpected(log.error());
  log_ = std::move(*log);
  return {};
}

Status RawFileStore::commit(RawFrame& frame) {
  Waiter self{.frame = &frame, .done = false, .status = {}, .wake = {}};
  std::unique_lock lock(queue_mutex_);
  queue_.push_back(&self);
  self.wake.wait(lock, [&] { return self.done || queue_.front() == &self; });
  if (self.done) return std::move(self.status);

  std::vector<RawFrame*> frames;
  std::size_t bytes = 0;
  for (const Waiter* waiter : queue_) {
    bytes += waiter->frame->size();
    if (!frames.empty() && bytes > kGroupBytes) break;
    frames.push_back(waiter->frame);
  }
  lock.unlock();
  Status status = write_group(frames);
  lock.lock();
  for (std::size_t i = 0; i < frames.size(); ++i) {
    Waiter* const waiter = queue_.front();
    queue_.pop_front();
    if (waiter == &self) continue;
    waiter->status = status;
    waiter->done = true;
    waiter->wake.notify_one();
  }
  if (!queue_.empty()) queue_.front()->wake.notify_one();
  return status;
}

Status RawFileStore::write_group(std::span<RawFrame* const> frames) {
  const std::scoped_lock lock(log_mutex_);
  ASSAY_TRY(log_->append(frames));
  ++groups_;
  if (!index_.built()) return {};
  for (const RawFrame* frame : frames) {
    index_.add(frame->file, frame->payload_offset, frame->payload());
  }
  return {};
}

Status RawFileStore::build_index() {
  const std::scoped_lock lock(log_mutex_);
  if (index_.built()) return {};  // another session was first
  ASSAY_TRY(log_->replay([this](int file, std::uint64_t offset, std::string_view payload) {
    index_.add(file, offset, payload);
  }));
  index_.set_built();
  return {};
}

std::map<std::string, double> RawFileStore::counters() const {
  std::map<std::string, double> counters;
  const std::scoped_lock lock(log_mutex_);
  if (log_ == nullptr) return counters;
  const RawLog::Counters& log = log_->counters();
  const auto set = [&counters](const std::string& name, std::uint64_t value) {
    counters[name] = static_cast<double>(value);
  };
  set("segments", log.segments);
  set("commits", log.frames);
  set("groups", groups_);
  set("writes", log.writes);
  set("syncs", log.syncs);
  set("prepare_waits", log.prepare_waits);
  set("recovered_commits", log.recovered_frames);
  set("indexed_keys", index_.size());
  for (const auto& [method, median] : probe_.append_ns_median) {
    counters[fmt::format("probe_{}_ns", to_string(method))] = median;
  }
  return counters;
}

Result<Settings> RawFileStore::effective_settings() {
  const std::scoped_lock lock(log_mutex_);
  const Result<RawLog::InForce> in_force = log_->in_force();
  if (!in_force) return std::unexpected(in_force.error());
  Settings settings;
  settings["method"] = to_string(in_force->method);
  settings["open_flags"] = in_force->open_flags;
  settings["segment_bytes"] = std::to_string(in_force->segment_bytes);
  settings["prepare_bytes"] = std::to_string(in_force->prepared_bytes);
  return settings;
}

Status RawFileStore::close() {
  if (log_ == nullptr) return {};
  if (sessions_.load() != 0) {
    return fail(Error(ErrorKind::store, "raw-file: closed while sessions are open").at(directory_));
  }
  const std::scoped_lock lock(log_mutex_);
  const Status status = log_->close();
  log_.reset();
  ::close(lock_handle_);
  lock_handle_ = -1;
  return status;
}

// ---- driver ----

class RawFileDriver final : public Driver {
 public:
  std::string name() const override { return std::string(kName); }
  std::string version() const override { return "1"; }

  Capabilities capabilities() const override {
    Capabilities can;
    can.atomic_batches = can.concurrent_writers = true;
    can.reference = true;
    can.durability = {DurabilityClass::volatile_, DurabilityClass::process,
                      DurabilityClass::power_prefix, DurabilityClass::power_last,
                      DurabilityClass::power};
    can.max_key_bytes = 1 << 16;
    can.max_value_bytes = std::uint64_t{256} << 20;
    return can;
  }

  std::vector<Setting> settings(DurabilityClass durability) const override;
  /// Without a sync, the chain of checksums still makes what is left a prefix.
  DurabilityClass durability_under(DurabilityClass, const Settings& effective) const override {
    return effective.at("method") == "none" ? DurabilityClass::power_prefix
                                            : DurabilityClass::power;
  }
  Result<std::unique_ptr<Store>> open(const OpenOptions& options) const override;
  Status check_settings(const OpenOptions& options, std::uint32_t sessions) const override;
};

std::vector<Setting> RawFileDriver::settings(DurabilityClass durability) const {
  return {
      {"method",
       durability >= DurabilityClass::power_last ? "probe" : "none",
       "the fastest of the three ways is found by a probe when the log is made; none leaves the "
       "bytes with the "
       "operating system, where the chain of checksums still makes what is left a prefix",
       "open(2) on O_DSYNC and O_DIRECT; fdatasync(2)",
       {"probe", "fdatasync", "odsync", "odirect_dsync", "none"}},
      {"segment_bytes",
       "auto",
       "auto: a quarter of expected_bytes, 4 to 64 MiB; 16 MiB when nothing is known",
       "adapters/README.md",
       {}},
      {"prepare_bytes",
       "auto",
       "written with zeros at open, so that commits change no metadata: auto is expected_bytes and "
       "an "
       "eighth, at most 256 MiB; later segments are prepared beside the commits",
       "adapters/README.md",
       {}},
  };
}

Result<RawLog::Options> log_options(const Settings& settings, const OpenOptions& options) {
  constexpr std::uint64_t kMiB = 1 << 20;
  const std::uint64_t expected = options.expected_bytes;
  const std::uint64_t segment =
      expected == 0 ? 16 * kMiB : std::clamp(expected / 4, 4 * kMiB, 64 * kMiB);
  const std::uint64_t prepare = std::min(expected + expected / 8, 256 * kMiB);
  const auto segment_bytes =
      count_setting(kName, settings, "segment_bytes",
                    {.least = 1 << 16, .most = 1024 * kMiB, .automatic = segment});
  if (!segment_bytes) return std::unexpected(segment_bytes.error());
  const auto prepare_bytes = count_setting(
      kName, settings, "prepare_bytes", {.least = 0, .most = 65536 * kMiB, .automatic = prepare});
  if (!prepare_bytes) return std::unexpected(prepare_bytes.error());
  RawLog::Options log;
  log.directory = options.directory;
  log.segment_bytes = *segment_bytes / kRawBlockBytes * kRawBlockBytes;
  log.prepare_bytes = *prepare_bytes;
  log.method = raw_method_of(settings.at("method"));
  return log;
}

Status RawFileDriver::check_settings(const OpenOptions& options, std::uint32_t) const {
  const Result<Settings> settings = resolve_settings(*this, options.durability, options.settings);
  if (!settings) return std::unexpected(settings.error());
  ASSAY_TRY(log_options(*settings, options));
  return {};
}

Result<std::unique_ptr<Store>> RawFileDriver::open(const OpenOptions& options) const {
  const Result<Settings> settings = resolve_settings(*this, options.durability, options.settings);
  if (!settings) return std::unexpected(settings.error());
  Result<RawLog::Options> log = log_options(*settings, options);
  if (!log) return std::unexpected(log.error());
  const Result<bool> there = find_store(kName, options);
  if (!there) return std::unexpected(there.error());
  const Result<int> lock_handle = lock_directory(kName, options.directory);
  if (!lock_handle) return std::unexpected(lock_handle.error());
  auto store = std::make_unique<RawFileStore>(options, capabilities(), *lock_handle);
  RawProbe probe;
  if (settings->at("method") == "probe" && *there) {
    log->method = RawLog::recorded_method(options.directory);
  }
  if (settings->at("method") == "probe" && log->method == RawMethod::none) {
    Result<RawProbe> probed = probe_raw_methods(options.directory);
    if (!probed) return std::unexpected(probed.error());
    probe = std::move(*probed);
    log->method = probe.fastest;
  }
  ASSAY_TRY(store->open(*log, !*there, std::move(probe)));
  if (!*there && survives_power_loss(options.durability)) {
    ASSAY_TRY(sync_new_directory(options.directory));
  }
  return store;
}

}  // namespace

const Driver& raw_file_driver() {
  static const RawFileDriver driver;
  return driver;
}

}  // namespace assay
