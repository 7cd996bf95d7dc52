// Where `assay qualify` keeps things, which store a name stands for, and what it exits with.
#pragma once

#include <functional>
#include <string>

#include "adapters/store.h"
#include "harness/cli/exit_status.h"
#include "harness/qualify/campaign.h"

namespace assay::cli {

/// Where stores live meanwhile unless --root says otherwise: memory where there is some, since it
/// is as good as a disk against SIGKILL, and faster.
[[nodiscard]] std::string default_root();

/// The newest place below runs/ that was stopped by the same flags, else one that nobody has taken.
[[nodiscard]] std::string choose_place(
    const std::string& stem, const std::function<bool(const std::string& place)>& is_stopped);
[[nodiscard]] std::string choose_out(const qualify::CampaignPlan& plan);
/// In a tree its proofs go where results look for them; elsewhere below `out`.
[[nodiscard]] std::string ledger_of(const std::string& out_given);

/// Whether a store is a program behind a pipe.
[[nodiscard]] bool is_program(const std::string& store);
[[nodiscard]] Result<const Driver*> driver_of(const std::string& store);

[[nodiscard]] ExitStatus status_of(qualify::Verdict verdict);
inline constexpr const char* kQualifyStatuses =
    "Exit status: 0 PASS, 8 FAIL, 5 INCONCLUSIVE, 7 SKIPPED (the machine lacks what the level "
    "needs), 12 HARNESS-ERROR; the worst of all levels counts.";

}  // namespace assay::cli
