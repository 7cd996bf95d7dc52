#include "adapters/served/spawned_client.h"

#include <sys/wait.h>

#include <fmt/format.h>

#include <utility>

#include "adapters/served/child.h"
#include "adapters/served/client.h"

namespace assay::served {

template <class Command>
auto SpawnedClient::run(Command&& command) -> decltype(command(std::declval<Session&>())) {
  const Result<Child> child = start_child(program_, {socket_}, ChildEnd::input);
  if (!child) return std::unexpected(child.error());
  auto done = [&]() -> decltype(command(std::declval<Session&>())) {
    const Result<std::unique_ptr<Client>> client = Client::over(child->socket, socket_);
    if (!client) return std::unexpected(client.error());
    return command(**client);
  }();  // the connection is closed here, which ends the child
  const int status = reap_child(child->pid);
  if (done && status != 0) {
    return fail(Error(ErrorKind::child,
                      fmt::format("a client process ended with status {}",
                                  WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)))
                    .at(program_));
  }
  return done;
}

Result<bool> SpawnedClient::get(std::string_view key, std::string_view& value) {
  const Result<bool> found = run([&](Session& client) -> Result<bool> {
    std::string_view seen;
    Result<bool> there = client.get(key, seen);
    if (there && *there) value_ = seen;
    return there;
  });
  if (found && *found) value = value_;
  return found;
}

Status SpawnedClient::put(std::string_view key, std::string_view value) {
  return run([&](Session& client) { return client.put(key, value); });
}

Status SpawnedClient::erase(std::string_view key) {
  return run([&](Session& client) { return client.erase(key); });
}

Status SpawnedClient::apply(std::span<const Mutation> mutations) {
  return run([&](Session& client) { return client.apply(mutations); });
}

Status SpawnedClient::rollback(std::span<const Mutation> mutations) {
  return run([&](Session& client) { return client.rollback(mutations); });
}

Result<std::uint64_t> SpawnedClient::scan(const ScanRange& range, ScanSink& sink) {
  return run([&](Session& client) { return client.scan(range, sink); });
}

}  // namespace assay::served
