#include "workloads/trace.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace assay {
namespace {

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::span<const Mutation> mutations_of(const Operation& operation, const Chunk& chunk) {
  if (operation.kind != OpKind::batch && operation.kind != OpKind::rollback) return {};
  return {chunk.mutations.data() + operation.first_mutation, operation.entries};
}

std::size_t value_bytes(const Operation& operation, std::span<const Mutation> mutations) {
  std::size_t bytes = operation.value.size();
  for (const Mutation& mutation : mutations) bytes += mutation.value.size();
  return bytes;
}

}  // namespace

std::string_view trace_header() {
  return "phase thread ordinal kind index key entries value_bytes due_ns";
}

void print_trace(Stream& stream, std::string_view phase, std::uint32_t thread,
                 std::uint64_t operations, TraceFormat format, std::FILE* out) {
  Chunk chunk;
  std::uint64_t ordinal = 0;
  while (ordinal < operations) {
    stream.fill(chunk, std::min<std::uint64_t>(kChunkOperations, operations - ordinal));
    if (chunk.operations.empty()) return;
    for (const Operation& operation : chunk.operations) {
      const auto mutations = mutations_of(operation, chunk);
      const std::size_t bytes = value_bytes(operation, mutations);
      if (format == TraceFormat::text) {
        fmt::print(out, "{} {} {} {} {} {} {} {} {}\n", phase, thread, ordinal,
                   to_string(operation.kind), operation.index, hex(operation.key),
                   operation.entries, bytes, operation.due_ns);
        for (const Mutation& mutation : mutations) {
          fmt::print(out, "  put {} {}\n", hex(mutation.key), mutation.value.size());
        }
      } else {
        nlohmann::json line{{"phase", phase},
                            {"thread", thread},
                            {"ordinal", ordinal},
                            {"kind", to_string(operation.kind)},
                            {"index", operation.index},
                            {"key", hex(operation.key)},
                            {"entries", operation.entries},
                            {"value_bytes", bytes},
                            {"due_ns", operation.due_ns}};
        for (const Mutation& mutation : mutations) {
          line["mutations"].push_back(
              {{"key", hex(mutation.key)}, {"value_bytes", mutation.value.size()}});
        }
        fmt::print(out, "{}\n", line.dump());
      }
      ++ordinal;
    }
  }
}

}  // namespace assay
