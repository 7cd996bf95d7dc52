// Trees from and to the file system.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "harness/qualify/power/tree.h"

namespace assay::qualify::power {
namespace {

namespace fs = std::filesystem;

class Descriptor {
 public:
  explicit Descriptor(int file) : file_(file) {}
  ~Descriptor() {
    if (file_ >= 0) ::close(file_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return file_; }

 private:
  int file_;
};

Status read_file(const std::string& path, PagePool& pool, File& file) {
  const Descriptor in(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status{};
  if (in.get() < 0 || ::fstat(in.get(), &status) != 0) {
    return fail(system_error("cannot read a file of the store", errno).at(path));
  }
  file.size = static_cast<std::uint64_t>(status.st_size);
  file.pages.assign((file.size + kPageBytes - 1) / kPageBytes, nullptr);
  std::array<std::byte, kPageBytes> bytes;
  off_t at = 0;
  while (at < status.st_size) {
    // Where there is no data there is a hole; a file system that cannot tell gives data only.
    const off_t data = ::lseek(in.get(), at, SEEK_DATA);
    if (data < 0) break;
    const off_t hole = std::max<off_t>(::lseek(in.get(), data, SEEK_HOLE), data + 1);
    for (at = data / 4096 * 4096; at < hole && at < status.st_size; at += 4096) {
      const ssize_t got = ::pread(in.get(), bytes.data(), kPageBytes, at);
      if (got < 0) return fail(system_error("cannot read a file of the store", errno).at(path));
      std::memset(bytes.data() + got, 0, kPageBytes - static_cast<std::size_t>(got));
      file.pages[static_cast<std::size_t>(at) / kPageBytes] = pool.intern(bytes);
    }
  }
  return {};
}

Status read_folder(const std::string& path, FileId folder, PagePool& pool, Tree& tree,
                   std::vector<std::uint64_t>& inodes) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    names.push_back(entry.path().filename().string());
  }
  if (error) return fail(system_error("cannot list the store's directory", error.value()).at(path));
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const std::string full = path + "/" + name;
    struct stat status{};
    if (::lstat(full.c_str(), &status) != 0) {
      return fail(system_error("cannot look at a file of the store", errno).at(full));
    }
    const auto known = std::find(inodes.begin(), inodes.end(), status.st_ino);
    if (known != inodes.end()) {
      tree.set_entry({folder, name}, static_cast<FileId>(known - inodes.begin()));
      continue;
    }
    File file;
    file.directory = S_ISDIR(status.st_mode);
    if (S_ISREG(status.st_mode)) {
      ASSAY_TRY(read_file(full, pool, file));
    } else if (!file.directory) {
      return fail(Error(ErrorKind::unsupported, "not a regular file and not a directory").at(full));
    }
    const bool directory = file.directory;
    const FileId id = tree.add(std::move(file));
    inodes.push_back(status.st_ino);
    tree.set_entry({folder, name}, id);
    if (directory) ASSAY_TRY(read_folder(full, id, pool, tree, inodes));
  }
  return {};
}

/// Zeros are left out: a hole reads the same and costs nothing.
bool is_visible(const Page* page) {
  static const std::array<std::byte, kPageBytes> zeros{};
  return page != nullptr && page->bytes != zeros;
}

Status write_file(const File& file, const std::string& path) {
  const Descriptor out(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  const auto failed = [&] {
    return fail(system_error("cannot put a crash state on the disk", errno)
                    .at(path)
                    .hint("free some space or memory"));
  };
  if (out.get() < 0) return failed();
  constexpr std::size_t kRun = 256;
  std::array<iovec, kRun> run;
  const std::size_t count =
      std::min<std::size_t>(file.pages.size(), (file.size + kPageBytes - 1) / kPageBytes);
  for (std::size_t from = 0; from < count;) {
    if (!is_visible(file.pages[from])) {
      ++from;
      continue;
    }
    std::size_t length = 0;
    while (length < kRun && from + length < count && is_visible(file.pages[from + length])) {
      const Page* const page = file.pages[from + length];
      const std::uint64_t at = (from + length) * kPageBytes;
      run[length].iov_base = const_cast<std::byte*>(page->bytes.data());
      run[length].iov_len = std::min<std::uint64_t>(kPageBytes, file.size - at);
      ++length;
    }
    const auto wanted = static_cast<ssize_t>((length - 1) * kPageBytes + run[length - 1].iov_len);
    if (::pwritev(out.get(), run.data(), static_cast<int>(length),
                  static_cast<off_t>(from * kPageBytes)) != wanted) {
      return failed();
    }
    from += length;
  }
  if (::ftruncate(out.get(), static_cast<off_t>(file.size)) != 0) return failed();
  return {};
}

}  // namespace

Result<Tree> read_tree(const std::string& directory, PagePool& pool,
                       std::vector<std::uint64_t>& inodes) {
  Tree tree;
  struct stat status{};
  if (::stat(directory.c_str(), &status) != 0) {
    return fail(system_error("cannot look at the store's directory", errno).at(directory));
  }
  File root;
  root.directory = true;
  tree.add(std::move(root));
  inodes.assign(1, status.st_ino);
  ASSAY_TRY(read_folder(directory, kRoot, pool, tree, inodes));
  return tree;
}

Status write_tree(const Tree& tree, const std::string& directory) {
  std::map<FileId, std::string> written;
  for (const auto& [path, id] : tree.walk()) {
    const std::string full = directory + "/" + path;
    const File& file = tree.file(id);
    if (file.directory) {
      if (::mkdir(full.c_str(), 0755) != 0) {
        return fail(system_error("cannot put a crash state on the disk", errno).at(full));
      }
      continue;
    }
    const auto [first, fresh] = written.try_emplace(id, full);
    if (fresh) {
      ASSAY_TRY(write_file(file, full));
    } else if (::link(first->second.c_str(), full.c_str()) != 0) {
      return fail(system_error("cannot put a crash state on the disk", errno).at(full));
    }
  }
  return {};
}

void empty_directory(const std::string& directory) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    std::error_code ignored;
    fs::remove_all(entry.path(), ignored);
  }
}

}  // namespace assay::qualify::power
