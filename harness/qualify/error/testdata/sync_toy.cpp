#include "harness/qualify/error/testdata/sync_toy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace assay::qualify::error {
namespace {

struct Place {
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;
};
using Index = std::map<std::string, Place, std::less<>>;

struct Head {
  std::uint32_t bytes = 0;
  std::uint32_t checksum = 0;
};
struct Entry {
  std::uint32_t put = 0;
  std::uint32_t key = 0;
  std::uint32_t value = 0;
};

std::uint32_t checksum(std::string_view bytes) {
  std::uint32_t hash = 2166136261;  // FNV-1a
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 16777619;
  return hash;
}

template <class Plain>
void put_plain(std::string& out, const Plain& plain) {
  out.append(reinterpret_cast<const char*>(&plain), sizeof plain);
}

std::string encode(std::span<const Mutation> mutations) {
  std::string batch;
  for (const Mutation& one : mutations) {
    put_plain(batch, Entry{one.kind == Mutation::Kind::put ? 1U : 0U,
                           static_cast<std::uint32_t>(one.key.size()),
                           static_cast<std::uint32_t>(one.value.size())});
    batch.append(one.key).append(one.value);
  }
  return batch;
}

/// `batch` lies at `offset` of the log. With `most`, only so many of its entries.
void apply(std::string_view batch, std::uint64_t offset, Index& index,
           std::size_t most = SIZE_MAX) {
  for (std::size_t at = 0; at + sizeof(Entry) <= batch.size() && most > 0; --most) {
    Entry entry;
    std::memcpy(&entry, batch.data() + at, sizeof entry);
    at += sizeof entry;
    const std::string key(batch.substr(at, entry.key));
    at += entry.key;
    if (entry.put != 0)
      index[key] = {offset + at, entry.value};
    else
      index.erase(key);
    at += entry.value;
  }
}

Error failed(const std::string& what) {
  return {ErrorKind::store, what + ": " + std::strerror(errno)};
}

class SyncToy final : public Store {
 public:
  SyncToy(const std::string& directory, std::string mistake)
      : Store(directory), mistake_(std::move(mistake)) {}
  ~SyncToy() override {
    if (log_ >= 0) ::close(log_);
  }

  Status open() {
    log_ = ::open((directory_ + "/log").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (log_ < 0) return fail(failed("cannot open the log"));
    const int folder = ::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool named = folder >= 0 && ::fsync(folder) == 0;
    if (folder >= 0) ::close(folder);
    if (!named) return fail(failed("cannot make the log's name durable"));
    return recover();
  }

  Status commit(std::span<const Mutation> mutations) {
    const std::lock_guard lock(mutex_);
    if (poisoned_) return fail(ErrorKind::store, "an earlier sync failed: open the store anew");
    const std::string batch = encode(mutations);
    std::string record;
    put_plain(record, Head{static_cast<std::uint32_t>(batch.size()), checksum(batch)});
    record += batch;
    if (has("shows_half_of_a_failed_commit") && mutations.size() > 1)
      apply(batch, end_ + sizeof(Head), index_, 1);
    if (!write_all(record, end_)) {
      const Error why = failed("cannot write");
      if (has("aborts_on_an_error")) ::abort();
      if (::ftruncate(log_, static_cast<off_t>(end_)) != 0) poisoned_ = true;
      return fail(why);
    }
    if (!sync_log(record)) {
      poisoned_ = true;
      return fail(failed("cannot sync"));
    }
    apply(batch, end_ + sizeof(Head), index_);
    end_ += record.size();
    return {};
  }

  Result<bool> get(std::string_view key, std::string& value) {
    const std::lock_guard lock(mutex_);
    const auto found = index_.find(key);
    if (found == index_.end()) return false;
    const Result<bool> read = read_value(found->second, value);
    if (!read) return fail(read.error());
    return *read;
  }

  Result<std::unique_ptr<Session>> session() override;
  Status sync() override {
    const std::lock_guard lock(mutex_);
    if (poisoned_) return fail(ErrorKind::store, "an earlier sync failed: open the store anew");
    return {};
  }
  Status settle() override { return {}; }
  Status checkpoint() override { return {}; }
  Result<Settings> effective_settings() override { return Settings{{"mistake", mistake_}}; }
  Status close() override { return {}; }

  Index copy() {
    const std::lock_guard lock(mutex_);
    return index_;
  }

  /// False: the key is taken not to be there.
  Result<bool> read_value(const Place& place, std::string& value) const {
    value.resize(place.bytes);
    std::size_t at = 0;
    while (at < value.size()) {
      const ssize_t got = ::pread(log_, value.data() + at, value.size() - at,
                                  static_cast<off_t>(place.offset + at));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0 && has("takes_a_failed_read_for_nothing")) return false;
      if (got <= 0) return fail(failed("cannot read"));
      at += static_cast<std::size_t>(got);
    }
    return true;
  }

 private:
  [[nodiscard]] bool has(std::string_view mistake) const { return mistake_ == mistake; }

  bool write_all(std::string_view bytes, std::uint64_t at) const {
    while (!bytes.empty()) {
      const ssize_t wrote = ::pwrite(log_, bytes.data(), bytes.size(), static_cast<off_t>(at));
      if (wrote < 0 && (errno == EINTR || has("tries_for_ever"))) continue;
      if (wrote <= 0) return false;
      if (has("believes_a_short_write")) return true;
      bytes.remove_prefix(static_cast<std::size_t>(wrote));
      at += static_cast<std::uint64_t>(wrote);
    }
    return true;
  }

