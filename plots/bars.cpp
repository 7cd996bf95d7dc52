// Figures with one bar an arm: space, write amplification, barriers, processor time.
#include <algorithm>

#include <fmt/format.h>

#include "plots/kinds.h"
#include "plots/rows.h"

namespace assay::plots {
namespace {

struct BarKind {
  const char* name;
  const char* title;
  const char* subtitle;
  const char* axis;
  std::optional<double> Arm::* value;
  Format format;
};

Attempt bar_figure(const FigureSet& set, const BarKind& kind) {
  std::vector<std::optional<double>> values;
  bool any = false;
  for (const Arm& arm : set.arms) {
    values.push_back(arm.*kind.value);
    any = any || (!arm.reference && values.back());
  }
  if (!any) return Skipped{fmt::format("{}: no arm has this figure", kind.title)};

  const RowScale scale = row_scale(set.arms, values, values, kind.format, 1.15);
  const std::vector<Look> looks = looks_of(set.arms);
  Sheet sheet{kind.name, kind.title, "", ""};
  sheet.body =
      frame(set.stamp, fmt::format("{}: {}", set.stamp.workload, kind.title), kind.subtitle);
  sheet.body += row_names(set.arms) + reference_rule(set.arms) + axis_commands("x", scale.axis);
  sheet.body += fmt::format(
      "set xlabel {} noenhanced textcolor rgb '#222222'\nunset key\n"
      "set style fill solid 0.85 noborder\n",
      gnuplot_quoted(kind.axis + std::string(scale.logarithmic ? " (logarithmic)" : "")));
  sheet.data = "# value row\n";
  std::string plots;
  for (std::size_t i = 0; i < set.arms.size(); ++i) {
    sheet.data += fmt::format("\n\n# {}\n", gnuplot_quoted(set.arms[i].name));
    if (!values[i]) {
      sheet.data += "NaN NaN\n";
      sheet.body += fmt::format(
          "set label {} 'not known' at graph 0.01, first {} left font ',12' "
          "textcolor rgb '#5f6368'\n",
          501 + i, i);
      continue;
    }
    sheet.data += fmt::format("{:.9g} {}\n", *values[i], i);
    const std::string text = kind.format(*values[i]);
    if (*values[i] > scale.axis.high) {
      sheet.body += beyond_label(i, text, "#5f6368");
      continue;
    }
    // A logarithmic axis has no place for nothing: such a bar has no length.
    const bool empty = scale.logarithmic && *values[i] < scale.axis.low;
    sheet.body += fmt::format(
        "set label {} {} at first {:.9g}, first {} left offset 0.8,0 "
        "font ',13' noenhanced textcolor rgb '#222222'\n",
        501 + i, gnuplot_quoted(text), empty ? scale.axis.low : *values[i], i);
    if (empty) continue;
    plots += fmt::format(
        "{0}'{1}.dat' index {2} using ($1/2+{3}/2):2:({3}):1:($2-0.26):($2+0.26) "
        "with boxxyerror linecolor rgb '{4}'",
        plots.empty() ? "" : ", \\\n     ", kind.name, i, scale.logarithmic ? scale.axis.low : 0.0,
        looks[i].colour);
  }
  sheet.body += "plot " + plots + "\n";
  return sheet;
}

}  // namespace

Attempt space_figure(const FigureSet& set) {
  return bar_figure(set, {"space", "space on disk",
                          "Bytes allocated on disk an entry, after the drain. Less is better.",
                          "bytes an entry", &Arm::bytes_per_entry, short_count});
}

Attempt write_amplification_figure(const FigureSet& set) {
  return bar_figure(set, {"write-amplification", "write amplification",
                          "Bytes that reached the device a byte of keys and values written. "
                          "Less is better.",
                          "device bytes a logical byte", &Arm::write_amplification, short_count});
}

Attempt barriers_figure(const FigureSet& set) {
  return bar_figure(set, {"barriers", "barriers",
                          "fsync, fdatasync, msync, sync_file_range, syncfs and O_DSYNC writes, "
                          "counted.",
                          "barriers an operation", &Arm::barriers_per_operation, short_count});
}

Attempt cpu_figure(const FigureSet& set) {
  return bar_figure(set, {"cpu", "processor time",
                          "User and system time of the whole process an operation. Less is better.",
                          "processor time an operation", &Arm::cpu_ns_per_operation, short_time});
}

}  // namespace assay::plots
