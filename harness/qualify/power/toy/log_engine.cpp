// snapshot: checksum, first log, packed map. log-N: records of length, checksum (seeded by the log
// and the place), packed changes. A commit appends and syncs. Every kTurn commits a new log begins:
// it is made, a snapshot of everything is renamed into place, the old log goes.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <vector>

#include "harness/qualify/power/toy/toy_store.h"

namespace assay::qualify::power::toy {
namespace {

constexpr int kTurn = 5;

class LogEngine final : public Engine {
 public:
  LogEngine(std::string directory, Mistakes mistakes)
      : directory_(std::move(directory)), mistakes_(std::move(mistakes)) {}

  Status load(Map& map) override {
    const Handle snapshot(directory_ + "/snapshot", O_RDONLY);
    if (snapshot.is_open()) {
      const std::string bytes = snapshot.read();
      const bool sound = bytes.size() >= 16 &&
                         (is("snapshot-without-checksum") ||
                          number(bytes) == checksum(std::string_view(bytes).substr(8), 0)) &&
                         unpack(std::string_view(bytes).substr(16), map);
      if (!sound) return fail(ErrorKind::store, "toy: the snapshot is damaged");
      current_ = number(std::string_view(bytes).substr(8));
    }
    bool found = false;
    for (std::uint64_t log = current_;; ++log) {
      const std::optional<std::string> path = find_log(log);
      if (!path) break;
      found = true;
      replay(*path, log, map);
      current_ = log;
      if (!is("logs-follow-each-other")) break;
    }
    // A log is never written behind what a crash left: the end may be anything.
    if (is("appends-behind-a-crash") && found) {
      log_ = std::make_unique<Handle>(*find_log(current_), O_RDWR);
      at_ = log_->read().size();
      return {};
    }
    if (snapshot.is_open() && !found && is("log-is-expected")) {
      return fail(ErrorKind::store, "toy: the log that the snapshot names is missing");
    }
    return turn(map);
  }

  Status commit(const Map&, std::span<const Mutation> changes) override {
    if (count_ >= kTurn) ASSAY_TRY(turn_before());
    if (is("records-begin-a-page")) at_ = (at_ + 4095) / 4096 * 4096;
    const std::string payload = pack(changes);
    const std::string record =
        number(payload.size()) + number(checksum(payload, current_ * 1'000'003 + at_)) + payload;
    if (is("stdio-buffer")) {
      buffer_ += record;
      if (buffer_.size() > 4000) flush_buffer();
    } else if (is("synchronous-on-another-handle")) {
      const Handle other(log_path(current_), O_RDWR | O_DSYNC);
      log_->write(record, at_);
    } else if (is("syncs-before-the-end-of-the-record")) {
      log_->write(record.substr(0, record.size() / 2), at_);
      static_cast<void>(log_->sync());
      log_->write(record.substr(record.size() / 2), at_ + record.size() / 2);
    } else {
      log_->write(record, at_);
    }
    at_ += record.size();
    ++count_;
    return sync_log();
  }

  Status close() override {
    flush_buffer();
    log_.reset();
    return {};
  }

 private:
  [[nodiscard]] bool is(const char* mistake) const { return mistakes_.contains(mistake); }

  [[nodiscard]] std::string log_path(std::uint64_t log) const {
    const char* const folder = is("log-in-an-unsynced-folder") ? "/logs" : "";
    return fmt::format("{}{}/log-{}", directory_, log > 1 ? folder : "", log);
  }

  [[nodiscard]] std::optional<std::string> find_log(std::uint64_t log) const {
    struct stat status{};
    if (::stat(log_path(log).c_str(), &status) != 0) return std::nullopt;
    return log_path(log);
  }

  void flush_buffer() {
    if (buffer_.empty()) return;
    log_->write(buffer_, flushed_);
    flushed_ += buffer_.size();
    buffer_.clear();
  }

  void replay(const std::string& path, std::uint64_t log, Map& map) const {
    const Handle file(path, O_RDONLY);
    const std::string bytes = file.read();
    std::size_t at = 0;
    while (bytes.size() - at >= 16) {
      const std::string_view record = std::string_view(bytes).substr(at);
      const std::uint64_t length = number(record);
      const bool plausible = length != 0 && length <= record.size() - 16;
      const std::string_view payload = plausible ? record.substr(16, length) : "";
      const bool sound =
          plausible && number(record.substr(8)) == checksum(payload, log * 1'000'003 + at);
      if (!sound && is("skips-damaged-records")) {
        ++at;  // the next record may begin anywhere
        continue;
      }
      if (!plausible || (!sound && !is("log-without-checksum"))) break;
      static_cast<void>(apply(payload, map));
      at += 16 + length;
    }
  }

