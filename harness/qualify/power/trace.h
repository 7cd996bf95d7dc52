// What was recorded, as a list of events with all that each of them changed.
//
// Invariant: applying the changes of all events in order to `initial` gives `final`, and `final`
// was compared with the real directory byte for byte (record() does; a trace that fails it is
// refused). Later parts work on Events only and never look into the log.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/qualify/power/record_log.h"
#include "harness/qualify/power/tree.h"
#include "harness/qualify/receipts.h"

namespace assay::qualify::power {

struct PageChange {
  std::uint32_t page = 0;
  const Page* before = nullptr;
  const Page* after = nullptr;
};

struct EntryChange {
  Tree::Name name;
  FileId before = kNoFile;
  FileId after = kNoFile;
};

struct Event {
  RecordKind kind = RecordKind::mark;
  std::uint8_t flags = 0;
  std::uint32_t process = 0;
  std::uint32_t thread = 0;
  std::uint64_t place = 0;  ///< in the log: grows; what Acknowledgements::at() takes
  FileId file = kNoFile;    ///< written, made, moved, removed or synced
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t reference = 0;
  std::int64_t result = 0;
  std::uint64_t size_before = 0;
  std::uint64_t size_after = 0;
  bool maps = false;       ///< a write into a hole: the file's block map changes
  std::uint32_t call = 0;  ///< sync_returned: the event of its call
  std::vector<PageChange> pages;
  std::vector<EntryChange> entries;
  std::vector<std::uint64_t> stack;  ///< return addresses, innermost first
  std::string path;                  ///< of the file when it happened, for the story
  std::string path_to;               ///< rename, link
};

/// One line for people: "write wal.log 4096+512".
[[nodiscard]] std::string describe(const Event& event);

struct Trace {
  std::unique_ptr<PagePool> pool = std::make_unique<PagePool>();
  Tree initial;  ///< with a place for every file that is made later
  Tree final;
  std::vector<Event> events;
  std::string notes;  ///< what the store had to do without while it was recorded
};

/// The events of a log over a directory that was `initial` when the recording began.
[[nodiscard]] Status read_events(const LogHeader& log, const std::vector<std::uint64_t>& inodes,
                                 Trace& trace);

// ---- marks ----

enum class Mark : std::uint64_t { begun = 1, acknowledged, synced, sync_begins, stage };

/// Notes receipts in the order of the recorded calls.
class RecordSink final : public ReceiptSink {
 public:
  void begun(std::uint32_t writer, std::uint64_t number) override;
  void acknowledged(std::uint32_t writer, std::uint64_t number) override;
  std::uint64_t sync_begins() override;
  void synced(std::uint64_t begun_at) override;
  void stage(Stage now) override;
};

/// What the marks of a trace say, on top of what was settled before it; at(place) of it gives what
/// was known at an event.
[[nodiscard]] Acknowledgements receipts_of(const Trace& trace, const std::vector<Baseline>& bases,
                                           bool created);
/// Of `all`, what was known at `event`: marks up to it, itself included.
[[nodiscard]] Acknowledgements receipts_at(const Trace& trace, const Acknowledgements& all,
                                           std::size_t event);

}  // namespace assay::qualify::power
