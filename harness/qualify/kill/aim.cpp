#include "harness/qualify/kill/aim.h"

#include <unistd.h>

#include <fmt/format.h>

namespace assay::qualify {

std::string_view to_string(Aim::Kind kind) {
  switch (kind) {
    case Aim::Kind::time:
      return "time";
    case Aim::Kind::note:
      return "note";
    case Aim::Kind::recovery:
      return "recovery";
    case Aim::Kind::checkpoint:
      return "checkpoint";
    case Aim::Kind::closing:
      return "closing";
    case Aim::Kind::call:
      return "call";
    case Aim::Kind::none:
      return "none";
  }
  return "none";
}

std::string Aim::text() const {
  switch (kind) {
    case Kind::time:
      return fmt::format("{} us after the process began", delay_us);
    case Kind::note:
      return fmt::format("right after its note {} (a transaction begun or acknowledged)", number);
    case Kind::recovery:
      return fmt::format("{} us after opening began", delay_us);
    case Kind::checkpoint:
      return fmt::format("{} us after a checkpoint began", delay_us);
    case Kind::closing:
      return fmt::format("{} us after closing began", delay_us);
    case Kind::call:
      return fmt::format("{} file-changing call {}{}", tear ? "in the middle of" : "before", number,
                         stage == Stage::starting
                             ? std::string()
                             : fmt::format(" since stage {}", to_string(stage)));
    case Kind::none:
      return "not at all";
  }
  return {};
}

AimedReceipts::AimedReceipts(SharedReceipts& receipts, const Aim& aim)
    : receipts_(receipts), aim_(aim) {
  if (aim_.kind == Aim::Kind::time) kill_after(aim_.delay_us);
}

void AimedReceipts::begun(std::uint32_t writer, std::uint64_t number) {
  receipts_.begun(writer, number);
  count_note();
}

void AimedReceipts::acknowledged(std::uint32_t writer, std::uint64_t number) {
  receipts_.acknowledged(writer, number);
  count_note();
}

void AimedReceipts::count_note() {
  if (aim_.kind == Aim::Kind::note && notes_.fetch_add(1) + 1 == aim_.number)
    ::kill(::getpid(), SIGKILL);
}

void AimedReceipts::stage(Stage now) {
  receipts_.stage(now);
  if ((aim_.kind == Aim::Kind::recovery && now == Stage::opening) ||
      (aim_.kind == Aim::Kind::checkpoint && now == Stage::checkpoint) ||
      (aim_.kind == Aim::Kind::closing && now == Stage::closing))
    kill_after(aim_.delay_us);
}

void AimedReceipts::kill_after(std::uint64_t delay_us) {
  if (armed_) return;
  armed_ = true;
  if (delay_us == 0) ::kill(::getpid(), SIGKILL);
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGKILL;
  timer_t timer{};
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(delay_us / 1'000'000);
  when.it_value.tv_nsec = static_cast<long>(delay_us % 1'000'000 * 1000);
  const bool set = ::timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 &&
                   ::timer_settime(timer, 0, &when, nullptr) == 0;
  ASSAY_CHECK(set, "a life that is to be killed needs a timer");
}

}  // namespace assay::qualify
