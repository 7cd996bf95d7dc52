#include "harness/experiment/machine_demands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/doctor/checks.h"

namespace assay {
namespace {

using doctor::Finding;
using nlohmann::json;

bool demands_nothing(const Plan& plan, const RunServices& services) {
  return plan.machine_demands.empty() || !services.look_at_machine;
}

}  // namespace

Result<json> check_machine(const Plan& plan, const RunServices& services, RunObserver& observer) {
  json found = json::array();
  if (demands_nothing(plan, services)) return found;
  std::vector<std::string> unmet;
  for (const Finding& one : services.look_at_machine(plan, true)) {
    if (!one.demanded) continue;
    found.push_back({{"id", one.id},
                     {"found", one.found},
                     {"wanted", one.wanted},
                     {"state", doctor::to_string(one.state)}});
    if (one.state == doctor::State::fine) continue;
    unmet.push_back(one.id);
    observer.note(fmt::format("{} ({}): found {}, the plan demands {}; {}", one.title, one.id,
                              one.found, one.wanted, one.how));
  }
  if (unmet.empty()) return found;
  Error error(ErrorKind::environment,
              fmt::format("the machine is not as the plan demands: {}", fmt::join(unmet, ", ")));
  if (!plan.file.empty()) error.at(plan.file);
  return fail(error.hint(
      "`assay doctor --plan` shows each with what to do, `assay doctor --apply -- assay run ...` "
      "sets what can be set meanwhile; without machine_demands nothing is refused"));
}

std::string machine_now(const Plan& plan, const RunServices& services) {
  std::string changed;
  if (demands_nothing(plan, services)) return changed;
  for (const Finding& one : services.look_at_machine(plan, false)) {
    if (!one.demanded || one.state == doctor::State::fine ||
        doctor::moves_while_measuring(one.id)) {
      continue;
    }
    changed += fmt::format("{}{}: {} (demanded: {})", changed.empty() ? "" : "; ", one.id,
                           one.found, one.wanted);
  }
  return changed;
}

void void_disturbed(const std::string& before, const std::string& after, std::vector<json*> raws) {
  const std::string& why = before.empty() ? after : before;
  if (why.empty()) return;
  for (json* raw : raws) {
    if (raw->value("status", "") != "ok") continue;
    (*raw)["status"] = "void";
    (*raw)["reason"] =
        fmt::format("the machine did not stay as the plan demands, seen {} the trial: {}",
                    before.empty() ? "after" : "before", why);
  }
}

}  // namespace assay
