// The metric against a swept key: a line an arm, whiskers of its interval, a dot a trial process.
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "plots/kinds.h"

namespace assay::plots {
namespace {

/// Labels at the values that were measured; those that would touch the one before are left out.
Axis across_axis(const SweepCurves& set, const std::vector<double>& xs) {
  constexpr double kLeastApart = 0.055;  // of the axis
  Axis axis;
  const double first = xs.front();
  const double last = xs.back();
  axis.logarithmic = set.words.empty() && first > 0 && last / first > 10.0;
  if (axis.logarithmic) {
    const double margin = std::pow(last / first, 0.06);
    axis.low = first / margin;
    axis.high = last * margin;
  } else {
    const double margin = last > first ? (last - first) * 0.06 : 1.0;
    axis.low = first - margin;
    axis.high = last + margin;
  }
  std::optional<double> before;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    if (before && place_on(axis, xs[i]) - *before < kLeastApart) continue;
    before = place_on(axis, xs[i]);
    const bool word = i < set.words.size();
    const bool whole = xs[i] == std::floor(xs[i]) && std::fabs(xs[i]) < 1e5;
    axis.ticks.emplace_back(xs[i], word    ? shortened(set.words[i], 18)
                                   : whole ? fmt::format("{:.0f}", xs[i])
                                           : short_count(xs[i]));
  }
  return axis;
}

Axis up_axis(const Extent& extent, const Format& format) {
  const double high = extent.high.value_or(1.0);
  const double low = extent.low.value_or(high);
  if (low > 0 && high / low > 20.0) return decade_axis(low, high, format);
  return linear_axis(high, format);
}

std::string number(const std::optional<double>& value) {
  return value ? fmt::format("{:.9g}", *value) : "NaN";
}

std::string data_of(const SweepCurves& set) {
  std::string data = "# index 2i: x mean low high; index 2i+1: x value of a trial, of arm i\n";
  for (std::size_t i = 0; i < set.curves.size(); ++i) {
    const SweepCurve& curve = set.curves[i];
    data += fmt::format("\n\n# {} {}\n", i, gnuplot_quoted(curve.arm));
    std::string dots;
    for (const SweepCurve::Point& point : curve.points) {
      const auto& low = point.low ? point.low : point.centre;
      const auto& high = point.high ? point.high : point.centre;
      data += fmt::format("{:.9g} {} {} {}\n", point.x, number(point.centre), number(low),
                          number(high));
      for (const double value : point.values) {
        dots += fmt::format("{:.9g} {:.9g}\n", point.x, value);
      }
    }
    data += fmt::format("\n\n# {} trials\n{}", gnuplot_quoted(curve.arm),
                        dots.empty() ? "NaN NaN\n" : dots);
  }
  return data;
}

/// Whiskers of arms at one x stand beside each other.
std::string beside(const Axis& axis, std::size_t i, std::size_t arms) {
  const double step = std::min(0.008, 0.05 / static_cast<double>(arms));
  const double place = (static_cast<double>(i) - static_cast<double>(arms - 1) / 2.0) * step;
  return axis.logarithmic ? fmt::format("($1*{:.6g})", std::pow(axis.high / axis.low, place))
                          : fmt::format("($1+({:.6g}))", place * (axis.high - axis.low));
}

std::string plots_of(const SweepCurves& set, const std::string& file, const Axis& axis,
                     const std::vector<Look>& looks) {
  std::string plots;
  for (std::size_t i = 0; i < set.curves.size(); ++i) {
    const std::string x = beside(axis, i, set.curves.size());
    const Look& look = looks[i];
    const auto add = [&](const std::string& what) {
      plots += (plots.empty() ? "plot " : ", \\\n     ") + what;
    };
    add(
        fmt::format("'{}.dat' index {} using {}:2 with points pointtype {} pointsize 0.35 "
                    "linecolor rgb '{}'",
                    file, 2 * i + 1, x, look.point, look.colour));
    if (set.words.empty()) {  // between two words there is nothing
      add(
          fmt::format("'{}.dat' index {} using {}:2 with lines linewidth {} dashtype {} "
                      "linecolor rgb '{}'",
                      file, 2 * i, x, set.curves[i].reference ? 1.5 : 2.5, look.dash, look.colour));
    }
    add(
        fmt::format("'{}.dat' index {} using {}:2:3:4 with yerrorbars pointtype {} "
                    "pointsize 0.9 linewidth 1.6 linecolor rgb '{}'",
                    file, 2 * i, x, look.point, look.colour));
  }
  return plots + "\n";
}

/// A grey line at each x of which nothing may be said.
std::string lines_of_not_judged(const SweepCurves& set) {
  std::string lines;
  for (const double x : set.not_judged) {
    lines += fmt::format(
        "set arrow from first {0:.9g}, graph 0 to first {0:.9g}, graph 1 nohead back linewidth 6 "
        "linecolor rgb '#d5d8dc'\n",
        x);
  }
  return lines;
}

Attempt sweep_figure(const FigureSet& set, const SweepCurves& curves, const std::string& file) {
  const std::string what = fmt::format("{} over {}", set.metric, curves.key);
  const std::string title = curves.held.empty() ? what : what + ", " + curves.held;
  std::vector<double> xs;
  Extent extent;
  std::vector<Arm> arms;
  for (const SweepCurve& curve : curves.curves) {
    arms.emplace_back();
    arms.back().name = curve.arm;
    arms.back().store = curve.store;
    for (const SweepCurve::Point& point : curve.points) {
      xs.push_back(point.x);
      for (const auto& end : {point.centre, point.low, point.high}) {
        if (end) extent.add(*end);
      }
      for (const double value : point.values) extent.add(value);
    }
  }
  if (!extent.high) return Skipped{title + ": no arm has a value"};
  std::sort(xs.begin(), xs.end());
  xs.erase(std::unique(xs.begin(), xs.end()), xs.end());
  const Axis across = across_axis(curves, xs);
  const Axis up = up_axis(extent, format_for(set.unit));
  const std::vector<Look> looks = looks_of(arms);
  std::vector<std::size_t> shown(arms.size());
  for (std::size_t i = 0; i < shown.size(); ++i) shown[i] = i;
  Sheet sheet{file, title, data_of(curves), ""};
  sheet.body = frame(set.stamp, fmt::format("{}: {}", set.stamp.workload, title),
                     fmt::format("Point: geometric mean. Whisker: {:.3g} % interval. Each dot is "
                                 "one trial process. {} is better.{}",
                                 set.stamp.confidence * 100, set.less_is_better ? "Less" : "More",
                                 curves.not_judged.empty() ? "" : " Grey line: not judged."));
  sheet.body += lines_of_not_judged(curves);
  sheet.body += axis_commands("x", across) + axis_commands("y", up);
  const char* scale = across.logarithmic ? " (logarithmic)" : "";
  sheet.body += fmt::format(
      "set xlabel {} noenhanced textcolor rgb '#222222'\n"
      "set label 104 {} at screen 0.02, screen 0.868 font ',12' noenhanced textcolor rgb "
      "'#222222'\nset tmargin at screen 0.83\nset rmargin at screen 0.77\n",
      gnuplot_quoted(curves.key + scale),
      gnuplot_quoted((set.unit == "ns" ? set.metric : set.unit) +
                     (up.logarithmic ? " (logarithmic)" : "")));
  sheet.body += legend(arms, looks, shown) + plots_of(curves, file, across, looks);
  return sheet;
}

}  // namespace

std::vector<Attempt> sweep_figures(const FigureSet& set) {
  constexpr std::size_t kMostFigures = 12;
  std::vector<Attempt> attempts;
  std::map<std::string, std::size_t> taken;
  for (const SweepCurves& curves : set.curves) {
    if (attempts.size() == kMostFigures) {
      attempts.emplace_back(Skipped{fmt::format("{} more curves of the sweep: the table holds them",
                                                set.curves.size() - kMostFigures)});
      break;
    }
    const std::string file = file_name(set.metric + "-over-" + curves.key);
    const std::size_t nth = ++taken[file];
    attempts.push_back(
        sweep_figure(set, curves, nth == 1 ? file : fmt::format("{}-{}", file, nth)));
  }
  if (attempts.empty()) attempts.emplace_back(Skipped{"curves: no key has two values"});
  return attempts;
}

}  // namespace assay::plots
