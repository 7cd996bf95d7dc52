#include "adapters/conformance/testdata/flawed_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <list>
#include <thread>

namespace assay::conformance {
namespace {

constexpr std::size_t kMostKey = 600;
constexpr std::uint64_t kMostValue = std::uint64_t{1} << 20;

class FlawedSession final : public Session {
 public:
  FlawedSession(Flaw flaw, FlawedDriver::Contents& contents) : flaw_(flaw), contents_(contents) {}

  Result<bool> get(std::string_view key, std::string_view& value) override {
    if (flaw_ == Flaw::get_fails) return fail(ErrorKind::store, "get fails");
    const std::lock_guard lock(contents_.mutex);
    const auto entry = contents_.entries.find(kept(key));
    if (entry == contents_.entries.end()) return false;
    if (flaw_ == Flaw::empty_value_is_absent && entry->second.empty()) return false;
    value_ = entry->second;
    value = flaw_ == Flaw::views_into_the_map ? entry->second : value_;
    return true;
  }

  Status put(std::string_view key, std::string_view value) override {
    ASSAY_TRY(check(key, value));
    if (flaw_ == Flaw::writers_lose && !alone()) return {};
    const std::lock_guard lock(contents_.mutex);
    make({Mutation::Kind::put, key, value});
    return {};
  }

  Status erase(std::string_view key) override {
    const std::lock_guard lock(contents_.mutex);
    if (flaw_ == Flaw::erase_of_absent_fails && !contents_.entries.contains(std::string(key))) {
      return fail(ErrorKind::store, "no such key");
    }
    make({Mutation::Kind::erase, key, {}});
    return {};
  }

  Status apply(std::span<const Mutation> mutations) override {
    if (flaw_ == Flaw::batch_half_made) {
      for (const Mutation& mutation : mutations) {
        ASSAY_TRY(check(mutation.key, mutation.value));
        const std::lock_guard lock(contents_.mutex);
        make(mutation);
      }
      return {};
    }
    for (const Mutation& mutation : mutations) ASSAY_TRY(check(mutation.key, mutation.value));
    std::unique_lock lock(contents_.mutex);
    std::vector<std::string> made;
    for (const Mutation& mutation : mutations) {
      if (flaw_ == Flaw::batch_drops_last && &mutation == &mutations.back()) break;
      if (flaw_ == Flaw::batch_first_wins && std::ranges::count(made, mutation.key) > 0) continue;
      made.emplace_back(mutation.key);
      make(mutation);
      if (flaw_ == Flaw::torn_batches) {
        lock.unlock();
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        lock.lock();
      }
    }
    return {};
  }

  Status rollback(std::span<const Mutation> mutations) override {
    if (flaw_ != Flaw::rollback_leaves_last) return {};
    const std::lock_guard lock(contents_.mutex);
    make({Mutation::Kind::put, mutations.front().key, mutations.front().value});
    return {};
  }

  Result<std::uint64_t> scan(const ScanRange& range, ScanSink& sink) override {
    if (flaw_ == Flaw::live_scan) return scan_live(sink);
    std::vector<std::pair<std::string, std::string>> shown;
    {
      const std::lock_guard lock(contents_.mutex);
      for (const auto& [key, value] : contents_.entries) {
        if (!range.from_start && key < range.first) continue;
        if (!range.to_end && key > range.last) continue;
        if (flaw_ == Flaw::last_excluded && !range.to_end && key == range.last) continue;
        shown.emplace_back(key, value);
      }
    }
    sort_wrongly(shown);
    if (range.backward) std::ranges::reverse(shown);
    const std::uint64_t more = flaw_ == Flaw::limit_off_by_one ? 1 : 0;
    if (range.limit != 0 && shown.size() > range.limit + more) shown.resize(range.limit + more);
    std::uint64_t visited = 0;
    for (const auto& [key, value] : shown) {
      ++visited;
      if (!sink.entry(key, value) && flaw_ != Flaw::sink_not_heard) break;
    }
    return visited;
  }

 private:
  /// The key as the store keeps it.
  std::string kept(std::string_view key) const {
    if (flaw_ == Flaw::key_cut) key = key.substr(0, 16);
    if (flaw_ == Flaw::key_ends_at_nul) key = key.substr(0, key.find('\0'));
    return std::string(key);
  }

  Status check(std::string_view key, std::string_view value) const {
    if (key.size() > kMostKey && flaw_ != Flaw::long_key_accepted) {
      return fail(ErrorKind::bad_input, "the key is too long");
    }
    if (key.empty() && flaw_ == Flaw::empty_key_refused) {
      return fail(ErrorKind::bad_input, "the key is empty");
    }
    if (value.size() > kMostValue) return fail(ErrorKind::bad_input, "the value is too long");
    return {};
  }

