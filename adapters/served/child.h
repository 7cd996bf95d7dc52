// A child process that talks to us in frames over a socket pair.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "adapters/result.h"

namespace assay::served {

struct Child {
  pid_t pid = -1;
  int socket = -1;  ///< our end
};

/// Which of the child's standard streams is its end; standard input is /dev/null otherwise.
enum class ChildEnd : std::uint8_t { output, input };

[[nodiscard]] Result<Child> start_child(const std::string& program,
                                        std::vector<std::string> arguments, ChildEnd end);
/// Waits for its end; the status as waitpid() has it.
int reap_child(pid_t pid);

}  // namespace assay::served
