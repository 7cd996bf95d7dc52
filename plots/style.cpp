#include "plots/style.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay::plots {
namespace {

constexpr std::string_view kInk = "#222222";
constexpr std::string_view kFaint = "#5f6368";

/// Stores that come with the tree keep one colour for ever.
const std::map<std::string, std::string, std::less<>>& known_colours() {
  static const std::map<std::string, std::string, std::less<>> kColours{
      {"sqlite", "#0072b2"}, {"rocksdb", "#e69f00"}, {"lmdb", "#009e73"},
      {"lode", "#d55e00"},   {"null", "#a6a6a6"},    {"raw-file", "#595959"}};
  return kColours;
}
constexpr std::array<const char*, 4> kOtherColours{"#cc79a7", "#56b4e9", "#882255", "#332288"};

/// FNV-1a: the colour of a store from outside the tree must not depend on its company where it can
/// be helped.
std::size_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return static_cast<std::size_t>(hash);
}

std::map<std::string, std::string> colours_of(const std::set<std::string>& stores) {
  std::map<std::string, std::string> colours;
  std::set<std::string> taken;
  for (const std::string& store : stores) {
    if (const auto known = known_colours().find(store); known != known_colours().end()) {
      colours[store] = known->second;
      continue;
    }
    std::size_t pick = hash_of(store) % kOtherColours.size();
    for (std::size_t step = 0; step < kOtherColours.size(); ++step) {
      const std::string colour = kOtherColours[(pick + step) % kOtherColours.size()];
      if (taken.contains(colour)) continue;
      pick = (pick + step) % kOtherColours.size();
      break;
    }
    colours[store] = kOtherColours[pick];
    taken.insert(colours[store]);
  }
  return colours;
}

}  // namespace

std::vector<Look> looks_of(const std::vector<Arm>& arms) {
  static constexpr std::array<int, 4> kDashes{1, 2, 4, 3};
  static constexpr std::array<int, 4> kPoints{7, 5, 9, 13};
  std::set<std::string> stores;
  for (const Arm& arm : arms) stores.insert(arm.store);
  const std::map<std::string, std::string> colours = colours_of(stores);
  std::map<std::string, std::size_t> seen;
  std::vector<Look> looks;
  for (const Arm& arm : arms) {
    const std::size_t nth = seen[arm.store]++ % kDashes.size();
    looks.push_back({colours.at(arm.store), kDashes[nth], kPoints[nth]});
  }
  return looks;
}

std::string gnuplot_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += ' ';
    } else {
      out += c;
      if (c == '\'') out += c;
    }
  }
  return out + "'";
}

double place_on(const Axis& axis, double value) {
  return axis.logarithmic ? std::log(value / axis.low) / std::log(axis.high / axis.low)
                          : (value - axis.low) / (axis.high - axis.low);
}

std::string file_name(const std::string& text) {
  std::string name;
  for (const char c : text.substr(0, 160)) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    name += plain ? c : upper ? static_cast<char>(c - 'A' + 'a') : '-';
  }
  return name.empty() ? "figure" : name;
}

std::string shortened(const std::string& text, std::size_t size) {
  std::size_t characters = 0;
  std::size_t cut = text.size();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) continue;
    if (++characters == size) cut = i;
    if (characters > size) return text.substr(0, cut) + "\u2026";
  }
  return text;
}

std::string short_number(double value) {
  std::string text = fmt::format("{:.3g}", value);
  if (text.find('e') != std::string::npos) text = fmt::format("{:.0f}", value);
  return text;
}

std::string short_count(double value) {
  static constexpr std::array<const char*, 5> kPrefixes{"", " k", " M", " G", " T"};
  std::size_t i = 0;
  while (std::fabs(value) >= 999.5 && i + 1 < kPrefixes.size()) {
    value /= 1000.0;
    ++i;
  }
  return short_number(value) + kPrefixes[i];
}

std::string short_time(double ns) {
  if (ns == 0.0) return "0";
  static constexpr std::array<const char*, 4> kUnits{" ns", " \u00b5s", " ms", " s"};
  std::size_t i = 0;
  while (std::fabs(ns) >= 999.5 && i + 1 < kUnits.size()) {
    ns /= 1000.0;
    ++i;
  }
  return short_number(ns) + kUnits[i];
}

Format format_for(const std::string& unit) {
  if (unit == "ns") return short_time;
  if (unit == "operations/s") return [](double value) { return short_count(value); };
  return short_count;
}

Axis linear_axis(double high, const Format& format) {
  Axis axis;
  if (!(high > 0)) high = 1.0;
  const double decade = std::pow(10.0, std::floor(std::log10(high)));
  double step = decade;
  for (const double candidate : {0.1, 0.2, 0.25, 0.5, 1.0, 2.0}) {
    step = candidate * decade;
    if (high / step <= 6.0) break;
  }
  const auto steps = static_cast<int>(std::ceil(high / step - 1e-9));
  axis.high = step * steps;
  for (int i = 0; i <= steps; ++i) axis.ticks.emplace_back(step * i, format(step * i));
  return axis;
}

