#include "adapters/rewrite_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>

#include "adapters/opening.h"
#include "adapters/rewrite_file.h"

namespace assay {
namespace {

constexpr std::string_view kName = "rewrite";

enum class Flush : std::uint8_t { close, written, synced };

Flush flush_of(const Settings& settings) {
  const std::string& value = settings.at("flush");
  if (value == "close") return Flush::close;
  return value == "written" ? Flush::written : Flush::synced;
}

class RewriteStore;

class RewriteSession final : public Session {
 public:
  explicit RewriteSession(RewriteStore& store);
  ~RewriteSession() override;
  Result<bool> get(std::string_view key, std::string_view& value) override;
  Status put(std::string_view key, std::string_view value) override;
  Status erase(std::string_view key) override;
  Status apply(std::span<const Mutation> mutations) override;
  Status rollback(std::span<const Mutation> mutations) override;
  Result<std::uint64_t> scan(const ScanRange& range, ScanSink& sink) override;

 private:
  [[nodiscard]] Status check(std::span<const Mutation> mutations) const;

  RewriteStore& store_;
  std::string value_;
};

class RewriteStore final : public Store {
 public:
  RewriteStore(const OpenOptions& options, const Capabilities& capabilities, Flush flush,
               int lock_handle)
      : Store(options.directory),
        limits_(std::string(kName), capabilities, options.key_kind),
        flush_(flush),
        lock_handle_(lock_handle),
        file_(options.directory) {}
  ~RewriteStore() override {
    if (lock_handle_ >= 0) ::close(lock_handle_);
  }

  Status open(bool fresh, bool synced);
  Result<std::unique_ptr<Session>> session() override {
    return std::make_unique<RewriteSession>(*this);
  }
  Status sync() override {
    const std::unique_lock lock(lock_);
    return file_.write(map_, true);
  }
  Status checkpoint() override {
    const std::unique_lock lock(lock_);
    return flush_ == Flush::close ? file_.write(map_, false) : Status{};
  }
  Status settle() override { return {}; }
  std::map<std::string, double> counters() const override {
    const std::shared_lock lock(lock_);
    return {{"rewrites", static_cast<double>(file_.counters().rewrites)},
            {"bytes_written", static_cast<double>(file_.counters().bytes_written)},
            {"entries", static_cast<double>(map_.size())}};
  }
  Result<Settings> effective_settings() override {
    return Settings{{"flush", flush_ == Flush::close     ? "close"
                              : flush_ == Flush::written ? "written"
                                                         : "synced"}};
  }
  Status close() override;

 private:
  friend class RewriteSession;

  /// Makes `mutations` and writes the file, if that is due; where it cannot be written, nothing has
  /// changed.
  Status commit(std::span<const Mutation> mutations);
  void change(const Mutation& mutation);

