#include "workloads/model.h"

#include <algorithm>

#include "workloads/operation_source.h"
#include "workloads/trace_file.h"

namespace assay {

Model::Model(const Workload& workload, std::uint64_t seed)
    : workload_(workload), seed_(seed), keys_(workload.keys, seed) {
  regions_.push_back({0, workload.keys.count, {}});
  for (std::size_t phase = 0; phase < workload.phases.size(); ++phase) {
    const InsertRange range = insert_range(workload, phase);
    if (range.span > 0) regions_.push_back({range.first, range.span, {}});
  }
}

std::uint64_t Model::entries() const {
  return entries_;
}

const Model::Region* Model::region_of(std::uint64_t index) const {
  const auto after = std::upper_bound(
      regions_.begin(), regions_.end(), index,
      [](std::uint64_t value, const Region& region) { return value < region.first; });
  if (after == regions_.begin()) return nullptr;
  const Region& region = *std::prev(after);
  return index - region.first < region.span ? &region : nullptr;
}

std::uint32_t Model::version_of(std::uint64_t index) const {
  const Region* region = region_of(index);
  if (region == nullptr) return 0;
  const std::uint64_t at = index - region->first;
  return at < region->versions.size() ? region->versions[at] : 0;
}

void Model::put(std::uint64_t index, std::uint32_t version) {
  if (!foreign_.empty()) {
    std::string key(keys_.size(), '\0');
    keys_.encode(index, key.data());
    entries_ -= foreign_.erase(key);
  }
  set_region(index, version);
}

void Model::set_region(std::uint64_t index, std::uint32_t version) {
  const Region* found = region_of(index);
  ASSAY_CHECK(found != nullptr, "a stream writes only indices that belong to a phase");
  Region& region = regions_[static_cast<std::size_t>(found - regions_.data())];
  const std::uint64_t at = index - region.first;
  if (at >= region.versions.size()) {
    const std::uint64_t grown = std::max<std::uint64_t>(at + 1, region.versions.size() * 3 / 2);
    region.versions.resize(index < workload_.keys.count ? workload_.keys.count
                                                        : std::min(grown, region.span));
  }
  std::uint32_t& slot = region.versions[at];
  entries_ += static_cast<std::uint64_t>(version != 0) - static_cast<std::uint64_t>(slot != 0);
  slot = version;
}

void Model::apply(const Executed& executed) {
  ASSAY_CHECK(executed.phase < workload_.phases.size(), "the phase exists");
  const Phase& phase = workload_.phases[executed.phase];
  ASSAY_CHECK(executed.operations.size() <= thread_count(phase), "the threads exist");
  for (std::uint32_t thread = 0; thread < executed.operations.size(); ++thread) {
    if (phase.kind == PhaseKind::run && !writes(role_of(phase, thread))) continue;
    if (!phase.trace.empty()) {
      apply_trace(executed, thread);
      continue;
    }
    const auto source = make_source(workload_, seed_, executed.phase, thread);
    LogicalOperation operation;
    for (std::uint64_t done = 0; done < executed.operations[thread]; ++done) {
      if (!source->next(operation)) break;
      if (!is_write(operation.kind) || operation.kind == OpKind::rollback) continue;
      if (operation.batch.empty()) put(operation.index, operation.version);
      for (const std::uint64_t index : operation.batch) put(index, operation.version);
    }
  }
}

void Model::apply_trace(const Executed& executed, std::uint32_t thread) {
  TraceSource source(workload_, seed_, executed.phase, thread);
  TraceOperation operation;
  for (std::uint64_t done = 0; done < executed.operations[thread]; ++done) {
    if (!source.next(operation)) break;
    if (!is_write(operation.line.kind)) continue;
    // A trace may name a key that a load or an insert has put there.
    std::uint64_t index = 0;
    if (keys_.decode_declared(operation.line.key, index) && version_of(index) != 0) {
      set_region(index, 0);
    }
    entries_ -= foreign_.erase(operation.line.key);
    if (operation.version == 0) continue;
    foreign_[operation.line.key] = {operation.index, operation.version, operation.line.value_bytes};
    ++entries_;
  }
}

}  // namespace assay
