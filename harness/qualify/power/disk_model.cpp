#include "harness/qualify/power/disk_model.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

namespace assay::qualify::power {

std::string_view to_string(Profile profile) {
  switch (profile) {
    case Profile::strict:
      return "strict";
    case Profile::ordered:
      return "ordered";
    case Profile::btrfs:
      return "btrfs";
    case Profile::prefix:
      return "prefix";
  }
  return "strict";
}

Result<Profile> parse_profile(std::string_view text) {
  std::vector<std::string_view> names;
  for (const Profile profile : kProfiles) {
    if (to_string(profile) == text) return profile;
    names.push_back(to_string(profile));
  }
  const std::string near = nearest_name(text, names);
  return fail(Error(ErrorKind::bad_input, fmt::format("unknown profile \"{}\"", text))
                  .hint(near.empty() ? "strict, ordered, btrfs or prefix"
                                     : fmt::format("did you mean \"{}\"?", near)));
}

std::uint64_t sync_site(const Event& event) {
  if (!event.stack.empty()) {
    return XXH3_64bits(event.stack.data(), event.stack.size() * sizeof event.stack[0]) | 1;
  }
  const std::string name =
      fmt::format("{}:{}:{}", static_cast<int>(event.kind), event.flags, event.path);
  return XXH3_64bits(name.data(), name.size()) | 1;
}

Disk::Disk(const Trace& trace, Profile profile, const std::set<std::uint64_t>* suppressed)
    : trace_(trace), profile_(profile), suppressed_(suppressed), durable_(trace.initial) {}

Unit& Disk::push(Unit::Kind kind, std::uint32_t event, FileId file) {
  Unit unit;
  unit.kind = kind;
  unit.id = next_id_++;
  unit.event = event;
  unit.file = file;
  const bool metadata = kind == Unit::Kind::names || kind == Unit::Kind::resize;
  const bool in_order = profile_ == Profile::prefix || (profile_ != Profile::strict && metadata);
  if (in_order) {
    unit.follows = last_ordered_;
    last_ordered_ = unit.id;
  }
  pending_.push_back(std::move(unit));
  return pending_.back();
}

void Disk::need(Unit& unit, std::optional<std::uint32_t> id) const {
  if (id && std::find(unit.needs.begin(), unit.needs.end(), *id) == unit.needs.end()) {
    unit.needs.push_back(*id);
  }
}

namespace {

template <class Map, class Key>
std::optional<std::uint32_t> last_in(const Map& map, const Key& key) {
  const auto found = map.find(key);
  if (found == map.end()) return std::nullopt;
  return found->second;
}

}  // namespace

void Disk::add(const Event& event, std::uint32_t index) {
  if (!event.entries.empty()) {
    Unit& unit = push(Unit::Kind::names, index, event.file);
    for (const EntryChange& change : event.entries) {
      need(unit, last_in(last_of_name_, change.name));
      last_of_name_[change.name] = unit.id;
    }
    return;
  }
  if (event.kind == RecordKind::truncate || event.kind == RecordKind::allocate) {
    Unit& unit = push(Unit::Kind::resize, index, event.file);
    need(unit, last_in(last_of_size_, event.file));
    last_of_size_[event.file] = unit.id;
    for (const PageChange& change : event.pages) {
      const std::pair page{event.file, change.page};
      need(unit, last_in(last_of_page_, page));
      last_of_page_[page] = unit.id;
    }
    return;
  }
  last_write_[event.file] = index;
  for (std::uint32_t change = 0; change < event.pages.size(); ++change) {
    Unit& unit = push(Unit::Kind::data, index, event.file);
    unit.change = change;
    const std::pair page{event.file, event.pages[change].page};
    need(unit, last_in(last_of_page_, page));
    last_of_page_[page] = unit.id;
  }
  if (event.size_after != event.size_before) {
    Unit& unit = push(Unit::Kind::size, index, event.file);
    need(unit, last_in(last_of_size_, event.file));
    last_of_size_[event.file] = unit.id;
  }
}

void Disk::apply(const Unit& unit, Tree& tree) const {
  const Event& event = trace_.events[unit.event];
  const auto set_page = [&](File& file, const PageChange& change) {
    if (change.page >= file.pages.size()) file.pages.resize(change.page + 1, nullptr);
    file.pages[change.page] = change.after;
  };
  switch (unit.kind) {
    case Unit::Kind::data:
      set_page(tree.change(unit.file), event.pages[unit.change]);
      return;
    case Unit::Kind::size:
      tree.change(unit.file).size = event.size_after;
      return;
    case Unit::Kind::resize: {
      File& file = tree.change(unit.file);
      for (const PageChange& change : event.pages) set_page(file, change);
      file.size = event.size_after;
      return;
    }
    case Unit::Kind::names:
      for (const EntryChange& change : event.entries) tree.set_entry(change.name, change.after);
      return;
  }
}

std::size_t Disk::index_of(std::uint32_t id) const {
  const auto found =
      std::lower_bound(pending_.begin(), pending_.end(), id,
                       [](const Unit& unit, std::uint32_t wanted) { return unit.id < wanted; });
  return found == pending_.end() || found->id != id
             ? pending_.size()
             : static_cast<std::size_t>(found - pending_.begin());
}

void Disk::close_down(std::vector<char>& kept) const {
  for (std::size_t index = 0; index < pending_.size(); ++index) {
    if (kept[index] == 0) continue;
    const Unit& unit = pending_[index];
    const auto is_there = [&](std::uint32_t id) {
      const std::size_t at = index_of(id);
      return at == pending_.size() || kept[at] != 0;  // what is not pending any more is durable
    };
    bool whole = unit.follows == Unit::kNone || is_there(unit.follows);
    for (const std::uint32_t id : unit.needs) whole = whole && is_there(id);
    if (!whole) kept[index] = 0;
  }
}

void Disk::close_up(std::vector<char>& kept) const {
  for (std::size_t index = pending_.size(); index-- > 0;) {
    if (kept[index] == 0) continue;
    const auto take = [&](std::uint32_t id) {
      const std::size_t at = index_of(id);
      if (at != pending_.size()) kept[at] = 1;
    };
    if (pending_[index].follows != Unit::kNone) take(pending_[index].follows);
    for (const std::uint32_t id : pending_[index].needs) take(id);
  }
}

Tree Disk::state(const std::vector<char>& kept) const {
  Tree tree = durable_;
  for (std::size_t index = 0; index < pending_.size(); ++index) {
    if (kept[index] != 0) apply(pending_[index], tree);
  }
  return tree;
}

// ---- syncs ----

bool Disk::own_metadata(const Sync& sync) const {
  for (const Unit& unit : pending_) {
    if (unit.event >= sync.before) break;
    const Event& event = trace_.events[unit.event];
    if (unit.kind == Unit::Kind::names) {
      const bool makes = event.kind == RecordKind::open || event.kind == RecordKind::make_directory;
      // A new name changes the file's times, not what is needed to read it.
      if (unit.file == sync.file && (makes || !sync.data_only)) return true;
      for (const EntryChange& change : event.entries) {
        if (change.name.first == sync.file) return true;
      }
    } else if (unit.file == sync.file) {
      if (unit.kind != Unit::Kind::data || event.maps) return true;
    }
  }
  if (sync.data_only) return false;
  const auto written = last_in(last_write_, sync.file);
  return written && *written >= committed_ && *written < sync.before;
}

/// The folders that lead to a file, and itself.
std::set<FileId> Disk::folders_of(FileId file) const {
  std::set<FileId> reached{file};
  Tree live = state(std::vector<char>(pending_.size(), 1));
  for (bool grew = true; grew;) {
    grew = false;
    for (const auto& [name, id] : live.entries()) {
      if (reached.contains(id) && reached.insert(name.first).second) grew = true;
    }
  }
  return reached;
}

bool Disk::covers(const Sync& sync, const Unit& unit, bool commits,
                  const std::set<FileId>& reached) const {
  if (unit.event >= sync.before || unit.lost_to_sync) return false;
  if (sync.everything || profile_ == Profile::prefix) return true;
  const Event& event = trace_.events[unit.event];
  if (unit.kind == Unit::Kind::data) {
    if (unit.file != sync.file) return false;
    const std::uint64_t page = std::uint64_t{event.pages[unit.change].page} * kPageBytes;
    return sync.to == 0 || (page < sync.to && page + kPageBytes > sync.from);
  }
  if (unit.kind == Unit::Kind::size) return unit.file == sync.file;
  if (profile_ == Profile::ordered) return commits;
  if (unit.kind == Unit::Kind::resize) return unit.file == sync.file;
  for (const EntryChange& change : event.entries) {
    if (change.name.first == sync.file) return true;  // a sync of the folder
    if (profile_ == Profile::btrfs && reached.contains(unit.file)) return true;
  }
  return false;
}

void Disk::sync(const Sync& sync) {
  const bool commits = profile_ == Profile::ordered && (sync.everything || own_metadata(sync));
  std::set<FileId> reached;
  if (profile_ == Profile::btrfs && !sync.everything) reached = folders_of(sync.file);
  std::vector<char> covered(pending_.size(), 0);
  for (std::size_t index = 0; index < pending_.size(); ++index) {
    covered[index] = covers(sync, pending_[index], commits, reached) ? 1 : 0;
  }
  if (sync.failed) {
    for (std::size_t index = 0; index < pending_.size(); ++index) {
      if (covered[index] != 0) pending_[index].lost_to_sync = true;
    }
    return;
  }
  if (commits) committed_ = std::max(committed_, sync.before);
  cover(std::move(covered));
}

void Disk::cover(std::vector<char> covered) {
  // Needed are earlier changes of the same object; the profile's order does not bind a sync.
  for (std::size_t index = pending_.size(); index-- > 0;) {
    if (covered[index] == 0) continue;
    for (const std::uint32_t id : pending_[index].needs) {
      const std::size_t at = index_of(id);
      if (at == pending_.size()) continue;
      if (pending_[at].lost_to_sync) {
        covered[index] = 0;  // cannot be durable on top of what is lost for good
      } else {
        covered[at] = 1;
      }
    }
  }
  std::vector<Unit> left;
  for (std::size_t index = 0; index < pending_.size(); ++index) {
    if (covered[index] != 0) {
      apply(pending_[index], durable_);
    } else {
      left.push_back(std::move(pending_[index]));
    }
  }
  pending_ = std::move(left);
  // A unit whose predecessor in the order is durable follows the one before that.
  std::uint32_t last = Unit::kNone;
  for (Unit& unit : pending_) {
    const bool metadata = unit.kind == Unit::Kind::names || unit.kind == Unit::Kind::resize;
    if (profile_ == Profile::strict || (profile_ != Profile::prefix && !metadata)) continue;
    unit.follows = last;
    last = unit.id;
  }
  last_ordered_ = last;
}

bool Disk::step() {
  if (position_ == trace_.events.size()) return false;
  const auto index = static_cast<std::uint32_t>(position_++);
  const Event& event = trace_.events[index];
  switch (event.kind) {
    case RecordKind::sync_called:
    case RecordKind::range_flush:
    case RecordKind::mark:
      return true;
    case RecordKind::sync_returned: {
      const Event& call = trace_.events[event.call];
      if (suppressed_ != nullptr && suppressed_->contains(sync_site(call))) return true;
      Sync request;
      request.file = call.file;
      request.everything = (call.flags & kFlagEverything) != 0;
      request.data_only = (call.flags & kFlagDataOnly) != 0;
      request.from = call.offset;
      request.to = call.length == 0 ? 0 : call.offset + call.length;
      request.before = event.call;
      request.failed = event.result < 0;
      sync(request);
      return true;
    }
    default:
      break;
  }
  add(event, index);
  return true;
}

}  // namespace assay::qualify::power
