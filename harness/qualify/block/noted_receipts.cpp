#include "harness/qualify/block/noted_receipts.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace assay::qualify::block {

struct NotedReceipts::Sample {
  std::atomic<std::uint32_t> begun;
  std::atomic<std::uint32_t> acknowledged;
};

struct NotedReceipts::Shared {
  struct Sync {
    std::atomic<std::uint64_t> place;
    std::atomic<std::uint32_t> at;
  };
  std::atomic<std::uint32_t> syncs;
  std::array<Sync, 1024> synced;
  Sample* samples() { return reinterpret_cast<Sample*>(this + 1); }
};

Acknowledgements TimedAcknowledgements::before(std::uint32_t cut) const {
  Acknowledgements then = all;
  for (std::size_t writer = 0; writer < then.writers.size(); ++writer) {
    std::vector<Receipt>& since = then.writers[writer].since;
    for (std::size_t index = 0; index < since.size(); ++index) {
      if (at[writer][index].begun > cut) {
        since.resize(index);
        break;
      }
      if (at[writer][index].acknowledged > cut) since[index].acknowledged = 0;
    }
  }
  then.synced = 0;
  for (const auto& [place, when] : syncs)
    if (when <= cut) then.synced = std::max(then.synced, place);
  return then;
}

nlohmann::json to_json(const TimedAcknowledgements& timed) {
  nlohmann::json at = nlohmann::json::array();
  for (const auto& writer : timed.at) {
    nlohmann::json samples = nlohmann::json::array();
    for (const TimedAcknowledgements::At& one : writer)
      samples.push_back({one.begun, one.acknowledged});
    at.push_back(std::move(samples));
  }
  return {{"all", to_json(timed.all)}, {"at", std::move(at)}, {"syncs", timed.syncs}};
}

Result<TimedAcknowledgements> timed_acknowledgements_from_json(const nlohmann::json& json) {
  TimedAcknowledgements timed;
  try {
    Result<Acknowledgements> all = acknowledgements_from_json(json.at("all"));
    if (!all) return fail(all.error());
    timed.all = std::move(*all);
    for (const nlohmann::json& writer : json.at("at")) {
      auto& samples = timed.at.emplace_back();
      for (const nlohmann::json& one : writer) samples.push_back({one.at(0), one.at(1)});
    }
    timed.syncs = json.at("syncs").get<std::vector<std::pair<std::uint64_t, std::uint32_t>>>();
  } catch (const nlohmann::json::exception& exception) {
    return fail(ErrorKind::bad_input,
                fmt::format("not timed acknowledgements: {}", exception.what()));
  }
  return timed;
}

Result<NotedReceipts> NotedReceipts::make(SharedReceipts& receipts,
                                          const std::atomic<std::uint32_t>& length,
                                          std::uint32_t writers, std::uint64_t first,
                                          std::uint64_t capacity) {
  const std::size_t bytes = sizeof(Shared) + writers * capacity * sizeof(Sample);
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return fail(system_error(fmt::format("cannot share {} bytes for receipts", bytes), errno));
  return NotedReceipts(receipts, length, static_cast<Shared*>(memory), writers, first, capacity);
}

NotedReceipts::NotedReceipts(SharedReceipts& receipts, const std::atomic<std::uint32_t>& length,
                             Shared* shared, std::uint32_t writers, std::uint64_t first,
                             std::uint64_t capacity)
    : receipts_(&receipts),
      length_(&length),
      shared_(shared),
      bytes_(sizeof(Shared) + writers * capacity * sizeof(Sample)),
      writers_(writers),
      first_(first),
      capacity_(capacity) {}

NotedReceipts::NotedReceipts(NotedReceipts&& other) noexcept
    : receipts_(other.receipts_),
      length_(other.length_),
      shared_(std::exchange(other.shared_, nullptr)),
      bytes_(other.bytes_),
      writers_(other.writers_),
      first_(other.first_),
      capacity_(other.capacity_),
      after_(std::move(other.after_)) {}

NotedReceipts::~NotedReceipts() {
  if (shared_ != nullptr) ::munmap(shared_, bytes_);
}

NotedReceipts::Sample& NotedReceipts::sample(std::uint32_t writer, std::uint64_t number) const {
  ASSAY_CHECK(writer < writers_ && number >= first_ && number - first_ < capacity_,
              "a note needs a place");
  return shared_->samples()[writer * capacity_ + (number - first_)];
}

void NotedReceipts::begun(std::uint32_t writer, std::uint64_t number) {
  sample(writer, number).begun.store(length_->load());
  receipts_->begun(writer, number);
}

void NotedReceipts::acknowledged(std::uint32_t writer, std::uint64_t number) {
  sample(writer, number).acknowledged.store(length_->load());
  receipts_->acknowledged(writer, number);
  if (writer == 0 && after_) after_(number);
}

void NotedReceipts::synced(std::uint64_t begun_at) {
  const std::uint32_t now = length_->load();
  receipts_->synced(begun_at);
  const std::uint32_t at = shared_->syncs.load();
  if (at == shared_->synced.size()) return;  // what is not noted asks less of the store
  shared_->synced[at].place.store(begun_at);
  shared_->synced[at].at.store(now);
  shared_->syncs.store(at + 1);
}

TimedAcknowledgements NotedReceipts::read() const {
  TimedAcknowledgements timed;
  timed.all = receipts_->read();
  for (std::uint32_t writer = 0; writer < timed.all.writers.size(); ++writer) {
    const Acknowledgements::Writer& known = timed.all.writers[writer];
    auto& samples = timed.at.emplace_back();
    for (std::size_t index = 0; index < known.since.size(); ++index) {
      const Sample& noted = sample(writer, known.base.number + 1 + index);
      samples.push_back({noted.begun.load(), noted.acknowledged.load()});
    }
  }
  for (std::uint32_t index = 0; index < shared_->syncs.load(); ++index)
    timed.syncs.emplace_back(shared_->synced[index].place.load(), shared_->synced[index].at.load());
  return timed;
}

}  // namespace assay::qualify::block
