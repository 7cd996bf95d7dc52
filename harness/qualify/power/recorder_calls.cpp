// What the handler does for each system call that the filter sends to it.
//
// Files are known by their inode: it is asked for at every call, so no table of descriptors has to
// be kept through dup(), close(), fork() and inherited descriptors. An inode belongs to the
// directory when it was there at the start or was made below it. Everything here runs in a signal
// handler: it allocates nothing and takes no lock but the log's.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "harness/qualify/power/recorder.h"

namespace assay::qualify::power::detail {
namespace {

std::uint64_t word(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}
const char* text(std::uint64_t argument) {
  return reinterpret_cast<const char*>(argument);
}
std::uint64_t here() {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(AT_FDCWD));
}

/// Holds the log's lock.
class Locked {
 public:
  Locked() { lock_log(); }
  ~Locked() { unlock_log(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
};

struct Known {
  bool ours = false;
  bool directory = false;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
};

bool has_inode(std::uint64_t inode) {
  for (std::size_t step = 0; step < kInodeSlots; ++step) {
    const std::uint64_t seen =
        log()->inodes[(inode * 0x9E3779B97F4A7C15ULL + step) % kInodeSlots].load(
            std::memory_order_relaxed);
    if (seen == inode) return true;
    if (seen == 0) return false;
  }
  return false;
}

Known known(const struct stat& status) {
  Known known;
  known.directory = S_ISDIR(status.st_mode);
  known.inode = status.st_ino;
  known.size = static_cast<std::uint64_t>(status.st_size);
  known.ours = (known.directory || S_ISREG(status.st_mode)) && status.st_dev == log()->device &&
               has_inode(status.st_ino);
  return known;
}

Known identify(std::uint64_t file) {
  struct stat status{};
  if (raw(SYS_fstat, file, word(&status)) != 0) return {};
  return known(status);
}

/// A path below the root. Static ones are used under the lock only.
struct Path {
  char name[kPathMax + 300];
  std::size_t bytes;
  bool inside;
};

void relate_to_root(Path& path) {
  const std::size_t root = log()->root_bytes;
  path.inside =
      path.bytes > root && std::memcmp(path.name, log()->root, root) == 0 && path.name[root] == '/';
  if (!path.inside) return;
  std::memmove(path.name, path.name + root + 1, path.bytes - root - 1);
  path.bytes -= root + 1;
  path.name[path.bytes] = '\0';
}

/// What the kernel calls the file behind a descriptor.
bool name_of(std::uint64_t file, Path& path) {
  char link[64];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", static_cast<int>(file));
  const long bytes = raw(SYS_readlink, word(link), word(path.name), kPathMax);
  if (bytes <= 0) return false;
  path.bytes = static_cast<std::size_t>(bytes);
  path.name[bytes] = '\0';
  return true;
}

/// The place of a name, which need not exist: its folder resolved by the kernel, then the name.
void locate(std::uint64_t folder, const char* given, Path& path) {
  path.inside = false;
  path.bytes = 0;
  std::size_t bytes = std::strlen(given);
  while (bytes > 1 && given[bytes - 1] == '/') --bytes;
  std::size_t name = bytes;
  while (name > 0 && given[name - 1] != '/') --name;
  if (bytes - name > 255 || name >= kPathMax) return;
  char* const parent = path.name;
  std::memcpy(parent, given, name);
  if (name == 0) parent[name++] = '.';
  parent[name] = '\0';
  const std::size_t last = given[0] == '/' || std::memchr(given, '/', bytes) != nullptr
                               ? static_cast<std::size_t>(name)
                               : 0;
  const long opened = raw(SYS_openat, folder, word(parent), O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
  if (opened < 0) return;
  const bool found = name_of(static_cast<std::uint64_t>(opened), path);
  raw(SYS_close, static_cast<std::uint64_t>(opened));
  if (!found) return;
  if (path.name[path.bytes - 1] != '/') path.name[path.bytes++] = '/';
  std::memcpy(path.name + path.bytes, given + last, bytes - last);
  path.bytes += bytes - last;
  path.name[path.bytes] = '\0';
  relate_to_root(path);
}

std::uint64_t inode_at(std::uint64_t folder, const char* path) {
  struct stat status{};
  const long result = raw(SYS_newfstatat, folder, word(path), word(&status), AT_SYMLINK_NOFOLLOW);
  return result == 0 ? status.st_ino : 0;
}

// ---- writes ----

struct Range {
  std::uint64_t offset;
  bool dsync;
};

/// Where a write at the file's own position lands, and whether it is durable at return.
Range position(std::uint64_t file, const Known& known, bool at_position, std::uint64_t given,
               std::uint64_t write_flags) {
  const long flags = raw(SYS_fcntl, file, F_GETFL);
  Range range{given, (flags & O_DSYNC) != 0 || (write_flags & (RWF_DSYNC | RWF_SYNC)) != 0};
  if ((flags & O_APPEND) != 0 || (write_flags & RWF_APPEND) != 0) {
    range.offset = known.size;
  } else if (at_position) {
    range.offset = static_cast<std::uint64_t>(raw(SYS_lseek, file, 0, SEEK_CUR));
  }
  return range;
}

RecordHead write_head(const Known& known, const Range& range, long bytes) {
  RecordHead head{};
  head.kind = RecordKind::write;
  head.flags = range.dsync ? kFlagDsync : 0;
  head.inode = known.inode;
  head.offset = range.offset;
  head.length = static_cast<std::uint64_t>(bytes);
  head.result = bytes;
  head.data_bytes = head.length;
  return head;
}

long pass(const Trapped& call) {
  const auto* a = call.arguments;
  return raw(call.number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

long plain_write(const Trapped& call) {
  if (!identify(call.arguments[0]).ours) return pass(call);
  const Locked locked;
  const Known file = identify(call.arguments[0]);  // the size counts, so again
  capture_mappings();
  const Range range =
      position(call.arguments[0], file, call.number == SYS_write, call.arguments[3], 0);
  const long result = pass(call);
  if (result <= 0) return result;
  std::uint64_t stack[kStackMax];
  RecordHead head = write_head(file, range, result);
  if (range.dsync) head.stack_depth = take_stack(call.caller, stack);
  append(head, stack, nullptr, nullptr, reinterpret_cast<const void*>(call.arguments[1]));
  return result;
}

long vector_write(const Trapped& call) {
  if (!identify(call.arguments[0]).ours) return pass(call);
  const Locked locked;
  const Known file = identify(call.arguments[0]);
  capture_mappings();
  const bool at_position = call.number == SYS_writev ||
                           (call.number == SYS_pwritev2 && call.arguments[3] == ~std::uint64_t{0});
  const Range range = position(call.arguments[0], file, at_position, call.arguments[3],
                               call.number == SYS_pwritev2 ? call.arguments[5] : 0);
  const long result = pass(call);
  if (result <= 0) return result;
  const auto* const pieces = reinterpret_cast<const iovec*>(call.arguments[1]);
  // A record has one piece of data; a vector becomes one record a piece.
  std::uint64_t left = static_cast<std::uint64_t>(result);
  std::uint64_t offset = range.offset;
  for (std::uint64_t index = 0; index < call.arguments[2] && left != 0; ++index) {
    const std::uint64_t bytes = std::min<std::uint64_t>(pieces[index].iov_len, left);
    if (bytes == 0) continue;
    left -= bytes;
    std::uint64_t stack[kStackMax];
    RecordHead head =
        write_head(file, {offset, range.dsync && left == 0}, static_cast<long>(bytes));
    if (range.dsync && left == 0) {
      // The last piece makes all of them durable.
      head.stack_depth = take_stack(call.caller, stack);
      head.reference = static_cast<std::uint64_t>(result);
    }
    append(head, stack, nullptr, nullptr, pieces[index].iov_base);
    offset += bytes;
  }
  return result;
}

/// copy_file_range, sendfile: what was copied is read from the source, `from_offset` on.
void note_copy(const Known& file, const Range& range, std::uint64_t source,
               std::uint64_t from_offset, std::uint64_t bytes) {
  static char buffer[64 << 10];
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t wanted = std::min<std::uint64_t>(sizeof buffer, bytes - done);
    const long got = raw(SYS_pread64, source, word(buffer), wanted, from_offset + done);
    if (got <= 0) return refuse("the store copied between files from a source that cannot be read");
    const Range part{range.offset + done, range.dsync};
    append(write_head(file, part, got), nullptr, nullptr, nullptr, buffer);
    done += static_cast<std::uint64_t>(got);
  }
}

long copy(const Trapped& call) {
  const bool sends = call.number == SYS_sendfile;
  const std::uint64_t target = sends ? call.arguments[0] : call.arguments[2];
  const std::uint64_t source = sends ? call.arguments[1] : call.arguments[0];
  if (!identify(target).ours) return pass(call);
  const Locked locked;
  const Known file = identify(target);
  capture_mappings();
  const std::uint64_t from_pointer = sends ? call.arguments[2] : call.arguments[1];
  const std::uint64_t to_pointer = sends ? 0 : call.arguments[3];
  const auto value = [](std::uint64_t pointer) {
    return pointer == 0 ? 0 : *reinterpret_cast<const std::uint64_t*>(pointer);
  };
  const std::uint64_t from = from_pointer != 0
                                 ? value(from_pointer)
                                 : static_cast<std::uint64_t>(raw(SYS_lseek, source, 0, SEEK_CUR));
  const Range range = position(target, file, to_pointer == 0, value(to_pointer), 0);
  const long result = pass(call);
  if (result <= 0) return result;
  if (call.number == SYS_splice) {
    refuse("the store spliced a pipe into a file, which the recorder cannot follow");
  } else {
    note_copy(file, range, source, from, static_cast<std::uint64_t>(result));
  }
  return result;
}

// ---- sizes ----

long resize(const Trapped& call) {
  struct stat status{};
  const long asked = call.number == SYS_truncate ? raw(SYS_stat, call.arguments[0], word(&status))
                                                 : raw(SYS_fstat, call.arguments[0], word(&status));
  const Known file = asked == 0 ? known(status) : Known{};
  if (!file.ours) return pass(call);
  const Locked locked;
  capture_mappings();
  const long result = pass(call);
  if (result != 0) return result;
  RecordHead head{};
  head.inode = file.inode;
  if (call.number == SYS_fallocate) {
    head.kind = RecordKind::allocate;
    head.reference = call.arguments[1];
    head.offset = call.arguments[2];
    head.length = call.arguments[3];
  } else {
    head.kind = RecordKind::truncate;
    head.length = call.arguments[1];
  }
  append(head, nullptr, nullptr, nullptr, nullptr);
  return result;
}

// ---- names ----

Path path_a;
Path path_b;

long open_file(const Trapped& call) {
  std::uint64_t flags = call.number == SYS_open ? call.arguments[1] : call.arguments[2];
  if (call.number == SYS_creat) flags = O_CREAT | O_TRUNC | O_WRONLY;
  if (call.number == SYS_openat2)
    flags = *reinterpret_cast<const std::uint64_t*>(call.arguments[2]);
  if ((flags & (O_CREAT | O_TRUNC)) == 0 && (flags & O_TMPFILE) != O_TMPFILE) return pass(call);
  const Locked locked;
  capture_mappings();
  const long result = pass(call);
  if (result < 0) return result;
  const auto file = static_cast<std::uint64_t>(result);
  struct stat status{};
  if (raw(SYS_fstat, file, word(&status)) != 0 || !S_ISREG(status.st_mode)) return result;
  if (!name_of(file, path_a)) return result;
  relate_to_root(path_a);
  if (!path_a.inside) return result;
  if ((flags & O_TMPFILE) == O_TMPFILE) {
    refuse("the store uses a file without a name (O_TMPFILE), which the recorder cannot follow");
  }
  if (status.st_dev != log()->device) refuse("another file system is mounted in the directory");
  add_inode(*log(), status.st_ino);
  RecordHead head{};
  head.kind = RecordKind::open;
  head.flags = (flags & O_TRUNC) != 0 ? kFlagTruncate : 0;
  head.inode = status.st_ino;
  head.path_a_bytes = static_cast<std::uint32_t>(path_a.bytes);
  append(head, nullptr, path_a.name, nullptr, nullptr);
  return result;
}

RecordHead name_head(RecordKind kind, std::uint64_t inode, bool second) {
  RecordHead head{};
  head.kind = kind;
  head.inode = inode;
  head.path_a_bytes = static_cast<std::uint32_t>(path_a.bytes);
  if (second) head.path_b_bytes = static_cast<std::uint32_t>(path_b.bytes);
  return head;
}

struct Names {
  std::uint64_t folder_a, a, folder_b, b, flags;
};

/// rename and link, in their forms with and without folders.
long two_names(const Trapped& call, RecordKind kind, const Names& names) {
  const Locked locked;
  capture_mappings();
  locate(names.folder_a, text(names.a), path_a);
  locate(names.folder_b, text(names.b), path_b);
  const std::uint64_t inode = inode_at(names.folder_a, text(names.a));
  const long result = pass(call);
  if (result != 0 || (!path_a.inside && !path_b.inside)) return result;
  if (path_a.inside != path_b.inside) {
    refuse(
        kind == RecordKind::rename
            ? "a file was moved into or out of the directory, which the recorder cannot follow"
            : "a file was linked into or out of the directory, which the recorder cannot follow");
    return result;
  }
  RecordHead head = name_head(kind, inode, true);
  head.reference = names.flags;
  append(head, nullptr, path_a.name, path_b.name, nullptr);
  return result;
}

long remove_name(const Trapped& call, RecordKind kind, std::uint64_t folder, std::uint64_t name) {
  const Locked locked;
  capture_mappings();
  locate(folder, text(name), path_a);
  const std::uint64_t inode = path_a.inside ? inode_at(folder, text(name)) : 0;
  const long result = pass(call);
  if (result != 0 || !path_a.inside) return result;
  append(name_head(kind, inode, false), nullptr, path_a.name, nullptr, nullptr);
  return result;
}

long make_folder(const Trapped& call, std::uint64_t folder, std::uint64_t name) {
  const Locked locked;
  capture_mappings();
  const long result = pass(call);
  if (result != 0) return result;
  locate(folder, text(name), path_a);
  if (!path_a.inside) return result;
  const std::uint64_t inode = inode_at(folder, text(name));
  add_inode(*log(), inode);
  append(name_head(RecordKind::make_directory, inode, false), nullptr, path_a.name, nullptr,
         nullptr);
  return result;
}

/// Symbolic links and device files.
long make_other(const Trapped& call, std::uint64_t folder, std::uint64_t name) {
  const Locked locked;
  const long result = pass(call);
  locate(folder, text(name), path_a);
  if (result == 0 && path_a.inside) {
    refuse("the store made a symbolic link or a device file, which the recorder cannot follow");
  }
  return result;
}

// ---- syncs ----

/// Counts down to the one sync that is to fail.
bool has_to_fail() {
  const Locked locked;
  std::uint64_t left = log()->fail_sync.load();
  if (left == 0) return false;
  log()->fail_sync.store(left - 1);
  return left == 1;
}

long sync_files(const Trapped& call) {
  RecordHead head{};
  head.kind = RecordKind::sync_called;
  if (call.number == SYS_sync || call.number == SYS_syncfs) {
    head.flags = kFlagEverything;
  } else if (call.number == SYS_msync) {
    if ((call.arguments[2] & MS_SYNC) == 0) return pass(call);
    const Locked locked;
    head.inode = mapped_inode(call.arguments[0], head.offset);
    head.length = call.arguments[1];
    head.flags = kFlagDataOnly;
    if (head.inode == 0) return pass(call);
  } else {
    const Known file = identify(call.arguments[0]);
    if (!file.ours) return pass(call);
    head.inode = file.inode;
    if (call.number == SYS_fdatasync) head.flags = kFlagDataOnly;
  }
  std::uint64_t stack[kStackMax];
  head.stack_depth = take_stack(call.caller, stack);
  RecordHead returned{};
  returned.kind = RecordKind::sync_returned;
  {
    const Locked locked;
    capture_mappings();
    returned.reference = append(head, stack, nullptr, nullptr, nullptr);
  }
  const long result = has_to_fail() ? -EIO : pass(call);
  returned.result = result;
  const Locked locked;
  append(returned, nullptr, nullptr, nullptr, nullptr);
  return result;
}

long flush_range(const Trapped& call) {
  const Known file = identify(call.arguments[0]);
  if (!file.ours) return pass(call);
  const Locked locked;
  capture_mappings();
  RecordHead head{};
  head.kind = RecordKind::range_flush;
  head.inode = file.inode;
  head.offset = call.arguments[1];
  head.length = call.arguments[2];
  append(head, nullptr, nullptr, nullptr, nullptr);
  return pass(call);
}

long map_shared(const Trapped& call) {
  const auto file = static_cast<std::int32_t>(call.arguments[4]);
  if (file < 0 || (call.arguments[3] & MAP_ANONYMOUS) != 0) return pass(call);
  const Known mapped = identify(static_cast<std::uint64_t>(file));
  if (!mapped.ours || mapped.directory) return pass(call);
  const Locked locked;
  capture_mappings();
  return map_file(call, mapped.inode);
}

long turn_down(const Trapped& call) {
  const Locked locked;
  if (call.number != SYS_ioctl) {
    note("asynchronous I/O (io_uring or io_setup) was turned down while recording");
    return -ENOSYS;
  }
  if (!identify(call.arguments[0]).ours) return pass(call);
  note("sharing blocks between files (FICLONE) was turned down while recording");
  return -EOPNOTSUPP;
}

long end(const Trapped& call) {
  {
    const Locked locked;
    capture_mappings();
  }
  return pass(call);
}

}  // namespace

long handle(const Trapped& call) {
  const auto* a = call.arguments;
  switch (call.number) {
    case SYS_write:
    case SYS_pwrite64:
      return plain_write(call);
    case SYS_writev:
    case SYS_pwritev:
    case SYS_pwritev2:
      return vector_write(call);
    case SYS_sendfile:
    case SYS_splice:
    case SYS_copy_file_range:
      return copy(call);
    case SYS_ftruncate:
    case SYS_truncate:
    case SYS_fallocate:
      return resize(call);
    case SYS_open:
    case SYS_openat:
    case SYS_openat2:
    case SYS_creat:
      return open_file(call);
    case SYS_rename:
      return two_names(call, RecordKind::rename, {here(), a[0], here(), a[1], 0});
    case SYS_renameat:
      return two_names(call, RecordKind::rename, {a[0], a[1], a[2], a[3], 0});
    case SYS_renameat2:
      return two_names(call, RecordKind::rename, {a[0], a[1], a[2], a[3], a[4]});
    case SYS_link:
      return two_names(call, RecordKind::link, {here(), a[0], here(), a[1], 0});
    case SYS_linkat:
      return two_names(call, RecordKind::link, {a[0], a[1], a[2], a[3], 0});
    case SYS_unlink:
      return remove_name(call, RecordKind::unlink, here(), a[0]);
    case SYS_rmdir:
      return remove_name(call, RecordKind::remove_directory, here(), a[0]);
    case SYS_unlinkat:
      return remove_name(
          call, (a[2] & AT_REMOVEDIR) != 0 ? RecordKind::remove_directory : RecordKind::unlink,
          a[0], a[1]);
    case SYS_mkdir:
      return make_folder(call, here(), a[0]);
    case SYS_mkdirat:
      return make_folder(call, a[0], a[1]);
    case SYS_symlink:
      return make_other(call, here(), a[1]);
    case SYS_symlinkat:
      return make_other(call, a[1], a[2]);
    case SYS_mknod:
      return make_other(call, here(), a[0]);
    case SYS_mknodat:
      return make_other(call, a[0], a[1]);
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_sync:
    case SYS_syncfs:
    case SYS_msync:
      return sync_files(call);
    case SYS_sync_file_range:
      return flush_range(call);
    case SYS_mmap:
      return map_shared(call);
    case SYS_munmap:
    case SYS_mremap:
    case SYS_mprotect: {
      const Locked locked;
      capture_mappings();
      return change_mapping(call);
    }
    case SYS_io_uring_setup:
    case SYS_io_setup:
    case SYS_ioctl:
      return turn_down(call);
    case SYS_exit_group:
      return end(call);
    default:
      return pass(call);
  }
}

}  // namespace assay::qualify::power::detail
