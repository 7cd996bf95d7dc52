// Operations captured elsewhere, in a file of text, for a phase with `trace = "file"`.
//
// One operation a line, fields separated by blanks; empty lines and lines that begin with '#' are
// skipped:
//   time_us kind key value_bytes [entries]
// time_us: microseconds from any origin, not falling. kind: read, update, insert, erase, scan,
// reverse_scan or read_modify_write. key: an even number of hex digits (with or without 0x), or
// text in double quotes in which \" \\ and \xNN are escapes. value_bytes: size of the value that a
// write writes; 0 otherwise. entries: of a scan (1 without).
//
// Keys are used as they are; the contents of values are made by the harness, so that they can be
// checked. A key always goes to the same thread, so that its writes keep their order.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "adapters/result.h"
#include "workloads/codec.h"
#include "workloads/workload.h"

namespace assay {

struct TraceLine {
  std::uint64_t time_us = 0;
  OpKind kind = OpKind::read;
  std::uint32_t value_bytes = 0;
  std::uint32_t entries = 1;
  std::string key;
};

/// Reads a trace line by line; nothing but the current line is kept in memory.
class TraceFile {
 public:
  [[nodiscard]] static Result<TraceFile> open(const std::string& path);
  /// False at the end. A bad line is an error with file, line and what is wrong with it.
  [[nodiscard]] Result<bool> next(TraceLine& line);
  [[nodiscard]] std::uint64_t line_number() const { return line_number_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  TraceFile(std::FILE* file, std::string path) : file_(file), path_(std::move(path)) {}
  [[nodiscard]] Result<bool> read_text();
  [[nodiscard]] Status parse(TraceLine& line) const;
  [[nodiscard]] Error bad(std::string what) const;

  std::unique_ptr<std::FILE, Close> file_;
  std::string path_;
  std::string text_;
  std::uint64_t line_number_ = 0;
  std::uint64_t last_time_us_ = 0;
};

struct TraceSummary {
  std::uint64_t operations = 0;
  std::array<double, kOpKinds> mix{};  ///< shares of the kinds
  std::uint64_t span_us = 0;           ///< from the first operation to the last
  std::string digest;                  ///< XXH3 (128 bits) of the parsed operations
};
/// Reads the whole trace once; every bad line is found here, before anything is measured.
[[nodiscard]] Result<TraceSummary> summarise_trace(const std::string& path);

struct TraceOperation {
  TraceLine line;
  std::uint64_t index = 0;    ///< as KeyCodec::decode gives it
  std::uint32_t version = 0;  ///< 0 for reads and erases
};

/// The operations of one thread of a trace phase. The file was read when the workload was; should
/// it be gone or changed since, the source ends early and status() says so.
class TraceSource {
 public:
  TraceSource(const Workload& workload, std::uint64_t seed, std::size_t phase,
              std::uint32_t thread);
  bool next(TraceOperation& operation);
  /// Of the first operation of the whole trace.
  [[nodiscard]] std::uint64_t first_time_us() const { return first_time_us_; }
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  std::unique_ptr<TraceFile> file_;
  KeyCodec keys_;
  std::uint32_t thread_;
  std::uint32_t threads_;
  std::size_t phase_;
  std::uint64_t ordinal_ = 0;  ///< in the whole trace
  std::uint64_t first_time_us_ = 0;
  Status status_;
};

}  // namespace assay
