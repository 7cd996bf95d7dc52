// Files whose names a user gave (--out and the like), where anything may stand already.
//
// A regular file is replaced durably (durable_file.h), behind a symbolic link too, which stays. A
// character device or a pipe is written through. All else is refused: a directory, a socket, a
// block device, and a ledger, which is a record of measurements and is only ever appended to.
// One object is used by one thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "adapters/result.h"
#include "harness/ledger/durable_file.h"

namespace assay {

class NamedOutput {
 public:
  /// Opening a pipe waits for its reader.
  [[nodiscard]] static Result<NamedOutput> open(const std::string& path);
  NamedOutput(NamedOutput&& other) noexcept
      : file_(std::move(other.file_)),
        through_(std::exchange(other.through_, -1)),
        path_(std::move(other.path_)) {}
  NamedOutput& operator=(NamedOutput&&) = delete;
  ~NamedOutput();

  [[nodiscard]] Status write(std::string_view piece);
  /// Until then a regular file is as it was.
  [[nodiscard]] Status finish();

 private:
  NamedOutput(std::optional<DurableFile> file, int through, std::string path)
      : file_(std::move(file)), through_(through), path_(std::move(path)) {}

  std::optional<DurableFile> file_;
  int through_ = -1;  ///< a device or a pipe
  std::string path_;
};

/// Opens, writes and finishes.
[[nodiscard]] Status write_named_output(const std::string& path, std::string_view contents);

/// Whether a file could be put there now; opens no device and no pipe, and leaves nothing.
[[nodiscard]] Status check_named_output(const std::string& path);

/// ErrorKind::bad_input where something that is no directory has the name of one that is wanted.
[[nodiscard]] Status check_named_directory(const std::string& path);

}  // namespace assay
