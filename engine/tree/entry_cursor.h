// A position in a sorted source of entries: a tree, an overlay, a merge of several.
#pragma once

#include <string_view>

#include "engine/base/result.h"
#include "engine/base/types.h"

namespace lode {

/// One thread at a time. An error makes the cursor invalid and stays in status(). key() is valid
/// until the cursor moves, value() until then or the next value().
class EntryCursor {
 public:
  virtual ~EntryCursor() = default;
  virtual void seek_first() = 0;
  virtual void seek_last() = 0;
  /// To the first entry with a key >= `key`.
  virtual void seek(std::string_view key) = 0;
  virtual void next() = 0;  ///< from a valid position only
  virtual void prev() = 0;  ///< from a valid position only
  [[nodiscard]] virtual bool valid() const = 0;
  [[nodiscard]] virtual std::string_view key() const = 0;
  [[nodiscard]] virtual EntryKind kind() const = 0;
  virtual Result<std::string_view> value() = 0;
  [[nodiscard]] virtual Status status() const = 0;
};

}  // namespace lode
