// RocksDB's own log of what it does, the file LOG.
//
// Private to the adapter. Any number of threads.
#pragma once

#include <fcntl.h>
#include <rocksdb/env.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <string>

namespace assay {

/// Written plainly, and a failure to write is ignored. The packaged library is built with
/// assertions, and its own logger asserts when a write to LOG fails: a full disk would abort the
/// process instead of giving an error. A line beyond the buffer's size is cut.
class ForgivingLog final : public rocksdb::Logger {
 public:
  explicit ForgivingLog(const std::string& directory)
      : file_(::open((directory + "/LOG").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                     0644)) {}
  ~ForgivingLog() override {
    if (file_ >= 0) ::close(file_);
  }
  ForgivingLog(const ForgivingLog&) = delete;
  ForgivingLog& operator=(const ForgivingLog&) = delete;

  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    if (file_ < 0) return;
    std::array<char, 4096> line;
    const int wanted = std::vsnprintf(line.data(), line.size(), format, arguments);
    if (wanted < 0) return;
    const std::size_t bytes = std::min(static_cast<std::size_t>(wanted), line.size() - 1);
    line[bytes] = '\n';  // in the place of the terminating zero
    [[maybe_unused]] const ssize_t ignored = ::write(file_, line.data(), bytes + 1);
  }

 private:
  const int file_;  // in append mode, so that lines of several threads do not mix
};

}  // namespace assay
