// Hands an open descriptor to another process over a socket, as the listener of a filter of calls
// goes from the fork that installed it to its server.
// Stateless; any thread.
#pragma once

namespace assay::qualify {

/// False when the kernel refuses; errno says why.
[[nodiscard]] bool send_descriptor(int to, int fd);
/// The descriptor that the other side sent; -1 when it is gone.
[[nodiscard]] int receive_descriptor(int from);

}  // namespace assay::qualify
