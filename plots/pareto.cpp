// What was reached for what cost. Points that nothing given the same work beats in both are filled
// and joined; the others are hollow.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "plots/kinds.h"

namespace assay::plots {
namespace {

constexpr std::size_t kPanelsAcross = 3;
constexpr std::size_t kPanelsDown = 2;
constexpr double kLeft = 0.065;
constexpr double kRight = 0.775;
constexpr double kTop = 0.835;
constexpr double kBottom = 0.135;

/// True where no other point costs less and reaches as much, or costs as much and reaches more.
bool undominated(const Tradeoff& group, std::size_t i, bool less_is_better) {
  const auto& own = group.points[i];
  const auto gain = [less_is_better](const Tradeoff::Point& point) {
    return less_is_better ? -point.gain : point.gain;
  };
  return std::none_of(group.points.begin(), group.points.end(), [&](const auto& other) {
    return other.cost <= own.cost && gain(other) >= gain(own) &&
           (other.cost < own.cost || gain(other) > gain(own));
  });
}

/// Panels of a page are compared: one of them in decades puts all of them in decades.
struct Scales {
  bool cost_in_decades = false;
  bool gain_in_decades = false;
};

struct Reach {
  Extent cost;
  Extent gain;
};

Reach reach_of(const Tradeoff& group) {
  Reach reach;
  for (const Tradeoff::Point& point : group.points) {
    reach.cost.add(point.cost);
    for (const double value :
         {point.gain, point.low.value_or(point.gain), point.high.value_or(point.gain)}) {
      reach.gain.add(value);
    }
  }
  return reach;
}

Scales scales_of(const Tradeoffs& page) {
  const auto wide = [](const Extent& extent) {
    return *extent.low > 0 && *extent.high / *extent.low > 20.0;
  };
  Scales scales;
  bool costs_positive = true;
  bool gains_positive = true;
  for (const Tradeoff& group : page.groups) {
    const Reach reach = reach_of(group);
    scales.cost_in_decades = scales.cost_in_decades || wide(reach.cost);
    scales.gain_in_decades = scales.gain_in_decades || wide(reach.gain);
    costs_positive = costs_positive && *reach.cost.low > 0;
    gains_positive = gains_positive && *reach.gain.low > 0;
  }
  scales.cost_in_decades = scales.cost_in_decades && costs_positive;
  scales.gain_in_decades = scales.gain_in_decades && gains_positive;
  return scales;
}

Axis axis_of(const Extent& extent, bool decades, const Format& format) {
  const double high = *extent.high;
  if (decades) return decade_axis(*extent.low, high, format);
  const double room = high > 0 ? high * 1.08 : 1.0;  // nothing cost anything
  Axis axis = cut_at(linear_axis(room, format), room);
  if (axis.ticks.size() > 4) {  // a panel is small
    std::vector<std::pair<double, std::string>> fewer;
    for (std::size_t i = 0; i < axis.ticks.size(); i += 2) fewer.push_back(axis.ticks[i]);
    axis.ticks = std::move(fewer);
  }
  return axis;
}

/// The one key that all labels begin with ("bytes=" of "bytes=16"); empty where there is none.
std::string key_of_labels(const Tradeoffs& all) {
  std::string key;
  for (const Tradeoff& group : all.groups) {
    for (const Tradeoff::Point& point : group.points) {
      const std::size_t equals = point.cell.find('=');
      if (equals == std::string::npos || point.cell.find('=', equals + 1) != std::string::npos) {
        return {};
      }
      if (!key.empty() && point.cell.substr(0, equals + 1) != key) return {};
      key = point.cell.substr(0, equals + 1);
    }
  }
  return key;
}

struct Names {
  std::vector<Arm> arms;  ///< of all panels: for colours and the legend
  std::vector<Look> looks;
  [[nodiscard]] std::size_t place(const std::string& arm) const {
    const auto found =
        std::find_if(arms.begin(), arms.end(), [&](const Arm& one) { return one.name == arm; });
    return static_cast<std::size_t>(found - arms.begin());
  }
};

Names names_of(const Tradeoffs& all) {
  Names names;
  std::set<std::string> known;
  for (const Tradeoff& group : all.groups) {
    for (const Tradeoff::Point& point : group.points) {
      if (!known.insert(point.arm).second) continue;
      names.arms.emplace_back();
      names.arms.back().name = point.arm;
      names.arms.back().store = point.store;
    }
  }
  names.looks = looks_of(names.arms);
  return names;
}

/// Index of a panel: the first line of its points; the next index is its front.
std::string data_of(const Tradeoff& group, bool less_is_better) {
  std::string data =
      fmt::format("\n\n# {}: cost gain low high front(1) arm cell\n", gnuplot_quoted(group.work));
  std::vector<std::pair<double, double>> front;
  for (std::size_t i = 0; i < group.points.size(); ++i) {
    const Tradeoff::Point& point = group.points[i];
    const bool best = undominated(group, i, less_is_better);
    if (best) front.emplace_back(point.cost, point.gain);
    data += fmt::format("{:.9g} {:.9g} {:.9g} {:.9g} {} {} {}\n", point.cost, point.gain,
                        point.low.value_or(point.gain), point.high.value_or(point.gain),
                        best ? 1 : 0, gnuplot_quoted(point.arm), gnuplot_quoted(point.cell));
  }
  std::sort(front.begin(), front.end());
  data += "\n\n# front: cost gain\n";
  for (const auto& [cost, gain] : front) data += fmt::format("{:.9g} {:.9g}\n", cost, gain);
  return data;
}

struct Place {
  std::size_t across = 1;
  std::size_t down = 1;
  std::size_t number = 0;
};

std::string margins(const Place& place) {
  constexpr double kGapAcross = 0.065;
  constexpr double kGapDown = 0.115;
  const auto across = static_cast<double>(place.across);
  const auto down = static_cast<double>(place.down);
  const double width = (kRight - kLeft - kGapAcross * (across - 1)) / across;
  const double height = (kTop - kBottom - kGapDown * (down - 1)) / down;
  const double left =
      kLeft + static_cast<double>(place.number % place.across) * (width + kGapAcross);
  const double top = kTop - static_cast<double>(place.number / place.across) * (height + kGapDown);
  return fmt::format(
      "set lmargin at screen {:.4f}\nset rmargin at screen {:.4f}\n"
      "set tmargin at screen {:.4f}\nset bmargin at screen {:.4f}\n",
      left, left + width, top, top - height);
}

std::string panel(const FigureSet& set, const Tradeoff& group, const Names& names,
                  const std::string& file, const Place& place, std::size_t cut,
                  const Scales& scales) {
  const Reach reach = reach_of(group);
  const Axis x = axis_of(reach.cost, scales.cost_in_decades, short_count);
  const Axis y = axis_of(reach.gain, scales.gain_in_decades, format_for(set.unit));
  std::string out =
      "unset logscale\n" + margins(place) + axis_commands("x", x) + axis_commands("y", y);
  if (!group.work.empty()) {
    out += fmt::format(
        "set label 105 {} at graph 0.5, graph 1.06 center font ',13' noenhanced "
        "textcolor rgb '#222222'\n",
        gnuplot_quoted(shortened(group.work, 34)));
  }
  const std::size_t index = 2 * place.number;
  out += fmt::format(
      "plot '{}.dat' index {} using 1:2 with lines linewidth 1.5 dashtype 2 "
      "linecolor rgb '#9aa0a6'",
      file, index + 1);
  for (std::size_t i = 0; i < group.points.size(); ++i) {
    const Tradeoff::Point& point = group.points[i];
    const Look& look = names.looks[names.place(point.arm)];
    const bool best = undominated(group, i, set.less_is_better);
    // The hollow twin of each filled mark is one less in gnuplot's table of points.
    const std::string colour = fmt::format("linecolor rgb '{}'", look.colour);
    const std::string line = fmt::format("'{}.dat' index {} every ::{}::{}", file, index, i, i);
    out += fmt::format(
        ", \\\n     {} using 1:2:3:4 with yerrorbars pointtype {} pointsize {} "
        "linewidth 1.6 {}",
        line, best ? look.point : look.point - 1, best ? 1.3 : 1.0, colour);
    if (best && !point.cell.empty()) {
      const bool right = place_on(x, point.cost) > 0.2;  // the text must not leave its panel
      const std::size_t room = place.across == 1 ? 60 : place.across == 2 ? 32 : 20;
      out += fmt::format(
          ", \\\n     {} using 1:2:({}) with labels {} offset {},0.7 font ',10' noenhanced "
          "textcolor rgb '#222222'",
          line, gnuplot_quoted(shortened(point.cell.substr(cut), room)), right ? "right" : "left",
          right ? -0.9 : 0.9);
    }
  }
  return out + "\n";
}

Sheet pareto_sheet(const FigureSet& set, const Tradeoffs& all, const std::string& file) {
  const Names names = names_of(all);
  std::vector<std::size_t> shown(names.arms.size());
  for (std::size_t i = 0; i < shown.size(); ++i) shown[i] = i;
  const std::string title = fmt::format("{} against {}", set.metric, all.cost);
  const std::string key = key_of_labels(all);  // told once, below the axis
  const Scales scales = scales_of(all);
  const auto scaled = [](const std::string& text, bool decades) {
    return text + (decades ? " (logarithmic)" : "");
  };
  const std::string cost = scaled(all.cost, scales.cost_in_decades);
  const std::string below =
      key.empty() ? cost : fmt::format("{} (labels: {})", cost, key.substr(0, key.size() - 1));
  Sheet sheet{file, title, "# two indices a panel: its points, then those that nothing beats\n",
              ""};
  sheet.body = frame(set.stamp, fmt::format("{}: {}", set.stamp.workload, title),
                     fmt::format("Filled and joined: no point of the same work is better in both, "
                                 "by its mean. {} and to the left is better.",
                                 set.less_is_better ? "Down" : "Up"));
  sheet.body += legend(names.arms, names.looks, shown);
  sheet.body += fmt::format(
      "set label 106 {} at screen {}, screen 0.065 center font ',13' noenhanced textcolor rgb "
      "'#222222'\nset label 107 {} at screen 0.02, screen 0.868 font ',12' noenhanced textcolor "
      "rgb '#222222'\n",
      gnuplot_quoted(below), (kLeft + kRight) / 2,
      gnuplot_quoted(scaled(set.unit == "ns" ? set.metric : set.unit, scales.gain_in_decades)));
  sheet.body += "set multiplot\n";
  Place place;
  place.across = std::min(all.groups.size(), kPanelsAcross);
  if (all.groups.size() == 4) place.across = 2;
  place.down = (all.groups.size() + place.across - 1) / place.across;
  for (; place.number < all.groups.size(); ++place.number) {
    const Tradeoff& group = all.groups[place.number];
    sheet.data += data_of(group, set.less_is_better);
    if (place.number > 0) sheet.body += "unset label\nunset arrow\n";  // the first has drawn them
    sheet.body += panel(set, group, names, file, place, key.size(), scales);
  }
  sheet.body += "unset multiplot\n";
  return sheet;
}

}  // namespace

std::vector<Attempt> pareto_figures(const FigureSet& set) {
  constexpr std::size_t kPanels = kPanelsAcross * kPanelsDown;
  constexpr std::size_t kMostPages = 4;
  std::vector<Attempt> attempts;
  for (const Tradeoffs& all : set.tradeoffs) {
    if (all.groups.empty()) {
      attempts.emplace_back(
          Skipped{fmt::format("{} against {}: no two arms have both and were given the same work",
                              set.metric, all.cost)});
    }
    for (std::size_t first = 0; first < all.groups.size(); first += kPanels) {
      if (first == kPanels * kMostPages) {
        attempts.emplace_back(
            Skipped{fmt::format("{} more panels of {} against {}: the table "
                                "holds them",
                                all.groups.size() - first, set.metric, all.cost)});
        break;
      }
      Tradeoffs page{all.name, all.cost, {}};
      for (std::size_t i = first; i < std::min(first + kPanels, all.groups.size()); ++i) {
        page.groups.push_back(all.groups[i]);
      }
      const std::string file = "pareto-" + file_name(all.name);
      attempts.emplace_back(pareto_sheet(
          set, page, first == 0 ? file : fmt::format("{}-{}", file, first / kPanels + 1)));
    }
  }
  return attempts;
}

}  // namespace assay::plots
