#include "harness/experiment/plan_sweep.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay {
namespace {

constexpr std::string_view kWorkload = "workload.";
constexpr std::string_view kSettings = "settings.";
constexpr std::size_t kMostLettersOfAName = 80;

/// "settings.ARM.NAME" taken apart: number of the arm, and the setting's name.
struct SweptSetting {
  std::size_t arm = 0;
  std::string name;
};

std::optional<SweptSetting> setting_of(const std::string& key, const std::vector<Arm>& arms) {
  if (!key.starts_with(kSettings)) return std::nullopt;
  const std::string rest = key.substr(kSettings.size());
  std::optional<SweptSetting> found;
  for (std::size_t i = 0; i < arms.size(); ++i) {
    const std::string head = arms[i].name + ".";
    if (!rest.starts_with(head) || rest.size() == head.size()) continue;
    if (found && arms[found->arm].name.size() >= arms[i].name.size()) continue;
    found = SweptSetting{i, rest.substr(head.size())};
  }
  return found;
}

/// Where the value of a key stands in a plan without a sweep, as TomlDocument::set takes it.
std::string path_of(const std::string& key, const std::vector<Arm>& arms) {
  if (const auto setting = setting_of(key, arms)) {
    return fmt::format("arms.{}.settings.{}", setting->arm, setting->name);
  }
  return "workload_overrides." + key.substr(kWorkload.size());
}

Error unknown_arm(const std::string& key, const std::vector<Arm>& arms) {
  std::vector<std::string> names;
  for (const Arm& arm : arms) names.push_back(arm.name);
  const std::string rest = key.substr(kSettings.size());
  const std::string given = rest.substr(0, rest.find('.'));
  const std::string near = nearest_name(given, names);
  Error error(
      ErrorKind::bad_input,
      fmt::format("'sweep.{}' names no arm and its setting: no arm is named '{}'", key, given));
  return error.hint(near.empty() ? fmt::format("the arms: {}", fmt::join(names, ", "))
                                 : fmt::format("did you mean '{}'?", near));
}

/// What is wrong with one axis; nothing where it is sound.
std::optional<Error> wrong_axis(const SweepAxis& axis, const Declaration& declaration) {
  const auto refused = [](std::string what, std::string hint) {
    return Error(ErrorKind::bad_input, std::move(what)).hint(std::move(hint));
  };
  const std::vector<Arm>& arms = declaration.plan.arms;
  const std::string first = axis.key.substr(0, axis.key.find('.'));
  if (first != "workload" && first != "settings") {
    constexpr std::array<std::string_view, 2> kFirst = {"workload", "settings"};
    const std::string near = nearest_name(first, kFirst);
    return refused(
        fmt::format("'sweep.{}' is neither of the workload nor of an arm's settings", axis.key),
        near.empty() ? "write workload.KEY = [...] or settings.ARM.NAME = [...]"
                     : fmt::format("did you mean '{}'?", near));
  }
  if (axis.key.size() <= first.size() + 1) {
    return refused(fmt::format("'sweep.{}' names no key", axis.key),
                   "write workload.KEY = [...] or settings.ARM.NAME = [...]");
  }
  if (first == "settings") {
    const auto setting = setting_of(axis.key, arms);
    if (!setting) return unknown_arm(axis.key, arms);
    if (arms[setting->arm].settings.contains(setting->name)) {
      return refused(fmt::format("'sweep.{}' is also fixed in the settings of arm {}", axis.key,
                                 arms[setting->arm].name),
                     "leave it out there");
    }
  } else {
    const std::string path = axis.key.substr(kWorkload.size());
    if (path == "name" || path == "description" || path == "source") {
      return refused(fmt::format("'sweep.{}' changes nothing that is done", axis.key),
                     "sweep a key that the operations depend on");
    }
    if (axis.key == kMeasuredPhaseAxis && declaration.plan.design == Design::windows) {
      return refused("windows are of one phase, so no sweep over the measured one can share them",
                     "use design = \"random\" or \"blocks\"");
    }
    for (const auto& [name, value] : declaration.overrides) {
      if (name == path) {
        return refused(fmt::format("'sweep.{}' is also fixed in workload_overrides", axis.key),
                       "leave it out there");
      }
    }
  }
  if (axis.values.empty()) return refused(fmt::format("'sweep.{}' has no value", axis.key), "");
  const std::set<std::string> different(axis.values.begin(), axis.values.end());
  if (different.size() != axis.values.size()) {
    return refused(fmt::format("'sweep.{}' holds a value twice", axis.key), "");
  }
  return std::nullopt;
}

/// The shortest end of each key, in whole parts, that no other key has.
void label(std::vector<SweepAxis>& axes) {
  const auto is_end_of = [](const std::string& end, const std::string& key) {
    return key == end || key.ends_with("." + end);
  };
  for (SweepAxis& axis : axes) {
    for (std::size_t dot = axis.key.rfind('.');; dot = axis.key.rfind('.', dot - 1)) {
      axis.label = dot == std::string::npos ? axis.key : axis.key.substr(dot + 1);
      const auto alike = std::count_if(axes.begin(), axes.end(), [&](const SweepAxis& other) {
        return is_end_of(axis.label, other.key);
      });
      if (alike == 1 || dot == std::string::npos || dot == 0) break;
    }
  }
}

std::string for_file_names(const std::string& text) {
  std::string name;
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == '"') continue;
    const bool plain = std::isalnum(code) != 0 || letter == '-' || letter == '_' || letter == '.';
    name += plain ? letter : '_';
  }
  return name;
}

