// What `assay qualify` shows: a line while it works, a level's outcome when it has ended.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "harness/qualify/campaign.h"
#include "harness/qualify/matrix.h"

namespace assay::cli {

/// Every line of a text that a store may have had a part in, with what is no text made visible.
[[nodiscard]] std::string printable_lines(const std::string& text);

/// One rewritten line on a terminal, a line every few seconds elsewhere; to standard error.
class CampaignLine final : public qualify::CampaignObserver {
 public:
  CampaignLine();
  void level_begins(qualify::Level level, const std::string& profile) override;
  void progress(double fraction, const std::string& sentence) override;
  void level_ends(const qualify::LevelOutcome& outcome) override;
  void note(const std::string& sentence) override;

 private:
  using Clock = std::chrono::steady_clock;
  bool terminal_;
  std::string level_;
  Clock::time_point began_;
  Clock::time_point shown_;
  std::optional<double> first_fraction_;
};

void print_outcome(const qualify::CampaignPlan& plan, const qualify::LevelOutcome& outcome);

/// All of what a campaign found, for a person or as JSON.
void print_campaign(const qualify::CampaignPlan& plan, const qualify::CampaignOutcome& outcome,
                    bool as_json);

/// What a matrix is about to do, how long that takes where the budget is a time, and where it
/// writes.
[[nodiscard]] std::string matrix_forecast(const qualify::MatrixPlan& plan);

}  // namespace assay::cli
