#include "harness/qualify/receipts.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace assay::qualify {

struct SharedReceipts::Slot {
  std::atomic<std::uint64_t> begun;
  std::atomic<std::uint64_t> acknowledged;
};

struct SharedReceipts::Header {
  std::atomic<std::uint64_t> place;
  std::atomic<std::uint64_t> synced;
  std::atomic<std::uint32_t> stage;
  std::atomic<std::uint32_t> created;
  std::array<std::atomic<std::uint64_t>, 6> stage_began_ns;
  std::array<std::atomic<std::uint64_t>, 64> last_begun;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "shared between processes");

std::string_view to_string(Stage stage) {
  switch (stage) {
    case Stage::starting:
      return "starting";
    case Stage::opening:
      return "opening";
    case Stage::open:
      return "open";
    case Stage::checkpoint:
      return "checkpoint";
    case Stage::closing:
      return "closing";
    case Stage::closed:
      return "closed";
  }
  return "starting";
}

Acknowledgements Acknowledgements::none(const History& history) {
  Acknowledgements nothing;
  nothing.writers.resize(history.shape().writers);
  for (Writer& writer : nothing.writers) writer.base.state.resize(history.keys_of_writer());
  return nothing;
}

Acknowledgements Acknowledgements::at(std::uint64_t place) const {
  Acknowledgements then = *this;
  for (Writer& writer : then.writers) {
    for (std::size_t index = 0; index < writer.since.size(); ++index) {
      Receipt& receipt = writer.since[index];
      if (receipt.begun == 0 || receipt.begun > place) {
        writer.since.resize(index);
        break;
      }
      if (receipt.acknowledged > place) receipt.acknowledged = 0;
    }
  }
  then.synced = std::min(then.synced, place);
  return then;
}

nlohmann::json to_json(const Baseline& base) {
  nlohmann::json state = nlohmann::json::array();
  for (const Version& version : base.state) state.push_back({version.number, version.position});
  return {{"number", base.number}, {"state", std::move(state)}};
}

Baseline baseline_from_json(const nlohmann::json& json) {
  Baseline base{.number = json.at("number"), .state = {}};
  for (const nlohmann::json& version : json.at("state"))
    base.state.push_back({version.at(0), version.at(1)});
  return base;
}

nlohmann::json to_json(const Acknowledgements& acknowledgements) {
  nlohmann::json writers = nlohmann::json::array();
  for (const Acknowledgements::Writer& writer : acknowledgements.writers) {
    nlohmann::json since = nlohmann::json::array();
    for (const Receipt& receipt : writer.since)
      since.push_back({receipt.begun, receipt.acknowledged});
    writers.push_back({{"base", to_json(writer.base)}, {"since", std::move(since)}});
  }
  return {{"writers", std::move(writers)},
          {"synced", acknowledgements.synced},
          {"crashes", acknowledgements.crashes},
          {"synced_at_crashes", acknowledgements.synced_at_crashes},
          {"created", acknowledgements.created}};
}

Result<Acknowledgements> acknowledgements_from_json(const nlohmann::json& json) {
  Acknowledgements read;
  try {
    read.synced = json.at("synced");
    read.crashes = json.value("crashes", std::vector<std::uint64_t>());
    read.synced_at_crashes = json.value("synced_at_crashes", std::vector<std::uint64_t>());
    read.created = json.at("created");
    for (const nlohmann::json& writer : json.at("writers")) {
      Acknowledgements::Writer one{.base = baseline_from_json(writer.at("base")), .since = {}};
      for (const nlohmann::json& receipt : writer.at("since"))
        one.since.push_back({receipt.at(0), receipt.at(1)});
      read.writers.push_back(std::move(one));
    }
  } catch (const nlohmann::json::exception& exception) {
    return fail(ErrorKind::bad_input,
                fmt::format("not a list of acknowledgements: {}", exception.what()));
  }
  return read;
}

std::size_t Acknowledgements::life_of(std::uint64_t place) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(crashes, [place](std::uint64_t crash) { return crash < place; }));
}

std::uint64_t Acknowledgements::synced_in_life_of(std::uint64_t place) const {
  const std::size_t life = life_of(place);
  return life < synced_at_crashes.size() ? synced_at_crashes[life] : synced;
}

std::uint64_t Acknowledgements::acknowledged_commits() const {
  std::uint64_t count = 0;
  for (const Writer& writer : writers)
    for (const Receipt& receipt : writer.since) count += receipt.acknowledged != 0 ? 1 : 0;
  return count;
}

Result<SharedReceipts> SharedReceipts::make(const History& history, std::uint64_t capacity) {
  ASSAY_CHECK(history.shape().writers <= 64, "the header has places for 64 writers");
  const std::size_t bytes = sizeof(Header) + history.shape().writers * capacity * sizeof(Slot);
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return fail(system_error(fmt::format("cannot share {} bytes for receipts", bytes), errno));
  return SharedReceipts(memory, bytes, history, capacity);
}

