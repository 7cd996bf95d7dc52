#include "harness/report/sweep.h"

#include <algorithm>
#include <charconv>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay::report {
namespace {

bool is_subject(const Row& row) {
  return !row.reference && !row.a_a_twin && !row.control && !row.disqualified;
}

std::string join(const std::vector<std::string>& parts) {
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::optional<double> number_of(const std::string& text) {
  double value = 0.0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "bytes=16, threads=4" of the axes that `wanted` takes.
template <class Wanted>
std::string values_text(const ReportModel& model, const SweepCell& cell, Wanted wanted) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < model.axes.size(); ++i) {
    if (wanted(i)) parts.push_back(model.axes[i].label + "=" + cell.values[i]);
  }
  return join(parts);
}

const Row* row_of(const ReportModel& model, const std::string& cell, const std::string& arm) {
  for (const Row& row : model.rows) {
    if (row.cell == cell && row.base == arm) return &row;
  }
  return nullptr;
}

/// Where an arm has the best figure, and where it was shown to be ahead of every other one.
struct Lead {
  std::vector<std::string> cells;
  std::size_t shown = 0;
};

std::map<std::string, Lead> leads_of(const ReportModel& model) {
  std::map<std::string, Lead> leads;
  for (const SweepCell& cell : model.cells) {
    std::vector<const Row*> arms;  // best first
    for (const Row& row : model.rows) {
      if (row.cell == cell.name && is_subject(row) && row.geometric_mean.value) {
        arms.push_back(&row);
      }
    }
    if (arms.empty()) continue;
    Lead& lead = leads[arms.front()->base];
    lead.cells.push_back(cell.name);
    const bool ahead =
        arms.size() > 1 && std::all_of(arms.begin() + 1, arms.end(), [&](const Row* other) {
          return shows_ahead(model, arms.front()->arm, other->arm);
        });
    lead.shown += ahead ? 1U : 0U;
  }
  return leads;
}

/// False for a cell whose gates were shut: its figures are shown, and nothing is said of them.
bool is_judged(const SweepCell& cell) {
  return (!cell.a_a || cell.a_a->verdict == "ok") &&
         (!cell.control || cell.control->verdict == "ok");
}

std::vector<std::string> not_judged(const ReportModel& model) {
  std::vector<std::string> cells;
  for (const SweepCell& cell : model.cells) {
    if (!is_judged(cell)) cells.push_back(cell.name);
  }
  return cells;
}

std::string claims_text(const ReportModel& model) {
  std::map<std::string, std::size_t> became;
  std::size_t declared = 0;
  for (const Comparison& comparison : model.comparisons) {
    if (!comparison.declared) continue;
    ++declared;
    ++became[comparison.verdict == "void" ? "not judged" : comparison.claim];
  }
  if (declared == 0) return {};
  std::vector<std::string> parts;
  for (const char* state : {"shown", "refuted", "open", "not judged"}) {
    if (became[state] > 0) parts.push_back(fmt::format("{} {}", became[state], state));
  }
  return fmt::format("Of {} claims over {} cells: {}. ", declared, model.cells.size(), join(parts));
}

// Figures ----------------------------------------------------------------------------------------

/// The x of a cell on `axis`: its number, or its place among the words.
double x_of(const SweepAxisShown& axis, bool numeric, const std::string& value) {
  if (numeric) return number_of(value).value_or(0.0);
  const auto found = std::find(axis.values.begin(), axis.values.end(), value);
  return static_cast<double>(found - axis.values.begin());
}

/// Arms in the order of the first cell; null is left out, whose floor would squeeze all others.
std::vector<const Row*> arms_drawn(const ReportModel& model) {
  std::vector<const Row*> arms;
  for (const Row& row : model.rows) {
    const bool first = row.cell == model.cells.front().name;
    const bool drawn = !row.a_a_twin && !row.control && !(row.reference && row.store == "null");
    if (first && drawn) arms.push_back(&row);
  }
  return arms;
}

plots::SweepCurve curve_of(const ReportModel& model, const Row& arm, std::size_t axis, bool numeric,
                           const std::vector<const SweepCell*>& cells) {
  plots::SweepCurve curve{arm.base, arm.store, arm.reference, {}};
  for (const SweepCell* cell : cells) {
    const Row* row = row_of(model, cell->name, arm.base);
    if (row == nullptr || row->disqualified || !row->geometric_mean.value) continue;
    plots::SweepCurve::Point point;
    point.x = x_of(model.axes[axis], numeric, cell->values[axis]);
    point.centre = row->geometric_mean.value;
    if (row->interval) {
      point.low = row->interval->low;
      point.high = row->interval->high;
    }
    point.values = row->values;
    curve.points.push_back(std::move(point));
  }
  std::sort(curve.points.begin(), curve.points.end(),
            [](const auto& a, const auto& b) { return a.x < b.x; });
  return curve;
}

/// One set of curves for each combination of the other axes' values.
void add_curves(const ReportModel& model, std::size_t axis, plots::FigureSet& set) {
  const SweepAxisShown& swept = model.axes[axis];
  const bool numeric =
      std::all_of(swept.values.begin(), swept.values.end(),
                  [](const std::string& value) { return number_of(value).has_value(); });
  std::vector<std::string> order;  // of the combinations
  std::map<std::string, std::vector<const SweepCell*>> cells;
  for (const SweepCell& cell : model.cells) {
    const std::string held = values_text(model, cell, [axis](std::size_t i) { return i != axis; });
    if (cells[held].empty()) order.push_back(held);
    cells[held].push_back(&cell);
  }
  for (const std::string& held : order) {
    plots::SweepCurves curves;
    curves.key = swept.label;
    curves.held = held;
    if (!numeric) curves.words = swept.values;
    for (const Row* arm : arms_drawn(model)) {
      plots::SweepCurve curve = curve_of(model, *arm, axis, numeric, cells[held]);
      if (!curve.points.empty()) curves.curves.push_back(std::move(curve));
    }
    for (const SweepCell* cell : cells[held]) {
      if (!is_judged(*cell)) curves.not_judged.push_back(x_of(swept, numeric, cell->values[axis]));
    }
    set.curves.push_back(std::move(curves));
  }
}

/// Cells whose arms were given one operation stream did the same work: only they may be held
/// against each other.
std::vector<std::vector<const SweepCell*>> cells_of_same_work(const ReportModel& model) {
  std::vector<std::vector<const SweepCell*>> groups;
  for (const SweepCell& cell : model.cells) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return !cell.stream_digest.empty() && group.front()->stream_digest == cell.stream_digest;
    });
    if (same != groups.end()) {
      same->push_back(&cell);
    } else {
      groups.push_back({&cell});
    }
  }
  return groups;
}

