// Comparison of a whole store with the model: every entry found is decoded, looked up and compared
// byte for byte; then what the model has and the store has not is found.
#include <algorithm>
#include <string>
#include <unordered_set>

#include <fmt/format.h>
#include <xxhash.h>

#include "workloads/codec.h"
#include "workloads/model.h"

namespace assay {
namespace {

/// Sum of 128-bit hashes: equal for equal sets of entries in whatever order.
class EntryDigest {
 public:
  void add(std::string_view key, std::string_view value) {
    const XXH64_hash_t key_hash = XXH3_64bits(key.data(), key.size());
    const XXH128_hash_t hash = XXH3_128bits_withSeed(value.data(), value.size(), key_hash);
    low_ += hash.low64;
    high_ += hash.high64;
  }
  [[nodiscard]] std::string hex() const { return fmt::format("{:016x}{:016x}", high_, low_); }

 private:
  std::uint64_t low_ = 0;
  std::uint64_t high_ = 0;
};

std::string shown_bytes(std::string_view bytes) {
  constexpr std::size_t kShown = 24;
  std::string text = "0x";
  for (const char byte : bytes.substr(0, kShown)) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  if (bytes.size() > kShown) text += fmt::format("... ({} bytes)", bytes.size());
  return text;
}

/// Says what is wrong with `value` in the place where `version` of `index` belongs.
std::string value_fault(const ValueCodec& values, std::uint64_t index, std::size_t size,
                        std::string_view value) {
  std::string fault;
  if (!values.belongs_to(index, value)) {
    fault = "is of no version of that key";
  } else if (value.size() != size) {
    fault = "is another version of that key (an update was lost or undone) or was cut";
  } else {
    fault = "is not the version last acknowledged (an update was lost or undone) or is damaged";
  }
  return fmt::format("the value {}: {} bytes found, {} expected, it begins {}", fault, value.size(),
                     size, shown_bytes(value));
}

}  // namespace

/// State of one check; the sink of its scans.
class Model::Checker final : public ScanSink {
 public:
  explicit Checker(const Model& model)
      : keys_(model.workload_.keys, model.seed_),
        values_(model.workload_.values, model.seed_),
        declared_(model.workload_.keys.count) {}

  /// Reads the part of the store that belongs to `range` and compares it.
  Status read(Range& range, Session& session, bool ordered) {
    range_ = &range;
    foreign_seen_.clear();
    if (ordered) {
      ScanRange part;
      part.from_start = range.lower.empty();
      part.first = range.lower;
      part.to_end = range.upper.empty();
      part.last = range.upper;
      const Result<std::uint64_t> visited = session.scan(part, *this);
      if (!visited) return std::unexpected(visited.error());
    } else {
      ASSAY_TRY(get_all(session));
    }
    add_lost();
    check_.expected_entries += range.entries();
    return {};
  }

  bool entry(std::string_view key, std::string_view value) override {
    if (!range_->holds(key)) {
      if (key != range_->upper) {  // both bounds of a scan belong to it
        differ(fmt::format("the scan of a range showed key {}, which lies outside of it",
                           shown_bytes(key)));
      }
      return true;
    }
    ++check_.entries;
    found_.add(key, value);
    if (check_.entries > 1 && key <= last_key_) {
      differ(fmt::format("the scan is out of order: key {} came after key {}", shown_bytes(key),
                         shown_bytes(last_key_)));
    }
    last_key_.assign(key);
    look(key, value);
    return true;
  }

  ModelCheck finish() {
    check_.digest = found_.hex();
    check_.expected_digest = expected_.hex();
    check_.ok = check_.first_difference.empty();
    ASSAY_CHECK(!check_.ok || (check_.entries == check_.expected_entries &&
                               check_.digest == check_.expected_digest),
                "equal contents have equal counts and digests");
    return std::move(check_);
  }

 private:
  void differ(std::string sentence) {
    if (check_.first_difference.empty()) check_.first_difference = std::move(sentence);
  }

