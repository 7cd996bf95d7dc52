// assay_client SOCKET: one client of `assay serve` as a process of its own. What arrives on
// standard input, a socket, is sent to the server frame by frame, and each answer comes back there.
// Started by SpawnedClient, not by people. Status 0 when its input has ended, 1 on an error.
#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "adapters/served/channel.h"

namespace {

using assay::Result;
using assay::Status;
using assay::served::Channel;

/// One frame from one to the other; false: the sender has ended.
Result<bool> relay(Channel& from, Channel& to) {
  std::string_view body;
  Result<bool> got = from.receive(body);
  if (!got || !*got) return got;
  ASSAY_TRY(to.send(Channel::whole(body)));
  return true;
}

Status run(const char* socket) {
  int code = 0;
  const Result<int> opened = assay::served::open_socket(socket, assay::served::Use::connect, code);
  if (!opened) return std::unexpected(opened.error());
  Channel server(*opened);
  Channel asker(STDIN_FILENO);
  for (;;) {
    const Result<bool> answered = relay(server, asker);
    if (!answered) return std::unexpected(answered.error());
    if (!*answered) return {};
    const Result<bool> asked = relay(asker, server);
    if (!asked) return std::unexpected(asked.error());
    if (!*asked) return {};
  }
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) {
    std::fputs("usage: assay_client SOCKET   (started by assay)\n", stderr);
    return 2;
  }
  const Status status = run(words[1]);
  if (status) return 0;
  std::fprintf(stderr, "assay_client: %s\n", status.error().message().c_str());
  return 1;
}
