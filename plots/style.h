// The look that all figures share: size, fonts, colours, quoting, ticks, the stamp.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plots/figure.h"

namespace assay::plots {

constexpr int kWidth = 900;
constexpr int kHeight = 540;

/// A figure before it is drawn. `body` is gnuplot source after the preamble, up to and with the
/// plot command; it reads `name`.dat.
struct Sheet {
  std::string name;
  std::string title;
  std::string data;
  std::string body;
};

/// How an arm looks in every figure. The colour depends on the store alone; arms of one store
/// differ by dash and point.
struct Look {
  std::string colour;  ///< "#rrggbb"
  int dash = 1;
  int point = 7;
};
/// One Look an arm. Colours are of the Okabe-Ito palette (safe for the colour-blind).
[[nodiscard]] std::vector<Look> looks_of(const std::vector<Arm>& arms);

/// A single-quoted gnuplot string, in which nothing is expanded; control characters become spaces.
[[nodiscard]] std::string gnuplot_quoted(const std::string& text);
/// A name for files: lower-case letters, digits and dashes, at most 160 characters, so that what is
/// put around it fits into the 255 of a file system.
[[nodiscard]] std::string file_name(const std::string& text);
/// At most `size` characters, the last one an ellipsis when something was cut.
[[nodiscard]] std::string shortened(const std::string& text, std::size_t size);

/// Ends of an axis and where its labels stand.
struct Axis {
  double low = 0.0;
  double high = 1.0;
  bool logarithmic = false;
  std::vector<std::pair<double, std::string>> ticks;
};
/// Where a value lies between the ends of an axis, 0 to 1.
[[nodiscard]] double place_on(const Axis& axis, double value);

/// Ends of the values that were added; empty before the first.
struct Extent {
  std::optional<double> low;
  std::optional<double> high;
  void add(double value) {
    low = std::min(low.value_or(value), value);
    high = std::max(high.value_or(value), value);
  }
};
using Format = std::function<std::string(double)>;
/// From 0 to a round number not below `high`.
[[nodiscard]] Axis linear_axis(double high, const Format& format);
/// Whole decades around [low, high].
[[nodiscard]] Axis decade_axis(double low, double high, const Format& format);
/// The axis cut off at `high`, with the ticks that are left.
[[nodiscard]] Axis cut_at(Axis axis, double high);
/// "set xrange ...", "set xtics (...)", for axis "x" or "y".
[[nodiscard]] std::string axis_commands(const std::string& axis, const Axis& scale);

[[nodiscard]] std::string short_number(double value);  ///< "1.5", "20", "0.25"
[[nodiscard]] std::string short_count(double value);   ///< "1.5 k", "20 M"
[[nodiscard]] std::string short_time(double ns);       ///< "1 ms"
/// In the unit of the metric.
[[nodiscard]] Format format_for(const std::string& unit);

/// Names of the arms at the right of the plot, in place of gnuplot's key, which drops entries that
/// do not fit beside a panel.
[[nodiscard]] std::string legend(const std::vector<Arm>& arms, const std::vector<Look>& looks,
                                 const std::vector<std::size_t>& shown);

/// Title, subtitle, stamp, borders, grid: the commands between `set terminal` and the body.
[[nodiscard]] std::string frame(const Stamp& stamp, const std::string& title,
                                const std::string& subtitle);
/// The whole source: for each terminal its settings, then the body.
[[nodiscard]] std::string source_of(const Sheet& sheet);

}  // namespace assay::plots
