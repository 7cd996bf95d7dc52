// Latency against quantile, x = 1 / (1 - quantile): every decade to the right is one more nine.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "plots/kinds.h"

namespace assay::plots {
namespace {

std::string nines(double inverse) {
  const double percent = 100.0 - 100.0 / inverse;
  return fmt::format("{:.9g} %", percent);
}

struct Curve {
  std::size_t arm;
  const Percentiles* percentiles;
};

double slowest_ns(const Curve& curve) {
  double slowest = 0.0;
  for (const Percentiles::Point& point : curve.percentiles->points) {
    slowest = std::max(slowest, point.latency_ns);
  }
  return slowest;
}

/// Takes out references that lie a decade below every arm, as a store that does nothing does beside
/// durable commits: the axis would be spent on the gap. Returns the words that say so.
std::string leave_out_far_below(const FigureSet& set, std::vector<Curve>& curves) {
  double fastest = 0.0;
  for (const Curve& curve : curves) {
    if (set.arms[curve.arm].reference) continue;
    for (const Percentiles::Point& point : curve.percentiles->points) {
      if (point.latency_ns > 0 && (fastest == 0.0 || point.latency_ns < fastest)) {
        fastest = point.latency_ns;
      }
    }
  }
  std::string words;
  std::erase_if(curves, [&](const Curve& curve) {
    const double slowest = slowest_ns(curve);
    if (!set.arms[curve.arm].reference || slowest * 10 >= fastest) return false;
    words +=
        fmt::format(" {} lies below: at most {}.", set.arms[curve.arm].name, short_time(slowest));
    return true;
  });
  return words;
}

Attempt percentile_figure(const FigureSet& set, const std::string& operation,
                          std::vector<Curve> curves) {
  const std::string left_out = leave_out_far_below(set, curves);
  double longest = 10.0;
  double low = 0.0;
  double high = 0.0;
  for (const Curve& curve : curves) {
    for (const Percentiles::Point& point : curve.percentiles->points) {
      longest = std::max(longest, 1.0 / (1.0 - point.quantile));
      if (point.latency_ns <= 0) continue;
      low = low > 0 ? std::min(low, point.latency_ns) : point.latency_ns;
      high = std::max(high, point.latency_ns);
    }
  }
  if (!(low > 0)) return Skipped{fmt::format("latency of {}: no value above zero", operation)};

  Axis across = decade_axis(1.0, longest, nines);
  across.ticks[0] = {2.0, "50 %"};
  const std::vector<Look> looks = looks_of(set.arms);
  const std::string name = "latency-" + file_name(operation);
  Sheet sheet{name, "latency of " + operation, "", ""};
  sheet.body = frame(
      set.stamp, fmt::format("{}: latency of {}", set.stamp.workload, operation),
      "Every operation of every trial, timed phases. Lower and flatter is better." + left_out);
  sheet.body += axis_commands("x", across) + axis_commands("y", decade_axis(low, high, short_time));
  sheet.body +=
      "set xlabel 'share of operations that are no slower' textcolor rgb '#222222'\n"
      "set rmargin at screen 0.77\n";
  std::vector<std::size_t> shown;
  for (const Curve& curve : curves) shown.push_back(curve.arm);
  sheet.body += legend(set.arms, looks, shown);
  sheet.data = "# 1/(1-quantile) latency_ns\n";
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const Arm& arm = set.arms[curves[i].arm];
    const Look& look = looks[curves[i].arm];
    sheet.data += fmt::format("\n\n# {}\n", gnuplot_quoted(arm.name));
    for (const Percentiles::Point& point : curves[i].percentiles->points) {
      sheet.data += fmt::format("{:.9g} {:.9g}\n", 1.0 / (1.0 - point.quantile),
                                std::max(point.latency_ns, low));
    }
    sheet.body += fmt::format(
        "{}'{}.dat' index {} using 1:2 with lines linewidth {} dashtype {} "
        "linecolor rgb '{}'",
        i == 0 ? "plot " : ", \\\n     ", name, i, arm.reference ? 1.5 : 2.5, look.dash,
        look.colour);
  }
  sheet.body += "\n";
  return sheet;
}

}  // namespace

std::vector<Attempt> percentile_figures(const FigureSet& set) {
  std::set<std::string> operations;
  for (const Arm& arm : set.arms) {
    for (const Percentiles& latency : arm.latencies) operations.insert(latency.operation);
  }
  std::vector<Attempt> attempts;
  for (const std::string& operation : operations) {
    std::vector<Curve> curves;
    for (std::size_t i = 0; i < set.arms.size(); ++i) {
      for (const Percentiles& latency : set.arms[i].latencies) {
        if (latency.operation == operation && !latency.points.empty()) {
          curves.push_back({i, &latency});
        }
      }
    }
    if (!curves.empty()) attempts.push_back(percentile_figure(set, operation, curves));
  }
  if (attempts.empty()) {
    attempts.emplace_back(Skipped{
        "latency: " + (set.no_curves.empty() ? "no histogram was recorded" : set.no_curves)});
  }
  return attempts;
}

}  // namespace assay::plots
