#include "adapters/served/channel.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace assay::served {

Channel::~Channel() {
  ::close(socket_);
}

Result<bool> Channel::fill(std::size_t wanted) {
  constexpr std::size_t kStepBytes = std::size_t{256} << 10;
  while (end_ - begin_ < wanted) {
    if (begin_ != 0) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (buffer_.size() - end_ < kStepBytes / 4) buffer_.resize(end_ + kStepBytes);
    const ssize_t got = ::recv(socket_, buffer_.data() + end_, buffer_.size() - end_, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno != ECONNRESET) {
      return fail(ErrorKind::child, system_error("the connection broke", errno).what());
    }
    if (got <= 0) {
      if (end_ == begin_) return false;
      return fail(ErrorKind::child, "the connection ended in the middle of a frame");
    }
    end_ += static_cast<std::size_t>(got);
  }
  return true;
}

Result<bool> Channel::receive(std::string_view& body) {
  const Result<bool> more = fill(kLengthBytes);
  if (!more || !*more) return more;
  const auto length = decode_length(std::string_view(buffer_).substr(begin_, kLengthBytes));
  if (!length) return std::unexpected(length.error());
  const Result<bool> whole = fill(kLengthBytes + *length);
  if (!whole) return whole;
  body = std::string_view(buffer_).substr(begin_ + kLengthBytes, *length);
  begin_ += kLengthBytes + *length;
  return true;
}

Status Channel::send(std::string_view frames) {
  while (!frames.empty()) {
    const ssize_t sent = ::send(socket_, frames.data(), frames.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return fail(ErrorKind::child, system_error("the connection broke", errno).what());
    frames.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<int> open_socket(const std::string& path, Use use, int& code) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() < 2 || path.size() >= sizeof(address.sun_path)) {
    return fail(Error(ErrorKind::bad_input,
                      fmt::format("a socket's path of {} bytes; the system takes 2 to {}",
                                  path.size(), sizeof(address.sun_path) - 1))
                    .at(path)
                    .hint("use a shorter path, or @name, which is no file"));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  std::size_t bytes = offsetof(sockaddr_un, sun_path) + path.size();
  if (path.front() == '@') {
    address.sun_path[0] = '\0';
  } else {
    ++bytes;
  }
  const int made = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made < 0) return fail(system_error("cannot make a socket", code = errno));
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  const auto length = static_cast<socklen_t>(bytes);
  const int outcome =
      use == Use::listen ? ::bind(made, generic, length) : ::connect(made, generic, length);
  if (outcome != 0) {
    code = errno;
    ::close(made);
    return fail(
        system_error(use == Use::listen ? "cannot listen" : "cannot connect", code).at(path));
  }
  return made;
}

}  // namespace assay::served
