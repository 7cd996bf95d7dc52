// The encoding of a batch: what the log holds and what is applied to the overlay.
//
// One operation: kind (1 byte), length of the key, length of the value (variable-length numbers),
// key, value. A range erase keeps its first key as the key and its end as the value.
#pragma once

#include <optional>
#include <string_view>

#include "engine/base/coding.h"

namespace lode {

enum class OperationKind : std::uint8_t {
  put = 0,
  erase = 1,
  erase_range = 2,  ///< key <= k < value
  erase_from = 3,   ///< key <= k
  marker = 4,       ///< the key is its name; changes no entry
};
constexpr std::uint8_t last_operation_kind = 4;

struct BatchOperation {
  OperationKind kind = OperationKind::put;
  std::string_view key;
  std::string_view value;
};

/// The next operation, or nothing at the end; after a malformed one in.failed() is true.
[[nodiscard]] inline std::optional<BatchOperation> next_operation(Decoder& in) {
  if (in.left() == 0) return std::nullopt;
  const auto kind = in.fixed<std::uint8_t>();
  const std::uint64_t key_bytes = in.varint();
  const std::uint64_t value_bytes = in.varint();
  BatchOperation operation;
  operation.kind = static_cast<OperationKind>(kind);
  operation.key = in.bytes(key_bytes);
  operation.value = in.bytes(value_bytes);
  if (kind > last_operation_kind) (void)in.bytes(in.left() + 1);  // fails
  if (in.failed()) return std::nullopt;
  return operation;
}

}  // namespace lode
