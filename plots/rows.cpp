#include "plots/rows.h"

#include <algorithm>

#include <fmt/format.h>

namespace assay::plots {

RowScale row_scale(const std::vector<Arm>& arms, const std::vector<std::optional<double>>& largest,
                   const std::vector<std::optional<double>>& smallest, const Format& format,
                   double room) {
  constexpr double kFar = 2.5;          // times the largest arm: a reference beyond leaves the axis
  constexpr double kWorthDecades = 30;  // largest over smallest arm: a linear axis hides the small
  double high = 0.0;
  double low = 0.0;
  double reference_high = 0.0;
  for (std::size_t i = 0; i < arms.size(); ++i) {
    if (!largest[i]) continue;
    if (arms[i].reference) {
      reference_high = std::max(reference_high, *largest[i]);
      continue;
    }
    high = std::max(high, *largest[i]);
    const double least = smallest[i].value_or(*largest[i]);
    if (least > 0) low = low > 0 ? std::min(low, least) : least;
  }
  if (high == 0.0) high = reference_high;
  if (high == 0.0)
    high = 1.0;  // nothing but zeros, as the barriers of reads: an axis needs a length
  RowScale scale;
  scale.limit = high * kFar;
  for (std::size_t i = 0; i < arms.size(); ++i) {
    if (arms[i].reference && largest[i] && *largest[i] <= scale.limit) {
      high = std::max(high, *largest[i]);
    }
  }
  scale.logarithmic = low > 0 && high / low > kWorthDecades;
  scale.axis = scale.logarithmic ? decade_axis(low, high, format)
                                 : cut_at(linear_axis(high, format), high * room);
  return scale;
}

std::string row_names(const std::vector<Arm>& arms) {
  std::string out = fmt::format("set yrange [{}:-0.6] noextend\nunset ytics\nset grid noytics\n",
                                static_cast<double>(arms.size()) - 0.4);
  out += "set lmargin at screen 0.275\n";
  for (std::size_t i = 0; i < arms.size(); ++i) {
    const std::string store =
        arms[i].version.empty() ? arms[i].store : arms[i].store + " " + arms[i].version;
    const std::string second =
        arms[i].name == arms[i].store
            ? arms[i].version + (arms[i].version.empty() ? "" : " \u00b7 ") + arms[i].durability
            : store + " \u00b7 " + arms[i].durability;
    const std::size_t proof = arms[i].durability.find('(');
    const bool whole = second.size() <= 37 || proof == std::string::npos;  // the dot has two bytes
    const double gap = 0.13 * std::max(1.0, static_cast<double>(arms.size()) / 5.0);
    out += fmt::format(
        "set label {} {} at screen 0.262, first {:.3f} right font ',14' noenhanced "
        "textcolor rgb '#222222'\n",
        201 + 2 * i, gnuplot_quoted(shortened(arms[i].name, 26)), static_cast<double>(i) - gap);
    out += fmt::format(
        "set label {} {} at screen 0.262, first {:.3f} right font ',11' noenhanced "
        "textcolor rgb '#5f6368'\n",
        202 + 2 * i,
        gnuplot_quoted(shortened(whole ? second : second.substr(0, second.rfind(" (")), 36)),
        static_cast<double>(i) + gap);
    if (whole) continue;
    // Who says what the class is must not be cut off: "(declared power, settings give process)".
    out += fmt::format(
        "set label {} {} at screen 0.262, first {:.3f} right font ',9' noenhanced "
        "textcolor rgb '#5f6368'\n",
        401 + i, gnuplot_quoted(shortened(arms[i].durability.substr(proof), 44)),
        static_cast<double>(i) + 2.3 * gap);
  }
  return out;
}

std::string reference_rule(const std::vector<Arm>& arms) {
  for (std::size_t i = 1; i < arms.size(); ++i) {
    if (!arms[i].reference || arms[i - 1].reference) continue;
    return fmt::format(
        "set arrow 301 from screen 0.02, first {0:.2f} to screen 0.97, first {0:.2f} "
        "nohead linewidth 1 dashtype 2 linecolor rgb '#9aa0a6'\n"
        "set label 302 'references' at screen 0.02, first {1:.2f} left "
        "font ',11' textcolor rgb '#5f6368'\n",
        static_cast<double>(i) - 0.5,
        static_cast<double>(i) - 0.5 + 0.028 * static_cast<double>(arms.size() + 1));
  }
  return {};
}

std::string beyond_label(std::size_t row, const std::string& text, const std::string& colour) {
  return fmt::format(
      "set label {} {} at screen 0.96, first {} right font ',13' noenhanced "
      "textcolor rgb '{}'\n",
      401 + row, gnuplot_quoted(text + " \u2192"), row, colour);
}

}  // namespace assay::plots