  const EntryLimits limits_;
  const Flush flush_;
  int lock_handle_;
  mutable std::shared_mutex lock_;  ///< of all below
  RewriteMap map_;
  RewriteFile file_;
  std::atomic<int> sessions_{0};
};

// ---- session ----

RewriteSession::RewriteSession(RewriteStore& store) : store_(store) {
  store_.sessions_.fetch_add(1);
}

RewriteSession::~RewriteSession() {
  store_.sessions_.fetch_sub(1);
}

Result<bool> RewriteSession::get(std::string_view key, std::string_view& value) {
  const std::shared_lock lock(store_.lock_);
  const auto found = store_.map_.find(key);
  if (found == store_.map_.end()) return false;
  value_ = found->second;
  value = value_;
  return true;
}

Status RewriteSession::check(std::span<const Mutation> mutations) const {
  for (const Mutation& one : mutations) {
    if (!store_.limits_.accepts(one.key, one.value)) {
      return fail(store_.limits_.refusal(one.key, one.value));
    }
  }
  return {};
}

Status RewriteSession::apply(std::span<const Mutation> mutations) {
  ASSAY_TRY(check(mutations));
  return mutations.empty() ? Status{} : store_.commit(mutations);
}

Status RewriteSession::put(std::string_view key, std::string_view value) {
  const Mutation one{.kind = Mutation::Kind::put, .key = key, .value = value};
  return apply({&one, 1});
}

Status RewriteSession::erase(std::string_view key) {
  const Mutation one{.kind = Mutation::Kind::erase, .key = key};
  return apply({&one, 1});
}

Status RewriteSession::rollback(std::span<const Mutation> mutations) {
  return check(mutations);  // what would be made is undone before anyone sees it
}

Result<std::uint64_t> RewriteSession::scan(const ScanRange& range, ScanSink& sink) {
  // A copy is the snapshot: the sink may take its time while others write.
  std::vector<std::pair<std::string, std::string>> entries;
  {
    const std::shared_lock lock(store_.lock_);
    const RewriteMap& map = store_.map_;
    auto first = range.from_start ? map.begin() : map.lower_bound(range.first);
    const auto last = range.to_end ? map.end() : map.upper_bound(range.last);
    if (!range.from_start && !range.to_end && range.last < range.first) return std::uint64_t{0};
    const std::uint64_t most = range.limit == 0 ? UINT64_MAX : range.limit;
    if (range.backward) {
      for (auto at = last; at != first && entries.size() < most;) entries.emplace_back(*--at);
    } else {
      for (; first != last && entries.size() < most; ++first) entries.emplace_back(*first);
    }
  }
  std::uint64_t visited = 0;
  for (const auto& [key, value] : entries) {
    ++visited;
    if (!sink.entry(key, value)) break;
  }
  return visited;
}

// ---- store ----

Status RewriteStore::open(bool fresh, bool synced) {
  if (fresh) {
    ASSAY_TRY(file_.write(map_, synced));
    return synced ? sync_new_directory(directory_) : Status{};
  }
  Result<RewriteMap> map = file_.read();
  if (!map) return std::unexpected(map.error());
  map_ = std::move(*map);
  return {};
}

void RewriteStore::change(const Mutation& mutation) {
  const auto found = map_.find(mutation.key);
  if (mutation.kind == Mutation::Kind::erase) {
    if (found != map_.end()) map_.erase(found);
  } else if (found != map_.end()) {
    found->second = mutation.value;
  } else {
    map_.emplace(mutation.key, mutation.value);
  }
}

Status RewriteStore::commit(std::span<const Mutation> mutations) {
  const std::unique_lock lock(lock_);
  if (flush_ == Flush::close) {
    for (const Mutation& one : mutations) change(one);
    return {};
  }
  std::vector<std::pair<std::string_view, std::optional<std::string>>> before;
  before.reserve(mutations.size());
  for (const Mutation& one : mutations) {
    const auto found = map_.find(one.key);
    before.emplace_back(
        one.key, found == map_.end() ? std::nullopt : std::optional<std::string>(found->second));
    change(one);
  }
  Status written = file_.write(map_, flush_ == Flush::synced);
  if (written) return written;
  for (auto undo = before.rbegin(); undo != before.rend(); ++undo) {
    change({.kind = undo->second ? Mutation::Kind::put : Mutation::Kind::erase,
            .key = undo->first,
            .value = undo->second ? std::string_view(*undo->second) : std::string_view{}});
  }
  return written;
}

Status RewriteStore::close() {
  if (lock_handle_ < 0) return {};
  if (sessions_.load() != 0) {
    return fail(Error(ErrorKind::store, "rewrite: closed while sessions are open").at(directory_));
  }
  Status status = checkpoint();
  ::close(lock_handle_);
  lock_handle_ = -1;
  return status;
}

// ---- driver ----

class RewriteDriver final : public Driver {
 public:
  std::string name() const override { return std::string(kName); }
  std::string version() const override { return "1"; }
  Capabilities capabilities() const override {
    Capabilities can;
    can.ordered = can.rollback = can.atomic_batches = can.concurrent_writers = true;
    can.durability = {DurabilityClass::volatile_, DurabilityClass::process,
                      DurabilityClass::power_prefix, DurabilityClass::power_last,
                      DurabilityClass::power};
    can.max_key_bytes = 1 << 16;
    can.max_value_bytes = std::uint64_t{64} << 20;
    return can;
  }
  std::vector<Setting> settings(DurabilityClass durability) const override {
    const char* flush = "synced";
    if (durability == DurabilityClass::volatile_) flush = "close";
    if (durability == DurabilityClass::process) flush = "written";
    return {{"flush",
             flush,
             "when the whole file is written: at each commit and synced, at each commit, or when "
             "the store is closed, synced or checkpointed",
             "adapters/rewrite_store.h",
             {"synced", "written", "close"}}};
  }
  DurabilityClass durability_under(DurabilityClass, const Settings& effective) const override {
    switch (flush_of(effective)) {
      case Flush::close:
        return DurabilityClass::volatile_;
      case Flush::written:
        return DurabilityClass::process;
      default:
        return DurabilityClass::power;
    }
  }
  Result<std::unique_ptr<Store>> open(const OpenOptions& options) const override;
};

Result<std::unique_ptr<Store>> RewriteDriver::open(const OpenOptions& options) const {
  const Result<Settings> settings = resolve_settings(*this, options.durability, options.settings);
  if (!settings) return std::unexpected(settings.error());
  const Result<bool> there = find_store(kName, options);
  if (!there) return std::unexpected(there.error());
  const Result<int> lock_handle = lock_directory(kName, options.directory);
  if (!lock_handle) return std::unexpected(lock_handle.error());
  auto store =
      std::make_unique<RewriteStore>(options, capabilities(), flush_of(*settings), *lock_handle);
  ASSAY_TRY(store->open(!*there, survives_power_loss(options.durability)));
  return store;
}

}  // namespace

const Driver& rewrite_driver() {
  static const RewriteDriver driver;
  return driver;
}

}  // namespace assay