/// Whether all cells of a group have one value on the axis.
bool is_still(const std::vector<const SweepCell*>& cells, std::size_t axis) {
  return std::all_of(cells.begin(), cells.end(), [&](const SweepCell* cell) {
    return cell->values[axis] == cells.front()->values[axis];
  });
}

plots::Tradeoff tradeoff_of(const ReportModel& model, const std::vector<const SweepCell*>& cells,
                            Quantity Row::* cost) {
  plots::Tradeoff made;
  const auto still = [&](std::size_t axis) { return is_still(cells, axis); };
  made.work = values_text(model, *cells.front(), still);
  const bool none_judged = std::none_of(cells.begin(), cells.end(),
                                        [](const SweepCell* cell) { return is_judged(*cell); });
  if (none_judged) made.work = made.work.empty() ? "not judged" : "not judged: " + made.work;
  for (const SweepCell* cell : cells) {
    for (const Row& row : model.rows) {
      const bool known = (row.*cost).value && row.geometric_mean.value;
      if (row.cell != cell->name || !is_subject(row) || !known) continue;
      plots::Tradeoff::Point point;
      point.arm = row.base;
      point.store = row.store;
      point.cell = values_text(model, *cell, [&](std::size_t axis) { return !still(axis); });
      if (!none_judged && !is_judged(*cell)) point.cell += " (not judged)";
      point.cost = *(row.*cost).value;
      point.gain = *row.geometric_mean.value;
      if (row.interval) {
        point.low = row.interval->low;
        point.high = row.interval->high;
      }
      made.points.push_back(std::move(point));
    }
  }
  return made;
}

}  // namespace

