#include <algorithm>

#include "harness/qualify/power/recorder.h"
#include "harness/qualify/power/trace.h"

namespace assay::qualify::power {
namespace {

std::uint64_t mark(Mark what, std::uint64_t a = 0, std::uint64_t b = 0) {
  return record_mark(static_cast<std::uint64_t>(what), a, b);
}

}  // namespace

void RecordSink::begun(std::uint32_t writer, std::uint64_t number) {
  mark(Mark::begun, writer, number);
}

void RecordSink::acknowledged(std::uint32_t writer, std::uint64_t number) {
  mark(Mark::acknowledged, writer, number);
}

std::uint64_t RecordSink::sync_begins() {
  return mark(Mark::sync_begins);
}

void RecordSink::synced(std::uint64_t begun_at) {
  mark(Mark::synced, begun_at);
}

void RecordSink::stage(Stage now) {
  mark(Mark::stage, static_cast<std::uint64_t>(now));
}

Acknowledgements receipts_of(const Trace& trace, const std::vector<Baseline>& bases, bool created) {
  Acknowledgements all;
  all.created = created;
  for (const Baseline& base : bases) all.writers.push_back({base, {}});
  for (const Event& event : trace.events) {
    if (event.kind != RecordKind::mark) continue;
    const auto what = static_cast<Mark>(event.reference);
    if (what != Mark::begun && what != Mark::acknowledged) continue;
    ASSAY_CHECK(event.offset < all.writers.size(), "a mark of a writer that there is");
    Acknowledgements::Writer& writer = all.writers[event.offset];
    ASSAY_CHECK(event.length > writer.base.number, "transactions come after their baseline");
    const std::size_t index = event.length - writer.base.number - 1;
    if (writer.since.size() <= index) writer.since.resize(index + 1);
    (what == Mark::begun ? writer.since[index].begun : writer.since[index].acknowledged) =
        event.place;
  }
  return all;
}

Acknowledgements receipts_at(const Trace& trace, const Acknowledgements& all, std::size_t event) {
  const std::uint64_t place = trace.events[event].place;
  Acknowledgements then = all.at(place);
  then.synced = 0;
  for (std::size_t index = 0; index <= event; ++index) {
    const Event& each = trace.events[index];
    if (each.kind != RecordKind::mark) continue;
    const auto what = static_cast<Mark>(each.reference);
    if (what == Mark::synced) then.synced = std::max(then.synced, each.offset);
    // Open for the first time: from here on the store has to be there.
    const bool opened =
        what == Mark::stage && each.offset == static_cast<std::uint64_t>(Stage::open);
    then.created = then.created || opened || what == Mark::acknowledged;
  }
  return then;
}

}  // namespace assay::qualify::power
