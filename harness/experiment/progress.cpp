#include "harness/experiment/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace assay {
namespace {

constexpr auto kRefresh = std::chrono::milliseconds(100);

/// Of a trial that has hardly begun, progress tells nothing about its length.
constexpr double kLeastFraction = 0.02;

double seconds_between(ProgressLine::Clock::time_point from, ProgressLine::Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

std::string void_advice(std::uint64_t voids, std::uint64_t ended, std::string_view reason) {
  constexpr std::uint64_t kLeastVoids = 4;
  if (voids < kLeastVoids || voids * 3 <= ended) return {};
  const auto says = [reason](std::string_view part) {
    return reason.find(part) != std::string_view::npos;
  };
  std::string why = "the newest: " + std::string(reason);
  std::string remedy = "`assay doctor` looks for what disturbs";
  if (says("other processes used")) {
    why = "because other processes use the CPUs";
    remedy =
        "wait until they are idle, or raise foreign_cpus_max in the plan (--foreign-cpus-max of "
        "assay compare; 0 only records it)";
  } else if (says("hypervisor")) {
    why = "because the hypervisor takes CPU time away";
    remedy =
        "wait until the host is idle, or raise steal_share_max in the plan (--steal-share-max of "
        "assay compare; 0 only records it)";
  } else if (says("frequency")) {
    why = "because the CPUs' frequency changes";
    remedy =
        "hold it (`assay doctor` tells how), or raise frequency_change_max in the plan "
        "(--frequency-change-max of assay compare; 0 only records it)";
  }
  return fmt::format("{} of {} trials were void, {}: {}", voids, ended, why, remedy);
}

std::string duration_text(std::uint64_t seconds) {
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min {:02} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {:02} min", seconds / 3600, seconds / 60 % 60);
}

ProgressLine::ProgressLine(std::FILE* out, bool terminal, std::size_t columns,
                           std::chrono::milliseconds quiet, std::function<Clock::time_point()> now)
    : out_(out),
      terminal_(terminal),
      columns_(std::max<std::size_t>(columns, 20)),
      quiet_(quiet),
      now_(std::move(now)) {}

ProgressLine ProgressLine::standard_error() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return {stderr, ::isatty(STDERR_FILENO) != 0, known ? size.ws_col : std::size_t{80}};
}

void ProgressLine::run_begins(const std::string& title, std::uint64_t done, std::uint64_t planned) {
  done_ = done;
  planned_ = planned;
  began_ = now_();
  print_line(done == 0
                 ? fmt::format("{}: {} trials", title, planned)
                 : fmt::format("{}: resuming, {} of {} trials are done", title, done, planned));
}

void ProgressLine::trial_begins(const std::string& arm, std::uint64_t trials) {
  arm_ = arm;
  running_ = trials;
  trial_began_ = now_();
  progress_ = {"starting", 0.0};
  show(true);
}

void ProgressLine::trial_progress(const Progress& progress) {
  progress_ = progress;
  show(false);
}

void ProgressLine::trial_ends(const std::string& arm, std::uint64_t trials,
                              const std::string& status, const std::string& reason) {
  if (status == "ok" || status == "disqualified") done_ += trials;
  ended_ += running_;
  ended_s_ += running_ > 0 ? seconds_between(trial_began_, now_()) : 0.0;
  if (status == "void") {
    voids_ += running_;
    void_reason_ = reason;
  }
  running_ = 0;
  progress_ = {"recorded", 0.0};
  const bool sound = status == "ok";
  if (terminal_ && sound) {
    show(true);
    return;
  }
  print_line(fmt::format("{}{}{}", line(), sound ? "" : ": " + status,
                         reason.empty() || sound ? "" : " (" + reason + ")"));
  if (!advised_ && status == "void") {
    const std::string advice = void_advice(voids_, ended_, void_reason_);
    if (!advice.empty()) note(advice);
    advised_ = !advice.empty();
  }
  if (!sound && !arm.empty() && terminal_) show(true);
}

void ProgressLine::note(const std::string& sentence) {
  print_line("note: " + sentence);
}

void ProgressLine::say(const std::string& sentence) {
  print_line(sentence);
}

void ProgressLine::run_ends() {
  clear();
}

std::string ProgressLine::line() const {
  std::string text = fmt::format("[{}/{}] {} {}", done_, planned_, arm_, progress_.what);
  if (progress_.fraction > 0.0 && progress_.fraction < 1.0) {
    text += fmt::format(" {:.0f} %", progress_.fraction * 100.0);
  }
  const double elapsed_s = seconds_between(began_, now_());
  text += fmt::format(", {} elapsed", duration_text(static_cast<std::uint64_t>(elapsed_s)));
  if (const auto left = left_s()) {
    text += fmt::format(", about {} left",
                        duration_text(static_cast<std::uint64_t>(std::llround(*left))));
  }
  if (voids_ > 0) text += fmt::format(", {} void and repeated", voids_);
  return text;
}

/// What the trial that runs now still takes, by how far it is, and for each later one the mean of
/// all up to here with it: one slow arm after quick ones counts from its beginning. Later trials
/// are taken to be void and repeated as often as those up to here were.
std::optional<double> ProgressLine::left_s() const {
  if (planned_ <= done_) return std::nullopt;
  const auto ended = static_cast<double>(ended_);
  // One more of each, so that voids alone give an estimate, and one early void no wild one.
  const double repeats =
      voids_ == 0 ? 1.0 : (ended + 1.0) / static_cast<double>(ended_ - voids_ + 1);
  if (running_ == 0) {
    if (ended_ == 0) return std::nullopt;
    return ended_s_ / ended * static_cast<double>(planned_ - done_) * repeats;
  }
  const auto running = static_cast<double>(running_);
  const double here_s = seconds_between(trial_began_, now_());
  double whole_s = 0.0;
  if (progress_.fraction >= kLeastFraction) {
    whole_s = here_s / std::min(progress_.fraction, 1.0);
  } else if (ended_ > 0) {
    whole_s = std::max(here_s, ended_s_ / ended * running);
  } else {
    return std::nullopt;
  }
  const double mean_s = (ended_s_ + whole_s) / (ended + running);
  const std::uint64_t later = planned_ - done_ - std::min(running_, planned_ - done_);
  return whole_s - here_s + mean_s * static_cast<double>(later) * repeats;
}

void ProgressLine::show(bool force) {
  const auto now = now_();
  if (!terminal_) {  // a line now and then, so that a long trial does not look like a hung one
    if (now - printed_ >= quiet_) print_line(line());
    return;
  }
  if (!force && now - shown_ < kRefresh) return;
  shown_ = now;
  write(fmt::format("\r\x1b[K{}", printable(line()).substr(0, columns_ - 1)));
}

void ProgressLine::clear() {
  if (!terminal_) return;
  write("\r\x1b[K");
}

void ProgressLine::print_line(const std::string& text) {
  clear();
  write(printable(text) + "\n");
  printed_ = now_();
}

/// A terminal that went away, or a full disk behind it, must not end hours of trials.
void ProgressLine::write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), out_);
  std::fflush(out_);
  std::clearerr(out_);
}

}  // namespace assay
