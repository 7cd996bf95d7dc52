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

/// What gnuplot says, on one line and not endless: it goes into a table and on a terminal.
std::string one_line(const std::string& text) {
  constexpr std::size_t kMost = 300;
  std::string line;
  for (const char c : text) {
    const bool space = static_cast<unsigned char>(c) <= 0x20;
    if (!space) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return shortened(line, kMost);
}

/// Why a picture is not there; without words when both are.
struct Refusal {
  std::string why;
  bool hung = false;
};

/// gnuplot reads the source from a pipe, in the figure's own directory. It leaves at the first
/// error; `cat` then takes the rest, so that we never write into a closed pipe. timeout(1) ends one
/// that hangs.
Refusal run_gnuplot(const Sheet& sheet, const std::string& source, const fs::path& directory,
                    std::chrono::seconds limit) {
  const fs::path complaints = directory / (sheet.name + ".stderr");
  const fs::path status_file = directory / (sheet.name + ".status");
  const std::string command = fmt::format(
      "{{ cd {} && {{ timeout -k 5 {} gnuplot -d - >/dev/null 2>{name}.stderr; echo $? "
      ">{name}.status; cat >/dev/null; }}; }}",
      shell_quoted(directory.string()), limit.count(), fmt::arg("name", sheet.name));
  {
    gnuplotio::Gnuplot gnuplot(command);
    gnuplot << source;
  }
  const std::string complaint = one_line(read_file(complaints));
  std::error_code ignored;
  fs::remove(complaints, ignored);
  const std::string status = one_line(read_file(status_file));
  fs::remove(status_file, ignored);
  bool drawn = status == "0" && complaint.find("line ") == std::string::npos;
  for (const char* suffix : {".svg", ".png"}) {
    const auto size = fs::file_size(directory / (sheet.name + suffix), ignored);
    drawn = drawn && !ignored && size > 0;
  }
  if (drawn) return {};
  // Half a picture must not be taken for one; its source and data stay to look into.
  for (const char* suffix : {".svg", ".png"})
    fs::remove(directory / (sheet.name + suffix), ignored);
  if (status == "124" || status == "137") {  // as timeout(1) tells it, and a kill
    return {fmt::format("gnuplot did not end within {} s", limit.count()), true};
  }
  if (!complaint.empty()) return {"gnuplot says: " + complaint, false};
  return {status == "0" ? std::string("gnuplot drew nothing and said nothing")
                        : fmt::format("gnuplot failed with status {}", status),
          false};
}

/// A note when gnuplot refuses the figure; an error when a file cannot be written.
Result<Refusal> draw(const Sheet& sheet, const fs::path& directory, std::chrono::seconds limit) {
  const std::string source = source_of(sheet);
  ASSAY_TRY(write_file(directory / (sheet.name + ".dat"), sheet.data));
  ASSAY_TRY(write_file(directory / (sheet.name + ".gp"), source));
  Refusal refusal = run_gnuplot(sheet, source, directory, limit);
  if (!refusal.why.empty()) {
    refusal.why = fmt::format("{}: {} (source: {}.gp)", sheet.title, refusal.why, sheet.name);
  }
  return refusal;
}

std::vector<Attempt> attempts_of(const FigureSet& set) {
  if (!set.histories.empty()) return history_figures(set);
  std::vector<Attempt> attempts;
  if (set.swept) {
    for (Attempt& attempt : sweep_figures(set)) attempts.push_back(std::move(attempt));
    for (Attempt& attempt : pareto_figures(set)) attempts.push_back(std::move(attempt));
    return attempts;
  }
  attempts.push_back(throughput_figure(set));
  for (Attempt& attempt : percentile_figures(set)) attempts.push_back(std::move(attempt));
  attempts.push_back(series_figure(set));
  attempts.push_back(space_figure(set));
  attempts.push_back(write_amplification_figure(set));
  attempts.push_back(barriers_figure(set));
  attempts.push_back(cpu_figure(set));
  return attempts;
}

}  // namespace

Result<Drawn> draw_figures(const FigureSet& set, const std::string& directory,
                           std::chrono::seconds limit) {
  if (!on_the_path("gnuplot")) {
    return fail(Error(ErrorKind::environment, "gnuplot is not installed")
                    .hint("install the package gnuplot-nox, or run scripts/setup"));
  }
  const std::vector<Attempt> attempts = attempts_of(set);
  Drawn drawn;
  std::string refused;  // the first that gnuplot did not draw
  bool hung = false;
  for (const Attempt& attempt : attempts) {
    if (const auto* skipped = std::get_if<Skipped>(&attempt)) {
      drawn.notes.push_back(skipped->note);
      continue;
    }
    const Sheet& sheet = std::get<Sheet>(attempt);
    if (hung) {
      drawn.notes.push_back(sheet.title + ": not tried, since gnuplot hung before");
      continue;
    }
    Result<Refusal> refusal = draw(sheet, directory, limit);
    if (!refusal) return fail(refusal.error());
    hung = refusal->hung;
    if (refusal->why.empty()) {
      drawn.figures.push_back({sheet.name, sheet.title});
    } else {  // one picture less is no reason to lose the others
      if (refused.empty()) refused = refusal->why;
      drawn.notes.push_back(std::move(refusal->why));
    }
  }
  if (drawn.figures.empty() && !refused.empty()) {
    return fail(Error(ErrorKind::environment, "gnuplot drew none of the figures; " + refused)
                    .hint("check the gnuplot that is first in PATH"));
  }
  return drawn;
}

}  // namespace assay::plots
