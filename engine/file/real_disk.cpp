#include "engine/file/real_disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace lode {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

class RealFile final : public File {
 public:
  RealFile(Descriptor fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}

  Result<std::size_t> read_at(Bytes out, std::uint64_t offset) override {
    std::size_t done = 0;
    while (done < out.size()) {
      const ssize_t count = ::pread(fd_.get(), out.data() + done, out.size() - done,
                                    static_cast<off_t>(offset + done));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return std::unexpected(system_error("read of " + name_, errno));
      if (count == 0) break;
      done += static_cast<std::size_t>(count);
    }
    return done;
  }

  Status write_at(ConstBytes data, std::uint64_t offset) override {
    std::size_t done = 0;
    while (done < data.size()) {
      const ssize_t count = ::pwrite(fd_.get(), data.data() + done, data.size() - done,
                                     static_cast<off_t>(offset + done));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return std::unexpected(system_error("write to " + name_, errno));
      if (count == 0) return std::unexpected(system_error("write to " + name_, ENOSPC));
      done += static_cast<std::size_t>(count);
    }
    return {};
  }

  Status sync() override {
    if (::fdatasync(fd_.get()) != 0) {
      return std::unexpected(system_error("fdatasync of " + name_, errno));
    }
    return {};
  }

  void start_writing(std::uint64_t offset, std::uint64_t bytes) override {
    (void)::sync_file_range(fd_.get(), static_cast<off_t>(offset), static_cast<off_t>(bytes),
                            SYNC_FILE_RANGE_WRITE);
  }

  Result<std::uint64_t> size() override {
    struct stat info{};
    if (::fstat(fd_.get(), &info) != 0) {
      return std::unexpected(system_error("fstat of " + name_, errno));
    }
    return static_cast<std::uint64_t>(info.st_size);
  }

  Status resize(std::uint64_t bytes) override {
    if (::ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0) {
      return std::unexpected(system_error("ftruncate of " + name_, errno));
    }
    return {};
  }

 private:
  Descriptor fd_;
  std::string name_;
};

class RealDisk final : public Disk {
 public:
  RealDisk(Descriptor directory, std::string path)
      : directory_(std::move(directory)), lock_(-1), path_(std::move(path)) {}

  Result<std::unique_ptr<File>> open(std::string_view name, OpenMode mode) override {
    int flags = O_CLOEXEC | (mode.read_only ? O_RDONLY : O_RDWR);
    if (mode.create) flags |= O_CREAT | O_EXCL;
    if (mode.direct) flags |= O_DIRECT;
    if (mode.dsync) flags |= O_DSYNC;
    const std::string file(name);
    Descriptor fd(::openat(directory_.get(), file.c_str(), flags, 0644));
    if (fd.get() < 0) {
      Error error = system_error("open of " + path_ + "/" + file, errno);
      if (errno == ENOENT) error.kind = ErrorKind::not_found;
      if (errno == EINVAL && mode.direct) error.kind = ErrorKind::unsupported;
      return std::unexpected(std::move(error));
    }
    return std::make_unique<RealFile>(std::move(fd), path_ + "/" + file);
  }

  Result<std::vector<std::string>> list() override {
    std::vector<std::string> names;
    DIR* stream = ::opendir(path_.c_str());
    if (stream == nullptr) return std::unexpected(system_error("listing of " + path_, errno));
    while (const dirent* entry = ::readdir(stream)) {
      const std::string_view entry_name(entry->d_name);
      if (entry_name != "." && entry_name != "..") names.emplace_back(entry_name);
    }
    ::closedir(stream);
    return names;
  }

  Status remove(std::string_view name) override {
    if (::unlinkat(directory_.get(), std::string(name).c_str(), 0) != 0) {
      return std::unexpected(system_error("removal of " + path_ + "/" + std::string(name), errno));
    }
    return {};
  }

  Status rename(std::string_view from, std::string_view to) override {
    if (::renameat(directory_.get(), std::string(from).c_str(), directory_.get(),
                   std::string(to).c_str()) != 0) {
      return std::unexpected(system_error("rename of " + path_ + "/" + std::string(from), errno));
    }
    return {};
  }

  Status sync_directory() override {
    if (::fsync(directory_.get()) != 0) {
      return std::unexpected(system_error("fsync of directory " + path_, errno));
    }
    return {};
  }

  Status lock(bool exclusive) override {
    const int flags = O_CLOEXEC | (exclusive ? O_RDWR | O_CREAT : O_RDONLY);
    Descriptor fd(::openat(directory_.get(), "lock", flags, 0644));
    // Without the file there has been no writer yet, and a reader may not be able to make it.
    if (fd.get() < 0 && errno == ENOENT && !exclusive) return {};
    if (fd.get() < 0) return std::unexpected(system_error("open of " + path_ + "/lock", errno));
    if (::flock(fd.get(), (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) {
        return fail(ErrorKind::locked, path_ + " is open in another process or handle");
      }
      return std::unexpected(system_error("lock of " + path_, errno));
    }
    lock_ = std::move(fd);
    return {};
  }

  [[nodiscard]] std::string name() const override { return path_; }

 private:
  Descriptor directory_;
  Descriptor lock_;
  std::string path_;
};

std::string parent_of(const std::string& path) {
  std::string trimmed = path;
  while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.pop_back();
  const std::size_t slash = trimmed.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : trimmed.substr(0, slash);
}

}  // namespace

Result<std::shared_ptr<Disk>> open_directory(const std::string& path, bool create) {
  if (create) {
    if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) {
      return std::unexpected(system_error("making of directory " + path, errno));
    }
    // Also when it was there: an earlier process may have died between mkdir and this sync.
    const std::string parent = parent_of(path);
    const Descriptor fd(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd.get() < 0 || ::fsync(fd.get()) != 0) {
      return std::unexpected(system_error("sync of directory " + parent, errno));
    }
  }
  Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) {
    Error error = system_error("open of directory " + path, errno);
    if (errno == ENOENT) error.kind = ErrorKind::not_found;
    return std::unexpected(std::move(error));
  }
  return std::make_shared<RealDisk>(std::move(directory), path);
}

}  // namespace lode
