#include "adapters/lode_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <utility>

#include "adapters/opening.h"
#include "engine/lode.h"

namespace assay {
namespace {

constexpr std::string_view kName = "lode";
constexpr std::uint64_t kMaxKeyBytes = 1024;
constexpr std::uint64_t kMaxValueBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kMost = std::uint64_t{1} << 42;
constexpr std::uint64_t kLeastArenaBytes = std::uint64_t{1} << 20;

Error lode_error(std::string_view what, const lode::Error& error, const std::string& where) {
  ErrorKind kind = ErrorKind::store;
  if (error.kind == lode::ErrorKind::no_space || error.kind == lode::ErrorKind::arena_full) {
    kind = ErrorKind::environment;
  }
  if (error.kind == lode::ErrorKind::unsupported) kind = ErrorKind::unsupported;
  Error out(kind, fmt::format("lode: {}: {}: {}", what, lode::to_string(error.kind), error.what));
  out.at(where);
  if (error.kind == lode::ErrorKind::no_space) out.hint("free some space on the file system");
  if (error.kind == lode::ErrorKind::locked) out.hint("close the other handle first");
  return out;
}

/// The settings, as the engine takes them.
struct Plan {
  lode::Options options;
  lode::Durability durability = lode::Durability::sync;
};

lode::Durability durability_of(const std::string& name) {
  if (name == "window") return lode::Durability::window;
  if (name == "buffered") return lode::Durability::buffered;
  if (name == "volatile") return lode::Durability::volatile_;
  return lode::Durability::sync;
}

lode::Admission admission_of(const std::string& name) {
  if (name == "unreserved") return lode::Admission::unreserved;
  return name == "recount" ? lode::Admission::recount : lode::Admission::weighted;
}

std::string_view admission_name(lode::Admission admission) {
  switch (admission) {
    case lode::Admission::unreserved:
      return "unreserved";
    case lode::Admission::recount:
      return "recount";
    case lode::Admission::weighted:
      return "weighted";
  }
  return "unknown";
}

std::string_view durability_name(lode::Durability durability) {
  switch (durability) {
    case lode::Durability::sync:
      return "sync";
    case lode::Durability::window:
      return "window";
    case lode::Durability::buffered:
      return "buffered";
    case lode::Durability::volatile_:
      return "volatile";
  }
  return "unknown";
}

Result<Plan> plan_of(const Settings& settings, const OpenOptions& given) {
  Plan plan;
  // Two overlays may exist at a time, the active one and the one being flushed; each may grow to
  // twice its size before commits wait. The cache takes the other half of the budget.
  const std::uint64_t overlay =
      std::clamp<std::uint64_t>(given.memory_bytes / 8, 1U << 20, 64U << 20);
  struct Row {
    const char* name;
    CountRange range;
  };
  const auto count = [&](const Row& row) {
    return count_setting(kName, settings, row.name, row.range);
  };
  const Result<std::uint64_t> cache =
      count({"cache_bytes", {.least = 0, .most = kMost, .automatic = given.memory_bytes / 2}});
  if (!cache) return std::unexpected(cache.error());
  const Result<std::uint64_t> overlay_bytes =
      count({"overlay_bytes", {.least = 1U << 16, .most = kMost, .automatic = overlay}});
  if (!overlay_bytes) return std::unexpected(overlay_bytes.error());
  const Result<std::uint64_t> segment =
      count({"log_segment_bytes", {.least = 1U << 13, .most = 1U << 30, .automatic = 8U << 20}});
  if (!segment) return std::unexpected(segment.error());
  // Where each commit is synced, log that has to be made first would be a part of what it costs. A
  // checkpoint gives back what an overlay needs.
  const bool synced = settings.at("durability") == "sync" || settings.at("durability") == "window";
  const std::uint64_t enough =
      std::min(given.expected_bytes + given.expected_bytes / 4, *overlay_bytes + (16U << 20));
  const Result<std::uint64_t> prepared =
      count({"log_prepared_bytes", {.least = 0, .most = kMost, .automatic = synced ? enough : 0}});
  if (!prepared) return std::unexpected(prepared.error());
  const Result<std::uint64_t> tree =
      count({"tree_bytes", {.least = 1U << 16, .most = kMost, .automatic = 64U << 20}});
  if (!tree) return std::unexpected(tree.error());
  const Result<std::uint64_t> ratio =
      count({"level_ratio", {.least = 2, .most = 64, .automatic = 8}});
  if (!ratio) return std::unexpected(ratio.error());
  const Result<std::uint64_t> delay =
      count({"window_ms", {.least = 1, .most = 3'600'000, .automatic = 250}});
  if (!delay) return std::unexpected(delay.error());
  const Result<std::uint64_t> operations =
      count({"window_operations", {.least = 1, .most = 1U << 30, .automatic = 200}});
  if (!operations) return std::unexpected(operations.error());

  const Result<std::uint64_t> bound = count({"max_bytes", {.least = 0, .most = kMost}});
  if (!bound) return std::unexpected(bound.error());
  if (*bound != 0 && *bound < kLeastArenaBytes) {
    return fail(Error(ErrorKind::bad_input,
                      fmt::format("lode: setting \"max_bytes\": {} is neither 0 (no bound) nor at "
                                  "least {}",
                                  *bound, kLeastArenaBytes)));
  }

  plan.durability = durability_of(settings.at("durability"));
  lode::Options& options = plan.options;
  options.create = given.create;
  const bool native = given.key_kind == KeyKind::u64 && settings.at("u64_keys") == "auto";
  options.key_kind = native ? lode::KeyKind::u64 : lode::KeyKind::bytes;
  const std::string& method = settings.at("log_method");
  if (method == "fdatasync") options.log_method = lode::LogMethod::fdatasync;
  if (method == "dsync") options.log_method = lode::LogMethod::dsync;
  if (method == "direct-dsync") options.log_method = lode::LogMethod::direct_dsync;
  options.cache_bytes = *cache;
  options.overlay_bytes = *overlay_bytes;
  options.log_segment_bytes = *segment;
  options.log_prepared_bytes = *prepared;
  options.tree_bytes = *tree;
  options.level_ratio = static_cast<unsigned>(*ratio);
  options.window_delay = std::chrono::milliseconds(*delay);
  options.window_operations = *operations;
  options.max_bytes = *bound;
  options.admission = admission_of(settings.at("admission"));
  return plan;
}

class LodeStore;

/// Lines of its own: what one session writes at every read would slow the neighbour down.
class alignas(64) LodeSession final : public Session {
 public:
  explicit LodeSession(LodeStore& store);
  ~LodeSession() override;

