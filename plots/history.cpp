// An arm over its results: value and interval of each, the level that it kept, what is accepted,
// and the results at which it was shown to have changed.
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "plots/kinds.h"

namespace assay::plots {
namespace {

Extent extent_of(const History& history) {
  Extent extent;
  for (const HistoryPoint& point : history.points) {
    for (const double value : {point.low, point.centre, point.high}) extent.add(value);
  }
  return extent;
}

/// From the first result of a level to the last.
struct Level {
  std::size_t first = 0;
  std::size_t last = 0;
  double value = 0.0;
};

std::vector<Level> levels_of(const History& history) {
  std::vector<Level> levels;
  double logs = 0.0;
  double weight = 0.0;
  for (std::size_t i = 0; i < history.points.size(); ++i) {
    const HistoryPoint& point = history.points[i];
    if (i == 0 || point.changed) {
      levels.push_back({i, i, 0.0});
      logs = weight = 0.0;
    }
    const auto n = static_cast<double>(std::max<std::size_t>(1, point.n));
    logs += n * std::log(point.centre);
    weight += n;
    levels.back().last = i;
    levels.back().value = std::exp(logs / weight);
  }
  return levels;
}

std::string name_of(const HistoryPoint& point) {
  return point.commit.empty() ? point.date : point.commit.substr(0, 7);
}

/// Commits below the axis; where there are many, as many as have room.
Axis results_axis(const History& history) {
  constexpr std::size_t kMostLabels = 12;
  const std::size_t count = history.points.size();
  const std::size_t step = (count + kMostLabels - 1) / kMostLabels;
  Axis axis;
  axis.low = -0.6;
  axis.high = static_cast<double>(count) - 0.4;
  for (std::size_t i = 0; i < count; i += step) {
    axis.ticks.emplace_back(static_cast<double>(i), name_of(history.points[i]));
  }
  return axis;
}

std::string data_of(const History& history, const std::vector<Level>& levels) {
  std::string data = "# result number, value, low, high, changed, accepted, n, commit, record\n";
  data += "\n\n# results\n";
  for (std::size_t i = 0; i < history.points.size(); ++i) {
    const HistoryPoint& point = history.points[i];
    data += fmt::format("{} {:.9g} {:.9g} {:.9g} {} {} {} {} {} # {}\n", i, point.centre, point.low,
                        point.high, point.changed ? 1 : 0, point.accepted ? 1 : 0, point.n,
                        point.commit.empty() ? "?" : point.commit, point.hash, point.result);
  }
  data += "\n\n# levels between changes\n";
  for (const Level& level : levels) {
    data += fmt::format("{:.2f} {:.9g}\n{:.2f} {:.9g}\n\n", static_cast<double>(level.first) - 0.4,
                        level.value, static_cast<double>(level.last) + 0.4, level.value);
  }
  return data;
}

/// The level in front of a change is what the corridor is around.
std::string corridors(const History& history, const std::vector<Level>& levels) {
  std::string out;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    out += fmt::format(
        "set object {} rectangle from {:.2f}, {:.9g} to {:.2f}, {:.9g} behind fillcolor rgb "
        "'#e8eaed' fillstyle solid 0.7 noborder\n",
        701 + i, static_cast<double>(levels[i].first) - 0.4, levels[i].value / history.corridor,
        static_cast<double>(levels[i].last) + 0.4, levels[i].value * history.corridor);
  }
  return out;
}

std::string marks(const History& history, const std::vector<Level>& levels, double top) {
  std::string out;
  for (std::size_t i = 1; i < levels.size(); ++i) {
    const std::size_t at = levels[i].first;
    const double ratio = history.points[at].centre / levels[i - 1].value;
    out += fmt::format(
        "set arrow {} from {:.2f}, graph 0 to {:.2f}, graph 1 nohead linewidth 1.5 dashtype 2 "
        "linecolor rgb '#b3261e'\n"
        "set label {} {} at {:.2f}, {:.9g} right offset -0.6,0 font ',12' noenhanced textcolor "
        "rgb '#b3261e'\n",
        801 + i, static_cast<double>(at) - 0.5, static_cast<double>(at) - 0.5, 801 + i,
        gnuplot_quoted(fmt::format("{} changed it: {:.3g}x", name_of(history.points[at]), ratio)),
        static_cast<double>(at) - 0.5, top);
  }
  return out;
}

Attempt history_figure(const FigureSet& set, const History& history, const std::string& file) {
  const std::string title = history.what + " of " + history.arm;
  if (history.points.empty()) return Skipped{title + ": none has two values"};
  const Extent extent = extent_of(history);
  const std::vector<Level> levels = levels_of(history);
  const Format format = history.what == set.metric ? format_for(set.unit) : Format(short_count);
  const double low = *extent.low;
  const bool decades = low > 0 && *extent.high / low > 20.0;
  const double room = *extent.high * history.corridor * 1.12;
  const Axis up =
      decades ? decade_axis(low, room, format) : cut_at(linear_axis(room, format), room);
  Arm arm;
  arm.name = history.arm;
  arm.store = history.store;
  const Look look = looks_of({arm}).front();
  Sheet sheet{file, title, data_of(history, levels), ""};
  sheet.body = frame(set.stamp, fmt::format("{}: {}", set.stamp.experiment, title),
                     fmt::format("Whisker: {:.3g} % interval. Band: {:g}x around the level. Red: "
                                 "first result outside of it. Diamond: accepted baseline.",
                                 set.stamp.confidence * 100, history.corridor));
  sheet.body += axis_commands("x", results_axis(history)) + axis_commands("y", up);
  sheet.body += fmt::format(
      "set xlabel 'commit of each result, oldest first' textcolor rgb '#222222'\nunset key\n"
      "set label 104 {} at screen 0.02, screen 0.868 font ',12' noenhanced textcolor rgb "
      "'#222222'\nset tmargin at screen 0.83\n",
      gnuplot_quoted(history.what == set.metric ? set.unit : history.what));
  sheet.body += corridors(history, levels) + marks(history, levels, up.high * 0.95);
  const auto points = [&](const char* filter, int type, double size, const std::string& colour) {
    return fmt::format(
        ", \\\n     '{}.dat' index 0 using 1:({}) with points pointtype {} "
        "pointsize {} linewidth 2 linecolor rgb '{}'",
        file, filter, type, size, colour);
  };
  sheet.body += fmt::format(
      "plot '{0}.dat' index 1 using 1:2 with lines linewidth 1.5 linecolor rgb '#5f6368', \\\n"
      "     '{0}.dat' index 0 using 1:2:3:4 with yerrorbars pointtype 7 pointsize 1.1 linewidth 2 "
      "linecolor rgb '{1}'",
      file, look.colour);
  sheet.body += points("$5 == 1 ? $2 : NaN", 6, 2.2, "#b3261e");
  sheet.body += points("$6 == 1 ? $2 : NaN", 12, 2.4, "#222222") + "\n";
  return sheet;
}

}  // namespace

std::vector<Attempt> history_figures(const FigureSet& set) {
  std::vector<Attempt> attempts;
  std::map<std::string, std::size_t> taken;
  for (const History& history : set.histories) {
    const std::string file = file_name("history-" + history.arm);
    const std::size_t nth = ++taken[file];
    attempts.push_back(
        history_figure(set, history, nth == 1 ? file : fmt::format("{}-{}", file, nth)));
  }
  return attempts;
}

}  // namespace assay::plots
