#include "harness/ledger/named_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "harness/ledger/ledger_line.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestFirstLine = std::size_t{1} << 26;
constexpr int kMostLinks = 40;  // as many as Linux follows, path_resolution(7)

bool begins_as_ledger(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  for (char c = 0; line.size() < kLongestFirstLine && file.get(c) && c != '\n';) line += c;
  // The second: a ledger whose first line was damaged is evidence as well.
  return parse_ledger_line(line).has_value() || line.starts_with("{\"body\":");
}

/// Where an output goes: through an open descriptor, or to the file at the end of all links.
struct Target {
  bool through = false;
  std::string path;
};

Result<std::string> behind_links(const std::string& path) {
  fs::path at = path;
  std::error_code error;
  for (int links = 0; fs::is_symlink(fs::symlink_status(at, error)); ++links) {
    if (links == kMostLinks) return fail(system_error("cannot follow the link", ELOOP).at(path));
    const fs::path next = fs::read_symlink(at, error);
    if (error) return fail(system_error("cannot follow the link", error.value()).at(path));
    at = next.is_absolute() ? next : at.parent_path() / next;
  }
  return at.string();
}

Error refusal(const std::string& what, const std::string& path) {
  Error error(ErrorKind::bad_input, what);
  error.at(path);
  return error;
}

Result<Target> target_of(const std::string& path) {
  struct stat named{};
  const bool there = ::stat(path.c_str(), &named) == 0;
  if (there && S_ISDIR(named.st_mode)) {
    return fail(refusal("this is a directory, not a file", path));
  }
  if (there && (S_ISCHR(named.st_mode) || S_ISFIFO(named.st_mode))) return Target{true, path};
  if (there && !S_ISREG(named.st_mode)) {
    return fail(refusal("this is no file that can be written", path));
  }
  auto file = behind_links(path);
  if (!file) return fail(file.error());
  struct stat behind{};
  // Links below /proc may lead to what has no name any more.
  if (there && (::stat(file->c_str(), &behind) != 0 || behind.st_ino != named.st_ino ||
                behind.st_dev != named.st_dev)) {
    return fail(refusal("this leads to a file without a name", path));
  }
  if (there && (fs::path(path).filename() == "ledger.jsonl" ||
                fs::path(*file).filename() == "ledger.jsonl" || begins_as_ledger(*file))) {
    return fail(refusal("this is a ledger, which is never written over", path)
                    .hint("give the output another name"));
  }
  return Target{false, std::move(*file)};
}

}  // namespace

Result<NamedOutput> NamedOutput::open(const std::string& path) {
  const auto target = target_of(path);
  if (!target) return fail(target.error());
  if (target->through) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return fail(system_error("cannot open the file", errno).at(path));
    return NamedOutput(std::nullopt, fd, path);
  }
  auto file = DurableFile::create(target->path);
  if (!file) return fail(file.error());
  return NamedOutput(std::move(*file), -1, path);
}

NamedOutput::~NamedOutput() {
  if (through_ >= 0) ::close(through_);
}

Status NamedOutput::write(std::string_view piece) {
  if (file_) return file_->write(piece);
  while (!piece.empty()) {
    const ssize_t written = ::write(through_, piece.data(), piece.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail(system_error("cannot write the file", errno).at(path_));
    piece.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Status NamedOutput::finish() {
  return file_ ? file_->commit(Existing::replace) : Status();
}

Status write_named_output(const std::string& path, std::string_view contents) {
  auto output = NamedOutput::open(path);
  if (!output) return fail(output.error());
  ASSAY_TRY(output->write(contents));
  return output->finish();
}

Status check_named_output(const std::string& path) {
  const auto target = target_of(path);
  if (!target) return fail(target.error());
  if (!target->through) return check_can_be_written(target->path);
  if (::access(path.c_str(), W_OK) == 0) return {};
  return fail(system_error("cannot write the file", errno).at(path));
}

Status check_named_directory(const std::string& path) {
  std::error_code error;
  const fs::path plain =
      fs::path(path).has_filename() ? fs::path(path) : fs::path(path).parent_path();
  const fs::file_status status = fs::symlink_status(plain, error);
  if (!fs::exists(status) || fs::is_directory(plain, error)) return {};
  return fail(refusal("this is there already and is no directory", path)
                  .hint("give a directory, or a name that is free"));
}

}  // namespace assay
