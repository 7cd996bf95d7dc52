// The metric of every arm with its interval, and every trial process as a dot.
#include <algorithm>

#include <fmt/format.h>

#include "plots/kinds.h"
#include "plots/rows.h"

namespace assay::plots {
namespace {

/// Dots of one row side by side without chance: a fixed pattern over the row's height.
double spread(std::size_t i) {
  return 0.17 + 0.2 * static_cast<double>((i * 7) % 11) / 10.0;
}

std::string name_of_unit(const std::string& unit) {
  return unit == "ns" ? std::string("time") : unit;
}

}  // namespace

Attempt throughput_figure(const FigureSet& set) {
  std::vector<std::optional<double>> largest;
  std::vector<std::optional<double>> smallest;
  bool any = false;
  for (const Arm& arm : set.arms) {
    std::optional<double> top = arm.high ? arm.high : arm.centre;
    std::optional<double> bottom = arm.low ? arm.low : arm.centre;
    for (const double value : arm.values) {
      top = std::max(top.value_or(value), value);
      bottom = std::min(bottom.value_or(value), value);
    }
    any = any || arm.centre || !arm.values.empty();
    largest.push_back(top);
    smallest.push_back(bottom);
  }
  if (!any) return Skipped{set.metric + ": no arm has a value"};

  const Format format = format_for(set.unit);
  const RowScale scale = row_scale(set.arms, largest, smallest, format, 1.05);
  const std::vector<Look> looks = looks_of(set.arms);
  const std::string file = file_name(set.metric);
  Sheet sheet{file, set.metric, "", ""};
  sheet.body = frame(set.stamp, fmt::format("{}: {}", set.stamp.workload, set.metric),
                     fmt::format("Bar: geometric mean. Whisker: {:.3g} % interval. Each dot is one "
                                 "trial process.",
                                 set.stamp.confidence * 100));
  sheet.body += row_names(set.arms) + reference_rule(set.arms);
  sheet.body += axis_commands("x", scale.axis);
  sheet.body += fmt::format(
      "set xlabel {} noenhanced textcolor rgb '#222222'\nunset key\n"
      "set style fill solid 0.85 noborder\n",
      gnuplot_quoted(name_of_unit(set.unit) + (scale.logarithmic ? " (logarithmic)" : "")));
  sheet.data = "# index 2i: mean low high row; index 2i+1: value row, of arm i\n";
  std::vector<std::string> plots;
  for (std::size_t i = 0; i < set.arms.size(); ++i) {
    const Arm& arm = set.arms[i];
    const bool beyond = largest[i] && *largest[i] > scale.axis.high;
    const std::string name = gnuplot_quoted(arm.name);
    sheet.data += fmt::format("\n\n# {} {}\n", i, name);
    if (arm.centre) {
      sheet.data += fmt::format("{:.9g} {:.9g} {:.9g} {}\n", *arm.centre,
                                arm.low.value_or(*arm.centre), arm.high.value_or(*arm.centre), i);
    } else {
      sheet.data += "NaN NaN NaN NaN\n";
    }
    sheet.data += fmt::format("\n\n# {} trials\n", name);
    for (std::size_t k = 0; k < arm.values.size(); ++k) {
      sheet.data +=
          fmt::format("{:.9g} {:.3f}\n", arm.values[k], static_cast<double>(i) + spread(k));
    }
    if (arm.values.empty()) sheet.data += "NaN NaN\n";
    if (beyond) {
      sheet.body += beyond_label(i, format(arm.centre.value_or(*largest[i])), "#5f6368");
      continue;
    }
    const std::string box = fmt::format(
        "($1/2+{0}/2):($4-0.12):({0}):1:($4-0.30):($4+0.06) with boxxyerror linecolor rgb '{1}'",
        scale.logarithmic ? scale.axis.low : 0.0, looks[i].colour);
    plots.push_back(fmt::format("'{}.dat' index {} using {}", file, 2 * i, box));
    plots.push_back(
        fmt::format("'{}.dat' index {} using 1:($4-0.12):2:3 with xerrorbars "
                    "pointtype 0 linewidth 2 linecolor rgb '#222222'",
                    file, 2 * i));
    plots.push_back(
        fmt::format("'{}.dat' index {} using 1:2 with points pointtype {} "
                    "pointsize 0.55 linecolor rgb '{}'",
                    file, 2 * i + 1, looks[i].point, looks[i].colour));
  }
  sheet.body += "plot ";
  for (std::size_t i = 0; i < plots.size(); ++i) {
    sheet.body += (i == 0 ? "" : ", \\\n     ") + plots[i];
  }
  sheet.body += "\n";
  return sheet;
}

}  // namespace assay::plots
