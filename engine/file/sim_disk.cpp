#include "engine/file/sim_disk.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace lode {

class SimFile final : public File {
 public:
  using InodePointer = std::shared_ptr<SimDisk::Inode>;
  SimFile(std::shared_ptr<SimDisk> disk, InodePointer inode, std::string name, OpenMode mode)
      : disk_(std::move(disk)), inode_(std::move(inode)), name_(std::move(name)), mode_(mode) {}

  Result<std::size_t> read_at(Bytes out, std::uint64_t offset) override {
    const std::lock_guard guard(disk_->mutex_);
    if (disk_->dead_) return fail(ErrorKind::io, "the power is off");
    if (disk_->unreadable_ == name_) return fail(ErrorKind::io, "read error injected");
    if (offset >= inode_->live.size()) return std::size_t{0};
    const std::size_t count = std::min<std::size_t>(out.size(), inode_->live.size() - offset);
    std::memcpy(out.data(), inode_->live.data() + offset, count);
    return count;
  }

  Status write_at(ConstBytes data, std::uint64_t offset) override {
    const std::lock_guard guard(disk_->mutex_);
    if (mode_.read_only) return fail(ErrorKind::io, "the file is open for reading only");
    if (mode_.direct && (offset % direct_alignment != 0 || data.size() % direct_alignment != 0)) {
      return fail(ErrorKind::io, "unaligned direct write");
    }
    bool half_done = false;
    const Status status = disk_->count_call(half_done);
    if (!status) {
      if (half_done) disk_->write_live(inode_, data.first(data.size() / 2), offset, false);
      return status;
    }
    disk_->write_live(inode_, data, offset, mode_.dsync);
    return {};
  }

  Status sync() override {
    const std::lock_guard guard(disk_->mutex_);
    bool half_done = false;
    const Status status = disk_->count_call(half_done);
    if (!status) {
      if (half_done) disk_->sync_units(inode_, true);
      return status;
    }
    disk_->sync_units(inode_, false);
    return {};
  }

  Result<std::uint64_t> size() override {
    const std::lock_guard guard(disk_->mutex_);
    return inode_->live.size();
  }

  Status resize(std::uint64_t bytes) override {
    const std::lock_guard guard(disk_->mutex_);
    bool half_done = false;
    LODE_TRY(disk_->count_call(half_done));
    inode_->live.resize(bytes, '\0');
    disk_->pending_.push_back({SimDisk::Unit::Kind::size, inode_, bytes, {}, {}});
    return {};
  }

 private:
  std::shared_ptr<SimDisk> disk_;
  InodePointer inode_;
  std::string name_;
  OpenMode mode_;
};

std::shared_ptr<SimDisk> SimDisk::make() {
  return std::shared_ptr<SimDisk>(new SimDisk());
}

Status SimDisk::count_call(bool& half_done) {
  half_done = false;
  if (dead_) return fail(ErrorKind::io, "the power is off");
  ++calls_;
  if (fail_call_ != calls_) return {};
  fail_call_.reset();
  if (fault_ == Fault::power_cut) {
    dead_ = true;
    return fail(ErrorKind::io, "the power went off");
  }
  half_done = true;
  return fault_ == Fault::no_space ? fail(ErrorKind::no_space, "no space injected")
                                   : fail(ErrorKind::io, "input/output error injected");
}

void SimDisk::write_live(const std::shared_ptr<Inode>& inode, ConstBytes data, std::uint64_t offset,
                         bool dsync) {
  if (data.empty()) return;
  const std::uint64_t end = offset + data.size();
  if (end > inode->live.size()) {
    inode->live.resize(end, '\0');
    if (!dsync) pending_.push_back({Unit::Kind::size, inode, end, {}, {}});
  }
  std::memcpy(inode->live.data() + offset, data.data(), data.size());
  if (dsync) {
    // The touched sectors become durable as they are now, and older pieces of them are history.
    const std::uint64_t first = offset / sim_sector_bytes * sim_sector_bytes;
    const std::uint64_t last = std::min<std::uint64_t>(
        (end + sim_sector_bytes - 1) / sim_sector_bytes * sim_sector_bytes, inode->live.size());
    if (inode->durable.size() < last) inode->durable.resize(last, '\0');
    std::memcpy(inode->durable.data() + first, inode->live.data() + first, last - first);
    std::erase_if(pending_, [&](const Unit& unit) {
      if (unit.inode != inode) return false;
      if (unit.kind == Unit::Kind::size) return unit.offset <= inode->durable.size();
      return unit.kind == Unit::Kind::piece && unit.offset >= first && unit.offset < last;
    });
    return;
  }
  for (std::uint64_t at = offset; at < end;) {
    const std::uint64_t next = std::min(end, (at / sim_sector_bytes + 1) * sim_sector_bytes);
    pending_.push_back({Unit::Kind::piece,
                        inode,
                        at,
                        std::string(as_text(data.subspan(at - offset, next - at))),
                        {}});
    at = next;
  }
}

