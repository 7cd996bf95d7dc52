#include "harness/ledger/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

namespace assay {

Result<DirectoryLock> DirectoryLock::take(const std::string& directory) {
  const std::string path = directory + "/assay.lock";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return fail(system_error("cannot open the lock of a directory", errno).at(path));
  DirectoryLock lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) return fail(system_error("cannot lock a directory", errno).at(path));
  return fail(Error(ErrorKind::environment, "another assay is at work in this directory")
                  .at(directory)
                  .hint("wait until it has ended, or give another --out"));
}

DirectoryLock::~DirectoryLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace assay
