// A store's files with changes that the input makes: recovery reports damage, or what it opens is a
// state that the store had, whole. With repaired checksums, which is no damage that a medium makes,
// it must only not crash.
//
// Input: 1 byte: lowest bit = repair the frames' checksums; then changes of 5 bytes: file (1 byte),
// place (3 bytes, modulo its size), what is combined with the byte there (1 byte).
#include <algorithm>
#include <map>
#include <vector>

#include "engine/base/coding.h"
#include "engine/base/crc32c.h"
#include "engine/file/sim_disk.h"
#include "engine/fuzz/fuzz_check.h"
#include "engine/lode.h"
#include "engine/wal/log_format.h"

namespace {

using namespace lode;
using Contents = std::map<std::string, std::string>;

Options small() {
  Options options;
  options.create = false;
  options.log_method = LogMethod::fdatasync;
  options.log_segment_bytes = 8192;
  options.cache_bytes = 0;
  options.background = false;
  return options;
}

struct Original {
  std::shared_ptr<SimDisk> disk;
  std::vector<std::string> files;
  std::vector<Contents> states{Contents{}};  // by sequence
};

// Two checkpoints, and commits of several kinds in several segments of log behind them.
Original make_original() {
  Original original;
  const auto disk = SimDisk::make();
  Options options = small();
  options.create = true;
  auto store = Store::open(disk, options);
  fuzz::require(store.has_value(), "a new store does not open");
  for (int i = 0; i < 40; ++i) {
    WriteBatch batch;
    Contents next = original.states.back();
    for (int j = 0; j < 3; ++j) {
      const std::string key = "k" + std::to_string((i * 7 + j * 5) % 23);
      const std::string value(static_cast<std::size_t>(i % 9 == 0 ? 2000 : 30 * j), 'v');
      batch.put(key, value);
      next[key] = value;
    }
    if (i % 6 == 5) {
      batch.erase_range("k1", "k15");
      next.erase(next.lower_bound("k1"), next.lower_bound("k15"));
    }
    original.states.push_back(std::move(next));
    const auto durability = i % 3 == 0 ? Durability::volatile_ : Durability::sync;
    fuzz::require((*store)->commit(batch, durability).has_value(), "a commit fails");
    if (i == 8 || i == 16) {
      fuzz::require((*store)->checkpoint().has_value(), "a checkpoint fails");
    }
  }
  fuzz::require((*store)->sync().has_value(), "a sync fails");
  original.disk = disk->crashed([](std::size_t) { return true; });
  const std::vector<std::string> names = original.disk->list().value();
  for (const std::string& name : names) {
    if (original.disk->contents(name).value_or("").empty()) continue;
    original.files.push_back(name);
  }
  std::sort(original.files.begin(), original.files.end());
  return original;
}

// Frames by their own lengths, as far as they lead, with checksums that fit.
void repair_frames(std::string& segment) {
  if (segment.size() < segment_data_offset + frame_header_bytes) return;
  auto* bytes = reinterpret_cast<std::byte*>(segment.data());
  const auto store_id = load<std::uint64_t>(bytes + 16);
  const std::uint32_t seed =
      static_cast<std::uint32_t>(store_id) ^ static_cast<std::uint32_t>(store_id >> 32);
  std::size_t at = segment_data_offset;
  std::uint32_t chain = load<std::uint32_t>(bytes + 48);
  while (at + frame_header_bytes <= segment.size()) {
    const auto payload = load<std::uint32_t>(bytes + at + 12);
    const std::size_t whole = (frame_header_bytes + std::size_t{payload} + 7) / 8 * 8;
    if (load<std::uint32_t>(bytes + at) != frame_magic || at + whole > segment.size()) return;
    store(bytes + at + 8, chain);
    chain = crc32c(ConstBytes(bytes + at + 8, whole - 8), seed);
    store(bytes + at + 4, chain);
    at += whole;
  }
}

void expect_a_state_that_was(Store& store, const Original& original) {
  const Snapshot snapshot = store.snapshot();
  fuzz::require(snapshot.sequence() < original.states.size(), "more commits than there were");
  Contents found;
  Cursor cursor = snapshot.cursor();
  for (cursor.seek_first(); cursor.valid(); cursor.next()) {
    const auto value = cursor.value();
    if (!value) return;  // damage of a tree, reported
    found.emplace(cursor.key(), *value);
  }
  if (!cursor.status()) return;
  fuzz::require(found == original.states[snapshot.sequence()], "a state that the store never had");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Original original = make_original();
  fuzz::Input input(data, size);
  const bool repair = (input.number(1) & 1) != 0;
  const auto disk = original.disk->killed();
  for (int changes = 0; !input.empty() && changes < 64; ++changes) {
    const std::string& name = original.files[input.number(1) % original.files.size()];
    std::string contents = disk->contents(name).value();
    const std::size_t at = input.number(3) % contents.size();
    contents[at] = static_cast<char>(static_cast<unsigned char>(contents[at]) ^ input.number(1));
    disk->set_contents(name, std::move(contents));
  }
  for (const std::string& name : original.files) {
    if (!repair || !name.starts_with("log-")) continue;
    std::string contents = disk->contents(name).value();
    repair_frames(contents);
    disk->set_contents(name, std::move(contents));
  }
  auto store = Store::open(disk, small());
  if (!store) return 0;
  if (!repair) expect_a_state_that_was(**store, original);
  (void)(*store)->verify();
  return 0;
}
