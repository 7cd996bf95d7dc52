#include "adapters/conformance/fixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <random>
#include <system_error>

namespace assay::conformance {
namespace {

constexpr std::size_t kShownBytes = 24;  // of a key or value, in a message

/// Every fixture of a process gets a directory that no other has had.
std::string fresh_directory(const std::string& parent) {
  static std::atomic<unsigned> count{0};
  return fmt::format("{}/check-{}", parent, ++count);
}

class Collector final : public ScanSink {
 public:
  bool entry(std::string_view key, std::string_view value) override {
    entries.emplace_back(key, value);
    return true;
  }
  Entries entries;
};

/// Where two values part, if what shown() shows of them does not tell.
std::string difference(std::string_view seen, std::string_view expected) {
  const auto parted = std::ranges::mismatch(seen, expected);
  const auto at = parted.in1 - seen.begin();
  if (static_cast<std::size_t>(at) < kShownBytes) return {};
  return fmt::format(", from byte {} on", at);
}

std::string shown_entry(const std::pair<std::string, std::string>& entry) {
  return fmt::format("{} = {}", shown(entry.first), shown(entry.second));
}

}  // namespace

std::string Bench::key(std::string_view tail) const {
  return std::string(capabilities.min_key_bytes, 'p') + std::string(tail);
}

std::string Bench::key(std::uint64_t number) const {
  return fmt::format("{}k{:07}",
                     std::string(std::max<std::uint64_t>(capabilities.min_key_bytes, 8) - 8, 'p'),
                     number);
}

Fixture::Fixture(const Bench& bench, KeyKind key_kind)
    : bench_(bench), key_kind_(key_kind), directory_(fresh_directory(bench.options.directory)) {
  std::error_code ignored;  // open() reports a directory that is not there
  std::filesystem::create_directory(directory_, ignored);
}

Fixture::~Fixture() {
  session_.reset();
  if (store_) static_cast<void>(store_->close());  // a check that failed half-way
  store_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

OpenOptions Fixture::open_options() const {
  OpenOptions options;
  options.directory = directory_;
  options.durability = bench_.options.durability;
  options.settings = bench_.options.settings;
  options.key_kind = key_kind_;
  options.memory_bytes = bench_.options.memory_bytes;
  return options;
}

Status Fixture::open(bool create) {
  OpenOptions options = open_options();
  options.create = create;
  Result<std::unique_ptr<Store>> store = bench_.driver.open(options);
  if (!store) return failed_in(store.error(), "open");
  store_ = std::move(*store);
  Result<std::unique_ptr<Session>> session = store_->session();
  if (!session) return failed_in(session.error(), "session");
  session_ = std::move(*session);
  return {};
}

Status Fixture::close() {
  session_.reset();
  Status status = store_->close();
  store_.reset();
  if (!status) return failed_in(status.error(), "close");
  return status;
}

Status Fixture::reopen() {
  ASSAY_TRY(close());
  return open(false);
}

void Fixture::note_put(const std::string& key, const std::string& value) {
  model_[key] = value;
  touched_.insert(key);
}

void Fixture::note_erase(const std::string& key) {
  model_.erase(key);
  touched_.insert(key);
}

Status Fixture::put(const std::string& key, const std::string& value) {
  Status status = session_->put(key, value);
  if (!status) return failed_in(status.error(), fmt::format("put of {}", shown(key)));
  note_put(key, value);
  return {};
}

Status Fixture::erase(const std::string& key) {
  Status status = session_->erase(key);
  if (!status) return failed_in(status.error(), fmt::format("erase of {}", shown(key)));
  note_erase(key);
  return {};
}

Status Fixture::apply(std::span<const Mutation> mutations) {
  Status status = session_->apply(mutations);
  if (!status) return failed_in(status.error(), fmt::format("batch of {}", mutations.size()));
  for (const Mutation& mutation : mutations) {
    if (mutation.kind == Mutation::Kind::put) {
      note_put(std::string(mutation.key), std::string(mutation.value));
    } else {
      note_erase(std::string(mutation.key));
    }
  }
  return {};
}

Status Fixture::load(const Entries& entries) {
  if (!bench_.capabilities.atomic_batches) {
    for (const auto& [key, value] : entries) ASSAY_TRY(put(key, value));
    return {};
  }
  constexpr std::size_t kBatch = 64;
  for (std::size_t first = 0; first < entries.size(); first += kBatch) {
    std::vector<Mutation> batch;
    for (std::size_t i = first; i < std::min(first + kBatch, entries.size()); ++i) {
      batch.push_back({Mutation::Kind::put, entries[i].first, entries[i].second});
    }
    ASSAY_TRY(apply(batch));
  }
  return {};
}

Status Fixture::verify_key(Session& session, const std::string& key) const {
  std::string_view value;
  Result<bool> found = session.get(key, value);
  if (!found) return failed_in(found.error(), fmt::format("get of {}", shown(key)));
  const auto expected = model_.find(key);
  if (expected == model_.end()) {
    if (!*found) return {};
    return wrong(fmt::format("{} is there, with {}, although it was erased or never written",
                             shown(key), shown(value)));
  }
  if (!*found) return wrong(fmt::format("{} is missing", shown(key)));
  if (value != expected->second) {
    return wrong(fmt::format("{} holds {} instead of {}{}", shown(key), shown(value),
                             shown(expected->second), difference(value, expected->second)));
  }
  return {};
}

Status Fixture::verify(Session& session) const {
  for (const std::string& key : touched_) ASSAY_TRY(verify_key(session, key));
  if (!bench_.capabilities.ordered) return {};
  return verify_scan(session, ScanRange{});
}

Status Fixture::verify_scan(Session& session, const ScanRange& range) const {
  const Result<Entries> seen = collect(session, range);
  if (!seen) return std::unexpected(seen.error());
  const std::string what =
      fmt::format("{} scan from {} to {}{}", range.backward ? "backward" : "forward",
                  range.from_start ? "the start" : shown(range.first),
                  range.to_end ? "the end" : shown(range.last),
                  range.limit == 0 ? std::string() : fmt::format(", at most {}", range.limit));
  return same_entries(*seen, expected_entries(model_, range), what);
}

Entries expected_entries(const Model& model, const ScanRange& range) {
  Entries entries;
  for (const auto& [key, value] : model) {
    if (!range.from_start && key < range.first) continue;
    if (!range.to_end && key > range.last) continue;
    entries.emplace_back(key, value);
  }
  if (range.backward) std::ranges::reverse(entries);
  if (range.limit != 0 && entries.size() > range.limit) entries.resize(range.limit);
  return entries;
}

Result<Entries> collect(Session& session, const ScanRange& range) {
  Collector collector;
  Result<std::uint64_t> visited = session.scan(range, collector);
  if (!visited) return failed_in(visited.error(), "scan");
  if (*visited != collector.entries.size()) {
    return wrong(fmt::format("scan says it visited {} entries and showed {}", *visited,
                             collector.entries.size()));
  }
  return std::move(collector.entries);
}

Status same_entries(const Entries& seen, const Entries& expected, std::string_view what) {
  const std::size_t common = std::min(seen.size(), expected.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (seen[i] == expected[i]) continue;
    return wrong(fmt::format("{}: entry {} is {} instead of {}", what, i + 1, shown_entry(seen[i]),
                             shown_entry(expected[i])));
  }
  if (seen.size() > common) {
    return wrong(fmt::format("{}: {} entries instead of {}, the first too many is {}", what,
                             seen.size(), expected.size(), shown_entry(seen[common])));
  }
  if (expected.size() > common) {
    return wrong(fmt::format("{}: {} entries instead of {}, the first missing is {}", what,
                             seen.size(), expected.size(), shown_entry(expected[common])));
  }
  return {};
}

std::string shown(std::string_view bytes) {
  std::string text = "\"";
  for (const char c : bytes.substr(0, kShownBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\') {
      text += c;
    } else {
      text += fmt::format("\\x{:02x}", byte);
    }
  }
  text += '"';
  if (bytes.size() > kShownBytes) text += fmt::format("... ({} bytes)", bytes.size());
  return text;
}

std::unexpected<Error> wrong(std::string what) {
  return fail(ErrorKind::wrong_contents, std::move(what));
}

std::unexpected<Error> failed_in(Error error, std::string_view context) {
  return fail(std::move(error.in(context)));
}

Outcome refusal(const Status& status, std::string_view what) {
  if (status)
    return {CheckResult::failed, fmt::format("{} works although it is not declared", what)};
  if (status.error().kind() != ErrorKind::unsupported) {
    return {CheckResult::failed,
            fmt::format("{} is not declared, but refused as an error of another kind: {}", what,
                        status.error().message())};
  }
  return {CheckResult::not_supported, "declared not supported, and refused"};
}

std::string random_bytes(std::uint64_t seed, std::size_t size) {
  std::mt19937_64 random(seed);
  std::string bytes(size, '\0');
  std::ranges::generate(bytes, [&] { return static_cast<char>(random() >> 56); });
  return bytes;
}

}  // namespace assay::conformance