  Status get_all(Session& session) {
    std::string key(keys_.size(), '\0');
    Status failed;
    range_->table.for_each([&](std::uint64_t index, std::uint32_t, bool) {
      keys_.encode(index, key.data());
      if (failed) failed = get(session, key);
    });
    ASSAY_TRY(std::move(failed));
    for (const auto& foreign : range_->foreign) {
      if (!foreign_seen_.contains(foreign.first)) ASSAY_TRY(get(session, foreign.first));
    }
    return {};
  }

  Status get(Session& session, std::string_view key) {
    std::string_view value;
    const Result<bool> there = session.get(key, value);
    if (!there) return std::unexpected(there.error());
    if (!*there) return {};
    ++check_.entries;
    found_.add(key, value);
    look(key, value);
    return {};
  }

  /// Compares an entry that was found with what the model has for its key.
  void look(std::string_view key, std::string_view value) {
    const auto foreign = range_->foreign.find(key);
    if (foreign != range_->foreign.end()) {
      const Foreign& expected = foreign->second;
      if (!foreign_seen_.insert(foreign->first).second) return came_twice(key);
      return compare(key, expected.index, expected.version, expected.bytes, value);
    }
    std::uint64_t index = 0;
    if (!keys_.decode_declared(key, index)) {
      differ(fmt::format("key {} was never written: no key of this workload has these bytes",
                         shown_bytes(key)));
      return;
    }
    const std::uint32_t version = range_->table.version_of(index);
    if (version == 0) {
      differ(fmt::format(
          "key {} of index {} is there, but was {}", shown_bytes(key), index,
          index < declared_ ? "deleted or not yet written" : "never written or was deleted"));
      return;
    }
    if (!range_->table.mark(index)) return came_twice(key);
    compare(key, index, version, values_.size(index, version), value);
  }

  void came_twice(std::string_view key) {
    differ(fmt::format("key {} came twice", shown_bytes(key)));
  }

  void compare(std::string_view key, std::uint64_t index, std::uint32_t version, std::size_t bytes,
               std::string_view value) {
    if (values_.matches_sized(index, version, bytes, value)) {
      expected_.add(key, value);
      return;
    }
    differ(fmt::format("key {} of index {}: {}", shown_bytes(key), index,
                       value_fault(values_, index, bytes, value)));
    add_expected(key, index, version, bytes);
  }

  void add_expected(std::string_view key, std::uint64_t index, std::uint32_t version,
                    std::size_t bytes) {
    std::string value(bytes, '\0');
    values_.encode_sized(index, version, bytes, value.data());
    expected_.add(key, value);
  }

  void add_one_lost(std::string_view key, std::uint64_t index, std::uint32_t version,
                    std::size_t bytes) {
    if (check_.first_difference.empty()) {
      differ(fmt::format("key {} of index {} is lost: it was acknowledged and is not there",
                         shown_bytes(key), index));
    }
    add_expected(key, index, version, bytes);
  }

  void add_lost() {
    std::string key(keys_.size(), '\0');
    range_->table.for_each([&](std::uint64_t index, std::uint32_t version, bool found) {
      if (version == 0 || found) return;
      keys_.encode(index, key.data());
      add_one_lost(key, index, version, values_.size(index, version));
    });
    for (const auto& [name, foreign] : range_->foreign) {
      if (foreign_seen_.contains(name)) continue;
      add_one_lost(name, foreign.index, foreign.version, foreign.bytes);
    }
  }

  KeyCodec keys_;
  ValueCodec values_;
  std::uint64_t declared_;  ///< indices below it are those of a load
  Range* range_ = nullptr;  ///< at work
  ModelCheck check_;
  EntryDigest found_;
  EntryDigest expected_;
  std::unordered_set<std::string_view> foreign_seen_;  ///< of the range
  std::string last_key_;
};

Result<ModelCheck> Model::check(Session& session, bool ordered) const {
  Checker checker(*this);
  ASSAY_TRY(for_each_range([&](Range& range) { return checker.read(range, session, ordered); }));
  return checker.finish();
}

}  // namespace assay
