// RocksDB's own log of what it does, the file LOG.
//
// Private to the adapter. Any number of threads.
#pragma once

#include <rocksdb/env.h>

#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <string>
#include <utility>

namespace assay {

/// RocksDB's LOG file, written plainly. The packaged library is built with assertions, and its own
/// logger asserts when a write to LOG fails: a full disk would abort the process instead of giving
/// an error.
class ForgivingLog final : public rocksdb::Logger {
 public:
  explicit ForgivingLog(const std::string& directory)
      : file_(std::fopen((directory + "/LOG").c_str(), "ae")) {}
  ~ForgivingLog() override { static_cast<void>(close()); }
  ForgivingLog(const ForgivingLog&) = delete;
  ForgivingLog& operator=(const ForgivingLog&) = delete;

  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    const std::scoped_lock lock(mutex_);
    if (file_ == nullptr) return;
    std::vfprintf(file_, format, arguments);
    std::fputc('\n', file_);
    std::fflush(file_);
  }

 protected:
  rocksdb::Status CloseImpl() override {
    static_cast<void>(close());
    return rocksdb::Status::OK();
  }

 private:
  int close() {
    const std::scoped_lock lock(mutex_);
    std::FILE* const file = std::exchange(file_, nullptr);
    return file == nullptr ? 0 : std::fclose(file);
  }
  std::mutex mutex_;
  std::FILE* file_;
};

}  // namespace assay
