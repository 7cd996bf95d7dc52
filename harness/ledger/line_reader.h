// The lines of a file, one after the other, in memory that does not grow with the file.
//
// Invariant: offset and number tell where a line begins, so that what is wrong in it has a place.
// One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "adapters/result.h"

namespace assay {

/// A record of the longest trial is some hundred KiB; a file of one huge line is no ledger.
inline constexpr std::size_t kLongestLineBytes = std::size_t{64} << 20;

class LineReader {
 public:
  struct Line {
    std::string_view text;     ///< without the line feed; valid until the next call
    std::uint64_t number = 0;  ///< from 1
    std::uint64_t offset = 0;  ///< of its first byte
    bool whole = true;         ///< false: the file ends without a line feed
  };

  /// A missing file, a pipe or a directory is an error of kind bad_input.
  [[nodiscard]] static Result<LineReader> open(const std::string& path);
  LineReader(LineReader&& other) noexcept;
  LineReader& operator=(LineReader&& other) noexcept;
  ~LineReader();

  /// Nothing at the end of the file. A line above kLongestLineBytes is an error of kind ledger.
  [[nodiscard]] Result<std::optional<Line>> next();

 private:
  LineReader(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  Result<bool> fill();

  int fd_ = -1;
  std::string path_;
  std::string buffer_;
  std::size_t begin_ = 0;    ///< of the next line in buffer_
  std::size_t scanned_ = 0;  ///< no line feed between begin_ and here
  std::uint64_t number_ = 0;
  std::uint64_t offset_ = 0;
  bool at_end_ = false;
};

}  // namespace assay
