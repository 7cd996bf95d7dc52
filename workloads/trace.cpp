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

namespace {

struct Place {
  std::string_view phase;
  std::uint32_t thread = 0;
  std::uint64_t ordinal = 0;
};

void print_text(const Place& place, const Operation& operation, std::span<const Mutation> all,
                std::span<const Mutation> shown, std::FILE* out) {
  fmt::print(out, "{} {} {} {} {} {} {} {} {}\n", place.phase, place.thread, place.ordinal,
             to_string(operation.kind), operation.index, hex(operation.key), operation.entries,
             value_bytes(operation, all), operation.due_ns);
  for (const Mutation& mutation : shown) {
    fmt::print(out, "  put {} {}\n", hex(mutation.key), mutation.value.size());
  }
  if (shown.size() < all.size()) {
    fmt::print(out, "  ... {} more puts\n", all.size() - shown.size());
  }
}

void print_json(const Place& place, const Operation& operation, std::span<const Mutation> all,
                std::span<const Mutation> shown, std::FILE* out) {
  nlohmann::json line{{"phase", place.phase},         {"thread", place.thread},
                      {"ordinal", place.ordinal},     {"kind", to_string(operation.kind)},
                      {"index", operation.index},     {"key", hex(operation.key)},
                      {"entries", operation.entries}, {"value_bytes", value_bytes(operation, all)},
                      {"due_ns", operation.due_ns}};
  for (const Mutation& mutation : shown) {
    line["mutations"].push_back(
        {{"key", hex(mutation.key)}, {"value_bytes", mutation.value.size()}});
  }
  if (shown.size() < all.size()) line["mutations_left"] = all.size() - shown.size();
  fmt::print(out, "{}\n", line.dump());
}

}  // namespace

void print_trace(Stream& stream, std::string_view phase, std::uint32_t thread, std::uint64_t keys,
                 TraceFormat format, std::FILE* out) {
  Chunk chunk;
  Place place{phase, thread, 0};
  std::uint64_t left = keys;
  while (left > 0) {
    stream.fill(chunk, std::min<std::uint64_t>(kChunkOperations, left));
    if (chunk.operations.empty()) return;
    for (const Operation& operation : chunk.operations) {
      const auto all = mutations_of(operation, chunk);
      const auto shown = all.first(std::min<std::uint64_t>(all.size(), left));
      if (format == TraceFormat::text) {
        print_text(place, operation, all, shown, out);
      } else {
        print_json(place, operation, all, shown, out);
      }
      ++place.ordinal;
      left -= std::max<std::size_t>(1, shown.size());
      if (left == 0) return;
    }
  }
}

}  // namespace assay