  Result<bool> get(std::string_view key, std::string_view& value) override;
  Status put(std::string_view key, std::string_view value) override;
  Status erase(std::string_view key) override;
  Status apply(std::span<const Mutation> mutations) override;
  Status rollback(std::span<const Mutation> mutations) override;
  Result<std::uint64_t> scan(const ScanRange& range, ScanSink& sink) override;

 private:
  Status commit(std::string_view what);

  LodeStore& store_;
  const std::string& where_;
  const EntryLimits& limits_;
  lode::WriteBatch batch_;
  std::string value_;
};

class LodeStore final : public Store {
 public:
  LodeStore(const OpenOptions& options, Plan plan, const Capabilities& capabilities,
            std::unique_ptr<lode::Store> engine)
      : Store(options.directory),
        limits_(std::string(kName), capabilities, options.key_kind),
        plan_(plan),
        engine_(std::move(engine)) {}

  Result<std::unique_ptr<Session>> session() override {
    return std::make_unique<LodeSession>(*this);
  }
  Status sync() override { return outcome("sync", engine_->sync()); }
  Status checkpoint() override { return outcome("checkpoint", engine_->checkpoint()); }
  Status settle() override { return outcome("drain", engine_->drain()); }
  std::map<std::string, double> counters() const override {
    return engine_ ? engine_->statistics() : std::map<std::string, double>{};
  }
  Result<Settings> effective_settings() override;
  Status close() override;

 private:
  friend class LodeSession;
  [[nodiscard]] Status outcome(std::string_view what, const lode::Status& status) const {
    if (status) [[likely]]
      return {};
    return fail(lode_error(what, status.error(), directory_));
  }

