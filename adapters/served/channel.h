// Frames over one connected socket, for both sides of the protocol.
//
// Invariant: memory grows with what has arrived, not with what a length announces.
// One thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "adapters/result.h"
#include "adapters/served/protocol.h"

namespace assay::served {

class Channel {
 public:
  explicit Channel(int socket) : socket_(socket) {}
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// A frame without its length; false: the peer has ended the connection between two frames. The
  /// view is valid until the next call. Error `bad_input`: no frame; `child`: the connection broke.
  Result<bool> receive(std::string_view& body);
  /// The frame whose body was the last that receive() gave, its length included.
  static std::string_view whole(std::string_view body) {
    return {body.data() - kLengthBytes, body.size() + kLengthBytes};
  }
  /// Sends `frames`, one or more whole ones.
  Status send(std::string_view frames);
  [[nodiscard]] int socket() const { return socket_; }

 private:
  Result<bool> fill(std::size_t wanted);

  int socket_;
  std::string buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

/// The address of a Unix socket at `path`, or with the abstract name behind a leading '@'. Makes a
/// socket and hands it with the address to bind() or connect(); returns it. Errors: the path is
/// too long; errno of the call is left in `code`.
enum class Use : std::uint8_t { listen, connect };
[[nodiscard]] Result<int> open_socket(const std::string& path, Use use, int& code);

}  // namespace assay::served