void SimDisk::sync_units(const std::shared_ptr<Inode>& inode, bool forget) {
  std::vector<Unit> rest;
  std::vector<Unit> covered;
  for (Unit& unit : pending_) {
    const bool mine =
        unit.inode == inode && (unit.kind == Unit::Kind::piece || unit.kind == Unit::Kind::size);
    (mine ? covered : rest).push_back(std::move(unit));
  }
  pending_ = std::move(rest);
  if (forget) return;
  Names none;
  for (const Unit& unit : covered) {
    if (unit.kind == Unit::Kind::size) apply(unit, none);
  }
  for (const Unit& unit : covered) {
    if (unit.kind == Unit::Kind::piece) apply(unit, none);
  }
}

void SimDisk::apply(const Unit& unit, Names& names) const {
  switch (unit.kind) {
    case Unit::Kind::piece: {
      std::string& durable = unit.inode->durable;
      if (unit.offset >= durable.size()) return;  // the growth was lost: so is the data
      const std::size_t count =
          std::min<std::size_t>(unit.data.size(), durable.size() - unit.offset);
      std::memcpy(durable.data() + unit.offset, unit.data.data(), count);
      return;
    }
    case Unit::Kind::size:
      unit.inode->durable.resize(unit.offset, '\0');
      return;
    case Unit::Kind::link:
      names[unit.data] = unit.inode;
      return;
    case Unit::Kind::unlink:
      names.erase(unit.data);
      return;
    case Unit::Kind::move:
      names.erase(unit.from);
      names[unit.data] = unit.inode;
      return;
  }
}

Result<std::unique_ptr<File>> SimDisk::open(std::string_view file, OpenMode mode) {
  const std::lock_guard guard(mutex_);
  if (dead_) return fail(ErrorKind::io, "the power is off");
  auto found = live_names_.find(file);
  if (mode.create) {
    if (found != live_names_.end()) return fail(ErrorKind::io, "file exists");
    bool half_done = false;
    LODE_TRY(count_call(half_done));
    auto inode = std::make_shared<Inode>();
    pending_.push_back({Unit::Kind::link, inode, 0, std::string(file), {}});
    found = live_names_.emplace(std::string(file), std::move(inode)).first;
  }
  if (found == live_names_.end()) {
    return fail(ErrorKind::not_found, "no file " + std::string(file));
  }
  return std::make_unique<SimFile>(shared_from_this(), found->second, std::string(file), mode);
}

Result<std::vector<std::string>> SimDisk::list() {
  const std::lock_guard guard(mutex_);
  if (dead_) return fail(ErrorKind::io, "the power is off");
  std::vector<std::string> names;
  for (const auto& [file, inode] : live_names_) names.push_back(file);
  return names;
}

Status SimDisk::remove(std::string_view file) {
  const std::lock_guard guard(mutex_);
  bool half_done = false;
  LODE_TRY(count_call(half_done));
  const auto found = live_names_.find(file);
  if (found == live_names_.end()) return fail(ErrorKind::io, "no file " + std::string(file));
  pending_.push_back({Unit::Kind::unlink, found->second, 0, std::string(file), {}});
  live_names_.erase(found);
  return {};
}

Status SimDisk::rename(std::string_view from, std::string_view to) {
  const std::lock_guard guard(mutex_);
  bool half_done = false;
  LODE_TRY(count_call(half_done));
  const auto found = live_names_.find(from);
  if (found == live_names_.end()) return fail(ErrorKind::io, "no file " + std::string(from));
  auto inode = found->second;
  live_names_.erase(found);
  live_names_[std::string(to)] = inode;
  pending_.push_back({Unit::Kind::move, inode, 0, std::string(to), std::string(from)});
  return {};
}

