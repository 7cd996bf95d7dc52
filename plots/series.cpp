// Rate and p99 over the timed part: the median of the trials, with their quartiles as a band.
#include <algorithm>

#include <fmt/format.h>

#include "plots/kinds.h"

namespace assay::plots {
namespace {

struct Panel {
  const char* title;
  double top;
  double bottom;
  int first_column;  ///< low; median and high follow
  Axis axis;
};

/// Ends of what is above zero: a slot in which nothing ended says nothing.
struct PositiveExtent {
  double low = 0.0;
  double high = 0.0;
  void add(double value) {
    if (value <= 0) return;
    low = low > 0 ? std::min(low, value) : value;
    high = std::max(high, value);
  }
};

/// Linear from zero where the arms are near each other, else decades.
Axis scale_of(const PositiveExtent& extent, const Format& format) {
  if (extent.high / extent.low > 20.0) return decade_axis(extent.low, extent.high, format);
  Axis axis = linear_axis(extent.high, format);
  if (axis.ticks.size() > 5) {  // half a page high: every other label is enough
    std::vector<std::pair<double, std::string>> fewer;
    for (std::size_t i = 0; i < axis.ticks.size(); i += 2) fewer.push_back(axis.ticks[i]);
    axis.ticks = std::move(fewer);
  }
  return axis;
}

std::string number(const std::optional<double>& value) {
  return value ? fmt::format("{:.9g}", *value) : "NaN";
}

std::string panel_source(const std::vector<std::size_t>& arms, const std::vector<Look>& looks,
                         const Panel& panel) {
  std::string out = "unset logscale y\n" + axis_commands("y", panel.axis);
  out +=
      fmt::format("set tmargin at screen {}\nset bmargin at screen {}\n", panel.top, panel.bottom);
  out += fmt::format(
      "set label 104 {} at screen 0.02, screen {:.3f} font ',12' textcolor rgb "
      "'#222222'\n",
      gnuplot_quoted(panel.title), panel.top + 0.035);
  std::string plots;
  for (std::size_t i = 0; i < arms.size(); ++i) {
    const Look& look = looks[arms[i]];
    const int c = panel.first_column;
    plots += fmt::format(
        "{}'series.dat' index {} using 1:{}:{} with filledcurves linecolor rgb "
        "'{}' fillstyle transparent solid 0.18 noborder",
        plots.empty() ? "plot " : ", \\\n     ", i, c, c + 2, look.colour);
    plots += fmt::format(
        ", \\\n     'series.dat' index {} using 1:{} with lines linewidth 2 "
        "dashtype {} linecolor rgb '{}'",
        i, c + 1, look.dash, look.colour);
  }
  return out + plots + "\n";
}

}  // namespace

Attempt series_figure(const FigureSet& set) {
  std::vector<std::size_t> arms;
  PositiveExtent rate;
  PositiveExtent p99;
  double end_s = 0.0;
  for (std::size_t i = 0; i < set.arms.size(); ++i) {
    // The floor of the harness would only stretch the axis; it is in the other figures.
    if (set.arms[i].series.size() < 2 || set.arms[i].store == "null") continue;
    arms.push_back(i);
    for (const Slot& slot : set.arms[i].series) {
      end_s = std::max(end_s, slot.t_s);
      rate.add(slot.rate_low);
      rate.add(slot.rate_high);
      p99.add(slot.p99_low_ns.value_or(0.0));
      p99.add(slot.p99_high_ns.value_or(0.0));
    }
  }
  if (arms.empty() || rate.high == 0.0) {
    return Skipped{"time series: " + (set.no_curves.empty() ? "the trials are too short to have one"
                                                            : set.no_curves)};
  }
  const std::vector<Look> looks = looks_of(set.arms);
  Sheet sheet{"series", "rate and p99 over time",
              "# t_s rate_low rate_median rate_high p99_low_ns "
              "p99_median_ns p99_high_ns\n",
              ""};
  for (const std::size_t i : arms) {
    sheet.data += fmt::format("\n\n# {}\n", gnuplot_quoted(set.arms[i].name));
    for (const Slot& slot : set.arms[i].series) {
      sheet.data += fmt::format("{:.9g} {:.9g} {:.9g} {:.9g} {} {} {}\n", slot.t_s, slot.rate_low,
                                slot.rate_median, slot.rate_high, number(slot.p99_low_ns),
                                number(slot.p99_median_ns), number(slot.p99_high_ns));
    }
  }
  sheet.body = frame(set.stamp, fmt::format("{}: rate and p99 over time", set.stamp.workload),
                     "Line: median of the trials. Band: their quartiles.");
  sheet.body += "set rmargin at screen 0.77\n" + legend(set.arms, looks, arms);
  Axis time = linear_axis(end_s, short_number);
  time = cut_at(time, end_s);
  Axis unlabelled = time;
  for (auto& [value, label] : unlabelled.ticks) label.clear();
  const bool with_p99 = p99.high > 0;
  const Panel upper{"operations/s", 0.815, with_p99 ? 0.535 : 0.175, 2,
                    scale_of(rate, short_count)};
  sheet.body += axis_commands("x", with_p99 ? unlabelled : time) + "set multiplot\n";
  if (!with_p99) sheet.body += "set xlabel 'seconds into the timed part'\n";
  sheet.body += panel_source(arms, looks, upper);
  if (with_p99) {
    const Panel lower{"p99 latency", 0.465, 0.175, 5, scale_of(p99, short_time)};
    sheet.body += axis_commands("x", time);
    sheet.body +=
        "unset label\nunset arrow\n"  // the first panel has drawn them
        "set xlabel 'seconds into the timed part' textcolor rgb '#222222'\n";
    sheet.body += panel_source(arms, looks, lower);
  }
  sheet.body += "unset multiplot\n";
  return sheet;
}

}  // namespace assay::plots
