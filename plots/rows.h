// Figures whose y axis is one row an arm: names at the left, marks at the right.
#pragma once

#include <string>
#include <vector>

#include "plots/style.h"

namespace assay::plots {

/// The value axis of a row figure. A reference that is far beyond the arms is not allowed to
/// squeeze them: it leaves the axis and is written at the right edge instead.
struct RowScale {
  Axis axis;
  bool logarithmic = false;
  double limit = 0.0;  ///< values above it are off the axis
};
/// `largest` and `smallest` are the ends of what is drawn in each row; `room` is the length of a
/// linear axis in lengths of the longest row.
[[nodiscard]] RowScale row_scale(const std::vector<Arm>& arms,
                                 const std::vector<std::optional<double>>& largest,
                                 const std::vector<std::optional<double>>& smallest,
                                 const Format& format, double room);
/// Names, classes and the y axis; row i of `arms` is at y = i, the first one on top.
[[nodiscard]] std::string row_names(const std::vector<Arm>& arms);
/// A faint line above the first reference.
[[nodiscard]] std::string reference_rule(const std::vector<Arm>& arms);
/// "null 20 M ->" at the right edge of row `row`.
[[nodiscard]] std::string beyond_label(std::size_t row, const std::string& text,
                                       const std::string& colour);

}  // namespace assay::plots