Status SimDisk::sync_directory() {
  const std::lock_guard guard(mutex_);
  bool half_done = false;
  const Status status = count_call(half_done);
  if (!status) return status;
  std::vector<Unit> rest;
  for (Unit& unit : pending_) {
    if (unit.kind == Unit::Kind::piece || unit.kind == Unit::Kind::size) {
      rest.push_back(std::move(unit));
    } else {
      apply(unit, durable_names_);
    }
  }
  pending_ = std::move(rest);
  return {};
}

Status SimDisk::lock(bool exclusive) {
  const std::lock_guard guard(mutex_);
  if (dead_) return fail(ErrorKind::io, "the power is off");
  if (!exclusive) return {};
  if (locked_) return fail(ErrorKind::locked, "the simulated disk is locked");
  locked_ = true;
  return {};
}

void SimDisk::fail_at(std::uint64_t call, Fault fault) {
  const std::lock_guard guard(mutex_);
  fail_call_ = calls_ + call;
  fault_ = fault;
}

std::uint64_t SimDisk::changing_calls() const {
  const std::lock_guard guard(mutex_);
  return calls_;
}

void SimDisk::fail_reads_of(std::string file) {
  const std::lock_guard guard(mutex_);
  unreadable_ = std::move(file);
}

std::size_t SimDisk::pending_units() const {
  const std::lock_guard guard(mutex_);
  return pending_.size();
}

std::shared_ptr<SimDisk> SimDisk::copy() const {
  auto other = make();
  std::map<const Inode*, std::shared_ptr<Inode>> twins;
  const auto twin = [&](const std::shared_ptr<Inode>& inode) {
    auto& slot = twins[inode.get()];
    if (!slot) slot = std::make_shared<Inode>(*inode);
    return slot;
  };
  for (const auto& [file, inode] : live_names_) other->live_names_[file] = twin(inode);
  for (const auto& [file, inode] : durable_names_) other->durable_names_[file] = twin(inode);
  for (const Unit& unit : pending_) {
    other->pending_.push_back(unit);
    other->pending_.back().inode = twin(unit.inode);
  }
  return other;
}

std::shared_ptr<SimDisk> SimDisk::crashed(const std::function<bool(std::size_t)>& keep) const {
  const std::lock_guard guard(mutex_);
  auto other = copy();
  std::vector<Unit> kept;
  for (std::size_t i = 0; i < other->pending_.size(); ++i) {
    if (keep(i)) kept.push_back(std::move(other->pending_[i]));
  }
  other->pending_.clear();
  // Sizes first: a piece survives only inside the size that survived.
  for (const Unit& unit : kept) {
    if (unit.kind != Unit::Kind::piece) other->apply(unit, other->durable_names_);
  }
  for (const Unit& unit : kept) {
    if (unit.kind == Unit::Kind::piece) other->apply(unit, other->durable_names_);
  }
  other->live_names_ = other->durable_names_;
  for (auto& [file, inode] : other->live_names_) inode->live = inode->durable;
  return other;
}

std::shared_ptr<SimDisk> SimDisk::killed() const {
  const std::lock_guard guard(mutex_);
  return copy();
}

std::optional<std::string> SimDisk::contents(std::string_view file) const {
  const std::lock_guard guard(mutex_);
  const auto found = live_names_.find(file);
  if (found == live_names_.end()) return std::nullopt;
  return found->second->live;
}

void SimDisk::set_contents(std::string_view file, std::string contents) {
  const std::lock_guard guard(mutex_);
  auto& inode = live_names_[std::string(file)];
  if (!inode) inode = std::make_shared<Inode>();
  inode->live = contents;
  inode->durable = std::move(contents);
  durable_names_[std::string(file)] = inode;
  std::erase_if(pending_, [&](const Unit& unit) { return unit.inode == inode; });
}

std::function<bool(std::size_t)> keep_some(std::uint64_t seed, unsigned percent) {
  return [seed, percent](std::size_t unit) {
    std::uint64_t x = seed * 0x9E3779B97F4A7C15U + unit + 1;  // splitmix64's finaliser
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    x ^= x >> 31;
    return x % 100 < percent;
  };
}

}  // namespace lode