  Status sync_log() {
    if (is("acknowledges-before-sync") || is("stdio-buffer") ||
        is("syncs-before-the-end-of-the-record") || is("synchronous-on-another-handle")) {
      return {};
    }
    if (is("syncs-every-second-commit") && count_ % 2 == 1) return {};
    if (is("sync-file-range")) {
      ::sync_file_range(
          log_->get(), 0, 0,
          SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
      return {};
    }
    if (is("close-as-sync")) {
      log_ = std::make_unique<Handle>(log_path(current_), O_RDWR);
      return {};
    }
    if (is("syncs-the-wrong-descriptor")) {
      const Handle snapshot(directory_ + "/snapshot", O_RDWR);
      static_cast<void>(snapshot.sync());
      return {};
    }
    if (log_->sync()) return {};
    if (!is("tries-a-failed-sync-again")) {
      return fail(ErrorKind::store, "toy: the log cannot be synced");
    }
    return log_->sync() ? Status{} : fail(ErrorKind::store, "toy: the log cannot be synced");
  }

  /// The snapshot has what is in the map before this commit.
  Status turn_before() {
    flush_buffer();
    if (is("logs-follow-each-other")) {
      // No snapshot: the logs are read one after the other.
      open_log(current_ + 1);
      if (!is("new-log-without-directory-sync")) sync_directory(directory_);
      return {};
    }
    Map before;
    const Handle snapshot(directory_ + "/snapshot", O_RDONLY);
    if (snapshot.is_open())
      static_cast<void>(unpack(std::string_view(snapshot.read()).substr(16), before));
    replay(log_path(current_), current_, before);
    return turn(before);
  }

  void open_log(std::uint64_t log) {
    if (is("log-in-an-unsynced-folder")) ::mkdir((directory_ + "/logs").c_str(), 0755);
    if (is("log-renamed-into-place")) {
      const std::string made = log_path(log) + ".tmp";
      log_ = std::make_unique<Handle>(made, O_RDWR | O_CREAT | O_TRUNC);
      ::rename(made.c_str(), log_path(log).c_str());
    } else {
      log_ = std::make_unique<Handle>(log_path(log), O_RDWR | O_CREAT | O_TRUNC);
    }
    current_ = log;
    at_ = 0;
    flushed_ = 0;
    count_ = 0;
  }

  Status turn(const Map& map) {
    flush_buffer();
    const std::uint64_t old = current_;
    open_log(old + 1);
    if (!is("new-log-without-directory-sync") && !is("log-renamed-into-place")) {
      sync_directory(directory_);
      if (is("log-in-an-unsynced-folder")) sync_directory(directory_ + "/logs");
    }
    if (is("log-truncated-before-the-snapshot")) Handle(log_path(old), O_RDWR | O_CREAT | O_TRUNC);
    write_snapshot(map);
    if (!is("old-log-kept")) ::unlink(log_path(old).c_str());
    return {};
  }

  void write_snapshot(const Map& map) {
    const std::string packed = number(current_) + pack(map);
    const std::string bytes = number(checksum(packed, 0)) + packed;
    const std::string path = directory_ + "/snapshot";
    if (is("snapshot-in-place")) {
      const Handle file(path, O_RDWR | O_CREAT | O_TRUNC);
      file.write(bytes, 0);
      static_cast<void>(file.sync());
      sync_directory(directory_);
      return;
    }
    const std::string made = path + ".tmp";
    {
      const Handle file(made, O_RDWR | O_CREAT | O_TRUNC);
      if (is("snapshot-copied-without-sync")) {
        const Handle source(path + ".source", O_RDWR | O_CREAT | O_TRUNC);
        source.write(bytes, 0);
        static_cast<void>(source.sync());
        loff_t from = 0;
        loff_t to = 0;
        ASSAY_CHECK(::copy_file_range(source.get(), &from, file.get(), &to, bytes.size(), 0) ==
                        static_cast<ssize_t>(bytes.size()),
                    "a toy's copy is whole");
      } else {
        file.write(bytes, 0);
        if (!is("renames-before-sync")) static_cast<void>(file.sync());
      }
    }
    if (is("directory-synced-before-the-rename")) sync_directory(directory_);
    if (is("unlinks-and-links")) {
      ::unlink(path.c_str());
      sync_directory(directory_);
      static_cast<void>(!::link(made.c_str(), path.c_str()));
      ::unlink(made.c_str());
    } else {
      ::rename(made.c_str(), path.c_str());
    }
    const bool leaves =
        is("unlinks-before-the-rename-is-durable") || is("directory-synced-before-the-rename");
    if (!leaves) sync_directory(directory_);
  }

  std::string directory_;
  Mistakes mistakes_;
  std::unique_ptr<Handle> log_;
  std::uint64_t current_ = 0;
  std::uint64_t at_ = 0;
  int count_ = 0;
  std::string buffer_;
  std::uint64_t flushed_ = 0;
};

}  // namespace

std::unique_ptr<Engine> log_engine(const std::string& directory, const Mistakes& mistakes) {
  return std::make_unique<LogEngine>(directory, mistakes);
}

}  // namespace assay::qualify::power::toy
