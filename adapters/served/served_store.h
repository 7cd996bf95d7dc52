// Any store through a daemon: `served-STORE` starts `assay serve` as a child process and talks to
// it over a Unix socket, one connection a session. So every workload, experiment and check of a
// store can have an arm that goes through a process boundary.
//
// It declares what the store behind it declares, has its settings and those of its own (`of`,
// `command`, `client`), adds the server's latencies to the counters (daemon_put_mean_ns and so on),
// and an acknowledgement is sent only after the store's own: the durability class is that of the
// store behind it. The child ends when the process that opened the store ends, in whatever way.
#pragma once

#include <string_view>

#include "adapters/store.h"

namespace assay {

inline constexpr std::string_view kServedPrefix = "served-";

/// The driver of `behind` through a daemon; `of` is its name, or the path of a plug-in. There is
/// one for every `of`, and it stays. Any thread.
[[nodiscard]] const Driver& served_driver(std::string_view of, const Driver& behind);

/// True for such a driver: what its store uses of CPU, memory and files is another process's.
[[nodiscard]] bool is_served(const Driver& driver);

}  // namespace assay