SharedReceipts::SharedReceipts(void* memory, std::size_t bytes, const History& history,
                               std::uint64_t capacity)
    : memory_(memory), bytes_(bytes), capacity_(capacity) {
  bases_ = std::vector<Baseline>(history.shape().writers);
  for (Baseline& base : bases_) base.state.resize(history.keys_of_writer());
}

SharedReceipts::SharedReceipts(SharedReceipts&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      bytes_(other.bytes_),
      capacity_(other.capacity_),
      bases_(std::move(other.bases_)) {}

SharedReceipts::~SharedReceipts() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

SharedReceipts::Header& SharedReceipts::header() const {
  return *static_cast<Header*>(memory_);
}

SharedReceipts::Slot& SharedReceipts::slot(std::uint32_t writer, std::uint64_t number) const {
  ASSAY_CHECK(writer < bases_.size() && number > bases_[writer].number &&
                  number - bases_[writer].number <= capacity_,
              "a receipt needs a place");
  auto* const slots = reinterpret_cast<Slot*>(static_cast<char*>(memory_) + sizeof(Header));
  return slots[writer * capacity_ + (number - bases_[writer].number - 1)];
}

void SharedReceipts::begun(std::uint32_t writer, std::uint64_t number) {
  // The place is taken last but one: a kill in between leaves a transaction that was not begun.
  slot(writer, number).begun.store(header().place.fetch_add(1) + 1);
  header().last_begun[writer].store(number);
}

void SharedReceipts::acknowledged(std::uint32_t writer, std::uint64_t number) {
  slot(writer, number).acknowledged.store(header().place.fetch_add(1) + 1);
}

std::uint64_t SharedReceipts::sync_begins() {
  return header().place.load();
}

void SharedReceipts::synced(std::uint64_t begun_at) {
  std::uint64_t before = header().synced.load();
  while (before < begun_at && !header().synced.compare_exchange_weak(before, begun_at)) {
  }
}

void SharedReceipts::stage(Stage now) {
  if (now == Stage::open) header().created.store(1);
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  header().stage_began_ns[static_cast<std::size_t>(now)].store(
      static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
      static_cast<std::uint64_t>(time.tv_nsec));
  header().stage.store(static_cast<std::uint32_t>(now));
}

std::uint64_t SharedReceipts::stage_began_ns(Stage stage) const {
  return header().stage_began_ns[static_cast<std::size_t>(stage)].load();
}

Stage SharedReceipts::stage() const {
  return static_cast<Stage>(header().stage.load());
}

std::uint64_t SharedReceipts::notes() const {
  return header().place.load();
}

std::uint64_t SharedReceipts::last_begun(std::uint32_t writer) const {
  return std::max(header().last_begun[writer].load(), bases_[writer].number);
}

std::uint64_t SharedReceipts::room(std::uint32_t writer) const {
  return bases_[writer].number + capacity_ - last_begun(writer);
}

Acknowledgements SharedReceipts::read() const {
  Acknowledgements all;
  all.synced = header().synced.load();
  all.created = header().created.load() != 0;
  for (std::uint32_t writer = 0; writer < bases_.size(); ++writer) {
    Acknowledgements::Writer one{.base = bases_[writer], .since = {}};
    for (std::uint64_t number = one.base.number + 1; number <= one.base.number + capacity_;
         ++number) {
      const Slot& noted = slot(writer, number);
      const Receipt receipt{noted.begun.load(), noted.acknowledged.load()};
      if (receipt.begun == 0) break;
      one.since.push_back(receipt);
    }
    all.writers.push_back(std::move(one));
  }
  return all;
}

void SharedReceipts::settle(const std::vector<Baseline>& bases) {
  ASSAY_CHECK(bases.size() == bases_.size(), "a baseline a writer");
  for (std::uint32_t writer = 0; writer < bases_.size(); ++writer) {
    // One more than the last: a kill between the two notes of a beginning leaves such a slot.
    const std::uint64_t last = std::min(last_begun(writer) + 1, bases_[writer].number + capacity_);
    for (std::uint64_t number = bases_[writer].number + 1; number <= last; ++number) {
      slot(writer, number).begun.store(0);
      slot(writer, number).acknowledged.store(0);
    }
  }
  bases_ = bases;
  for (std::uint32_t writer = 0; writer < bases_.size(); ++writer)
    header().last_begun[writer].store(bases_[writer].number);
  header().synced.store(0);
  for (auto& began : header().stage_began_ns) began.store(0);
}

void SharedReceipts::restart(const History& history) {
  settle(bases_);
  header().created.store(0);
  header().place.store(0);
  header().stage.store(0);
  for (auto& last : header().last_begun) last.store(0);
  const std::uint32_t writers = history.shape().writers;
  ASSAY_CHECK(sizeof(Header) + writers * capacity_ * sizeof(Slot) <= bytes_,
              "room for the writers");
  bases_ = std::vector<Baseline>(writers);
  for (Baseline& base : bases_) base.state.resize(history.keys_of_writer());
}

}  // namespace assay::qualify
