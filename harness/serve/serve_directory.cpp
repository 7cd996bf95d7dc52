#include "harness/serve/serve_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <utility>

#include "harness/ledger/durable_file.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMark = "assay-served.mark";

std::string mark_of(const std::string& store) {
  return fmt::format("assay served directory\nstore {}\n", store);
}

/// A server that was killed a moment ago may still hold it.
Result<int> locked(const std::string& directory) {
  const int handle = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0)
    return fail(system_error("cannot use the directory to serve", errno).at(directory));
  constexpr int kTries = 40;
  constexpr int kWaitMs = 50;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    if (::flock(handle, LOCK_EX | LOCK_NB) == 0) return handle;
    if (errno != EWOULDBLOCK && errno != EINTR) break;
    ::poll(nullptr, 0, kWaitMs);
  }
  const int code = errno;
  ::close(handle);
  if (code == EWOULDBLOCK) {
    return fail(Error(ErrorKind::bad_input, "another server has this directory")
                    .at(directory)
                    .hint("stop it, or give --root another one"));
  }
  return fail(system_error("cannot lock the directory to serve", code).at(directory));
}

Status require_mark(const fs::path& directory, const std::string& store) {
  std::ifstream file(directory / kMark, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file && text == mark_of(store)) return {};
  return fail(Error(ErrorKind::bad_input,
                    fmt::format("the directory carries no mark of a served store {}", store))
                  .at(directory.string())
                  .hint("it is not touched: give --root another directory"));
}

}  // namespace

Result<ServeDirectory> ServeDirectory::below(const std::string& root, const std::string& store) {
  std::error_code code;
  if (!fs::is_directory(root, code)) {
    return fail(Error(ErrorKind::bad_input, "no such directory to serve a store in")
                    .at(root)
                    .hint("make it first"));
  }
  const fs::path own =
      fs::absolute(root) / fmt::format("assay-served-{}", fs::path(store).stem().string());
  if (::mkdir(own.c_str(), 0700) == 0) {
    // The mark comes last: what was cut short before it has a name of ours but is not taken for
    // ours, and the message says what to do.
    if (!fs::create_directory(own / "data", code)) {
      return fail(system_error("cannot make a directory to serve", code.value()).at(own.string()));
    }
    ASSAY_TRY(write_file_durably((own / kMark).string(), mark_of(store)));
  } else if (errno != EEXIST) {
    return fail(system_error("cannot make a directory to serve", errno).at(own.string()));
  }
  ASSAY_TRY(require_mark(own, store));
  return given((own / "data").string());
}

Result<ServeDirectory> ServeDirectory::given(const std::string& directory) {
  const Result<int> lock = locked(directory);
  if (!lock) return std::unexpected(lock.error());
  return ServeDirectory(directory, *lock);
}

ServeDirectory::ServeDirectory(ServeDirectory&& other) noexcept
    : data_(std::move(other.data_)), lock_(std::exchange(other.lock_, -1)) {}

ServeDirectory::~ServeDirectory() {
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace assay
