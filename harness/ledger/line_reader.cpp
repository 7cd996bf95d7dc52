#include "harness/ledger/line_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <fmt/format.h>

namespace assay {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 18;

}  // namespace

Result<LineReader> LineReader::open(const std::string& path) {
  // Not blocking: the opening of a pipe waits for a writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) {
    return fail(Error(ErrorKind::bad_input, "there is no ledger here").at(path));
  }
  if (fd < 0) return fail(system_error("cannot open the file", errno).at(path));
  LineReader reader(fd, path);
  struct stat status{};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    return fail(Error(ErrorKind::bad_input, "this is no regular file").at(path));
  }
  return reader;
}

LineReader::LineReader(LineReader&& other) noexcept : path_(std::move(other.path_)) {
  fd_ = std::exchange(other.fd_, -1);
  buffer_ = std::move(other.buffer_);
  begin_ = other.begin_;
  scanned_ = other.scanned_;
  number_ = other.number_;
  offset_ = other.offset_;
  at_end_ = other.at_end_;
}

LineReader& LineReader::operator=(LineReader&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  std::swap(buffer_, other.buffer_);
  std::swap(begin_, other.begin_);
  std::swap(scanned_, other.scanned_);
  std::swap(number_, other.number_);
  std::swap(offset_, other.offset_);
  std::swap(at_end_, other.at_end_);
  return *this;
}

LineReader::~LineReader() {
  if (fd_ >= 0) ::close(fd_);
}

/// Reads the next piece behind what is left of the buffer; false at the end of the file.
Result<bool> LineReader::fill() {
  buffer_.erase(0, begin_);
  scanned_ -= begin_;
  begin_ = 0;
  if (buffer_.size() > kLongestLineBytes) {
    return fail(Error(ErrorKind::ledger,
                      fmt::format("the line is longer than {} MiB", kLongestLineBytes >> 20))
                    .at(fmt::format("{}:{}", path_, number_ + 1))
                    .hint("is it a ledger?"));
  }
  const std::size_t had = buffer_.size();
  buffer_.resize(had + kPieceBytes);
  for (;;) {
    const ssize_t size = ::read(fd_, buffer_.data() + had, kPieceBytes);
    if (size < 0 && errno == EINTR) continue;
    buffer_.resize(had + static_cast<std::size_t>(size < 0 ? 0 : size));
    if (size < 0) return fail(system_error("cannot read the file", errno).at(path_));
    return size > 0;
  }
}

Result<std::optional<LineReader::Line>> LineReader::next() {
  for (;;) {
    const std::size_t feed = buffer_.find('\n', scanned_);
    if (feed != std::string::npos || (at_end_ && begin_ < buffer_.size())) {
      const bool whole = feed != std::string::npos;
      const std::size_t end = whole ? feed : buffer_.size();
      Line line{std::string_view(buffer_).substr(begin_, end - begin_), ++number_, offset_, whole};
      offset_ += end - begin_ + (whole ? 1 : 0);
      begin_ = scanned_ = end + (whole ? 1 : 0);
      return line;
    }
    if (at_end_) return std::nullopt;
    scanned_ = buffer_.size();
    const Result<bool> more = fill();
    if (!more) return fail(more.error());
    at_end_ = !*more;
  }
}

}  // namespace assay
