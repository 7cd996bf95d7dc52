#include "harness/doctor/settings.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "harness/ledger/durable_file.h"
#include "harness/provenance/system_files.h"

namespace assay::doctor {
namespace {

using nlohmann::json;
using provenance::SystemFiles;

/// The choice in brackets of "a [b] c", else the whole text.
Result<std::string> current_value(const SystemFiles& files, const std::string& path) {
  const json value = files.chosen_or_unknown(path);
  if (value.is_string()) return value.get<std::string>();
  return fail(
      Error(ErrorKind::environment, "cannot read the value that is to be changed").at(path));
}

Status write_value(const SystemFiles& files, const std::string& path, const std::string& value) {
  const int file = ::open(files.at(path).c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  const bool written =
      file >= 0 && ::write(file, value.data(), value.size()) == static_cast<ssize_t>(value.size());
  const int code = errno;
  if (file >= 0) ::close(file);
  if (written) return {};
  return fail(system_error(fmt::format("cannot write \"{}\"", value), code)
                  .at(path)
                  .hint(code == EACCES || code == EPERM ? "only root may: run it with sudo"
                                                        : "this kernel does not take it"));
}

/// The lock beside the journal; held as long as any process has the descriptor.
Result<int> take_lock(const SettingsPlace& place) {
  const std::string path = place.journal + ".lock";
  const int lock = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) {
    const int code = errno;
    return fail(system_error("cannot open the lock of the doctor's journal", code)
                    .at(path)
                    .hint("only root may: run it with sudo"));
  }
  if (::flock(lock, LOCK_EX | LOCK_NB) == 0) return lock;
  ::close(lock);
  return fail(Error(ErrorKind::environment, "another assay doctor holds settings now")
                  .at(path)
                  .hint("wait until it has ended"));
}

std::string boot_id(const SystemFiles& files) {
  return files.text("/proc/sys/kernel/random/boot_id").value_or("");
}

Status write_journal(const SettingsPlace& place, const std::vector<Change>& changes) {
  json all = json::array();
  for (const Change& change : changes) {
    all.push_back({{"path", change.path}, {"before", change.before}, {"applied", change.applied}});
  }
  const json journal = {
      {"schema", 1}, {"boot_id", boot_id(SystemFiles(place.system_root))}, {"changes", all}};
  return write_file_durably(place.journal, journal.dump() + "\n");
}

Result<json> read_journal(const SettingsPlace& place) {
  const Result<std::string> text = read_whole_file(place.journal);
  if (!text) return fail(text.error());
  json journal = json::parse(*text, nullptr, false);
  bool whole = journal.is_object() && journal.contains("boot_id") &&
               journal.value("changes", json()).is_array();
  if (whole) {
    for (const json& change : journal["changes"]) {
      for (const char* key : {"path", "before", "applied"}) {
        whole = whole && change.is_object() && change.value(key, json()).is_string();
      }
    }
  }
  if (whole) return journal;
  return fail(Error(ErrorKind::environment, "the doctor's journal cannot be read")
                  .at(place.journal)
                  .hint("look at the settings it names, then remove it"));
}

/// Puts one value back; the sentence says what was done.
Result<std::string> put_back(const SystemFiles& files, const json& change) {
  const auto path = change["path"].get<std::string>();
  const auto before = change["before"].get<std::string>();
  const auto applied = change["applied"].get<std::string>();
  const Result<std::string> now = current_value(files, path);
  if (!now) return fail(now.error());
  if (*now == before) return fmt::format("{} is {} as before", path, before);
  if (*now != applied) {
    return fmt::format("{} was changed by somebody else to {} and is left so (it was {})", path,
                       *now, before);
  }
  ASSAY_TRY(write_value(files, path, before));
  return fmt::format("{} is {} again", path, before);
}

/// All that the journal names, last change first, each whether or not another can be put back; the
/// journal goes when everything is back.
Leftovers restore_from_journal(const SettingsPlace& place) {
  const Result<json> journal = read_journal(place);
  if (!journal) return {{}, journal.error()};
  const SystemFiles files(place.system_root);
  std::vector<std::string> told;
  std::vector<std::string> left;
  if ((*journal)["boot_id"] != boot_id(files)) {
    told.emplace_back("the machine was started anew since: its settings are its own again");
  } else {
    const json& changes = (*journal)["changes"];
    for (auto change = changes.rbegin(); change != changes.rend(); ++change) {
      Result<std::string> done = put_back(files, *change);
      if (done) {
        told.push_back(std::move(*done));
      } else {
        left.push_back(done.error().message());
      }
    }
  }
  if (!left.empty()) {
    return {std::move(told),
            Error(ErrorKind::environment,
                  fmt::format("not every setting could be put back: {}", fmt::join(left, "; ")))
                .at(place.journal)
                .hint("it names them; remove it once they are as they should be")};
  }
  if (::unlink(place.journal.c_str()) != 0) {
    const int code = errno;
    return {std::move(told),
            system_error("cannot remove the doctor's journal", code).at(place.journal)};
  }
  return {std::move(told), std::nullopt};
}

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

/// The guardian: waits until the pipe's other end is closed, by will or by death, then restores.
[[noreturn]] void guard(int ended, const SettingsPlace& place) {
  ::setsid();  // out of the reach of the terminal's signals
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) std::signal(signal, SIG_IGN);
  std::array<char, 1> nothing{};
  while (::read(ended, nothing.data(), nothing.size()) < 0 && errno == EINTR) {
  }
  int status = 0;
  if (exists(place.journal)) {
    const Leftovers told = restore_from_journal(place);
    if (told.trouble) {
      const std::string line = fmt::format("assay: doctor: {}\n", told.trouble->message());
      std::fputs(line.c_str(), stderr);
      status = 1;
    }
  }
  ::_exit(status);
}

Status apply_all(const SystemFiles& files, const std::vector<Change>& changes) {
  for (const Change& change : changes) {
    ASSAY_TRY(write_value(files, change.path, change.applied));
  }
  return {};
}

}  // namespace