  void make(const Mutation& mutation) {
    std::string& old = contents_.entries[kept(mutation.key)];
    const bool forgotten = flaw_ == Flaw::forgets_some && ++contents_.writes % 150 == 0;
    if (mutation.kind == Mutation::Kind::erase) {
      if (flaw_ != Flaw::erase_does_nothing) contents_.entries.erase(kept(mutation.key));
    } else if (!forgotten &&
               !(flaw_ == Flaw::shorter_value_ignored && mutation.value.size() < old.size())) {
      old.assign(mutation.value.substr(0, flaw_ == Flaw::value_cut ? 1 << 19 : kMostValue));
    }
  }

  /// Whether no other writer came while this one was busy.
  bool alone() {
    std::unique_lock lock(contents_.mutex);
    const bool first = contents_.writers++ == 0;
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    lock.lock();
    --contents_.writers;
    return first;
  }

  void sort_wrongly(std::vector<std::pair<std::string, std::string>>& shown) const {
    if (flaw_ == Flaw::shorter_keys_first) {
      std::ranges::stable_sort(shown, {}, [](const auto& entry) { return entry.first.size(); });
    }
    if (flaw_ == Flaw::signed_order) {
      std::ranges::stable_sort(shown, {}, [](const auto& entry) {
        return entry.first.size() == 8 && static_cast<unsigned char>(entry.first[0]) >= 128 ? 0 : 1;
      });
    }
  }

  /// Looks for the next key anew after each entry, so that it sees what was written meanwhile.
  Result<std::uint64_t> scan_live(ScanSink& sink) {
    std::uint64_t visited = 0;
    std::unique_lock lock(contents_.mutex);
    auto next = contents_.entries.begin();
    while (next != contents_.entries.end()) {
      const auto [key, value] = *next;
      lock.unlock();
      ++visited;
      const bool more = sink.entry(key, value);
      lock.lock();
      if (!more) break;
      next = contents_.entries.upper_bound(key);
    }
    return visited;
  }

  Flaw flaw_;
  FlawedDriver::Contents& contents_;
  std::string value_;
};

class FlawedStore final : public Store {
 public:
  FlawedStore(Flaw flaw, FlawedDriver::Contents& contents, Settings settings, std::string directory)
      : Store(std::move(directory)),
        flaw_(flaw),
        contents_(contents),
        settings_(std::move(settings)) {}

  Result<std::unique_ptr<Session>> session() override {
    return std::make_unique<FlawedSession>(flaw_, contents_);
  }
  Status sync() override { return {}; }
  Status checkpoint() override {
    if (flaw_ == Flaw::checkpoint_loses && !contents_.entries.empty()) {
      contents_.entries.erase(contents_.entries.begin());
    }
    return {};
  }
  Status settle() override { return {}; }
  Result<Footprint> footprint() const override {
    Footprint footprint{.files = 1, .apparent_bytes = 0, .allocated_bytes = 0};
    if (flaw_ == Flaw::no_footprint) return footprint;
    for (const auto& [key, value] : contents_.entries) {
      footprint.apparent_bytes += key.size() + value.size();
    }
    return footprint;
  }
  Result<Settings> effective_settings() override {
    return flaw_ == Flaw::nothing_read_back ? Settings{} : settings_;
  }
  Status close() override { return {}; }

 private:
  Flaw flaw_;
  FlawedDriver::Contents& contents_;
  Settings settings_;
};

}  // namespace

Capabilities FlawedDriver::capabilities() const {
  Capabilities declared;
  declared.ordered = declared.atomic_batches = declared.concurrent_writers = true;
  declared.rollback = flaw_ != Flaw::rollback_undeclared;
  declared.durability = {DurabilityClass::volatile_};
  declared.max_key_bytes = kMostKey;
  declared.max_value_bytes = kMostValue;
  return declared;
}

std::vector<Setting> FlawedDriver::settings(DurabilityClass) const {
  return {{.name = "size",
           .value = "small",
           .reason = flaw_ == Flaw::no_reason ? "" : "for tests",
           .source = "this file",
           .choices = {}}};
}

Result<std::unique_ptr<Store>> FlawedDriver::open(const OpenOptions& options) const {
  if (flaw_ != Flaw::any_durability && options.durability != DurabilityClass::volatile_) {
    return fail(ErrorKind::unsupported, "volatile only");
  }
  Result<Settings> settings = resolve_settings(*this, options.durability, options.settings);
  if (!settings && flaw_ != Flaw::any_setting) return std::unexpected(settings.error());
  std::unique_ptr<Contents>& contents = directories_[options.directory];
  if (contents == nullptr) {
    if (!options.create && flaw_ != Flaw::opens_nothing) {
      return fail(ErrorKind::store, "there is no store");
    }
    contents = std::make_unique<Contents>();
  } else if (flaw_ == Flaw::reopen_loses_last_key && !contents->entries.empty()) {
    contents->entries.erase(std::prev(contents->entries.end()));
  }
  return std::make_unique<FlawedStore>(flaw_, *contents, settings.value_or(Settings{}),
                                       options.directory);
}

}  // namespace assay::conformance