  const EntryLimits limits_;
  const Plan plan_;
  std::unique_ptr<lode::Store> engine_;
  std::atomic<int> sessions_{0};
};

// ---- session ----

LodeSession::LodeSession(LodeStore& store)
    : store_(store), where_(store.directory_), limits_(store.limits_) {
  store_.sessions_.fetch_add(1);
}

LodeSession::~LodeSession() {
  store_.sessions_.fetch_sub(1);
}

Result<bool> LodeSession::get(std::string_view key, std::string_view& value) {
  const lode::Result<bool> found = store_.engine_->get(key, value_);
  if (!found) return fail(lode_error("get", found.error(), where_));
  if (*found) value = value_;
  return *found;
}

Status LodeSession::commit(std::string_view what) {
  const auto receipt = store_.engine_->commit(batch_, store_.plan_.durability);
  if (receipt) [[likely]]
    return {};
  return fail(lode_error(what, receipt.error(), where_));
}

Status LodeSession::put(std::string_view key, std::string_view value) {
  if (!limits_.accepts(key, value)) return fail(limits_.refusal(key, value));
  batch_.clear();
  batch_.put(key, value);
  return commit("put");
}

Status LodeSession::erase(std::string_view key) {
  if (!limits_.accepts(key)) return fail(limits_.refusal(key, {}));
  batch_.clear();
  batch_.erase(key);
  return commit("erase");
}

Status LodeSession::apply(std::span<const Mutation> mutations) {
  batch_.clear();
  for (const Mutation& mutation : mutations) {
    if (!limits_.accepts(mutation.key, mutation.value)) {
      return fail(limits_.refusal(mutation.key, mutation.value));
    }
    if (mutation.kind == Mutation::Kind::put) {
      batch_.put(mutation.key, mutation.value);
    } else {
      batch_.erase(mutation.key);
    }
  }
  if (batch_.empty()) return {};
  return commit("batch");
}

Status LodeSession::rollback(std::span<const Mutation> mutations) {
  lode::Transaction transaction = store_.engine_->begin();
  for (const Mutation& mutation : mutations) {
    if (!limits_.accepts(mutation.key, mutation.value)) {
      return fail(limits_.refusal(mutation.key, mutation.value));
    }
    if (mutation.kind == Mutation::Kind::put) {
      transaction.put(mutation.key, mutation.value);
    } else {
      transaction.erase(mutation.key);
    }
  }
  transaction.rollback();
  return {};
}

Result<std::uint64_t> LodeSession::scan(const ScanRange& range, ScanSink& sink) {
  lode::Cursor at = store_.engine_->snapshot().cursor();
  if (range.backward) {
    if (range.to_end) {
      at.seek_last();
    } else {
      at.seek_at_or_below(range.last);
    }
  } else if (range.from_start) {
    at.seek_first();
  } else {
    at.seek(range.first);
  }
  std::uint64_t visited = 0;
  while (at.valid()) {
    if (range.backward ? !range.from_start && at.key() < range.first
                       : !range.to_end && at.key() > range.last) {
      break;
    }
    const lode::Result<std::string_view> value = at.value();
    if (!value) return fail(lode_error("scan", value.error(), where_));
    ++visited;
    if (!sink.entry(at.key(), *value) || visited == range.limit) break;
    if (range.backward) {
      at.prev();
    } else {
      at.next();
    }
  }
  ASSAY_TRY(store_.outcome("scan", at.status()));
  return visited;
}

// ---- store ----

Result<Settings> LodeStore::effective_settings() {
  // The durability is an argument of every commit, so the adapter alone can tell it.
  const lode::Options options = engine_->options();
  Settings settings;
  settings["durability"] = durability_name(plan_.durability);
  settings["log_method"] = lode::to_string(*options.log_method);
  settings["log_segment_bytes"] = std::to_string(options.log_segment_bytes);
  settings["log_prepared_bytes"] = std::to_string(options.log_prepared_bytes);
  settings["cache_bytes"] = std::to_string(options.cache_bytes);
  settings["overlay_bytes"] = std::to_string(options.overlay_bytes);
  settings["tree_bytes"] = std::to_string(options.tree_bytes);
  settings["level_ratio"] = std::to_string(options.level_ratio);
  settings["window_ms"] = std::to_string(options.window_delay.count());
  settings["window_operations"] = std::to_string(options.window_operations);
  settings["max_bytes"] = std::to_string(options.max_bytes);
  settings["admission"] = admission_name(options.admission);
  settings["u64_keys"] = options.key_kind == lode::KeyKind::u64 ? "native" : "bytes";
  return settings;
}

Status LodeStore::close() {
  if (!engine_) return {};
  if (sessions_.load() != 0) {
    return fail(Error(ErrorKind::store, "lode: closed while sessions are open").at(directory_));
  }
  const lode::Status closed = engine_->close();
  engine_.reset();
  return outcome("close", closed);
}

// ---- driver ----

class LodeDriver final : public Driver {
 public:
  std::string name() const override { return std::string(kName); }
  std::string version() const override { return std::string(lode::version()); }

  Capabilities capabilities() const override {
    Capabilities can;
    can.ordered = can.rollback = can.atomic_batches = can.concurrent_writers = true;
    can.larger_than_memory = can.rebuilds_index = true;
    can.durability = {DurabilityClass::volatile_, DurabilityClass::process,
                      DurabilityClass::power_prefix, DurabilityClass::power_last,
                      DurabilityClass::power};
    can.max_key_bytes = kMaxKeyBytes;
    can.max_value_bytes = kMaxValueBytes;
    return can;
  }

