// A fresh directory for a test, gone when the test ends.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "adapters/result.h"

namespace assay {

class TemporaryDirectory {
 public:
  /// Below `parent`; by default below TMPDIR or /tmp.
  explicit TemporaryDirectory(
      const std::string& parent = std::filesystem::temp_directory_path().string()) {
    std::string pattern = parent + "/assay-test-XXXXXX";
    const char* const made = ::mkdtemp(pattern.data());
    ASSAY_CHECK(made != nullptr, "a test needs a directory of its own");
    path_ = made;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
  /// Makes a file of `bytes` bytes and returns its path.
  std::string fill(const std::string& name, std::size_t bytes) const {
    std::ofstream(file(name), std::ios::binary) << std::string(bytes, '\1');
    return file(name);
  }

 private:
  std::string path_;
};

}  // namespace assay
