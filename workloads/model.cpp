#include "workloads/model.h"

#include <algorithm>
#include <cstring>

#include "workloads/operation_source.h"
#include "workloads/trace_file.h"

namespace assay {
namespace {

/// A map's entry takes some 150 bytes beside its key.
constexpr std::size_t kForeignMax = 10'000;

/// What a replay keeps of a thread's operations: calls put(index, version) for each write.
template <class Put>
bool replay_writes(OperationSource& source, std::uint64_t operations, Put put) {
  LogicalOperation operation;
  for (std::uint64_t done = 0; done < operations; ++done) {
    if (!source.next(operation)) break;
    if (!is_write(operation.kind) || operation.kind == OpKind::rollback) continue;
    if (operation.batch.empty() && !put(operation.index, operation.version)) return false;
    for (const std::uint64_t index : operation.batch)
      if (!put(index, operation.version)) return false;
  }
  return true;
}

}  // namespace

/// Puts the executed phases into a range. Every function is false when the range is full.
class Model::Replay {
 public:
  Replay(const Model& model, Range& range)
      : model_(model),
        workload_(model.workload_),
        numbers_(model.keys_.bijection()),
        range_(range) {}

  bool run() {
    const bool any = std::ranges::any_of(model_.executed_, [](const Executed& executed) {
      return std::ranges::any_of(executed.operations, [](std::uint64_t n) { return n > 0; });
    });
    if (any && !put_declared()) return false;
    return std::ranges::all_of(model_.executed_,
                               [&](const Executed& executed) { return apply(executed); });
  }

 private:
  /// Every index that a load would put there, absent for now: a store that is read by gets is asked
  /// for it.
  bool put_declared() {
    const std::uint64_t count = workload_.keys.count;
    if (!workload_.keys.hashed) {
      for (std::uint64_t index = range_.first; index < count && index <= range_.last; ++index)
        if (!range_.table.put(index, 0)) return false;
      return true;
    }
    // Of each group of 64 indices one has its number below each prefix (key_bijection.h): a narrow
    // range need not look at all of them.
    const unsigned low_bits = 8 * key_number_bytes(workload_.keys) - KeyBijection::kPrefixBits;
    for (std::uint64_t group = 0; group <= (count - 1) / KeyBijection::kPrefixes; ++group) {
      for (std::uint64_t prefix = range_.first >> low_bits; prefix <= range_.last >> low_bits;
           ++prefix) {
        const std::uint64_t index = numbers_.index_with_prefix(group, prefix);
        if (index < count && in_range(index) && !range_.table.put(index, 0)) return false;
      }
    }
    return true;
  }

  bool apply(const Executed& executed) {
    const Phase& phase = workload_.phases[executed.phase];
    if (is_whole_load(executed) && range_.foreign.empty()) {
      range_.table.put_all_below(workload_.keys.count, LoadSource::version_of(executed.phase));
      return true;
    }
    for (std::uint32_t thread = 0; thread < executed.operations.size(); ++thread) {
      if (phase.kind == PhaseKind::run && !writes(role_of(phase, thread))) continue;
      if (!phase.trace.empty()) {
        if (!apply_trace(executed, thread)) return false;
        continue;
      }
      const auto source = make_source(workload_, model_.seed_, executed.phase, thread);
      if (!replay_writes(
              *source, executed.operations[thread],
              [&](std::uint64_t index, std::uint32_t version) { return put(index, version); }))
        return false;
    }
    return true;
  }

  [[nodiscard]] bool is_whole_load(const Executed& executed) const {
    const Phase& phase = workload_.phases[executed.phase];
    if (phase.kind != PhaseKind::load || executed.operations.size() != phase.load_threads)
      return false;
    for (std::uint32_t thread = 0; thread < phase.load_threads; ++thread)
      if (executed.operations[thread] < operation_limit(workload_, executed.phase, thread))
        return false;
    return true;
  }

  bool apply_trace(const Executed& executed, std::uint32_t thread) {
    TraceSource source(workload_, model_.seed_, executed.phase, thread);
    TraceOperation operation;
    for (std::uint64_t done = 0; done < executed.operations[thread]; ++done) {
      if (!source.next(operation)) break;
      const TraceLine& line = operation.line;
      if (!is_write(line.kind) || !range_.holds(line.key)) continue;
      // A trace may name a key that a load or an insert has put there.
      std::uint64_t index = 0;
      if (model_.keys_.decode_declared(line.key, index) && range_.table.version_of(index) != 0 &&
          !range_.table.put(index, 0))
        return false;
      range_.foreign.erase(line.key);
      if (operation.version == 0) continue;
      range_.foreign[line.key] = {operation.index, operation.version, line.value_bytes};
      if (range_.foreign.size() > kForeignMax && range_.first < range_.last) return false;
    }
    return true;
  }

