// Any bytes as a root and as a manifest: what is read is written as it was read.
#include <cstring>

#include "engine/base/coding.h"
#include "engine/base/crc32c.h"
#include "engine/fuzz/fuzz_check.h"
#include "engine/store/root.h"
#include "engine/wal/log_format.h"

namespace {

using namespace lode;

void try_root(ConstBytes bytes) {
  const AlignedBuffer block(direct_alignment);
  if (!bytes.empty()) {
    std::memcpy(block.data(), bytes.data(), std::min(bytes.size(), root_record_bytes));
  }
  store(block.data(), root_magic);
  store(block.data() + 12, std::uint32_t{0});
  store(block.data() + 12, crc32c(block.bytes().first(root_record_bytes)));
  const auto root = decode_root(block.bytes());
  if (!root || !*root) return;
  const AlignedBuffer copy(direct_alignment);
  encode_root(**root, copy.bytes());
  const auto again = decode_root(copy.bytes());
  fuzz::require(again && *again && (*again)->sequence == (*root)->sequence &&
                    (*again)->log_start == (*root)->log_start &&
                    (*again)->manifest.offset == (*root)->manifest.offset,
                "a root changes on its way");
}

void try_manifest(ConstBytes bytes) {
  const auto manifest = decode_manifest(bytes);
  if (!manifest) return;
  const std::string encoded = encode_manifest(*manifest);
  const auto again = decode_manifest(as_bytes(encoded));
  fuzz::require(again && encode_manifest(*again) == encoded, "a manifest changes on its way");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ConstBytes bytes{reinterpret_cast<const std::byte*>(data), size};
  try_root(bytes);
  try_manifest(bytes);
  return 0;
}
