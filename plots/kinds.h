// The kinds of figure, one source file each. Every function returns no Sheet, or a note instead of
// one, when its data are missing.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "plots/style.h"

namespace assay::plots {

struct Skipped {
  std::string note;
};
using Attempt = std::variant<Sheet, Skipped>;

/// The metric with its interval, every trial process as a dot.
[[nodiscard]] Attempt throughput_figure(const FigureSet& set);
/// One figure an operation class: latency against quantile, in the manner of HdrHistogram's plots.
[[nodiscard]] std::vector<Attempt> percentile_figures(const FigureSet& set);
/// Rate and p99 a second, median and quartiles over the trials.
[[nodiscard]] Attempt series_figure(const FigureSet& set);
/// Bars of one figure an arm.
[[nodiscard]] Attempt space_figure(const FigureSet& set);
[[nodiscard]] Attempt write_amplification_figure(const FigureSet& set);
[[nodiscard]] Attempt barriers_figure(const FigureSet& set);
[[nodiscard]] Attempt cpu_figure(const FigureSet& set);

}  // namespace assay::plots
