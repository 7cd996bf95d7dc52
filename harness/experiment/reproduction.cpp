#include "harness/experiment/reproduction.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace assay {
namespace {

using nlohmann::json;

std::string text(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

json list(const json& verdict, const char* key) {
  const auto found = verdict.find(key);
  return found != verdict.end() && found->is_array() ? *found : json::array();
}

std::vector<std::string> disqualified_arms(const json& verdict) {
  std::vector<std::string> arms;
  for (const json& row : list(verdict, "rows")) {
    const auto found = row.find("disqualified");
    if (found != row.end() && *found == true) arms.push_back(text(row, "arm"));
  }
  std::sort(arms.begin(), arms.end());
  return arms;
}

struct Side {
  std::string verdict = "not there";
  json ratio;
  json interval;
  std::optional<std::pair<double, double>> bounds;
};

Side side_of(const json& comparison) {
  Side side;
  side.verdict = text(comparison, "verdict");
  side.ratio = comparison.value("ratio", json());
  side.interval = comparison.value("interval", json());
  const json& both = side.interval;
  if (both.is_array() && both.size() == 2 && both[0].is_number() && both[1].is_number()) {
    side.bounds = {both[0].get<double>(), both[1].get<double>()};
  }
  return side;
}

json to_json(const Side& side) {
  return {{"verdict", side.verdict}, {"ratio", side.ratio}, {"interval", side.interval}};
}

std::string shown(const Side& side) {
  if (!side.bounds || !side.ratio.is_number()) return side.verdict;
  return fmt::format("{}, {:.3g}x ({:.3g} to {:.3g})", side.verdict, side.ratio.get<double>(),
                     side.bounds->first, side.bounds->second);
}

const json* same_comparison(const json& all, const json& wanted) {
  for (const json& one : all) {
    if (text(one, "a") == text(wanted, "a") && text(one, "b") == text(wanted, "b") &&
        text(one, "kind") == text(wanted, "kind")) {
      return &one;
    }
  }
  return nullptr;
}

json held_against(const json& comparison, const json& all_now) {
  const Side earlier = side_of(comparison);
  const json* found = same_comparison(all_now, comparison);
  const Side now = found == nullptr ? Side() : side_of(*found);
  const bool same = earlier.verdict == now.verdict;
  const bool overlap = earlier.bounds && now.bounds &&
                       earlier.bounds->first <= now.bounds->second &&
                       now.bounds->first <= earlier.bounds->second;
  const std::string kind = text(comparison, "kind");
  const bool counted = earlier.verdict != "void" && kind != "regression";
  const bool confirmed = counted && same && overlap;
  std::string why;
  if (kind == "regression") {
    why =
        "not counted: its baseline is in the earlier ledger (assay gate holds a result against it)";
  } else if (!counted) {
    why = "not counted: it was void then";
  } else if (confirmed) {
    why = "confirmed";
  } else if (!same) {
    why = "NOT confirmed: another verdict";
  } else {
    why = "NOT confirmed: the intervals do not overlap";
  }
  return {{"a", comparison.value("a", json())},
          {"b", comparison.value("b", json())},
          {"kind", kind},
          {"earlier", to_json(earlier)},
          {"now", to_json(now)},
          {"same_verdict", same},
          {"overlap", overlap},
          {"counted", counted},
          {"confirmed", confirmed},
          {"sentence", fmt::format("{} and {} ({}): {}; earlier {}; now {}", text(comparison, "a"),
                                   text(comparison, "b"), kind, why, shown(earlier), shown(now))}};
}

}  // namespace

json confirm(const json& earlier, const json& now) {
  const json all_now = list(now, "comparisons");
  json comparisons = json::array();
  std::size_t counted = 0;
  std::size_t confirmed = 0;
  for (const json& one : list(earlier, "comparisons")) {
    comparisons.push_back(held_against(one, all_now));
    counted += comparisons.back()["counted"] == true ? 1U : 0U;
    confirmed += comparisons.back()["confirmed"] == true ? 1U : 0U;
  }
  const auto wrong_then = disqualified_arms(earlier);
  const auto wrong_now = disqualified_arms(now);
  const bool same_arms = wrong_then == wrong_now;
  const bool whole = counted > 0 && confirmed == counted && same_arms;
  std::string sentence;
  if (text(now, "outcome") == "void") {
    sentence = "not confirmed: the new result is void, it says nothing";
  } else if (counted == 0) {
    sentence = "not confirmed: no comparison of the earlier result can be held against a new one";
  } else if (!same_arms) {
    sentence = "not confirmed: other arms were disqualified";
  } else {
    sentence =
        fmt::format("{}: {} of {} comparisons have the same verdict and overlapping intervals",
                    whole ? "confirmed" : "NOT confirmed", confirmed, counted);
  }
  return {{"confirmed", whole && text(now, "outcome") != "void"},
          {"sentence", sentence},
          {"disqualified", {{"earlier", wrong_then}, {"now", wrong_now}}},
          {"comparisons", std::move(comparisons)}};
}

}  // namespace assay
