#include "harness/doctor/checks.h"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "harness/doctor/looks.h"

namespace assay::doctor {
namespace {

struct Check {
  std::string_view id;
  Finding (*look)(const Look&);
};

// An item is one line here; what it looks at is in processor.cpp, memory.cpp and others.cpp.
constexpr std::array kChecks = {
    Check{"governor", &look_at_governor},
    Check{"turbo", &look_at_turbo},
    Check{"smt", &look_at_smt},
    Check{"throttling", &look_at_throttling},
    Check{"clock_source", &look_at_clock_source},
    Check{"aslr", &look_at_aslr},
    Check{"load", &look_at_load},
    Check{"foreign_cpu", &look_at_foreign_cpu},
    Check{"cpu_limit", &look_at_cpu_limit},
    Check{"memory_limit", &look_at_memory_limit},
    Check{"free_memory", &look_at_free_memory},
    Check{"swap", &look_at_swap},
    Check{"thp", &look_at_thp},
    Check{"huge_pages", &look_at_huge_pages},
    Check{"numa_balancing", &look_at_numa_balancing},
    Check{"dirty_limits", &look_at_dirty_limits},
    Check{"free_disk", &look_at_free_disk},
    Check{"scheduler", &look_at_scheduler},
    Check{"write_cache", &look_at_write_cache},
    Check{"background_writers", &look_at_background_writers},
};

}  // namespace

std::string_view to_string(State state) {
  switch (state) {
    case State::fine:
      return "fine";
    case State::differs:
      return "differs";
    case State::unknown:
      return "unknown";
  }
  return "";
}

std::vector<std::string> check_ids() {
  std::vector<std::string> ids;
  for (const Check& check : kChecks) ids.emplace_back(check.id);
  return ids;
}

std::optional<Error> unknown_id(const std::vector<std::string>& ids) {
  const std::vector<std::string> valid = check_ids();
  for (const std::string& id : ids) {
    if (std::ranges::find(valid, id) != valid.end()) continue;
    const std::string near = nearest_name(id, valid);
    const std::string all = fmt::format("valid: {}", fmt::join(valid, ", "));
    Error error(ErrorKind::bad_input, fmt::format("the doctor does not look at \"{}\"", id));
    error.hint(near.empty() ? all : fmt::format("did you mean \"{}\"? {}", near, all));
    return error;
  }
  return std::nullopt;
}

bool needs_watching(std::string_view id) {
  return id == "foreign_cpu" || id == "background_writers";
}

bool moves_while_measuring(std::string_view id) {
  return id == "load" || needs_watching(id);
}

std::vector<Finding> examine(const Options& options) {
  const Look look = take_look(options);
  std::vector<Finding> findings;
  for (const Check& check : kChecks) {
    Finding finding = check.look(look);
    finding.id = check.id;
    finding.demanded = std::ranges::find(options.demanded, check.id) != options.demanded.end();
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::vector<Finding> unmet_demands(const std::vector<Finding>& findings) {
  std::vector<Finding> unmet;
  std::ranges::copy_if(findings, std::back_inserter(unmet), [](const Finding& finding) {
    return finding.demanded && finding.state != State::fine;
  });
  return unmet;
}

nlohmann::json to_json(const std::vector<Finding>& findings) {
  nlohmann::json all = nlohmann::json::array();
  for (const Finding& finding : findings) {
    nlohmann::json remedies = nlohmann::json::array();
    for (const Remedy& remedy : finding.remedies) {
      remedies.push_back({{"path", remedy.path}, {"value", remedy.value}});
    }
    all.push_back({{"id", finding.id},
                   {"title", finding.title},
                   {"found", finding.found},
                   {"wanted", finding.wanted},
                   {"state", to_string(finding.state)},
                   {"why", finding.why},
                   {"how", finding.how},
                   {"demanded", finding.demanded},
                   {"remedies", remedies}});
  }
  return all;
}

}  // namespace assay::doctor