std::string sweep_headline(const ReportModel& model) {
  std::vector<std::string> parts;
  for (const auto& [arm, lead] : leads_of(model)) {
    const bool few = lead.cells.size() <= 2 && model.cells.size() > 2;
    parts.push_back(fmt::format("{} in {} of {}{}, shown ahead of every other arm in {}", arm,
                                lead.cells.size(), model.cells.size(),
                                few ? fmt::format(" ({})", join(lead.cells)) : "", lead.shown));
  }
  if (parts.empty()) return claims_text(model) + "No arm has a figure that counts.";
  const std::vector<std::string> shut = not_judged(model);
  return fmt::format("{}The best {} by cell: {}.{}", claims_text(model), model.metric,
                     fmt::join(parts, "; "),
                     shut.empty() ? "" : fmt::format(" Not judged: {}.", join(shut)));
}

void group_by_cell(const ReportModel& model, Table& table) {
  for (std::size_t i = 0; i < model.rows.size() && i < table.lines.size(); ++i) {
    if (i == 0 || model.rows[i].cell != model.rows[i - 1].cell) {
      table.lines[i].group = model.rows[i].cell;
    }
  }
}

void add_cell_checks(const ReportModel& model, Content& content) {
  bool twins = false;
  for (const SweepCell& cell : model.cells) {
    for (const auto& [name, check] :
         {std::pair("A/A", &cell.a_a), std::pair("positive control", &cell.control)}) {
      if (!*check) continue;
      twins = twins || check == &cell.a_a;
      const bool ok = (*check)->verdict == "ok";
      content.checks.push_back({ok ? Tone::same : Tone::bad, ok ? "=" : "!",
                                fmt::format("{} of {}: {}", name, cell.name, (*check)->sentence),
                                ok ? "" : "the claims of this cell are NOT judged"});
    }
  }
  if (twins) return;
  content.checks.push_back({Tone::open, "?", "A/A: no arm was run twice under two names",
                            "nothing shows that equal arms come out equal here"});
}

void add_sweep_figures(const ReportModel& model, plots::FigureSet& set) {
  set.swept = true;
  set.less_is_better = model.lower_is_better;
  set.stamp.of_n = "a point";
  for (std::size_t axis = 0; axis < model.axes.size(); ++axis) {
    if (model.axes[axis].values.size() > 1) add_curves(model, axis, set);
  }
  // Phases of one trial share its files: there is no space to trade for another phase's speed.
  const bool of_phases =
      std::any_of(model.axes.begin(), model.axes.end(),
                  [](const SweepAxisShown& axis) { return axis.key == "workload.measured_phase"; });
  if (of_phases) return;
  const std::pair<plots::Tradeoffs, Quantity Row::*> kinds[] = {
      {{"space", "bytes on disk an entry", {}}, &Row::disk_bytes_per_entry},
      {{"write-amplification", "device bytes a logical byte", {}}, &Row::write_amplification}};
  for (const auto& [kind, cost] : kinds) {
    plots::Tradeoffs all = kind;
    for (const auto& cells : cells_of_same_work(model)) {
      plots::Tradeoff group = tradeoff_of(model, cells, cost);
      if (group.points.size() > 1) all.groups.push_back(std::move(group));
    }
    set.tradeoffs.push_back(std::move(all));
  }
}

}  // namespace assay::report