Axis decade_axis(double low, double high, const Format& format) {
  Axis axis;
  axis.logarithmic = true;
  const int first = static_cast<int>(std::floor(std::log10(low) + 1e-9));
  const int last = std::max(first + 1, static_cast<int>(std::ceil(std::log10(high) - 1e-9)));
  axis.low = std::pow(10.0, first);
  axis.high = std::pow(10.0, last);
  for (int i = first; i <= last; ++i) {
    axis.ticks.emplace_back(std::pow(10.0, i), format(std::pow(10.0, i)));
  }
  return axis;
}

Axis cut_at(Axis axis, double high) {
  axis.high = high;
  std::erase_if(axis.ticks, [high](const auto& tick) { return tick.first > high; });
  return axis;
}

std::string axis_commands(const std::string& axis, const Axis& scale) {
  std::vector<std::string> ticks;
  for (const auto& [value, label] : scale.ticks) {
    std::string format;  // gnuplot takes the label of a tick for a format
    for (const char c : label) format += c == '%' ? std::string("%%") : std::string(1, c);
    ticks.push_back(fmt::format("{} {:.9g}", gnuplot_quoted(format), value));
  }
  std::string out = scale.logarithmic ? fmt::format("set logscale {}\n", axis) : "";
  out += fmt::format("set {}range [{:.9g}:{:.9g}] noextend\n", axis, scale.low, scale.high);
  out += fmt::format("set {}tics ({}) scale 0 textcolor rgb '{}'\n", axis, fmt::join(ticks, ", "),
                     kInk);
  return out;
}

std::string legend(const std::vector<Arm>& arms, const std::vector<Look>& looks,
                   const std::vector<std::size_t>& shown) {
  const double step =
      std::min(0.045, 0.68 / static_cast<double>(std::max<std::size_t>(1, shown.size())));
  std::string out = "unset key\n";
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const double y = 0.845 - step * static_cast<double>(i);
    const Look& look = looks[shown[i]];
    // The SVG terminal draws a dashed arrow solid, so a broken line is made of pieces.
    const int pieces = look.dash == 1 ? 1 : look.dash + 1;
    const double length = 0.035 / (1.5 * pieces - 0.5);
    for (int k = 0; k < pieces; ++k) {
      const double from = 0.785 + 1.5 * length * k;
      out += fmt::format(
          "set arrow {} from screen {:.4f}, screen {:.4f} to screen {:.4f}, screen {:.4f} "
          "nohead linewidth 2.5 linecolor rgb '{}'\n",
          601 + 10 * i + static_cast<std::size_t>(k), from, y, from + length, y, look.colour);
    }
    out += fmt::format(
        "set label {} {} at screen 0.828, screen {:.4f} left font ',13' noenhanced "
        "textcolor rgb '{}'\n",
        601 + i, gnuplot_quoted(shortened(arms[shown[i]].name, 20)), y, kInk);
  }
  return out;
}

std::string frame(const Stamp& stamp, const std::string& title, const std::string& subtitle) {
  std::string status = stamp.status == "registered" ? "registered" : "EXPLORATORY";
  if (stamp.mixed_durability) status += ", MIXED DURABILITY";
  const std::string source = fmt::format(
      "{} \u00b7 {} \u00b7 n = {} processes {} \u00b7 {} "
      "\u00b7 record {:.12}",
      shortened(stamp.experiment, 32), status, stamp.n, stamp.of_n, stamp.date, stamp.hash);
  std::string out;
  out += fmt::format(
      "set label 101 {} at screen 0.02, screen 0.955 font ',19' noenhanced "
      "textcolor rgb '{}'\n",
      gnuplot_quoted(shortened(title, 76)), kInk);
  out += fmt::format(
      "set label 102 {} at screen 0.02, screen 0.905 font ',13' noenhanced "
      "textcolor rgb '{}'\n",
      gnuplot_quoted(shortened(subtitle, 118)), kFaint);
  out += fmt::format(
      "set label 103 {} at screen 0.98, screen 0.025 right font ',11' noenhanced "
      "textcolor rgb '{}'\n",
      gnuplot_quoted(shortened(source, 130)), kFaint);
  out += "set border 0\nset grid linetype 1 dashtype 1 linewidth 1 linecolor rgb '#e4e6e9'\n";
  out += "set tics scale 0\nset lmargin at screen 0.10\nset rmargin at screen 0.97\n";
  out += "set tmargin at screen 0.86\nset bmargin at screen 0.175\n";
  out += fmt::format("set key noenhanced textcolor rgb '{}'\n", kInk);
  return out;
}

std::string source_of(const Sheet& sheet) {
  std::string out =
      fmt::format("# {}: run `gnuplot {}.gp` in this directory; the data are in {}.dat.\n",
                  sheet.name, sheet.name, sheet.name);
  const std::string settings = "reset session\nset encoding utf8\nunset title\n";
  out += settings;
  out += fmt::format(
      "set terminal svg size {},{} font 'sans-serif,14' background '#ffffff' "
      "noenhanced\nset output '{}.svg'\n",
      kWidth, kHeight, sheet.name);
  out += sheet.body;
  out += "unset output\n";
  out += settings;
  out += fmt::format(
      "set terminal pngcairo size {},{} font 'sans,14' fontscale 0.75 "
      "background '#ffffff' noenhanced\nset output '{}.png'\n",
      kWidth, kHeight, sheet.name);
  out += sheet.body;
  out += "unset output\n";
  return out;
}

}  // namespace assay::plots
