#include "harness/trial/trial_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "harness/trial/trial.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "assay-trial-";
constexpr std::string_view kMarkName = "assay-trial.mark";
constexpr std::string_view kMarkTitle = "assay trial directory";

/// Field 22 of /proc/PID/stat, in clock ticks since the boot; empty when there is no such process.
std::string start_time(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');  // the name may hold blanks and parentheses
  if (name_end == std::string::npos) return {};
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (int number = 3; number <= 22; ++number) fields >> field;
  return field;
}

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::string mark_of(const std::string& pid, const std::string& start) {
  return fmt::format("{}\npid {}\nstart {}\nboot {}\n", kMarkTitle, pid, start, boot_id());
}

/// True when the directory carries a mark and the process named by it no longer exists.
bool owner_is_gone(const fs::path& directory) {
  struct stat info{};
  const fs::path mark = directory / kMarkName;
  if (::lstat(mark.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  std::ifstream file(mark);
  std::string title;
  std::string word;
  std::string pid;
  std::string start;
  std::string boot;
  std::getline(file, title);
  if (title != kMarkTitle) return false;
  if (!(file >> word >> pid) || word != "pid") return false;
  if (!(file >> word >> start) || word != "start") return false;
  if (!(file >> word >> boot) || word != "boot") return false;
  if (pid.find_first_not_of("0123456789") != std::string::npos) return false;
  return boot != boot_id() || start_time(pid) != start;
}

/// True for a directory with a name of ours whose maker is gone before it was marked, or while its
/// removal had come behind the mark: then nothing is in it, or the mark without a byte in it, and
/// removing it can lose nothing.
bool may_be_unfinished(const fs::path& directory) {
  const std::string name = directory.filename().string().substr(kPrefix.size());
  const std::size_t dash = name.find('-');
  constexpr std::string_view kDigits = "0123456789";
  if (dash == 0 || dash == std::string::npos || dash + 1 == name.size()) return false;
  const std::string pid = name.substr(0, dash);
  return name.find_first_not_of(kDigits) == dash &&
         name.find_first_not_of(kDigits, dash + 1) == std::string::npos && start_time(pid).empty();
}

/// The mark goes last: a removal that is cut short can be taken up again.
void remove_marked(const fs::path& directory) {
  std::error_code ignored;
  fs::directory_iterator entries(directory, ignored);
  std::vector<fs::path> others;
  for (; !ignored && entries != fs::end(entries); entries.increment(ignored))
    if (entries->path().filename() != kMarkName) others.push_back(entries->path());
  for (const fs::path& other : others) fs::remove_all(other, ignored);
  fs::remove(directory / kMarkName, ignored);
  fs::remove(directory, ignored);
}

bool carries_our_mark(const fs::path& directory) {
  std::ifstream file(directory / kMarkName);
  std::string title;
  return std::getline(file, title) && title == kMarkTitle;
}

}  // namespace

Status hand_over_file(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".tmp";
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) return fail(system_error("cannot write a file", errno).at(temporary));
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    return fail(system_error("cannot rename a file", errno).at(temporary));
  return {};
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(system_error("cannot read a file", errno).at(path));
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

Result<TrialDirectory> TrialDirectory::make(const std::string& root) {
  std::error_code code;
  fs::create_directories(root, code);
  if (code || !fs::is_directory(root, code))
    return fail(Error(ErrorKind::environment, "the benchmark root cannot be used as a directory")
                    .at(root)
                    .hint(code ? code.message() : "it is a file"));
  static std::atomic<unsigned> next{0};
  const std::string pid = std::to_string(::getpid());
  for (;;) {
    const std::string path =
        fmt::format("{}/{}{}-{}", fs::absolute(root).string(), kPrefix, pid, next++);
    if (::mkdir(path.c_str(), 0755) != 0) {
      if (errno == EEXIST) continue;  // of somebody else: never ours to touch
      return fail(system_error("cannot make a trial directory", errno).at(path));
    }
    TrialDirectory directory(path);
    const int fd = ::open((path + "/" + std::string(kMarkName)).c_str(),
                          O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    const std::string mark = mark_of(pid, start_time(pid));
    const bool marked =
        fd >= 0 && ::write(fd, mark.data(), mark.size()) == static_cast<ssize_t>(mark.size());
    const int error = errno;
    if (fd >= 0) ::close(fd);
    if (!marked) {
      // Without its mark nobody would ever remove it; we made it just now and it is all but empty.
      std::error_code ignored;
      fs::remove(path + "/" + std::string(kMarkName), ignored);
      fs::remove(path, ignored);
      return fail(system_error("cannot mark a trial directory", error).at(path));
    }
    if (::mkdir(directory.data().c_str(), 0755) != 0)
      return fail(system_error("cannot make a trial directory", errno).at(directory.data()));
    return directory;
  }
}

TrialDirectory::TrialDirectory(TrialDirectory&& other) noexcept : path_(std::move(other.path_)) {
  other.path_.clear();
}

TrialDirectory::~TrialDirectory() {
  if (path_.empty() || !carries_our_mark(path_)) return;
  remove_marked(path_);  // what is left is stale and removed by the next run
}

void remove_stale_trials(const std::string& root) {
  std::error_code code;
  fs::directory_iterator entries(root, code);
  std::vector<fs::path> stale;
  for (; !code && entries != fs::end(entries); entries.increment(code)) {
    const fs::path& path = entries->path();
    if (!path.filename().string().starts_with(kPrefix)) continue;
    if (!fs::is_directory(fs::symlink_status(path, code))) continue;
    if (owner_is_gone(path) || may_be_unfinished(path)) stale.push_back(path);
  }
  for (const fs::path& path : stale) {
    if (carries_our_mark(path)) {
      remove_marked(path);
      continue;
    }
    struct stat mark{};
    const std::string mark_path = path / kMarkName;
    if (::lstat(mark_path.c_str(), &mark) == 0 && S_ISREG(mark.st_mode) && mark.st_size == 0)
      ::unlink(mark_path.c_str());
    ::rmdir(path.c_str());  // refused when anything is in it
  }
}

}  // namespace assay
