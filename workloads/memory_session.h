// A store in a std::map, with faults to order, for the tests of the model.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "adapters/store.h"
#include "workloads/stream.h"

namespace assay {

class MemorySession final : public Session {
 public:
  std::map<std::string, std::string> entries;
  /// Changes what a scan or a get sees; the planted fault.
  std::function<void(std::vector<std::pair<std::string, std::string>>&)> scan_fault;

  Result<bool> get(std::string_view key, std::string_view& value) override {
    const auto found = entries.find(std::string(key));
    if (found == entries.end()) return false;
    value = found->second;
    return true;
  }
  Status put(std::string_view key, std::string_view value) override {
    entries[std::string(key)] = std::string(value);
    return {};
  }
  Status erase(std::string_view key) override {
    entries.erase(std::string(key));
    return {};
  }
  Status apply(std::span<const Mutation> mutations) override {
    for (const Mutation& mutation : mutations) {
      if (mutation.kind == Mutation::Kind::put) {
        ASSAY_TRY(put(mutation.key, mutation.value));
      } else {
        ASSAY_TRY(erase(mutation.key));
      }
    }
    return {};
  }
  Status rollback(std::span<const Mutation>) override { return {}; }
  /// Forward scans without a limit; that is what a check of contents needs.
  Result<std::uint64_t> scan(const ScanRange& range, ScanSink& sink) override {
    const auto from =
        range.from_start ? entries.begin() : entries.lower_bound(std::string(range.first));
    const auto to = range.to_end ? entries.end() : entries.upper_bound(std::string(range.last));
    std::vector<std::pair<std::string, std::string>> seen(from, to);
    if (scan_fault) scan_fault(seen);
    for (const auto& [key, value] : seen) {
      if (!sink.entry(key, value)) break;
    }
    return seen.size();
  }
};

/// Executes one operation as a worker does.
inline void execute(const Operation& operation, const Chunk& chunk, Session& session) {
  const std::span<const Mutation> mutations(chunk.mutations.data() + operation.first_mutation,
                                            operation.entries);
  std::string_view value;
  switch (operation.kind) {
    case OpKind::read:
      (void)session.get(operation.key, value);
      break;
    case OpKind::update:
    case OpKind::insert:
    case OpKind::read_modify_write:
      (void)session.put(operation.key, operation.value);
      break;
    case OpKind::erase:
      (void)session.erase(operation.key);
      break;
    case OpKind::batch:
      (void)session.apply(mutations);
      break;
    case OpKind::rollback:
      (void)session.rollback(mutations);
      break;
    case OpKind::scan:
    case OpKind::reverse_scan:
      break;
  }
}

}  // namespace assay
