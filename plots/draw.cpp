// Runs gnuplot, through gnuplot-iostream, over every sheet.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>

#include <fmt/format.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <gnuplot-iostream.h>
#pragma GCC diagnostic pop

#include "plots/kinds.h"

namespace assay::plots {
namespace {

namespace fs = std::filesystem;

bool on_the_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

Status write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
  file.close();
  if (!file) return fail(system_error("cannot write the figure's file", errno).at(path.string()));
  return {};
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

/// For the shell: in single quotes, with every quote of its own closed and escaped.
std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// gnuplot reads the source from a pipe, in the figure's own directory. It leaves at the first
/// error; `cat` then takes the rest, so that we never write into a closed pipe.
Status run_gnuplot(const Sheet& sheet, const std::string& source, const fs::path& directory) {
  const fs::path complaints = directory / (sheet.name + ".stderr");
  const std::string command =
      fmt::format("{{ cd {} && gnuplot -d - >/dev/null 2>{}.stderr; cat >/dev/null; }}",
                  shell_quoted(directory.string()), sheet.name);
  {
    gnuplotio::Gnuplot gnuplot(command);
    gnuplot << source;
  }
  const std::string complaint = read_file(complaints);
  std::error_code ignored;
  fs::remove(complaints, ignored);
  for (const char* suffix : {".svg", ".png"}) {
    const auto size = fs::file_size(directory / (sheet.name + suffix), ignored);
    if (!ignored && size > 0 && complaint.find("line ") == std::string::npos) continue;
    return fail(
        Error(ErrorKind::internal, fmt::format("gnuplot did not draw {}{}: {}", sheet.name, suffix,
                                               complaint.empty() ? "it said nothing" : complaint))
            .at((directory / (sheet.name + ".gp")).string()));
  }
  return {};
}

Status draw(const Sheet& sheet, const fs::path& directory) {
  const std::string source = source_of(sheet);
  ASSAY_TRY(write_file(directory / (sheet.name + ".dat"), sheet.data));
  ASSAY_TRY(write_file(directory / (sheet.name + ".gp"), source));
  return run_gnuplot(sheet, source, directory);
}

}  // namespace

Result<Drawn> draw_figures(const FigureSet& set, const std::string& directory) {
  if (!on_the_path("gnuplot")) {
    return fail(Error(ErrorKind::environment, "gnuplot is not installed")
                    .hint("install the package gnuplot-nox, or run scripts/setup"));
  }
  std::vector<Attempt> attempts;
  attempts.push_back(throughput_figure(set));
  for (Attempt& attempt : percentile_figures(set)) attempts.push_back(std::move(attempt));
  attempts.push_back(series_figure(set));
  attempts.push_back(space_figure(set));
  attempts.push_back(write_amplification_figure(set));
  attempts.push_back(barriers_figure(set));
  attempts.push_back(cpu_figure(set));
  Drawn drawn;
  for (const Attempt& attempt : attempts) {
    if (const auto* skipped = std::get_if<Skipped>(&attempt)) {
      drawn.notes.push_back(skipped->note);
      continue;
    }
    const Sheet& sheet = std::get<Sheet>(attempt);
    ASSAY_TRY(draw(sheet, directory));
    drawn.figures.push_back({sheet.name, sheet.title});
  }
  return drawn;
}

}  // namespace assay::plots
