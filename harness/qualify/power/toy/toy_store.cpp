#include "harness/qualify/power/toy/toy_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cstring>

namespace assay::qualify::power::toy {
namespace {

class ToyStore;

class ToySession final : public Session {
 public:
  explicit ToySession(ToyStore& store) : store_(store) {}
  Result<bool> get(std::string_view key, std::string_view& value) override;
  Status put(std::string_view key, std::string_view value) override {
    const Mutation change{Mutation::Kind::put, key, value};
    return apply({&change, 1});
  }
  Status erase(std::string_view key) override {
    const Mutation change{Mutation::Kind::erase, key, {}};
    return apply({&change, 1});
  }
  Status apply(std::span<const Mutation> mutations) override;
  Status rollback(std::span<const Mutation>) override { return {}; }
  Result<std::uint64_t> scan(const ScanRange& range, ScanSink& sink) override;

 private:
  ToyStore& store_;
};

class ToyStore final : public Store {
 public:
  ToyStore(const std::string& directory, std::unique_ptr<Engine> engine)
      : Store(directory), engine_(std::move(engine)) {}
  Status load() { return engine_->load(map_); }
  Result<std::unique_ptr<Session>> session() override {
    return std::make_unique<ToySession>(*this);
  }
  Status sync() override { return {}; }
  Status checkpoint() override { return {}; }
  Status settle() override { return {}; }
  Result<Settings> effective_settings() override { return Settings{}; }
  Status close() override { return engine_->close(); }

 private:
  friend class ToySession;
  Map map_;
  std::unique_ptr<Engine> engine_;
};

Result<bool> ToySession::get(std::string_view key, std::string_view& value) {
  const auto found = store_.map_.find(std::string(key));
  if (found == store_.map_.end()) return false;
  value = found->second;
  return true;
}

Status ToySession::apply(std::span<const Mutation> mutations) {
  Map after = store_.map_;
  for (const Mutation& change : mutations) {
    if (change.kind == Mutation::Kind::erase) {
      after.erase(std::string(change.key));
    } else {
      after.insert_or_assign(std::string(change.key), std::string(change.value));
    }
  }
  ASSAY_TRY(store_.engine_->commit(after, mutations));
  store_.map_ = std::move(after);
  return {};
}

Result<std::uint64_t> ToySession::scan(const ScanRange& range, ScanSink& sink) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const auto& [key, value] : store_.map_) {
    if (!range.from_start && key < range.first) continue;
    if (!range.to_end && key > range.last) continue;
    entries.emplace_back(key, value);
  }
  if (range.backward) std::reverse(entries.begin(), entries.end());
  std::uint64_t visited = 0;
  for (const auto& [key, value] : entries) {
    if (range.limit != 0 && visited == range.limit) break;
    ++visited;
    if (!sink.entry(key, value)) break;
  }
  return visited;
}

class ToyDriver final : public Driver {
 public:
  ToyDriver(MakeEngine engine, Mistakes mistakes)
      : engine_(std::move(engine)), mistakes_(std::move(mistakes)) {}
  std::string name() const override { return "toy"; }
  std::string version() const override { return "1"; }
  Capabilities capabilities() const override {
    Capabilities can;
    can.ordered = true;
    can.atomic_batches = true;
    can.durability = {DurabilityClass::power};
    can.max_key_bytes = 1024;
    can.max_value_bytes = 1 << 20;
    return can;
  }
  std::vector<Setting> settings(DurabilityClass) const override { return {}; }
  Result<std::unique_ptr<Store>> open(const OpenOptions& options) const override {
    auto store =
        std::make_unique<ToyStore>(options.directory, engine_(options.directory, mistakes_));
    ASSAY_TRY(store->load());
    return store;
  }

 private:
  MakeEngine engine_;
  Mistakes mistakes_;
};

}  // namespace

std::unique_ptr<Driver> make_driver(MakeEngine engine, Mistakes mistakes) {
  return std::make_unique<ToyDriver>(std::move(engine), std::move(mistakes));
}

std::string number(std::uint64_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::uint64_t number(std::string_view bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

namespace {

void put_text(std::string& out, std::string_view text) {
  out += number(text.size());
  out += text;
}

bool take_text(std::string_view& from, std::string& text) {
  if (from.size() < 8 || number(from) > from.size() - 8) return false;
  text = from.substr(8, number(from));
  from.remove_prefix(8 + text.size());
  return true;
}

}  // namespace

std::string pack(const Map& map) {
  std::string out = number(map.size());
  for (const auto& [key, value] : map) {
    put_text(out, key);
    put_text(out, value);
  }
  return out;
}

bool unpack(std::string_view bytes, Map& map) {
  map.clear();
  if (bytes.size() < 8) return false;
  std::uint64_t left = number(bytes);
  bytes.remove_prefix(8);
  for (; left != 0; --left) {
    std::string key;
    std::string value;
    if (!take_text(bytes, key) || !take_text(bytes, value)) return false;
    map.insert_or_assign(key, value);
  }
  return true;
}

std::string pack(std::span<const Mutation> changes) {
  std::string out = number(changes.size());
  for (const Mutation& change : changes) {
    out += change.kind == Mutation::Kind::erase ? 'e' : 'p';
    put_text(out, change.key);
    put_text(out, change.value);
  }
  return out;
}

bool apply(std::string_view changes, Map& map) {
  if (changes.size() < 8) return false;
  std::uint64_t left = number(changes);
  changes.remove_prefix(8);
  for (; left != 0; --left) {
    if (changes.empty()) return false;
    const char kind = changes.front();
    changes.remove_prefix(1);
    std::string key;
    std::string value;
    if (!take_text(changes, key) || !take_text(changes, value)) return false;
    if (kind == 'e') {
      map.erase(key);
    } else {
      map.insert_or_assign(key, value);
    }
  }
  return true;
}

std::uint64_t checksum(std::string_view bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

Handle::Handle(const std::string& path, int flags)
    : file_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
  ASSAY_CHECK(file_ >= 0 || (flags & O_CREAT) == 0, "a toy's file can be made");
}

Handle::~Handle() {
  if (file_ >= 0) ::close(file_);
}

void Handle::write(std::string_view bytes, std::uint64_t at) const {
  ASSAY_CHECK(::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(at)) ==
                  static_cast<ssize_t>(bytes.size()),
              "a toy's write is whole");
}

std::string Handle::read() const {
  struct stat status{};
  ASSAY_CHECK(::fstat(file_, &status) == 0, "a toy's file has a size");
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  ASSAY_CHECK(::pread(file_, bytes.data(), bytes.size(), 0) == status.st_size,
              "a toy's file can be read");
  return bytes;
}

bool Handle::sync() const {
  return ::fdatasync(file_) == 0;
}

void Handle::resize(std::uint64_t bytes) const {
  ASSAY_CHECK(::ftruncate(file_, static_cast<off_t>(bytes)) == 0, "a toy's file can be resized");
}

void sync_directory(const std::string& path) {
  const Handle folder(path, O_RDONLY | O_DIRECTORY);
  ASSAY_CHECK(folder.is_open() && ::fsync(folder.get()) == 0, "a directory can be synced");
}

}  // namespace assay::qualify::power::toy
