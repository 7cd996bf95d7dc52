// Operation streams as text, for people to audit and other programs to read.
//
// Text: fields separated by one space, one operation a line, after the line of trace_header():
//   phase thread ordinal kind index key entries value_bytes due_ns
// key is in hex; value_bytes is the sum over a batch; a batch and a rollback are followed by one
// line a mutation: two spaces, "put", key, value_bytes. due_ns is 0 in a closed loop.
// JSON: one object a line with the same names; a batch has "mutations".
// A limit counts keys, for a batch of a thousand is as much to read as a thousand puts: what is
// left of a batch that goes beyond it is a line "  ... N more puts", in JSON "mutations_left".
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "workloads/stream.h"

namespace assay {

enum class TraceFormat : std::uint8_t { text, json };

[[nodiscard]] std::string_view trace_header();
/// Takes operations out of `stream` and prints them to `out`, until `keys` keys were printed: one
/// of each operation, all of a batch.
void print_trace(Stream& stream, std::string_view phase, std::uint32_t thread, std::uint64_t keys,
                 TraceFormat format, std::FILE* out);

}  // namespace assay
