#include "workloads/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace assay {

Result<std::FILE*> open_regular_file(const std::string& path) {
  const auto refuse = [](int reason) {
    return fail(ErrorKind::bad_input,
                "cannot read the file: " + std::generic_category().message(reason));
  };
  // Not blocking: the opening of a pipe waits for a writer.
  const int opened = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (opened < 0) return refuse(errno);
  struct stat status{};
  std::FILE* file = nullptr;
  if (::fstat(opened, &status) == 0 && S_ISREG(status.st_mode)) file = ::fdopen(opened, "rb");
  if (file != nullptr) return file;
  ::close(opened);
  if (S_ISDIR(status.st_mode)) {
    return fail(ErrorKind::bad_input, "this is a directory, not a file");
  }
  return fail(ErrorKind::bad_input, "this is no regular file (a pipe or a device)");
}

}  // namespace assay
