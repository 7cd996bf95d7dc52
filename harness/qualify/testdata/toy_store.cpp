#include "harness/qualify/testdata/toy_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace assay::qualify {
namespace {

using Map = std::map<std::string, std::string, std::less<>>;

std::uint32_t checksum(std::string_view bytes) {
  std::uint32_t hash = 2166136261;  // FNV-1a
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 16777619;
  return hash;
}

void put_number(std::string& out, std::uint32_t number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

bool take_number(std::string_view& in, std::uint32_t& number) {
  if (in.size() < sizeof number) return false;
  std::memcpy(&number, in.data(), sizeof number);
  in.remove_prefix(sizeof number);
  return true;
}

std::string encode(std::span<const Mutation> mutations) {
  std::string out;
  for (const Mutation& mutation : mutations) {
    put_number(out, mutation.kind == Mutation::Kind::put ? 1 : 0);
    put_number(out, static_cast<std::uint32_t>(mutation.key.size()));
    put_number(out, static_cast<std::uint32_t>(mutation.value.size()));
    out.append(mutation.key).append(mutation.value);
  }
  return out;
}

/// Applies what is whole of a batch; false when its end is missing.
bool apply_batch(std::string_view batch, Map& map) {
  while (!batch.empty()) {
    std::uint32_t put = 0;
    std::uint32_t key = 0;
    std::uint32_t value = 0;
    if (!take_number(batch, put) || !take_number(batch, key) || !take_number(batch, value) ||
        batch.size() < key)
      return false;
    const std::string name(batch.substr(0, key));
    // A value that ends early is taken as it is: who asks for no checksum gets that.
    const std::string content(batch.substr(key, value));
    if (put != 0)
      map[name] = content;
    else
      map.erase(name);
    if (batch.size() < std::size_t{key} + value) return false;
    batch.remove_prefix(std::size_t{key} + value);
  }
  return true;
}

Error failed(const std::string& what) {
  return {ErrorKind::store, what + ": " + std::strerror(errno)};
}

std::string read_all(const std::string& path) {
  std::string bytes;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return bytes;
  char chunk[65536];
  for (ssize_t got = 0; (got = ::read(fd, chunk, sizeof chunk)) > 0;)
    bytes.append(chunk, static_cast<std::size_t>(got));
  ::close(fd);
  return bytes;
}

class ToyStore final : public Store {
 public:
  ToyStore(const std::string& directory, std::string mistake)
      : Store(directory), mistake_(std::move(mistake)) {}
  ~ToyStore() override {
    if (log_ >= 0) ::close(log_);
  }

  Status open() {
    if (has("lock_file_stays")) {
      const int lock = ::open(path("lock").c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
      if (lock < 0) return fail(failed("the store is in use"));
      ::close(lock);
    }
    dirty_ = ::access(path("dirty").c_str(), F_OK) == 0;
    if (dirty_ && has("exits_in_recovery")) ::_exit(7);
    if (dirty_ && has("hangs_in_recovery"))
      for (;;) ::pause();
    if (dirty_ && has("crashes_in_recovery")) ::abort();
    ::close(::open(path("dirty").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    if (has("leaves_a_process")) leave_a_process();
    recover();
    log_ = ::open(path("log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log_ < 0) return fail(failed("cannot open the log"));
    return {};
  }

  Status commit(std::span<const Mutation> mutations) {
    const std::lock_guard lock(mutex_);
    const std::string batch = encode(mutations);
    apply_batch(batch, map_);
    if (has("batch_in_parts") && mutations.size() > 1) {
      for (const Mutation& mutation : mutations) write_record(encode({&mutation, 1}));
      return {};
    }
    if (has("erases_kept_in_memory")) {
      std::vector<Mutation> puts;
      for (const Mutation& mutation : mutations)
        if (mutation.kind == Mutation::Kind::put) puts.push_back(mutation);
      write_record(encode(puts));
      return {};
    }
    write_record(batch);
    return {};
  }

  Status roll_back(std::span<const Mutation> mutations) {
    if (!has("rollback_by_undo")) return {};
    const std::lock_guard lock(mutex_);
    Map undo = map_;
    write_record(encode(mutations));
    std::vector<Mutation> back;
    for (const Mutation& mutation : mutations) {
      const auto old = undo.find(mutation.key);
      if (old == undo.end())
        back.push_back({Mutation::Kind::erase, mutation.key, {}});
      else
        back.push_back({Mutation::Kind::put, mutation.key, old->second});
    }
    write_record(encode(back));
    return {};
  }

  Result<std::unique_ptr<Session>> session() override;
  Status sync() override {
    const std::lock_guard lock(mutex_);
    flush();
    return {};
  }
  Status settle() override { return {}; }

  Status checkpoint() override {
    const std::lock_guard lock(mutex_);
    flush();
    if (has("log_emptied_before_snapshot") && ::ftruncate(log_, 0) != 0)
      return fail(failed("cannot empty the log"));
    write_snapshot(has("snapshot_in_place") ? "snapshot" : "snapshot.new");
    if (!has("snapshot_in_place") &&
        ::rename(path("snapshot.new").c_str(), path("snapshot").c_str()) != 0)
      return fail(failed("cannot rename the snapshot"));
    if (::ftruncate(log_, 0) != 0) return fail(failed("cannot empty the log"));
    return {};
  }

  Result<Settings> effective_settings() override { return Settings{{"mistake", mistake_}}; }

  Status close() override {
    flush();
    if (has("erases_kept_in_memory")) (void)checkpoint();
    ::unlink(path("dirty").c_str());
    if (has("lock_file_stays")) ::unlink(path("lock").c_str());
    return {};
  }

  Map copy() {
    const std::lock_guard lock(mutex_);
    return map_;
  }
  bool get(std::string_view key, std::string& value) {
    const std::lock_guard lock(mutex_);
    const auto found = map_.find(key);
    if (found == map_.end()) return false;
    value = found->second;
    return true;
  }

 private:
  [[nodiscard]] bool has(std::string_view mistake) const { return mistake_ == mistake; }
  [[nodiscard]] std::string path(const std::string& name) const { return directory_ + "/" + name; }

  static void write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
      if (wrote <= 0) ::abort();
      bytes.remove_prefix(static_cast<std::size_t>(wrote));
    }
  }

  void write_record(const std::string& batch) {
    std::string record;
    put_number(record, static_cast<std::uint32_t>(batch.size()));
    put_number(record, checksum(batch));
    if (has("record_not_checked") || has("torn_tail_stays")) {
      write_all(log_, record);  // the head alone: a record in two writes
      write_all(log_, batch);
      return;
    }
    record += batch;
    if (has("acknowledged_before_write")) {
      write_all(log_, std::exchange(buffer_, record));
      return;
    }
    if (has("buffered_in_process")) {
      buffer_ += record;
      if (buffer_.size() > 8192) flush();
      return;
    }
    write_all(log_, record);
  }

  void flush() {
    if (log_ >= 0) write_all(log_, std::exchange(buffer_, {}));
  }

  void write_snapshot(const std::string& name) {
    const int fd = ::open(path(name).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    std::string bytes;
    for (const auto& [key, value] : map_) {
      const Mutation one{Mutation::Kind::put, key, value};
      bytes += encode({&one, 1});
      if (bytes.size() > 2000) write_all(fd, std::exchange(bytes, {}));
    }
    write_all(fd, bytes);
    ::close(fd);
  }

  void recover() {
    apply_batch(read_all(path("snapshot")), map_);
    const std::string log = read_all(path("log"));
    std::string_view rest = log;
    std::size_t sound = 0;
    while (!rest.empty()) {
      std::string_view record = rest;
      std::uint32_t size = 0;
      std::uint32_t sum = 0;
      if (!take_number(record, size) || !take_number(record, sum)) break;
      const std::string_view batch = record.substr(0, size);
      if (has("record_not_checked")) {
        apply_batch(batch, map_);
      } else {
        if (batch.size() < size || checksum(batch) != sum) break;
        apply_batch(batch, map_);
      }
      rest = record.substr(batch.size());
      sound = log.size() - rest.size();
    }
    if (has("recovery_empties_first") && dirty_ && !log.empty()) {
      ::truncate(path("log").c_str(), 0) == 0 ? void() : ::abort();
      write_snapshot("snapshot.new");
      ::rename(path("snapshot.new").c_str(), path("snapshot").c_str());
      return;
    }
    if (has("recovered_in_memory_only") && dirty_) {
      ::truncate(path("log").c_str(), 0) == 0 ? void() : ::abort();
      return;
    }
    if (!has("torn_tail_stays") && sound < log.size() &&
        ::truncate(path("log").c_str(), static_cast<off_t>(sound)) != 0)
      ::abort();
  }

  /// A helper in a session of its own, which a kill of the process group does not reach.
  static void leave_a_process() {
    if (::fork() != 0) return;
    ::setsid();
    for (;;) ::pause();
  }

  std::string mistake_;
  std::mutex mutex_;
  Map map_;
  std::string buffer_;
  int log_ = -1;
  bool dirty_ = false;
};

class ToySession final : public Session {
 public:
  explicit ToySession(ToyStore& store) : store_(store) {}
  Result<bool> get(std::string_view key, std::string_view& value) override {
    const bool found = store_.get(key, value_);
    if (found) value = value_;
    return found;
  }
  Status put(std::string_view key, std::string_view value) override {
    const Mutation one{Mutation::Kind::put, key, value};
    return store_.commit({&one, 1});
  }
  Status erase(std::string_view key) override {
    const Mutation one{Mutation::Kind::erase, key, {}};
    return store_.commit({&one, 1});
  }
  Status apply(std::span<const Mutation> mutations) override { return store_.commit(mutations); }
  Status rollback(std::span<const Mutation> mutations) override {
    return store_.roll_back(mutations);
  }
  /// The tests scan everything, forward or backward.
  Result<std::uint64_t> scan(const ScanRange& range, ScanSink& sink) override {
    const Map map = store_.copy();
    std::vector<std::pair<std::string, std::string>> entries(map.begin(), map.end());
    if (range.backward) std::reverse(entries.begin(), entries.end());
    std::uint64_t visited = 0;
    for (const auto& [key, value] : entries) {
      ++visited;
      if (!sink.entry(key, value)) break;
    }
    return visited;
  }

 private:
  ToyStore& store_;
  std::string value_;
};

Result<std::unique_ptr<Session>> ToyStore::session() {
  return std::make_unique<ToySession>(*this);
}

class ToyDriver final : public Driver {
 public:
  std::string name() const override { return "toy"; }
  std::string version() const override { return "1"; }
  Capabilities capabilities() const override {
    Capabilities can;
    can.ordered = true;
    can.rollback = true;
    can.atomic_batches = true;
    can.durability = {DurabilityClass::volatile_, DurabilityClass::process};
    can.max_key_bytes = 1000;
    can.max_value_bytes = 1 << 20;
    return can;
  }
  std::vector<Setting> settings(DurabilityClass /*durability*/) const override {
    Setting mistake{"mistake", "none", "a test chooses one", "toy_store.h", {"none"}};
    for (const ToyMistake& one : toy_mistakes()) mistake.choices.push_back(one.name);
    mistake.choices.emplace_back("leaves_a_process");
    return {mistake};
  }
  Result<std::unique_ptr<Store>> open(const OpenOptions& options) const override {
    const auto settings = resolve_settings(*this, options.durability, options.settings);
    if (!settings) return fail(settings.error());
    auto store = std::make_unique<ToyStore>(options.directory, settings->at("mistake"));
    ASSAY_TRY(store->open());
    return store;
  }
};

}  // namespace

const Driver& toy_driver() {
  static const ToyDriver driver;
  return driver;
}

const std::vector<ToyMistake>& toy_mistakes() {
  static const std::vector<ToyMistake> mistakes = {
      {"acknowledged_before_write", {"lost-commits"}},
      {"buffered_in_process", {"lost-commits"}},
      // What only the erases of a transaction left behind looks like a settled key that is gone.
      {"batch_in_parts", {"torn-transaction", "resurrected-erase", "lost-after-reopen"}},
      {"erases_kept_in_memory", {"resurrected-erase", "torn-transaction"}},
      {"rollback_by_undo",
       {"rolled-back-visible", "torn-transaction", "resurrected-erase", "lost-after-reopen"}},
      {"record_not_checked",
       {"wrong-value", "torn-transaction", "resurrected-erase", "lost-after-reopen"}},
      {"torn_tail_stays", {"lost-after-reopen", "lost-commits", "hole"}},
      {"log_emptied_before_snapshot", {"lost-commits", "lost-after-reopen"}},
      {"snapshot_in_place", {"lost-after-reopen", "wrong-value", "lost-commits", "hole"}},
      {"recovery_empties_first", {"lost-commits", "lost-after-reopen"}},
      {"recovered_in_memory_only", {"lost-after-reopen", "lost-commits"}},
      {"lock_file_stays", {"refuses-to-open"}},
      {"exits_in_recovery", {"crashed"}},
      {"crashes_in_recovery", {"crashed"}},
      {"hangs_in_recovery", {"hung"}},
  };
  return mistakes;
}

}  // namespace assay::qualify
