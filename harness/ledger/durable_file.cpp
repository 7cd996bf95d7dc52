#include "harness/ledger/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace assay {
namespace {

/// Closes on every way out; the flush before it is what reports write errors.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

Status write_whole(int fd, std::string_view contents, const std::string& meant) {
  while (!contents.empty()) {
    const ssize_t written = ::write(fd, contents.data(), contents.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail(system_error("cannot write the file", errno).at(meant));
    contents.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

/// Writes `path`; an error names `meant`, the file that the user knows.
Status write_and_sync(const std::string& path, const std::string& meant,
                      std::string_view contents) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (file.get() < 0) return fail(system_error("cannot create the file", errno).at(meant));
  ASSAY_TRY(write_whole(file.get(), contents, meant));
  if (::fsync(file.get()) != 0) {
    return fail(system_error("cannot flush the file", errno).at(meant));
  }
  return {};
}

/// Gives a flushed temporary file its name, durably. The temporary may stay, after an error too.
Status put_in_place(const std::string& temporary, const std::string& path, Existing existing) {
  // link() refuses an existing name in one step, which rename() does not.
  const int failed = existing == Existing::refuse ? ::link(temporary.c_str(), path.c_str())
                                                  : ::rename(temporary.c_str(), path.c_str());
  if (failed != 0) {
    return fail(system_error("cannot put the file in its place", errno).at(path));
  }
  if (existing == Existing::refuse) ::unlink(temporary.c_str());
  return flush_directory(folder_of(path));
}

Status write_durably(const std::string& path, std::string_view contents, Existing existing) {
  const std::string temporary = fmt::format("{}.tmp-{}", path, ::getpid());
  ::unlink(temporary.c_str());  // of a process of this number that died
  Status status = write_and_sync(temporary, path, contents);
  if (status) status = put_in_place(temporary, path, existing);
  if (!status) ::unlink(temporary.c_str());
  return status;
}

}  // namespace

Status write_file_durably(const std::string& path, std::string_view contents) {
  return write_durably(path, contents, Existing::replace);
}

Status create_file_durably(const std::string& path, std::string_view contents) {
  return write_durably(path, contents, Existing::refuse);
}

Result<DurableFile> DurableFile::create(const std::string& path) {
  std::string temporary = fmt::format("{}.tmp-{}", path, ::getpid());
  ::unlink(temporary.c_str());  // of a process of this number that died
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return fail(system_error("cannot create the file", errno).at(path));
  return DurableFile(fd, path, std::move(temporary));
}

DurableFile::DurableFile(DurableFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      buffer_(std::move(other.buffer_)) {}

DurableFile& DurableFile::operator=(DurableFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

DurableFile::~DurableFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

Status DurableFile::write(std::string_view piece) {
  buffer_ += piece;
  return buffer_.size() < (std::size_t{1} << 20) ? Status() : flush_buffer();
}

Status DurableFile::flush_buffer() {
  ASSAY_TRY(write_whole(fd_, buffer_, path_));
  buffer_.clear();
  return {};
}

Status DurableFile::commit(Existing existing) {
  ASSAY_TRY(flush_buffer());
  if (::fsync(fd_) != 0) return fail(system_error("cannot flush the file", errno).at(path_));
  return put_in_place(temporary_, path_, existing);
}

Status check_can_be_written(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return fail(Error(ErrorKind::bad_input, "this is a directory, not a file").at(path));
  }
  const std::string probe = fmt::format("{}.tmp-{}", path, ::getpid());
  const Descriptor file(::open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (file.get() < 0) return fail(system_error("cannot create the file", errno).at(path));
  ::unlink(probe.c_str());
  return {};
}

Result<std::string> read_whole_file(const std::string& path) {
  // Not blocking: the opening of a pipe waits for a writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) return fail(system_error("cannot open the file", errno).at(path));
  struct stat status{};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return fail(Error(ErrorKind::bad_input, "this is no regular file").at(path));
  }
  std::string contents;
  std::vector<char> piece(std::size_t{1} << 16);
  for (;;) {
    const ssize_t size = ::read(file.get(), piece.data(), piece.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail(system_error("cannot read the file", errno).at(path));
    if (size == 0) return contents;
    contents.append(piece.data(), static_cast<std::size_t>(size));
  }
}

Status make_directories_durably(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) return fail(system_error("cannot make the directory", error.value()).at(path));
  std::filesystem::path made;
  for (const auto& part : absolute) {
    const std::filesystem::path parent = made;
    made /= part;
    if (part.empty()) continue;
    if (::mkdir(made.c_str(), 0755) == 0) {
      ASSAY_TRY(flush_directory(parent.empty() ? "." : parent.string()));
    } else if (errno != EEXIST) {
      return fail(system_error("cannot make the directory", errno).at(made.string()));
    }
  }
  if (!std::filesystem::is_directory(absolute, error)) {
    return fail(Error(ErrorKind::environment, "this is not a directory").at(path));
  }
  return {};
}

Status flush_directory(const std::string& path) {
  const Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) return fail(system_error("cannot open the directory", errno).at(path));
  if (::fsync(directory.get()) != 0) {
    return fail(system_error("cannot flush the directory", errno).at(path));
  }
  return {};
}

std::string folder_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace assay
