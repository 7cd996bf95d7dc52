#include "harness/measure/kernel_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

namespace assay {

Result<std::string> read_kernel_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return fail(system_error("cannot read a file of the kernel", errno).at(path));
  std::string text;
  char buffer[8192];
  for (;;) {
    const ssize_t got = ::read(file, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int code = errno;
      ::close(file);
      return fail(system_error("cannot read a file of the kernel", code).at(path));
    }
    if (got == 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(file);
  return text;
}

std::string read_kernel_line(const std::string& path) {
  const Result<std::string> text = read_kernel_file(path);
  return text ? text->substr(0, text->find('\n')) : std::string();
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return lines;
}

std::vector<std::uint64_t> numbers_of(std::string_view line) {
  std::vector<std::uint64_t> numbers;
  for (;;) {
    const std::size_t start = line.find_first_not_of(" \t\n");
    if (start == line.npos) return numbers;
    line.remove_prefix(start);
    const std::size_t end = line.find_first_of(" \t\n");
    const std::string_view word = line.substr(0, end);
    std::uint64_t number = 0;
    const auto [stop, code] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (code != std::errc() || stop != word.data() + word.size()) return numbers;
    numbers.push_back(number);
    line.remove_prefix(word.size());
  }
}

Result<std::uint64_t> kernel_number(std::string_view text, std::string_view name,
                                    const std::string& path) {
  for (std::string_view line : lines_of(text)) {
    if (!line.starts_with(name)) continue;
    line.remove_prefix(name.size());
    if (line.starts_with(':')) line.remove_prefix(1);
    const std::size_t start = line.find_first_not_of(" \t");
    if (start == line.npos || start == 0) continue;  // a longer name that begins with this one
    line.remove_prefix(start);
    std::uint64_t number = 0;
    if (std::from_chars(line.data(), line.data() + line.size(), number).ec == std::errc())
      return number;
  }
  return fail(
      Error(ErrorKind::environment, "this kernel does not tell " + std::string(name)).at(path));
}

}  // namespace assay
