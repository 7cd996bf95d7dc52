#include "workloads/operation_source.h"

#include <algorithm>

#include "workloads/stream.h"

namespace assay {
namespace {

/// Distinct phases must not repeat each other's versions of a key: phases start 2^32 / golden
/// ratio apart.
std::uint32_t version_base(std::size_t phase) {
  return static_cast<std::uint32_t>(phase) * 0x9E3779B9U + 1;
}

std::uint32_t version_at(std::uint32_t base, std::uint64_t ordinal) {
  const std::uint32_t version = base + static_cast<std::uint32_t>(ordinal);
  return version == 0 ? 1 : version;
}

bool inserts(const Role& role) {
  return role.mix[static_cast<std::size_t>(OpKind::insert)] > 0.0;
}

std::uint64_t role_limit(const Phase& phase, const Role& role) {
  const bool open_warm_up =
      phase.warm_up.policy == WarmUpPolicy::steady ||
      (phase.warm_up.policy == WarmUpPolicy::fixed && phase.warm_up.operations == 0);
  if (phase.operations == 0 || role.background || open_warm_up) return kEndless;
  return phase.operations +
         (phase.warm_up.policy == WarmUpPolicy::fixed ? phase.warm_up.operations : 0);
}

std::uint64_t insert_span(const Phase& phase) {
  if (phase.kind != PhaseKind::run || !phase.trace.empty()) return 0;
  std::uint64_t longest = 0;
  std::uint64_t writers = 0;
  bool any = false;
  for (const Role& role : phase.roles) {
    if (writes(role)) writers += role.threads;
    if (!inserts(role)) continue;
    any = true;
    longest = std::max(longest, role_limit(phase, role));
  }
  if (!any) return 0;
  if (longest == kEndless || longest > kOpenInsertSpan / writers) return kOpenInsertSpan;
  return longest * writers;
}

}  // namespace

std::uint32_t version_of_write(std::size_t phase, std::uint64_t ordinal) {
  return version_at(version_base(phase), ordinal);
}

bool writes(const Role& role) {
  for (std::size_t kind = 0; kind < kOpKinds; ++kind) {
    if (role.mix[kind] > 0.0 && is_write(static_cast<OpKind>(kind))) return true;
  }
  return false;
}

InsertRange insert_range(const Workload& workload, std::size_t phase) {
  InsertRange range{workload.keys.count, insert_span(workload.phases[phase])};
  for (std::size_t before = 0; before < phase; ++before) {
    range.first += insert_span(workload.phases[before]);
  }
  return range;
}

std::uint64_t operation_limit(const Workload& workload, std::size_t phase, std::uint32_t thread) {
  const Phase& declared = workload.phases[phase];
  if (declared.kind != PhaseKind::load) return role_limit(declared, role_of(declared, thread));
  const Wide keys = workload.keys.count;
  const auto first = static_cast<std::uint64_t>(keys * thread / declared.load_threads);
  const auto end = static_cast<std::uint64_t>(keys * (thread + 1) / declared.load_threads);
  return (end - first + declared.load_batch - 1) / declared.load_batch;
}

LoadSource::LoadSource(const Workload& workload, std::uint64_t seed, std::size_t phase,
                       std::uint32_t thread)
    : batch_(workload.phases[phase].load_batch),
      version_(version_of(phase)),
      random_order_(workload.phases[phase].random_order),
      order_(workload.keys.count, derive_seed(seed, 0x6c6f61, phase)) {
  const Wide keys = workload.keys.count;
  const std::uint32_t threads = workload.phases[phase].load_threads;
  position_ = static_cast<std::uint64_t>(keys * thread / threads);
  end_ = static_cast<std::uint64_t>(keys * (thread + 1) / threads);
}

std::uint32_t LoadSource::version_of(std::size_t phase) {
  return version_at(version_base(phase), 0);
}

bool LoadSource::next(LogicalOperation& operation) {
  if (position_ == end_) return false;
  operation.version = version_;
  if (batch_ == 1) {
    operation.kind = OpKind::insert;
    operation.entries = 1;
    operation.index = random_order_ ? order_.forward(position_) : position_;
    operation.batch = {};
    ++position_;
    return true;
  }
  indices_.clear();
  const std::uint64_t stop = std::min<std::uint64_t>(end_, position_ + batch_);
  for (; position_ < stop; ++position_) {
    indices_.push_back(random_order_ ? order_.forward(position_) : position_);
  }
  operation.kind = OpKind::batch;
  operation.entries = static_cast<std::uint32_t>(indices_.size());
  operation.index = indices_.front();
  operation.batch = indices_;
  return true;
}

RunSource::RunSource(const Workload& workload, std::uint64_t seed, std::size_t phase,
                     std::uint32_t thread)
    : random_(derive_seed(seed, 0x72756e, phase, thread)),
      sampler_(role_of(workload.phases[phase], thread).distribution, workload.keys, seed, thread,
               thread_count(workload.phases[phase])),
      count_(workload.keys.count),
      inserts_(insert_range(workload, phase)),
      limit_(operation_limit(workload, phase, thread)),
      version_base_(version_base(phase)) {
  const Phase& declared = workload.phases[phase];
  const Role& role = role_of(declared, thread);
  latest_ = role.distribution.kind == DistributionKind::latest;
  scan_min_ = role.scan_entries_min;
  scan_max_ = role.scan_entries_max;
  batch_keys_ = role.batch_keys;
  std::uint64_t writers = 0;
  for (std::uint32_t other = 0; other < thread_count(declared); ++other) {
    if (!writes(role_of(declared, other))) continue;
    if (other == thread) writer_ = writers;
    ++writers;
  }
  if (writes(role)) {
    writers_ = writers;
    ASSAY_CHECK(count_ >= writers_, "every writing thread owns a key");
    if (sampler_.sequential()) sampler_.restrict_cursor((count_ - writer_ - 1) / writers_ + 1);
  }
  double sum = 0.0;
  for (std::size_t kind = 0; kind < kOpKinds; ++kind) {
    if (role.mix[kind] <= 0.0) continue;
    sum += role.mix[kind];
    const auto named = static_cast<OpKind>(kind);
    points_only_ = points_only_ && named != OpKind::batch && named != OpKind::rollback;
    kinds_[kind_count_] = named;
    thresholds_[kind_count_++] = threshold_of(sum);
  }
  ASSAY_CHECK(kind_count_ > 0, "a role does something");
  thresholds_[kind_count_ - 1] = ~std::uint64_t{0};  // rounding must not leave a gap
}

inline OpKind RunSource::draw_kind(Random& random) const {
  if (kind_count_ == 1) return kinds_[0];
  const std::uint64_t draw = random.next();
  std::size_t at = 0;
  for (std::size_t kind = 0; kind + 1 < kind_count_; ++kind) at += draw >= thresholds_[kind];
  return kinds_[at];
}

std::uint64_t RunSource::newest(std::uint64_t age) const {
  if (age < inserted_) return inserts_.first + writer_ + (inserted_ - 1 - age) * writers_;
  return count_ - 1 - (age - inserted_);
}

std::uint64_t RunSource::owned(std::uint64_t index) const {
  // Past the loaded keys are the thread's own inserts; a cursor walks over own keys already.
  if (writers_ == 1 || index >= count_ || sampler_.sequential()) return index;
  const std::uint64_t own = index - index % writers_ + writer_;
  return own < count_ ? own : own - writers_;
}

template <class Draw>
[[gnu::always_inline]] inline void RunSource::draw_point(Random& random, Point& point, OpKind kind,
                                                         const Draw& draw) {
  const std::uint32_t version = version_at(version_base_, ordinal_);
  ++ordinal_;
  point.kind = kind;
  point.entries = 1;
  if (kind == OpKind::insert) {
    point.version = version;
    point.index = inserts_.first + writer_ + inserted_ * writers_;
    ++inserted_;
    return;
  }
  if (kind == OpKind::scan || kind == OpKind::reverse_scan) {
    point.entries = scan_min_;
    if (scan_min_ != scan_max_) {
      point.entries +=
          static_cast<std::uint32_t>(random.bounded(std::uint64_t{scan_max_} - scan_min_ + 1));
    }
  }
  std::uint64_t index = draw(random, point.entries);
  if (writers_ > 1 && is_write(kind)) index = owned(index);
  if (kind == OpKind::reverse_scan && sampler_.sequential()) index = count_ - 1 - index;
  point.index = index;
  point.version = is_write(kind) && kind != OpKind::erase ? version : 0;
}

template <class Draw>
void RunSource::draw_all(std::span<Point> points, const Draw& draw) {
  Random random = random_;  // a local copy stays in registers
  if (kind_count_ == 1) {
    for (Point& point : points) draw_point(random, point, kinds_[0], draw);
  } else {
    for (Point& point : points) {
      const OpKind kind = draw_kind(random);
      draw_point(random, point, kind, draw);
    }
  }
  random_ = random;
}

std::size_t RunSource::draw(std::span<Point> points) {
  points = points.first(std::min<std::uint64_t>(points.size(), limit_ - ordinal_));
  // One loop for each of the common distributions, so that its draw is compiled into the loop.
  if (sampler_.kind() == DistributionKind::uniform) {
    draw_all(points,
             [count = count_](Random& random, std::uint64_t) { return random.bounded(count); });
  } else if (sampler_.kind() == DistributionKind::zipfian) {
    draw_all(points, [sampler = sampler_.zipfian_sampler()](Random& random, std::uint64_t) {
      return sampler.draw(random);
    });
  } else {
    draw_all(points, [this](Random& random, std::uint64_t step) { return draw_any(random, step); });
  }
  return points.size();
}

std::uint64_t RunSource::draw_any(Random& random, std::uint64_t step) {
  const std::uint64_t drawn = sampler_.draw(random, step);
  if (latest_) return newest(drawn);
  // The cursor of a writing thread walks over its own keys.
  return sampler_.sequential() && writers_ > 1 ? drawn * writers_ + writer_ : drawn;
}

bool RunSource::next(LogicalOperation& operation) {
  if (ordinal_ == limit_) return false;
  const OpKind kind = draw_kind(random_);
  operation.kind = kind;
  operation.batch = {};
  if (kind != OpKind::batch && kind != OpKind::rollback) {
    Point point;
    draw_point(random_, point, kind,
               [this](Random& random, std::uint64_t step) { return draw_any(random, step); });
    operation.index = point.index;
    operation.entries = point.entries;
    operation.version = point.version;
    return true;
  }
  indices_.clear();
  for (std::uint32_t i = 0; i < batch_keys_; ++i) indices_.push_back(owned(draw_any(random_, 1)));
  operation.entries = batch_keys_;
  operation.index = indices_.front();
  operation.batch = indices_;
  operation.version = version_at(version_base_, ordinal_);
  ++ordinal_;
  return true;
}

std::unique_ptr<OperationSource> make_source(const Workload& workload, std::uint64_t seed,
                                             std::size_t phase, std::uint32_t thread) {
  ASSAY_CHECK(phase < workload.phases.size(), "the phase exists");
  ASSAY_CHECK(thread < thread_count(workload.phases[phase]), "the thread exists");
  ASSAY_CHECK(workload.phases[phase].trace.empty(), "a trace has a source of its own");
  if (workload.phases[phase].kind == PhaseKind::load) {
    return std::make_unique<LoadSource>(workload, seed, phase, thread);
  }
  return std::make_unique<RunSource>(workload, seed, phase, thread);
}

}  // namespace assay