  std::vector<Setting> settings(DurabilityClass durability) const override {
    const std::string source = "engine/lode.h";
    const std::string mode = durability == DurabilityClass::volatile_      ? "volatile"
                             : durability <= DurabilityClass::power_prefix ? "buffered"
                                                                           : "sync";
    return {
        {"durability",
         mode,
         "sync is durable when acknowledged; buffered is in the page cache, so that a kill takes "
         "nothing and a power cut a suffix; window and volatile acknowledge in memory: a kill or a "
         "cut takes a suffix, in window mode of at most window_operations",
         source,
         {"sync", "window", "buffered", "volatile"}},
        {"log_method",
         "fdatasync",
         "fixed, so that trials do not differ; probe times the methods when the store is created",
         source,
         {"fdatasync", "dsync", "direct-dsync", "probe"}},
        {"log_segment_bytes",
         "auto",
         "auto: 8 MiB, written ahead with zeros and recycled",
         source,
         {}},
        {"log_prepared_bytes",
         "auto",
         "auto: log made when the store is created and kept, for what an overlay holds where "
         "commits are synced; 0 otherwise",
         source,
         {}},
        {"cache_bytes", "auto", "auto: half of the memory budget", source, {}},
        {"overlay_bytes",
         "auto",
         "auto: an eighth of the memory budget, 1 to 64 MiB; flushed into trees beyond",
         source,
         {}},
        {"tree_bytes", "auto", "auto: 64 MiB of payload a tree", source, {}},
        {"level_ratio", "auto", "auto: 8 runs of a level are merged into the next", source, {}},
        {"window_ms", "auto", "auto: 250 ms until a flush starts in window mode", source, {}},
        {"window_operations",
         "auto",
         "auto: 200 operations not yet durable in window mode",
         source,
         {}},
        {"max_bytes",
         "0",
         "bound of the data file, its log aside; 0 = none, else at least 1 MiB; a commit beyond it "
         "is refused",
         source,
         {}},
        {"admission",
         "weighted",
         "what a commit below max_bytes leaves free: weighted and recount what flushing and "
         "merging "
         "all of it takes, by kept sums or counted at each commit; unreserved nothing",
         source,
         {"unreserved", "recount", "weighted"}},
        {"u64_keys",
         "auto",
         "auto: keys of kind u64 are kept as the numbers they are; bytes keeps them as byte "
         "strings of 8, as a store without such keys would",
         source,
         {"auto", "bytes"}},
    };
  }

  /// Every log method syncs what the mode syncs, so the mode alone decides. The log is one sequence
  /// of chained frames, and trees are built from what it has made durable, so what is written but
  /// not synced leaves a prefix. Window mode bounds its loss, but a kill takes it as well.
  DurabilityClass durability_under(DurabilityClass, const Settings& effective) const override {
    const std::string& mode = effective.at("durability");
    if (mode == "sync") return DurabilityClass::power;
    return mode == "buffered" ? DurabilityClass::power_prefix : DurabilityClass::volatile_;
  }

  Status check_settings(const OpenOptions& options, std::uint32_t) const override {
    ASSAY_TRY(plan_for(options));
    return {};
  }

  /// Its index: the inner pages of the trees. Leaves and large values are the entries.
  Status drop_index(const OpenOptions& options) const override {
    const Result<Plan> plan = plan_for(options);
    if (!plan) return std::unexpected(plan.error());
    const auto dropped = lode::Store::drop_inner_pages(options.directory, plan->options);
    if (!dropped) return fail(lode_error("drop_index", dropped.error(), options.directory));
    return {};
  }

  Result<std::uint64_t> rebuild_index(const OpenOptions& options) const override {
    const Result<Plan> plan = plan_for(options);
    if (!plan) return std::unexpected(plan.error());
    const auto report =
        lode::Store::rebuild(options.directory, plan->options, {.check_values = false});
    if (!report) return fail(lode_error("rebuild_index", report.error(), options.directory));
    if (report->lost_entries == 0) return report->rebuilt_entries;
    return fail(Error(ErrorKind::store,
                      fmt::format("lode: rebuild_index: {} entries are lost", report->lost_entries))
                    .at(options.directory));
  }

  Result<std::unique_ptr<Store>> open(const OpenOptions& options) const override {
    const Result<Plan> plan = plan_for(options);
    if (!plan) return std::unexpected(plan.error());
    const Result<bool> there = find_store(kName, options);
    if (!there) return std::unexpected(there.error());
    auto engine = lode::Store::open(options.directory, plan->options);
    if (!engine) return fail(lode_error("open", engine.error(), options.directory));
    return std::make_unique<LodeStore>(options, *plan, capabilities(), std::move(*engine));
  }

 private:
  Result<Plan> plan_for(const OpenOptions& options) const {
    const Result<Settings> settings = resolve_settings(*this, options.durability, options.settings);
    if (!settings) return std::unexpected(settings.error());
    return plan_of(*settings, options);
  }
};

}  // namespace

const Driver& lode_driver() {
  static const LodeDriver driver;
  return driver;
}

}  // namespace assay
