// The text that `lode dump` writes and `lode load` reads. FORMAT.md describes it.
//
// Invariants: what write_dump() wrote is read back byte for byte, whatever keys and values hold. A
// reader reports the first bad line as NAME:LINE and gives out no entry of it or behind it; it ends
// well only when the last line's count and checksum are right, so a file that was cut is noticed.
// Threads: one at a time.
#pragma once

#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "engine/lode.h"

namespace lode {

/// \\ for a backslash, \xNN for a byte that does not print; the rest stands for itself.
void append_escaped(std::string_view text, std::string& out);
/// False: a backslash that begins none of these. `out` is replaced.
[[nodiscard]] bool unescape(std::string_view text, std::string& out);
/// A key as text: of a u64 store the number.
void append_key(KeyKind keys, std::string_view key, std::string& out);
[[nodiscard]] bool parse_key(KeyKind keys, std::string_view text, std::string& key);

/// Writes all that `snapshot` shows. Returns the number of entries.
Result<std::uint64_t> write_dump(const Snapshot& snapshot, KeyKind keys, std::ostream& out);

class DumpReader {
 public:
  /// `name` is for messages.
  DumpReader(std::istream& in, std::string name) : in_(in), name_(std::move(name)) {}
  /// The first line; to be called first.
  Result<KeyKind> header();
  /// True and the next entry; false behind the last one, when the file is whole.
  Result<bool> next(std::string& key, std::string& value);
  [[nodiscard]] std::uint64_t line() const { return line_number_; }
  [[nodiscard]] std::uint64_t entries() const { return entries_; }

 private:
  Result<bool> read_line();
  Status check_last_line();
  [[nodiscard]] std::unexpected<Error> bad_line(std::string_view what) const;

  std::istream& in_;
  std::string name_;
  std::string line_;
  std::string last_key_;
  KeyKind keys_ = KeyKind::bytes;
  std::uint64_t line_number_ = 0;
  std::uint64_t entries_ = 0;
  std::uint32_t checksum_ = 0;  // of all lines but the one that was read last
};

/// Reads a whole dump and changes nothing: kind of keys.
Result<KeyKind> check_dump(std::istream& in, const std::string& name);

struct LoadReport {
  std::uint64_t entries = 0;  ///< in the store and durable, also when load_dump() failed
  std::uint64_t batches = 0;
};
/// Puts the entries of a dump, whose header has been read, into `store` in batches of about
/// `batch_bytes`, each atomic. A bad line ends it: nothing of its batch is loaded.
Status load_dump(Store& store, DumpReader& reader, std::size_t batch_bytes, LoadReport& report);

}  // namespace lode
