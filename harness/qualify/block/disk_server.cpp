#include "harness/qualify/block/disk_server.h"

#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>

#include <fcntl.h>
#include <linux/falloc.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "harness/qualify/block/overlay_image.h"

namespace assay::qualify::block {
namespace {

constexpr fuse_ino_t kFile = 2;
constexpr double kForever = 1e9;

enum Verb : std::uint32_t { kBase = 1, kRecord, kEndRecord, kBecome };

struct Request {
  std::uint32_t verb = 0;
  std::uint32_t durable_end = 0;
  std::uint32_t pieces = 0;
};

bool read_all(int fd, void* into, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t got = ::read(fd, static_cast<char*>(into) + done, bytes - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

bool write_all(int fd, const void* from, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t put =
        ::send(fd, static_cast<const char*>(from) + done, bytes - done, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    done += static_cast<std::size_t>(put);
  }
  return true;
}

class DiskServer {
 public:
  DiskServer(SharedDisk& disk, const DiskFault& fault) : disk_(disk), fault_(fault), image_(disk) {}

  static DiskServer& of(fuse_req_t request) {
    return *static_cast<DiskServer*>(fuse_req_userdata(request));
  }

  void attributes(fuse_ino_t inode, struct stat& info) const {
    info = {};
    info.st_ino = inode;
    info.st_nlink = 1;
    info.st_mode = inode == FUSE_ROOT_ID ? S_IFDIR | 0700 : S_IFREG | 0600;
    info.st_size = inode == kFile ? static_cast<off_t>(disk_.image_bytes()) : 0;
    info.st_blksize = OverlayImage::kBlockBytes;
    info.st_blocks = info.st_size / 512;
  }

  /// How much of a request lies on the disk.
  [[nodiscard]] std::uint64_t within(off_t offset, std::uint64_t bytes) const {
    const auto from = static_cast<std::uint64_t>(offset);
    return offset < 0 || from >= disk_.image_bytes() ? 0
                                                     : std::min(bytes, disk_.image_bytes() - from);
  }

  void read(fuse_req_t request, std::size_t size, off_t offset) {
    buffer_.resize(within(offset, size));
    const auto from = static_cast<std::uint64_t>(offset);
    if (phase_ == kBase)
      std::memcpy(buffer_.data(), disk_.base() + from, buffer_.size());
    else
      image_.read(from, buffer_.size(), buffer_.data());
    fuse_reply_buf(request, buffer_.data(), buffer_.size());
  }

  /// An errno.
  int write(std::uint64_t offset, std::uint64_t bytes, const char* data) {
    if (phase_ == kBase) {
      if (data == nullptr)
        std::memset(disk_.base() + offset, 0, bytes);
      else
        std::memcpy(disk_.base() + offset, data, bytes);
      return 0;
    }
    if (phase_ == kRecord &&
        !disk_.append(data == nullptr ? LogEntry::Kind::zero : LogEntry::Kind::write, offset, bytes,
                      data))
      return EIO;
    if (data == nullptr)
      image_.zero(offset, bytes);
    else
      image_.write(offset, bytes, data);
    return 0;
  }

  int flush() {
    if (phase_ != kRecord || fault_.forgets_flushes) return 0;
    return disk_.append(LogEntry::Kind::flush, 0, 0, nullptr) ? 0 : EIO;
  }

  /// Does what the neighbour asks for. False at the end of the conversation.
  bool answer(int control) {
    Request request;
    if (!read_all(control, &request, sizeof request)) return false;
    DiskState state;
    state.durable_end = request.durable_end;
    state.kept.resize(request.pieces);
    if (!read_all(control, state.kept.data(), state.kept.size() * sizeof(Piece))) return false;
    std::int32_t code = 0;
    switch (request.verb) {
      case kBase:
        image_.reset();
        disk_.wipe();
        phase_ = kBase;
        break;
      case kRecord:
        phase_ = kRecord;
        break;
      case kEndRecord:
        code = replay_matches() ? 0 : EBADMSG;
        phase_ = kBecome;
        break;
      case kBecome:
        image_.become(state);
        phase_ = kBecome;
        break;
      default:
        code = EINVAL;
    }
    return write_all(control, &code, sizeof code);
  }

 private:
  [[nodiscard]] bool replay_matches() const {
    DiskState everything;
    everything.durable_end = disk_.length();
    OverlayImage again(disk_);
    again.become(everything);
    return again.same_as(image_);
  }

  SharedDisk& disk_;
  DiskFault fault_;
  OverlayImage image_;
  std::uint32_t phase_ = kBase;
  std::vector<char> buffer_;
};

void on_lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  if (parent != FUSE_ROOT_ID || std::string_view(name) != kDiskName) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  fuse_entry_param entry{};
  entry.ino = kFile;
  entry.attr_timeout = kForever;
  entry.entry_timeout = kForever;
  DiskServer::of(request).attributes(kFile, entry.attr);
  fuse_reply_entry(request, &entry);
}

void on_getattr(fuse_req_t request, fuse_ino_t inode, fuse_file_info* /*file*/) {
  struct stat info{};
  DiskServer::of(request).attributes(inode, info);
  fuse_reply_attr(request, &info, kForever);
}

void on_open(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file) {
  if (inode != kFile) {
    fuse_reply_err(request, EISDIR);
    return;
  }
  // The kernel must keep no copy: the contents change between two states.
  file->direct_io = 1;
  fuse_reply_open(request, file);
}

void on_read(fuse_req_t request, fuse_ino_t /*inode*/, std::size_t size, off_t offset,
             fuse_file_info* /*file*/) {
  DiskServer::of(request).read(request, size, offset);
}

void on_write(fuse_req_t request, fuse_ino_t /*inode*/, const char* data, std::size_t size,
              off_t offset, fuse_file_info* /*file*/) {
  DiskServer& server = DiskServer::of(request);
  const std::uint64_t bytes = server.within(offset, size);
  const int code =
      bytes < size ? ENOSPC : server.write(static_cast<std::uint64_t>(offset), bytes, data);
  if (code != 0)
    fuse_reply_err(request, code);
  else
    fuse_reply_write(request, bytes);
}

void on_fsync(fuse_req_t request, fuse_ino_t /*inode*/, int /*data_only*/,
              fuse_file_info* /*file*/) {
  fuse_reply_err(request, DiskServer::of(request).flush());
}

void on_fallocate(fuse_req_t request, fuse_ino_t /*inode*/, int mode, off_t offset, off_t length,
                  fuse_file_info* /*file*/) {
  if ((mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) == 0) {
    fuse_reply_err(request, EOPNOTSUPP);
    return;
  }
  DiskServer& server = DiskServer::of(request);
  const std::uint64_t bytes =
      length <= 0 ? 0 : server.within(offset, static_cast<std::uint64_t>(length));
  fuse_reply_err(request,
                 bytes == 0 ? 0 : server.write(static_cast<std::uint64_t>(offset), bytes, nullptr));
}

void on_statfs(fuse_req_t request, fuse_ino_t /*inode*/) {
  struct statvfs info{};
  info.f_bsize = OverlayImage::kBlockBytes;
  info.f_frsize = OverlayImage::kBlockBytes;
  info.f_namemax = 255;
  fuse_reply_statfs(request, &info);
}

fuse_lowlevel_ops operations() {
  fuse_lowlevel_ops all{};
  all.lookup = on_lookup;
  all.getattr = on_getattr;
  all.open = on_open;
  all.read = on_read;
  all.write = on_write;
  all.fsync = on_fsync;
  all.fallocate = on_fallocate;
  all.statfs = on_statfs;
  return all;
}

void serve(fuse_session* session, DiskServer& server, int control) {
  fuse_buf buffer{};
  std::array<pollfd, 2> waiting{{{control, POLLIN, 0}, {fuse_session_fd(session), POLLIN, 0}}};
  while (fuse_session_exited(session) == 0) {
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) break;
    if (waiting[1].revents != 0) {
      const int got = fuse_session_receive_buf(session, &buffer);
      if (got == -EINTR || got == -EAGAIN) continue;
      if (got <= 0) break;
      fuse_session_process_buf(session, &buffer);
    }
    // What the neighbour asks for comes after all requests that it has waited for.
    if (waiting[0].revents != 0 && !server.answer(control)) break;
  }
  std::free(buffer.mem);
}

}  // namespace

void serve_disk(SharedDisk& disk, const std::string& directory, int control,
                const DiskFault& fault) {
  // Memory that this process asks for must not wait for writes to the disk that it serves.
#ifdef PR_SET_IO_FLUSHER
  ::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
#endif
  DiskServer server(disk, fault);
  const fuse_lowlevel_ops all = operations();
  std::string program = "assay";
  std::string option = "-o";
  std::string name = "fsname=assay-disk,subtype=assay";
  std::array<char*, 3> words = {program.data(), option.data(), name.data()};
  fuse_args arguments = FUSE_ARGS_INIT(static_cast<int>(words.size()), words.data());
  fuse_session* const session = fuse_session_new(&arguments, &all, sizeof all, &server);
  errno = 0;
  const bool mounted = session != nullptr && fuse_session_mount(session, directory.c_str()) == 0;
  const std::int32_t code = mounted ? 0 : errno == 0 ? ENODEV : errno;
  if (write_all(control, &code, sizeof code) && mounted) serve(session, server, control);
  if (mounted) fuse_session_unmount(session);
  if (session != nullptr) fuse_session_destroy(session);
  fuse_opt_free_args(&arguments);
}

Status DiskControl::wait_until_ready() const {
  std::int32_t code = 0;
  if (!read_all(fd_, &code, sizeof code))
    return fail(ErrorKind::environment, "the process that serves the disk ended");
  if (code != 0) return fail(system_error("cannot mount the disk (FUSE)", code));
  return {};
}

Status DiskControl::ask(std::uint32_t verb, const DiskState* state, const char* what) const {
  Request request{.verb = verb, .durable_end = 0, .pieces = 0};
  if (state != nullptr) {
    request.durable_end = state->durable_end;
    request.pieces = static_cast<std::uint32_t>(state->kept.size());
  }
  std::int32_t code = 0;
  if (!write_all(fd_, &request, sizeof request) ||
      (state != nullptr &&
       !write_all(fd_, state->kept.data(), state->kept.size() * sizeof(Piece))) ||
      !read_all(fd_, &code, sizeof code))
    return fail(ErrorKind::child, std::string("the process that serves the disk died: ") + what);
  if (code != 0) return fail(ErrorKind::internal, what);
  return {};
}

Status DiskControl::begin_base() const {
  return ask(kBase, nullptr, "the disk cannot be emptied");
}

Status DiskControl::begin_record() const {
  return ask(kRecord, nullptr, "the disk cannot begin to record");
}

Status DiskControl::end_record() const {
  return ask(kEndRecord, nullptr, "base and log together are not what the disk holds");
}

Status DiskControl::become(const DiskState& state) const {
  return ask(kBecome, &state, "the disk cannot become what a cut left");
}

}  // namespace assay::qualify::block