void name_cells(const std::vector<SweepAxis>& axes, std::vector<Cell>& cells) {
  std::set<std::string> names;
  bool plain = true;
  for (Cell& cell : cells) {
    for (std::size_t i = 0; i < axes.size(); ++i) {
      cell.name += fmt::format("{}{}={}", i == 0 ? "" : ",", for_file_names(axes[i].label),
                               for_file_names(cell.values[i]));
    }
    plain = plain && cell.name.size() <= kMostLettersOfAName && names.insert(cell.name).second;
  }
  for (std::size_t i = 0; i < cells.size() && !plain; ++i) {
    cells[i].name = fmt::format("cell-{:02}", i + 1);
  }
}

void carry_name(Cell& cell) {
  const auto rename = [&cell](std::string& name) {
    if (!name.empty()) name += "@" + cell.name;
  };
  for (Arm& arm : cell.plan.arms) {
    arm.cell = cell.name;
    rename(arm.name);
  }
  for (Hypothesis& claim : cell.plan.hypotheses) {
    rename(claim.a);
    rename(claim.b);
    rename(claim.relative_to);
  }
  rename(cell.plan.a_a);
  rename(cell.plan.a_a_twin);
  rename(cell.plan.control.arm);
  rename(cell.plan.control.delayed);
}

bool differ_in_phase_alone(const std::vector<SweepAxis>& axes, const Cell& a, const Cell& b) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].key != kMeasuredPhaseAxis && a.values[i] != b.values[i]) return false;
  }
  return true;
}

/// The arms of a cell that differs from an earlier one in the measured phase alone take its trials.
void share_trials(const std::vector<SweepAxis>& axes, std::vector<Cell>& cells) {
  for (Cell& cell : cells) {
    const Cell& first = *std::ranges::find_if(
        cells, [&](const Cell& earlier) { return differ_in_phase_alone(axes, earlier, cell); });
    for (std::size_t i = 0; &first != &cell && i < cell.plan.arms.size(); ++i) {
      cell.plan.arms[i].trials_of = first.plan.arms[i].name;
    }
  }
}

}  // namespace

std::vector<SweepAxis> read_sweep(TomlTable& root, const Declaration& declaration) {
  std::vector<SweepAxis> axes;
  for (auto& [key, values] : root.lists("sweep")) axes.push_back({key, "", std::move(values)});
  std::sort(axes.begin(), axes.end(),
            [](const SweepAxis& a, const SweepAxis& b) { return a.key < b.key; });
  std::uint64_t cells = 1;
  std::string product;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    auto error = wrong_axis(axes[i], declaration);
    if (!error && i > 0 && axes[i].key == axes[i - 1].key) {
      error = Error(ErrorKind::bad_input, fmt::format("'sweep.{}' is there twice", axes[i].key));
    }
    if (error) root.reject(error->at(root.where_setting("sweep", axes[i].key)));
    cells = std::min(cells * axes[i].values.size(), kMostCells * 1'000'000);
    product += fmt::format("{}{}", i == 0 ? "" : " x ", axes[i].values.size());
  }
  if (axes.empty()) {
    root.reject("sweep", "[sweep] lists nothing",
                "write workload.KEY = [...] or settings.ARM.NAME = [...] below it");
  }
  if (cells > kMostCells) {
    root.reject("sweep", fmt::format("the sweep has {} cells, more than {}", product, kMostCells),
                "every cell is an experiment of its own: list fewer values, or declare several");
  }
  label(axes);
  return axes;
}

std::vector<Cell> cells_of(const std::vector<SweepAxis>& axes) {
  std::vector<Cell> cells(1);
  for (const SweepAxis& axis : axes) {
    std::vector<Cell> more;
    for (const Cell& cell : cells) {
      for (const std::string& value : axis.values) {
        more.push_back(cell);
        more.back().values.push_back(value);
      }
    }
    cells = std::move(more);
  }
  name_cells(axes, cells);
  return cells;
}

Status put_values(const std::vector<SweepAxis>& axes, const Cell& cell,
                  const std::vector<Arm>& arms, TomlDocument& document) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    ASSAY_TRY(document.set(path_of(axes[i].key, arms), cell.values[i]));
  }
  return {};
}

Error placed_in_sweep(Error error, const std::vector<SweepAxis>& axes, const Cell& cell,
                      const std::vector<Arm>& arms, const TomlTable& root) {
  for (const SweepAxis& axis : axes) {
    if (error.where() != "--set " + path_of(axis.key, arms)) continue;
    error.at(root.where_setting("sweep", axis.key));
  }
  return error.in("cell " + cell.name);
}

Result<Plan> joined(std::vector<SweepAxis> axes, std::vector<Cell> cells) {
  Plan whole = cells.front().plan;
  whole.arms.clear();
  whole.hypotheses.clear();
  whole.notes.clear();
  whole.a_a.clear();
  whole.a_a_twin.clear();
  whole.control = {};
  std::set<std::string> told;
  for (Cell& cell : cells) carry_name(cell);
  share_trials(axes, cells);
  for (Cell& cell : cells) {
    const Plan& plan = cell.plan;
    if (plan.aggregation.phases != whole.aggregation.phases) {
      return fail(Error(ErrorKind::bad_input,
                        fmt::format("cells {} and {} have other restart-hot phases: their values "
                                    "would be of different things",
                                    cells.front().name, cell.name))
                      .at(plan.file));
    }
    whole.arms.insert(whole.arms.end(), plan.arms.begin(), plan.arms.end());
    whole.hypotheses.insert(whole.hypotheses.end(), plan.hypotheses.begin(), plan.hypotheses.end());
    for (const std::string& note : plan.notes) {
      if (told.insert(note).second) whole.notes.push_back(note);
    }
  }
  whole.sweep = std::move(axes);
  whole.cells = std::move(cells);
  return whole;
}

}  // namespace assay
