#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "harness/ledger/durable_file.h"
#include "harness/ledger/ledger.h"
#include "harness/ledger/ledger_line.h"
#include "harness/ledger/machines.h"
#include "harness/provenance/sha256.h"

namespace assay {
namespace {

Status write_whole(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail(system_error("cannot append to the ledger", errno));
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

bool is_file_at(int fd, const std::string& path) {
  struct stat ours{};
  struct stat there{};
  return ::fstat(fd, &ours) == 0 && ::stat(path.c_str(), &there) == 0 &&
         ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

/// Keeps the bytes of an unfinished line under the first free name `<path>.torn-N`.
Result<std::string> keep_torn_bytes(const std::string& path, std::string_view bytes) {
  for (int number = 1;; ++number) {
    const std::string name = fmt::format("{}.torn-{}", path, number);
    std::error_code error;
    if (std::filesystem::exists(name, error)) continue;
    ASSAY_TRY(create_file_durably(name, bytes));
    return name;
  }
}

/// As Machines tells it; the plan of a result that is being written is not far.
std::string machine_of(const LedgerRecord& record, const std::vector<LedgerRecord>& before) {
  Machines machines;
  if (record.kind != "plan") {
    const std::string result = result_of(record);
    for (auto plan = before.rbegin(); plan != before.rend(); ++plan) {
      if (plan->kind != "plan" || !plan->source.is_null() || result_of(*plan) != result) continue;
      (void)machines.of(*plan);
      break;
    }
  }
  return machines.of(record);
}

}  // namespace

Result<LedgerWriter> LedgerWriter::open(const std::string& path) {
  std::error_code error;
  const bool existed = std::filesystem::exists(path, error);
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return fail(system_error("cannot open the ledger for writing", errno).at(path));
  LedgerWriter writer(fd, path);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail(system_error("cannot lock the ledger", errno).at(path));
    return fail(Error(ErrorKind::environment,
                      "another assay is running this experiment and writes to its ledger")
                    .at(path)
                    .hint("wait until it has ended, then run again"));
  }
  // A run that failed at its first record takes its empty ledger away while it holds the lock: what
  // we have locked must still be the file of that name.
  if (!is_file_at(fd, path)) return open(path);
  if (!existed) ASSAY_TRY(flush_directory(folder_of(path)));
  ASSAY_TRY(writer.load());
  return writer;
}

void LedgerWriter::remove_if_empty() {
  struct stat now{};
  if (fd_ < 0 || ::fstat(fd_, &now) != 0 || now.st_size != 0) return;
  ::unlink(path_.c_str());
  broken_ = true;  // what would be appended now would be lost
}

LedgerWriter::LedgerWriter(LedgerWriter&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      broken_(other.broken_),
      path_(std::move(other.path_)),
      torn_file_(std::move(other.torn_file_)),
      contents_(std::move(other.contents_)) {}

LedgerWriter& LedgerWriter::operator=(LedgerWriter&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(broken_, other.broken_);
  std::swap(path_, other.path_);
  std::swap(torn_file_, other.torn_file_);
  std::swap(contents_, other.contents_);
  return *this;
}

LedgerWriter::~LedgerWriter() {
  if (fd_ >= 0) ::close(fd_);  // gives the lock back
}

Status LedgerWriter::load() {
  auto contents = read_ledger(path_);
  if (!contents) return fail(contents.error());
  contents_ = std::move(*contents);
  if (contents_.torn.empty()) return {};
  auto kept = keep_torn_bytes(path_, contents_.torn);
  if (!kept) return fail(kept.error());
  if (::ftruncate(fd_, static_cast<off_t>(contents_.valid_bytes)) != 0 || ::fsync(fd_) != 0) {
    return fail(system_error("cannot cut the torn last line off", errno).at(path_));
  }
  torn_file_ = *kept;
  contents_.torn.clear();
  return {};
}

Result<std::string> LedgerWriter::append(std::string_view kind, nlohmann::json body) {
  if (broken_) {
    return fail(Error(ErrorKind::ledger, "a flush of this ledger failed: its end is not known")
                    .at(path_)
                    .hint("run again, the ledger is verified when it is opened"));
  }
  LedgerRecord record;
  record.seq = contents_.records.size();
  record.time = utc_now();
  record.kind = kind;
  record.body = std::move(body);
  record.previous = contents_.head;
  std::string line = ledger_line_text(record);
  record.hash = sha256_hex(line);
  record.line = record.seq + 1;
  record.machine = machine_of(record, contents_.records);
  line += '\n';
  if (Status written = write_whole(fd_, line); !written) {
    // A partial line is no record; what is left if this fails too is a torn tail.
    broken_ = ::ftruncate(fd_, static_cast<off_t>(contents_.valid_bytes)) != 0;
    Error error = written.error();
    return fail(error.at(path_).hint("free some space and run again: nothing recorded is lost"));
  }
  if (::fdatasync(fd_) != 0) {
    broken_ = true;
    return fail(system_error("cannot flush the ledger", errno).at(path_));
  }
  contents_.valid_bytes += line.size();
  contents_.head = record.hash;
  contents_.records.push_back(std::move(record));
  return contents_.head;
}

}  // namespace assay