Leftovers restore_leftovers(const SettingsPlace& place) {
  if (!exists(place.journal)) return {};
  const Result<int> lock = take_lock(place);
  if (!lock) {
    return {
        {},
        Error(ErrorKind::environment,
              fmt::format("settings are held, or were left by a run that was killed, and are not "
                          "put back now ({})",
                          lock.error().message()))
            .at(place.journal)};
  }
  Leftovers told = restore_from_journal(place);
  ::close(*lock);
  return told;
}

Result<HeldSettings> HeldSettings::apply(const std::vector<Remedy>& remedies,
                                         const SettingsPlace& place) {
  const Result<int> lock = take_lock(place);
  if (!lock) return fail(lock.error());
  const SystemFiles files(place.system_root);
  if (exists(place.journal)) {
    if (const Leftovers told = restore_from_journal(place); told.trouble) {
      ::close(*lock);
      return fail(*told.trouble);
    }
  }
  std::vector<Change> changes;
  for (const Remedy& remedy : remedies) {
    const Result<std::string> before = current_value(files, remedy.path);
    if (!before) {
      ::close(*lock);
      return fail(before.error());
    }
    changes.push_back({remedy.path, *before, remedy.value});
  }
  std::array<int, 2> ends{};
  Status ready = write_journal(place, changes);
  if (ready && ::pipe2(ends.data(), O_CLOEXEC) != 0) {
    ready = fail(system_error("cannot make a pipe", errno));
  }
  if (!ready) {
    ::close(*lock);
    return fail(ready.error());
  }
  const pid_t guardian = ::fork();
  if (guardian == 0) {
    ::close(ends[1]);
    guard(ends[0], place);  // it holds the lock as well, until it has restored
  }
  const int code = errno;
  ::close(ends[0]);
  ::close(*lock);
  if (guardian < 0) {
    ::close(ends[1]);
    ::unlink(place.journal.c_str());
    return fail(system_error("cannot start the guardian of the settings", code));
  }
  HeldSettings held(std::move(changes), ends[1], guardian);
  if (const Status applied = apply_all(files, held.changes()); !applied)
    return fail(applied.error());
  return held;
}

HeldSettings::HeldSettings(HeldSettings&& other) noexcept
    : changes_(std::move(other.changes_)),
      alive_(std::exchange(other.alive_, -1)),
      guardian_(std::exchange(other.guardian_, -1)) {}

HeldSettings::~HeldSettings() {
  if (const Status restored = restore(); !restored) {
    const std::string line = fmt::format("assay: {}\n", restored.error().message());
    std::fputs(line.c_str(), stderr);
  }
}

Status HeldSettings::restore() {
  if (guardian_ < 0) return {};
  ::close(std::exchange(alive_, -1));
  const pid_t guardian = std::exchange(guardian_, -1);
  int status = 0;
  while (::waitpid(guardian, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return fail(Error(ErrorKind::environment, "not every setting could be put back")
                  .hint("the journal keeps them: `assay doctor` tries again at its next start"));
}

}  // namespace assay::doctor
