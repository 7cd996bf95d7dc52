// Tells the user how far a run is: one rewritten line on a terminal, elsewhere a line a trial and
// one whenever a trial has been silent for a while.
// Everything goes to standard error, so that standard output holds results only. What cannot be
// written is lost without an error.
// One thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "harness/trial/trial.h"

namespace assay {

/// What the runner tells about itself. The base class is silent.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  /// `done` of `planned` trials were there already (a resumed run).
  virtual void run_begins(const std::string& /*title*/, std::uint64_t /*done*/,
                          std::uint64_t /*planned*/) {}
  /// `trials` begin at once (a set counts its arms).
  virtual void trial_begins(const std::string& /*arm*/, std::uint64_t /*trials*/) {}
  virtual void trial_progress(const Progress& /*progress*/) {}
  /// `trials` were recorded at once (a set counts its arms); `status` and `reason` as in the
  /// record.
  virtual void trial_ends(const std::string& /*arm*/, std::uint64_t /*trials*/,
                          const std::string& /*status*/, const std::string& /*reason*/) {}
  virtual void note(const std::string& /*sentence*/) {}
  /// What the user should know that is no trouble.
  virtual void say(const std::string& /*sentence*/) {}
  virtual void run_ends() {}
};

class ProgressLine : public RunObserver {
 public:
  using Clock = std::chrono::steady_clock;

  /// `terminal` decides between the two styles; columns of the terminal bound the line.
  /// `quiet`: how long nothing may be said where there is no terminal. `now`: for tests.
  ProgressLine(std::FILE* out, bool terminal, std::size_t columns = 80,
               std::chrono::milliseconds quiet = std::chrono::seconds(5),
               std::function<Clock::time_point()> now = Clock::now);
  /// Standard error, in the style that suits it.
  [[nodiscard]] static ProgressLine standard_error();

  void run_begins(const std::string& title, std::uint64_t done, std::uint64_t planned) override;
  void trial_begins(const std::string& arm, std::uint64_t trials = 1) override;
  void trial_progress(const Progress& progress) override;
  void trial_ends(const std::string& arm, std::uint64_t trials, const std::string& status,
                  const std::string& reason) override;
  void note(const std::string& sentence) override;
  void say(const std::string& sentence) override;
  void run_ends() override;

  /// The line as it would be shown now; for tests.
  [[nodiscard]] std::string line() const;

 private:
  void show(bool force);
  /// Seconds until the run ends; nothing while that cannot be told.
  [[nodiscard]] std::optional<double> left_s() const;
  void clear();
  void print_line(const std::string& text);
  void write(const std::string& text);

  std::FILE* out_;
  bool terminal_;
  std::size_t columns_;
  std::chrono::milliseconds quiet_;
  std::function<Clock::time_point()> now_;
  Clock::time_point printed_ = now_();
  std::uint64_t done_ = 0;
  std::uint64_t planned_ = 0;
  std::uint64_t ended_ = 0;  ///< trials that ran here, also void ones
  std::uint64_t voids_ = 0;  ///< of them
  std::string void_reason_;  ///< of the newest
  bool advised_ = false;
  double ended_s_ = 0.0;       ///< what they took together
  std::uint64_t running_ = 0;  ///< trials that run now
  Clock::time_point trial_began_;
  std::string arm_;
  Progress progress_;
  Clock::time_point began_ = now_();
  Clock::time_point shown_;
};

/// What to do where many trials are void, the newest for `reason` (as in the record): one sentence
/// for people; empty while they are few: up to a third, or less than four.
[[nodiscard]] std::string void_advice(std::uint64_t voids, std::uint64_t ended,
                                      std::string_view reason);

/// "7 s", "3 min 05 s", "2 h 10 min".
[[nodiscard]] std::string duration_text(std::uint64_t seconds);

}  // namespace assay