  bool sync_log(const std::string& record) const {
    if (::fdatasync(log_) == 0 || has("ignores_a_failed_sync")) return true;
    if (has("syncs_again")) return ::fdatasync(log_) == 0;
    // A page that was written again goes to the disk; one that was only synced again does not.
    if (has("writes_again")) return write_all(record, end_) && ::fdatasync(log_) == 0;
    return false;
  }

  Status recover() {
    for (;;) {
      Head head;
      const Result<std::size_t> got = read_at(&head, sizeof head, end_);
      if (!got) return fail(got.error());
      if (*got < sizeof head || head.bytes == 0) break;
      std::string batch(head.bytes, '\0');
      const Result<std::size_t> rest = read_at(batch.data(), batch.size(), end_ + sizeof head);
      if (!rest) return fail(rest.error());
      if (*rest < batch.size() || checksum(batch) != head.checksum) break;
      apply(batch, end_ + sizeof head, index_);
      end_ += sizeof head + batch.size();
    }
    // What is behind the last sound record is cut off, so that nothing old can follow a new one.
    if (::ftruncate(log_, static_cast<off_t>(end_)) != 0 || ::fdatasync(log_) != 0)
      return fail(failed("cannot cut the log"));
    return {};
  }

  /// Bytes read: fewer at the end of the file.
  Result<std::size_t> read_at(void* into, std::size_t bytes, std::uint64_t offset) const {
    std::size_t at = 0;
    while (at < bytes) {
      const ssize_t got =
          ::pread(log_, static_cast<char*>(into) + at, bytes - at, static_cast<off_t>(offset + at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && !has("takes_a_failed_read_for_the_end"))
        return fail(failed("cannot read the log"));
      if (got <= 0) break;
      at += static_cast<std::size_t>(got);
    }
    return at;
  }

  std::string mistake_;
  std::mutex mutex_;
  Index index_;
  std::uint64_t end_ = 0;
  int log_ = -1;
  bool poisoned_ = false;
};

class SyncToySession final : public Session {
 public:
  explicit SyncToySession(SyncToy& store) : store_(store) {}
  Result<bool> get(std::string_view key, std::string_view& value) override {
    const Result<bool> found = store_.get(key, value_);
    if (found && *found) value = value_;
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
  Status rollback(std::span<const Mutation> /*mutations*/) override { return {}; }
  /// The tests scan everything, forward or backward.
  Result<std::uint64_t> scan(const ScanRange& range, ScanSink& sink) override {
    const Index index = store_.copy();
    std::vector<std::pair<std::string, Place>> entries(index.begin(), index.end());
    if (range.backward) entries.assign(index.rbegin(), index.rend());
    std::uint64_t visited = 0;
    for (const auto& [key, place] : entries) {
      const Result<bool> read = store_.read_value(place, value_);
      if (!read) return fail(read.error());
      if (!*read) continue;
      ++visited;
      if (!sink.entry(key, value_)) break;
    }
    return visited;
  }

 private:
  SyncToy& store_;
  std::string value_;
};

Result<std::unique_ptr<Session>> SyncToy::session() {
  return std::make_unique<SyncToySession>(*this);
}

class SyncToyDriver final : public Driver {
 public:
  std::string name() const override { return "sync-toy"; }
  std::string version() const override { return "1"; }
  Capabilities capabilities() const override {
    Capabilities can;
    can.ordered = true;
    can.rollback = true;
    can.atomic_batches = true;
    can.durability = {DurabilityClass::power};
    can.max_key_bytes = 1000;
    can.max_value_bytes = 1 << 20;
    return can;
  }
  std::vector<Setting> settings(DurabilityClass /*durability*/) const override {
    Setting mistake{"mistake", "none", "a test chooses one", "sync_toy.h", {"none"}};
    mistake.choices.emplace_back("writes_again");
    for (const SyncMistake& one : sync_mistakes()) mistake.choices.push_back(one.name);
    return {mistake};
  }
  Result<std::unique_ptr<Store>> open(const OpenOptions& options) const override {
    const auto settings = resolve_settings(*this, options.durability, options.settings);
    if (!settings) return fail(settings.error());
    auto store = std::make_unique<SyncToy>(options.directory, settings->at("mistake"));
    ASSAY_TRY(store->open());
    return store;
  }
};

}  // namespace

const Driver& sync_toy_driver() {
  static const SyncToyDriver driver;
  return driver;
}

const std::vector<SyncMistake>& sync_mistakes() {
  static const std::vector<SyncMistake> mistakes = {
      {"ignores_a_failed_sync", "acknowledged-after-a-failed-sync"},
      {"syncs_again", "acknowledged-after-a-failed-sync"},
      {"believes_a_short_write", "lost-in-the-same-life"},
      {"takes_a_failed_read_for_nothing", "lost-in-the-same-life"},
      {"takes_a_failed_read_for_the_end", "lost-commits"},
      {"shows_half_of_a_failed_commit", "lost-in-the-same-life"},
      {"aborts_on_an_error", "crashed"},
      {"tries_for_ever", "hung"},
  };
  return mistakes;
}

}  // namespace assay::qualify::error
