#include "harness/cli/qualify_places.h"

#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include <fmt/format.h>
#include <linux/magic.h>
#include <nlohmann/json.hpp>

#include "adapters/plain_name.h"
#include "harness/cli/experiment_run.h"
#include "harness/ledger/ledger.h"
#include "harness/qualify/block/exec_store.h"

namespace assay::cli {

namespace fs = std::filesystem;
namespace qualify = assay::qualify;

std::string default_root() {
  struct statfs info{};
  const bool memory = ::statfs("/dev/shm", &info) == 0 && info.f_type == TMPFS_MAGIC &&
                      ::access("/dev/shm", W_OK | X_OK) == 0 &&
                      info.f_bavail * static_cast<std::uint64_t>(info.f_bsize) > (512ULL << 20);
  return fmt::format("{}/assay-qualify-{}", memory ? "/dev/shm" : "/var/tmp", ::getuid());
}

std::string choose_place(const std::string& stem,
                         const std::function<bool(const std::string& place)>& is_stopped) {
  std::vector<std::string> stopped;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator("runs", code))
    if (entry.path().filename().string().starts_with(stem) && is_stopped(entry.path().string()))
      stopped.push_back(entry.path().string());
  if (!stopped.empty()) return *std::ranges::max_element(stopped);
  std::string time = utc_now();
  std::erase_if(time, [](char one) { return one == '-' || one == ':'; });
  for (int again = 0;; ++again) {
    const std::string path =
        fmt::format("runs/{}{}{}", stem, time, again == 0 ? "" : fmt::format("-{}", again));
    if (!fs::exists(path, code)) return path;
  }
}

std::string choose_out(const qualify::CampaignPlan& plan) {
  // A plug-in's file may have a name that leaves no room for what is put around it.
  const std::string name = fs::path(plan.store).stem().string().substr(0, kPlainNameLettersMax);
  const std::string stem = fmt::format("qualify-{}-", name);
  return choose_place(stem, [&](const std::string& place) {
    std::ifstream file(place + "/campaign.json");
    const auto json = nlohmann::json::parse(file, nullptr, false);
    return json.is_object() && json.value("identity", nlohmann::json()) == identity_json(plan) &&
           !json.value("recorded", true);
  });
}

std::string ledger_of(const std::string& out_given) {
  std::error_code code;
  const bool in_tree = out_given.empty() && fs::is_directory("ledgers", code);
  return in_tree ? "ledgers/qualification/ledger.jsonl" : "";
}

bool is_program(const std::string& store) {
  return store.starts_with(qualify::block::kExecPrefix);
}

Result<const Driver*> driver_of(const std::string& store) {
  return is_program(store) ? qualify::block::find_block_store(store)
                           : plan_environment().find_store(store);
}

ExitStatus status_of(qualify::Verdict verdict) {
  switch (verdict) {
    case qualify::Verdict::pass:
      return ExitStatus::done;
    case qualify::Verdict::fail:
      return ExitStatus::wrong_contents;
    case qualify::Verdict::inconclusive:
      return ExitStatus::void_experiment;
    case qualify::Verdict::harness_error:
      return ExitStatus::harness_error;
    case qualify::Verdict::skipped:
      return ExitStatus::environment;
  }
  return ExitStatus::internal_error;
}

}  // namespace assay::cli
