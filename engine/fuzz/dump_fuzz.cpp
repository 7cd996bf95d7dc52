// Any text as a dump: what is accepted comes back the same from a store.
#include <map>
#include <sstream>

#include "engine/command/dump_format.h"
#include "engine/file/sim_disk.h"
#include "engine/fuzz/fuzz_check.h"

namespace {

using namespace lode;

std::optional<std::map<std::string, std::string>> read_all(const std::string& text, KeyKind& keys) {
  std::istringstream in(text);
  DumpReader reader(in, "input");
  const auto header = reader.header();
  if (!header) return std::nullopt;
  keys = *header;
  std::map<std::string, std::string> entries;
  std::string key;
  std::string value;
  while (true) {
    const auto more = reader.next(key, value);
    if (!more) return std::nullopt;
    if (!*more) return entries;
    entries[key] = value;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  KeyKind keys = KeyKind::bytes;
  const auto entries = read_all(text, keys);
  if (!entries) return 0;
  Options options;
  options.key_kind = keys;
  options.log_method = LogMethod::fdatasync;
  options.log_segment_bytes = 8192;
  options.background = false;
  auto store = Store::open(SimDisk::make(), options);
  fuzz::require(store.has_value(), "a new store does not open");
  std::istringstream in(text);
  DumpReader reader(in, "input");
  LoadReport report;
  fuzz::require(reader.header() && load_dump(**store, reader, 100, report),
                "what was read is not loaded");
  std::ostringstream out;
  const auto written = write_dump((*store)->snapshot(), keys, out);
  fuzz::require(written && *written == entries->size(), "the dump has another number of entries");
  KeyKind same = KeyKind::bytes;
  fuzz::require(read_all(out.str(), same) == entries && same == keys,
                "entries change on their way");
  return 0;
}
