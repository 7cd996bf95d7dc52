#include "harness/qualify/power/trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/falloc.h>
#include <linux/fs.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>

namespace assay::qualify::power {
namespace {

Error inconsistent(const std::string& what) {
  return Error(ErrorKind::internal, "the record of the store's calls does not fit: " + what)
      .hint("another process may have changed the directory; such a recording is not used");
}

/// Replays the log's records on a live tree and writes down what each changed.
class Reader {
 public:
  Reader(const LogHeader& log, const std::vector<std::uint64_t>& inodes, Trace& trace)
      : records_(reinterpret_cast<const std::byte*>(&log) + kLogRecordsAt),
        used_(log.used.load(std::memory_order_acquire)),
        trace_(trace),
        live_(trace.initial) {
    for (std::size_t id = 0; id < inodes.size(); ++id) {
      files_[inodes[id]] = static_cast<FileId>(id);
    }
  }

  Status read();

 private:
  struct Record {
    RecordHead head;
    std::string a;
    std::string b;
    std::span<const std::byte> data;
    std::vector<std::uint64_t> stack;
  };

  Record take(std::uint64_t place) const;
  Event begin(const Record& record, std::uint64_t place) const;
  Result<FileId> file_of(std::uint64_t inode) const;
  Result<Tree::Name> name_of(const std::string& path) const;
  FileId make(std::uint64_t inode, bool directory);
  void put(Event event);

  Status one(const Record& record, std::uint64_t place);
  Status open(const Record& record, Event event);
  Status make_directory(const Record& record, Event event);
  Status write(const Record& record, Event event);
  void put_sync(Event call);
  Status resize(const Record& record, Event event);
  Status allocate(const Record& record, Event event);
  Status names(const Record& record, Event event);
  Status remove(const Record& record, Event event);
  void clear(Event& event, std::uint64_t from, std::uint64_t to);

