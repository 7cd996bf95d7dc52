// Any 8 KiB as a page: what passes the check of the structure can be read in every way. The
// checksum is put right, so that the structure is what is tested.
#include <array>
#include <cstring>

#include "engine/base/coding.h"
#include "engine/base/crc32c.h"
#include "engine/file/disk.h"
#include "engine/fuzz/fuzz_check.h"
#include "engine/tree/leaf_reader.h"
#include "engine/tree/page.h"

namespace lode {
namespace {

void read_everything(const PageView& view) {
  std::array<char, key_buffer_bytes> buffer;
  std::array<char, key_buffer_bytes> other;
  std::uint64_t sum = 0;  // touches what is read
  for (std::size_t i = 0; i < view.count(); ++i) {
    const std::size_t bytes = view.key(i, buffer.data());
    fuzz::require(bytes <= max_key_bytes, "a key is longer than keys can be");
    const std::string_view key(buffer.data(), bytes);
    bool equal = false;
    fuzz::require(view.lower_bound(key, equal) <= view.count(), "a bound beyond the entries");
    if (!view.leaf()) {
      sum += view.child(view.child_index(key)).page.value;
      continue;
    }
    const Cell cell = view.cell(i);
    for (const char c : cell.data) sum += static_cast<unsigned char>(c);
    if (cell.kind == CellKind::reference) sum += decode_value_ref(as_bytes(cell.data).data()).bytes;
    Cell found;
    if (view.find(key, found)) sum += found.data.size();
  }
  if (view.leaf()) {
    const LeafReader reader{view};
    reader.begin_key(other.data());
    for (std::size_t i = 0; i < reader.count(); ++i) {
      std::size_t bytes = 0;
      Cell cell;
      reader.read(i, other.data(), bytes, cell, i % 2 == 0 ? 1 : -1);
      const std::size_t same = view.key(i, buffer.data());
      fuzz::require(bytes == same && std::memcmp(buffer.data(), other.data(), same) == 0,
                    "two ways to read a key differ");
    }
  }
  volatile std::uint64_t keep = sum;
  (void)keep;
}

}  // namespace
}  // namespace lode

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lode;
  const AlignedBuffer page(page_bytes);
  std::memset(page.data(), 0, page_bytes);
  if (size > 0) std::memcpy(page.data(), data, std::min(size, page_bytes));
  store(page.data(), page_magic);
  const std::uint32_t checksum = crc32c(page.bytes().subspan(8));
  store(page.data() + 4, checksum);
  const PageRef ref{PageId(load<std::uint64_t>(page.data() + 8)), checksum};
  if (check_page(page.data(), ref, load<std::uint64_t>(page.data() + 16))) {
    read_everything(PageView(page.data()));
  }
  return 0;
}
