#include "harness/report/write_report.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "harness/ledger/durable_file.h"
#include "harness/ledger/named_output.h"
#include "harness/report/figures.h"
#include "harness/report/html.h"
#include "harness/report/markdown.h"

namespace assay::report {
namespace {

namespace fs = std::filesystem;

Error failed(const std::string& what, const fs::path& path) {
  Error error = system_error(what, errno);
  error.at(path.string());
  return error;
}

Status sync_path(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(failed("cannot open", path));
  const int done = ::fsync(fd);
  Error error = failed("cannot sync", path);
  ::close(fd);
  if (done != 0) return fail(error);
  return {};
}

/// A folder of figures that is not ours must not vanish: only what we would write may be replaced.
Status check_replaceable(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string suffix = entry.path().extension().string();
    if (entry.is_regular_file(ignored) &&
        (suffix == ".gp" || suffix == ".dat" || suffix == ".svg" || suffix == ".png")) {
      continue;
    }
    return fail(Error(ErrorKind::bad_input,
                      fmt::format("the directory holds something that is no figure: {}",
                                  entry.path().filename().string()))
                    .at(folder.string())
                    .hint("give a directory of its own with --out"));
  }
  return {};
}

/// What an interrupted drawing left beside `target`: TARGET.PID.tmp of a process that is no more.
void remove_leftovers(const fs::path& target) {
  const std::string prefix = target.filename().string() + ".";
  std::error_code ignored;
  std::vector<fs::path> dead;
  for (const auto& entry : fs::directory_iterator(folder_of(target.string()), ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix) || !name.ends_with(".tmp")) continue;
    pid_t pid = 0;
    const char* const end = name.data() + name.size() - 4;
    const auto read =
        std::from_chars(name.data() + std::min(prefix.size(), name.size() - 4), end, pid);
    if (read.ec != std::errc() || read.ptr != end || pid <= 0) continue;
    const bool gone = pid == ::getpid() || (::kill(pid, 0) != 0 && errno == ESRCH);
    if (gone && fs::is_directory(entry.symlink_status(ignored))) dead.push_back(entry.path());
  }
  for (const fs::path& one : dead) fs::remove_all(one, ignored);
}

/// Puts `made` where `target` is; an old target goes away only after the new one is in place.
Status exchange(const fs::path& made, const fs::path& target) {
  std::error_code ignored;
  if (!fs::exists(target, ignored)) {
    if (std::rename(made.c_str(), target.c_str()) != 0) {
      return fail(failed("cannot rename the figures", target));
    }
  } else {
    if (::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) != 0) {
      return fail(failed("cannot replace the old figures", target));
    }
    fs::remove_all(made, ignored);
  }
  return flush_directory(folder_of(target.string()));
}

}  // namespace

Result<plots::Drawn> write_figures(const plots::FigureSet& set, const std::string& directory) {
  fs::path target = fs::path(directory).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();  // "plots/" means "plots"
  ASSAY_TRY(check_named_directory(target.string()));
  std::error_code ignored;
  if (fs::is_symlink(target, ignored)) {  // to a directory: that one is replaced, the link stays
    target = fs::canonical(target, ignored);
    if (ignored) return fail(system_error("cannot follow the link", ignored.value()).at(directory));
  }
  ASSAY_TRY(make_directories_durably(folder_of(target.string())));
  ASSAY_TRY(check_replaceable(target));
  const fs::path made = target.string() + fmt::format(".{}.tmp", ::getpid());
  remove_leftovers(target);
  ASSAY_TRY(make_directories_durably(made.string()));
  Result<plots::Drawn> drawn = plots::draw_figures(set, made.string());
  if (!drawn) {
    fs::remove_all(made, ignored);
    return drawn;
  }
  for (const auto& entry : fs::directory_iterator(made, ignored))
    ASSAY_TRY(sync_path(entry.path()));
  ASSAY_TRY(sync_path(made));
  ASSAY_TRY(exchange(made, target));
  return drawn;
}

Result<plots::Drawn> write_plots(const ReportModel& model, const std::string& directory) {
  Result<plots::Drawn> drawn = write_figures(figure_set(model), directory);
  if (!drawn) return drawn;
  if (const std::string missing = missing_raws_text(model); !missing.empty()) {
    drawn->notes.push_back(missing);
  }
  return drawn;
}

Result<WrittenReport> write_report(const ReportModel& model, const std::string& directory) {
  ASSAY_TRY(check_named_directory(directory));
  ASSAY_TRY(make_directories_durably(directory));
  const fs::path folder(directory);
  WrittenReport written;
  std::vector<Picture> pictures;
  if (Result<plots::Drawn> drawn = write_plots(model, (folder / "plots").string())) {
    written.notes = drawn->notes;
    for (const plots::Drawing& figure : drawn->figures) {
      const fs::path svg = folder / "plots" / (figure.name + ".svg");
      Result<std::string> bytes = read_whole_file(svg.string());
      if (!bytes) return fail(bytes.error());
      pictures.push_back({figure.name, figure.title, std::move(*bytes)});
      written.plots.push_back(svg.string());
    }
  } else if (drawn.error().kind() == ErrorKind::environment) {
    const bool kept = fs::is_directory(folder / "plots");
    written.notes.push_back("no pictures: " + drawn.error().message() +
                            (kept ? "; those of before stay in plots/" : ""));
  } else {
    return fail(drawn.error());
  }
  written.markdown = (folder / "report.md").string();
  written.html = (folder / "report.html").string();
  ASSAY_TRY(write_named_output(written.markdown, markdown_report(model, pictures, written.notes)));
  ASSAY_TRY(write_named_output(written.html, html_report(model, pictures, written.notes)));
  return written;
}

}  // namespace assay::report