  const std::byte* records_;
  std::uint64_t used_;
  Trace& trace_;
  Tree live_;
  std::unordered_map<std::uint64_t, FileId> files_;
  std::unordered_map<std::uint64_t, std::uint32_t> calls_;  ///< place of a sync call -> event
};

Reader::Record Reader::take(std::uint64_t place) const {
  Record record;
  const std::byte* from = records_ + place;
  std::memcpy(&record.head, from, sizeof record.head);
  from += sizeof record.head;
  record.stack.resize(record.head.stack_depth);
  if (!record.stack.empty()) std::memcpy(record.stack.data(), from, 8 * record.stack.size());
  from += 8 * record.stack.size();
  record.a.assign(reinterpret_cast<const char*>(from), record.head.path_a_bytes);
  from += record.head.path_a_bytes;
  record.b.assign(reinterpret_cast<const char*>(from), record.head.path_b_bytes);
  from += record.head.path_b_bytes;
  record.data = {from, record.head.data_bytes};
  return record;
}

Event Reader::begin(const Record& record, std::uint64_t place) const {
  Event event;
  event.kind = record.head.kind;
  event.flags = record.head.flags;
  event.process = record.head.process;
  event.thread = record.head.thread;
  event.place = place + 1;
  event.offset = record.head.offset;
  event.length = record.head.length;
  event.reference = record.head.reference;
  event.result = record.head.result;
  event.stack = record.stack;
  event.path = record.a;
  event.path_to = record.b;
  return event;
}

Result<FileId> Reader::file_of(std::uint64_t inode) const {
  const auto found = files_.find(inode);
  if (found == files_.end()) {
    return fail(inconsistent(fmt::format("a file with inode {} was never made", inode)));
  }
  return found->second;
}

Result<Tree::Name> Reader::name_of(const std::string& path) const {
  FileId folder = kRoot;
  std::size_t from = 0;
  for (std::size_t slash; (slash = path.find('/', from)) != std::string::npos; from = slash + 1) {
    folder = live_.find({folder, path.substr(from, slash - from)});
    if (folder == kNoFile) {
      return fail(inconsistent(fmt::format("the folder of \"{}\" was never made", path)));
    }
  }
  return Tree::Name{folder, path.substr(from)};
}

FileId Reader::make(std::uint64_t inode, bool directory) {
  File file;
  file.directory = directory;
  trace_.initial.add(file);  // its place; no entry leads to it
  const FileId id = live_.add(std::move(file));
  files_[inode] = id;
  return id;
}

void Reader::put(Event event) {
  for (const EntryChange& change : event.entries) live_.set_entry(change.name, change.after);
  if (!event.pages.empty() || event.size_after != event.size_before) {
    File& file = live_.change(event.file);
    for (const PageChange& change : event.pages) {
      if (change.page >= file.pages.size()) file.pages.resize(change.page + 1, nullptr);
      file.pages[change.page] = change.after;
    }
    file.size = event.size_after;
  }
  trace_.events.push_back(std::move(event));
}

Status Reader::open(const Record& record, Event event) {
  const auto name = name_of(record.a);
  if (!name) return std::unexpected(name.error());
  const FileId there = live_.find(*name);
  if (there == kNoFile) {
    event.file = make(record.head.inode, false);
    event.entries.push_back({*name, kNoFile, event.file});
    put(std::move(event));
    return {};
  }
  const auto known = file_of(record.head.inode);
  if (!known || *known != there) {
    return fail(inconsistent(fmt::format("\"{}\" is another file than the one made", record.a)));
  }
  if ((event.flags & kFlagTruncate) == 0 || live_.file(there).size == 0) return {};
  event.kind = RecordKind::truncate;
  event.file = there;
  event.length = 0;
  event.size_before = live_.file(there).size;
  clear(event, 0, event.size_before);
  put(std::move(event));
  return {};
}

Status Reader::make_directory(const Record& record, Event event) {
  const auto name = name_of(record.a);
  if (!name) return std::unexpected(name.error());
  event.file = make(record.head.inode, true);
  event.entries.push_back({*name, kNoFile, event.file});
  put(std::move(event));
  return {};
}

Status Reader::write(const Record& record, Event event) {
  const auto id = file_of(record.head.inode);
  if (!id) return std::unexpected(id.error());
  event.file = *id;
  event.path = live_.path_of(*id);
  const File& file = live_.file(*id);
  event.size_before = file.size;
  event.size_after = std::max(file.size, event.offset + record.data.size());
  for (std::uint64_t at = event.offset; at < event.offset + record.data.size();) {
    const std::uint64_t page = at / kPageBytes;
    const std::uint64_t in_page = at % kPageBytes;
    const std::uint64_t done = at - event.offset;
    const std::uint64_t bytes = std::min(kPageBytes - in_page, record.data.size() - done);
    const Page* const before = page < file.pages.size() ? file.pages[page] : nullptr;
    const Page* const after =
        trace_.pool->overwrite(before, in_page, record.data.subspan(done, bytes));
    event.maps = event.maps || before == nullptr;
    // A mapping's page that was armed anew may hold what was there before.
    if (after != before || event.kind == RecordKind::write) {
      event.pages.push_back({static_cast<std::uint32_t>(page), before, after});
    }
    at += bytes;
  }
  if (event.pages.empty() && event.size_after == event.size_before) return {};
  const bool synchronous = (event.flags & kFlagDsync) != 0;
  Event call;
  if (synchronous) {
    call = event;
    call.kind = RecordKind::sync_called;
    call.flags = kFlagDsync | kFlagDataOnly;
    call.pages.clear();
    // A vector's last piece says how many bytes all of them have.
    const std::uint64_t bytes = event.reference == 0 ? event.length : event.reference;
    call.offset = event.offset + event.length - bytes;
    call.length = bytes;
    call.size_before = call.size_after;
  }
  put(std::move(event));
  if (synchronous) put_sync(std::move(call));
  return {};
}

/// A synchronous write is a write, then a sync of its range: in between, power may fail.
void Reader::put_sync(Event call) {
  Event returned = call;
  returned.kind = RecordKind::sync_returned;
  returned.call = static_cast<std::uint32_t>(trace_.events.size());
  returned.result = 0;
  returned.stack.clear();
  put(std::move(call));
  put(std::move(returned));
}

/// Makes [from, to) zeros: whole pages become holes.
void Reader::clear(Event& event, std::uint64_t from, std::uint64_t to) {
  const File& file = live_.file(event.file);
  for (std::uint64_t page = from / kPageBytes; page < file.pages.size(); ++page) {
    const std::uint64_t start = page * kPageBytes;
    if (start >= to) break;
    const Page* const before = file.pages[page];
    if (before == nullptr) continue;
    const std::uint64_t left = std::max(from, start) - start;
    const std::uint64_t right = std::min(to, start + kPageBytes) - start;
    // What is behind the end of the file is zero already: the page goes as a whole.
    const bool whole = left == 0 && (right == kPageBytes || start + right >= file.size);
    const std::vector<std::byte> zeros(right - left);
    const Page* const after = whole ? nullptr : trace_.pool->overwrite(before, left, zeros);
    if (after != before) event.pages.push_back({static_cast<std::uint32_t>(page), before, after});
  }
}

Status Reader::resize(const Record& record, Event event) {
  const auto id = file_of(record.head.inode);
  if (!id) return std::unexpected(id.error());
  event.file = *id;
  event.path = live_.path_of(*id);
  event.size_before = live_.file(*id).size;
  event.size_after = event.length;
  if (event.size_after < event.size_before) clear(event, event.size_after, event.size_before);
  if (event.size_after != event.size_before) put(std::move(event));
  return {};
}

Status Reader::allocate(const Record& record, Event event) {
  const auto id = file_of(record.head.inode);
  if (!id) return std::unexpected(id.error());
  event.file = *id;
  event.path = live_.path_of(*id);
  event.size_before = live_.file(*id).size;
  event.size_after = event.size_before;
  const std::uint64_t mode = event.reference;
  const std::uint64_t end = event.offset + event.length;
  constexpr std::uint64_t kClears = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE;
  if ((mode & ~(kClears | FALLOC_FL_KEEP_SIZE)) != 0) {
    return fail(Error(ErrorKind::unsupported,
                      "the store collapsed or inserted a range of a file, which is not modelled")
                    .at(event.path));
  }
  if ((mode & kClears) != 0) clear(event, event.offset, std::min(end, event.size_before));
  if ((mode & FALLOC_FL_KEEP_SIZE) == 0) event.size_after = std::max(event.size_before, end);
  put(std::move(event));
  return {};
}

Status Reader::names(const Record& record, Event event) {
  const auto from = name_of(record.a);
  if (!from) return std::unexpected(from.error());
  const auto to = name_of(record.b);
  if (!to) return std::unexpected(to.error());
  const FileId moved = live_.find(*from);
  const FileId there = live_.find(*to);
  if (moved == kNoFile) return fail(inconsistent(fmt::format("\"{}\" was never made", record.a)));
  event.file = moved;
  if (event.kind == RecordKind::link) {
    event.entries.push_back({*to, there, moved});
  } else if (moved != there) {  // renaming a file to another of its own names does nothing
    const bool exchanges = (event.reference & RENAME_EXCHANGE) != 0;
    event.entries.push_back({*from, moved, exchanges ? there : kNoFile});
    event.entries.push_back({*to, there, moved});
  }
  put(std::move(event));
  return {};
}

Status Reader::remove(const Record& record, Event event) {
  const auto name = name_of(record.a);
  if (!name) return std::unexpected(name.error());
  event.file = live_.find(*name);
  if (event.file == kNoFile) {
    return fail(inconsistent(fmt::format("\"{}\" was never made", record.a)));
  }
  event.entries.push_back({*name, event.file, kNoFile});
  put(std::move(event));
  return {};
}

Status Reader::one(const Record& record, std::uint64_t place) {
  Event event = begin(record, place);
  switch (record.head.kind) {
    case RecordKind::open:
      return open(record, std::move(event));
    case RecordKind::make_directory:
      return make_directory(record, std::move(event));
    case RecordKind::write:
    case RecordKind::page:
      return write(record, std::move(event));
    case RecordKind::truncate:
      return resize(record, std::move(event));
    case RecordKind::allocate:
      return allocate(record, std::move(event));
    case RecordKind::rename:
    case RecordKind::link:
      return names(record, std::move(event));
    case RecordKind::unlink:
    case RecordKind::remove_directory:
      return remove(record, std::move(event));
    case RecordKind::sync_called:
    case RecordKind::range_flush:
      if ((event.flags & kFlagEverything) == 0) {
        const auto id = file_of(record.head.inode);
        if (!id) return std::unexpected(id.error());
        event.file = *id;
        event.path = *id == kRoot ? "." : live_.path_of(*id);
      }
      calls_[event.place] = static_cast<std::uint32_t>(trace_.events.size());
      put(std::move(event));
      return {};
    case RecordKind::sync_returned: {
      const auto call = calls_.find(event.reference);
      if (call == calls_.end()) return fail(inconsistent("a sync returned that was not called"));
      event.call = call->second;
      event.file = trace_.events[event.call].file;
      event.path = trace_.events[event.call].path;
      put(std::move(event));
      return {};
    }
    case RecordKind::mark:
      put(std::move(event));
      return {};
  }
  return fail(inconsistent("an unknown kind of call"));
}

Status Reader::read() {
  for (std::uint64_t place = 0; place < used_;) {
    const Record record = take(place);
    ASSAY_TRY(one(record, place));
    place += record.head.bytes;
  }
  trace_.final = std::move(live_);
  return {};
}

}  // namespace

std::string describe(const Event& event) {
  switch (event.kind) {
    case RecordKind::open:
      return fmt::format("create {}", event.path);
    case RecordKind::make_directory:
      return fmt::format("mkdir {}", event.path);
    case RecordKind::write:
      return fmt::format("write {} {}+{}{}", event.path, event.offset, event.length,
                         (event.flags & kFlagDsync) != 0 ? " (synchronous)" : "");
    case RecordKind::page:
      return fmt::format("store to mapping of {} {}+{}", event.path, event.offset, event.length);
    case RecordKind::truncate:
      return fmt::format("truncate {} from {} to {}", event.path, event.size_before,
                         event.size_after);
    case RecordKind::allocate:
      return fmt::format("fallocate {} {}+{} mode {}", event.path, event.offset, event.length,
                         event.reference);
    case RecordKind::rename:
      return fmt::format("rename {} to {}", event.path, event.path_to);
    case RecordKind::link:
      return fmt::format("link {} to {}", event.path, event.path_to);
    case RecordKind::unlink:
      return fmt::format("unlink {}", event.path);
    case RecordKind::remove_directory:
      return fmt::format("rmdir {}", event.path);
    case RecordKind::sync_called:
      if ((event.flags & kFlagDsync) != 0) {
        return fmt::format("... its synchronous part begins ({} {}+{})", event.path, event.offset,
                           event.length);
      }
      return fmt::format("{} {}", (event.flags & kFlagDataOnly) != 0 ? "fdatasync" : "fsync",
                         (event.flags & kFlagEverything) != 0 ? "everything" : event.path);
    case RecordKind::sync_returned:
      return fmt::format("sync of {} returned {}", event.path, event.result);
    case RecordKind::range_flush:
      return fmt::format("sync_file_range {} {}+{}", event.path, event.offset, event.length);
    case RecordKind::mark:
      break;
  }
  switch (static_cast<Mark>(event.reference)) {
    case Mark::begun:
      return fmt::format("transaction {} of writer {} begun", event.length, event.offset);
    case Mark::acknowledged:
      return fmt::format("transaction {} of writer {} acknowledged", event.length, event.offset);
    case Mark::synced:
      return "Store::sync returned";
    case Mark::sync_begins:
      return "Store::sync called";
    case Mark::stage:
      return fmt::format("worker: {}", to_string(static_cast<Stage>(event.offset)));
  }
  return "mark";
}

Status read_events(const LogHeader& log, const std::vector<std::uint64_t>& inodes, Trace& trace) {
  trace.notes = log.notes;
  return Reader(log, inodes, trace).read();
}

}  // namespace assay::qualify::power
