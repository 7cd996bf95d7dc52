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
/// The metric against a swept key with intervals, one figure for each of set.curves.
[[nodiscard]] std::vector<Attempt> sweep_figures(const FigureSet& set);
/// Metric against cost, what nothing else beats in both marked; panels of set.tradeoffs.
[[nodiscard]] std::vector<Attempt> pareto_figures(const FigureSet& set);
/// An arm over its results, where it changed and what is accepted marked.
[[nodiscard]] std::vector<Attempt> history_figures(const FigureSet& set);
/// Bars of one figure an arm.
[[nodiscard]] Attempt space_figure(const FigureSet& set);
[[nodiscard]] Attempt write_amplification_figure(const FigureSet& set);
[[nodiscard]] Attempt barriers_figure(const FigureSet& set);
[[nodiscard]] Attempt cpu_figure(const FigureSet& set);

}  // namespace assay::plots