  [[nodiscard]] bool in_range(std::uint64_t index) const {
    const std::uint64_t number = numbers_.number_of(index);
    return number >= range_.first && number <= range_.last;
  }

  bool put(std::uint64_t index, std::uint32_t version) {
    if (!in_range(index)) return true;
    if (!range_.foreign.empty()) {
      std::string key(model_.keys_.size(), '\0');
      model_.keys_.encode(index, key.data());
      range_.foreign.erase(key);
    }
    return range_.table.put(index, version);
  }

  const Model& model_;
  const Workload& workload_;
  const KeyBijection& numbers_;
  Range& range_;
};

Model::Model(const Workload& workload, std::uint64_t seed, std::size_t table_bytes)
    : workload_(workload), seed_(seed), table_bytes_(table_bytes), keys_(workload.keys, seed) {}

void Model::apply(const Executed& executed) {
  ASSAY_CHECK(executed.phase < workload_.phases.size(), "the phase exists");
  ASSAY_CHECK(executed.operations.size() <= thread_count(workload_.phases[executed.phase]),
              "the threads exist");
  executed_.push_back(executed);
}

std::uint64_t Model::Range::entries() const {
  std::uint64_t present = foreign.size();
  table.for_each(
      [&](std::uint64_t, std::uint32_t version, bool) { present += version != 0 ? 1 : 0; });
  return present;
}

std::uint64_t Model::entries() const {
  std::uint64_t sum = 0;
  const Status done = for_each_range([&](Range& range) -> Status {
    sum += range.entries();
    return {};
  });
  ASSAY_CHECK(done.has_value(), "counting asks no store");
  return sum;
}

std::string Model::bound_of(std::uint64_t number) const {
  const std::uint32_t bytes = key_number_bytes(workload_.keys);
  const std::uint64_t big_endian = __builtin_bswap64(number << (64 - 8 * bytes));
  std::string bound = workload_.keys.prefix;
  bound.append(reinterpret_cast<const char*>(&big_endian), bytes);
  return bound;
}

std::uint64_t Model::highest_number() const {
  return ~std::uint64_t{0} >> (64 - 8 * key_number_bytes(workload_.keys));
}

std::vector<Model::Indices> Model::written() const {
  std::vector<Indices> all{{0, workload_.keys.count}};
  for (const Executed& executed : executed_) {
    const InsertRange inserts = insert_range(workload_, executed.phase);
    if (inserts.span == 0 || executed.operations.empty()) continue;
    const std::uint64_t most = std::ranges::max(executed.operations);
    const std::uint64_t threads = thread_count(workload_.phases[executed.phase]);
    const std::uint64_t used = most > inserts.span / threads ? inserts.span : most * threads;
    all.push_back({inserts.first, inserts.first + used});
  }
  std::ranges::sort(all, {}, &Indices::first);
  return all;
}

bool Model::fill(Range& range, std::uint64_t first, std::uint64_t last) const {
  range.first = first;
  range.last = last;
  range.lower = first == 0 ? std::string() : bound_of(first);
  range.upper = last == highest_number() ? std::string() : bound_of(last + 1);
  range.table.clear();
  range.foreign.clear();
  return Replay(*this, range).run();
}

Status Model::for_each_range(const std::function<Status(Range&)>& visit) const {
  const std::uint64_t highest = highest_number();
  const std::vector<Indices> indices = written();
  std::uint64_t keys = 0;
  for (const Indices& run : indices) keys += run.end - run.first;
  Range range(VersionTable(keys, table_bytes_));
  // Two thirds of the table are meant to be used; where keys lie closer together than expected the
  // range is made narrower until it fits.
  const std::uint64_t fitting = range.table.capacity() / 3 * 2;
  const auto last_of = [&](std::uint64_t first) {
    if (keys <= range.table.capacity()) return highest;
    if (workload_.keys.hashed) {  // spread evenly
      const std::uint64_t width = highest / (keys / fitting + 1);
      return highest - first <= width ? highest : first + width;
    }
    std::uint64_t room = fitting;  // the number is the index
    for (const Indices& run : indices) {
      if (run.end <= first) continue;
      const std::uint64_t from = std::max(run.first, first);
      if (run.end - from > room) return from + room - 1;
      room -= run.end - from;
    }
    return highest;
  };
  for (std::uint64_t first = 0;;) {
    std::uint64_t last = last_of(first);
    while (!fill(range, first, last)) {
      ASSAY_CHECK(last > first, "one key fits");
      last = first + (last - first) / 2;
    }
    ASSAY_TRY(visit(range));
    if (last == highest) return {};
    first = last + 1;
  }
}

}  // namespace assay
