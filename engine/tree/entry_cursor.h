// A position in a sorted source of entries: a tree, an overlay, a merge of several.
#pragma once

#include <string_view>

#include "engine/base/result.h"
#include "engine/base/types.h"

namespace lode {

/// What a cursor stands at. A cursor over others shows the one that it stands at without a copy.
struct Position {
  bool valid = false;
  bool plain = true;  ///< `data` is the value; else it has to be loaded
  EntryKind kind = EntryKind::value;
  std::string_view key;
  std::string_view data;
};

/// One thread at a time. An error makes the cursor invalid and stays in status(). key() is valid
/// until the cursor moves, value() until then or the next value().
class EntryCursor {
 public:
  EntryCursor() = default;
  EntryCursor(const EntryCursor&) = delete;
  EntryCursor& operator=(const EntryCursor&) = delete;
  virtual ~EntryCursor() = default;
  virtual void seek_first() = 0;
  virtual void seek_last() = 0;
  /// To the first entry with a key >= `key`.
  virtual void seek(std::string_view key) = 0;
  virtual void next() = 0;  ///< from a valid position only
  virtual void prev() = 0;  ///< from a valid position only
  [[nodiscard]] virtual Status status() const = 0;

  [[nodiscard]] bool valid() const { return at_->valid; }
  [[nodiscard]] std::string_view key() const { return at_->key; }
  [[nodiscard]] EntryKind kind() const { return at_->kind; }
  Result<std::string_view> value() {
    if (at_->plain) [[likely]]
      return at_->data;
    return load_value();
  }
  [[nodiscard]] const Position* position() const { return at_; }

 protected:
  virtual Result<std::string_view> load_value() = 0;  ///< of a position that is not plain
  static constexpr Position nowhere{};
  const Position* at_ = &nowhere;
};

}  // namespace lode
