// Files that are there whole or not at all: written beside their place, flushed, then renamed.
// Free functions without state; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "adapters/result.h"

namespace assay {

/// Writes `contents` to `path` as temporary file, fsync, rename, fsync of the directory. An
/// existing file is replaced in one step; after an error it is as it was and no temporary is left.
[[nodiscard]] Status write_file_durably(const std::string& path, std::string_view contents);

/// The same, but an existing file is an error: for what must never be written over.
[[nodiscard]] Status create_file_durably(const std::string& path, std::string_view contents);

enum class Existing : std::uint8_t { replace, refuse };

/// A file whose contents come in pieces, as durable as those that are written at once. Until
/// commit() there is only a temporary file, which goes with the object.
class DurableFile {
 public:
  [[nodiscard]] static Result<DurableFile> create(const std::string& path);
  DurableFile(DurableFile&& other) noexcept;
  DurableFile& operator=(DurableFile&& other) noexcept;
  ~DurableFile();

  [[nodiscard]] Status write(std::string_view piece);
  /// Flushes and gives the file its name.
  [[nodiscard]] Status commit(Existing existing);

 private:
  DurableFile(int fd, std::string path, std::string temporary)
      : fd_(fd), path_(std::move(path)), temporary_(std::move(temporary)) {}
  Status flush_buffer();

  int fd_ = -1;
  std::string path_;
  std::string temporary_;
  std::string buffer_;
};

/// Whether write_file_durably() could put a file here now; leaves nothing.
[[nodiscard]] Status check_can_be_written(const std::string& path);

/// The whole file. A pipe or a device is ErrorKind::bad_input.
[[nodiscard]] Result<std::string> read_whole_file(const std::string& path);

/// Makes a directory and its parents; each new entry is flushed.
[[nodiscard]] Status make_directories_durably(const std::string& path);

/// fsync of a directory, so that names made or removed in it last.
[[nodiscard]] Status flush_directory(const std::string& path);

/// Folder of a path: "." for a bare name.
[[nodiscard]] std::string folder_of(const std::string& path);

}  // namespace assay
