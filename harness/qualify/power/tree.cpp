#include "harness/qualify/power/tree.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <functional>

namespace assay::qualify::power {
namespace {

Digest digest_of(const void* data, std::size_t bytes, std::uint64_t seed = 0) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(data, bytes, seed);
  return {hash.low64, hash.high64};
}

/// Mixes what stands at `place` into a sum, so that a sum of many does not depend on their order.
void mix(Digest& sum, const Digest& digest, std::uint64_t place) {
  std::uint64_t low = (digest.low ^ place) * 0x9E3779B97F4A7C15ULL;
  low ^= low >> 29;
  std::uint64_t high = (digest.high + place) * 0xBF58476D1CE4E5B9ULL;
  high ^= high >> 32;
  sum.low += low * 0x94D049BB133111EBULL;
  sum.high += (high ^ low) * 0x9E3779B97F4A7C15ULL;
}

const std::array<std::byte, kPageBytes> kZeros{};

}  // namespace

PagePool::~PagePool() {
  for (void* chunk : chunks_) ::munmap(chunk, kChunkBytes);
}

const Page* PagePool::intern(std::span<const std::byte> bytes) {
  ASSAY_CHECK(bytes.size() == kPageBytes, "pages are whole");
  const Digest digest = digest_of(bytes.data(), bytes.size());
  const auto [entry, fresh] = pages_.try_emplace(digest, nullptr);
  if (!fresh) return entry->second;
  if (used_ + sizeof(Page) > kChunkBytes) {
    void* const chunk =
        ::mmap(nullptr, kChunkBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSAY_CHECK(chunk != MAP_FAILED, "no memory for pages");
    chunks_.push_back(chunk);
    used_ = 0;
  }
  auto* const page = ::new (static_cast<std::byte*>(chunks_.back()) + used_) Page;
  used_ += sizeof(Page);
  std::memcpy(page->bytes.data(), bytes.data(), kPageBytes);
  page->digest = digest;
  entry->second = page;
  return page;
}

const Page* PagePool::overwrite(const Page* before, std::size_t offset,
                                std::span<const std::byte> write) {
  std::array<std::byte, kPageBytes> bytes = before == nullptr ? kZeros : before->bytes;
  std::memcpy(bytes.data() + offset, write.data(), write.size());
  return intern(bytes);
}

const Page* PagePool::zero() {
  if (zero_ == nullptr) zero_ = intern(kZeros);
  return zero_;
}

FileId Tree::find(const Name& name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? kNoFile : found->second;
}

void Tree::set_entry(const Name& name, FileId file) {
  if (file == kNoFile) {
    entries_.erase(name);
  } else {
    entries_.insert_or_assign(name, file);
  }
}

File& Tree::change(FileId id) {
  Slot& slot = files_[id];
  if (slot.file.use_count() > 1) slot.file = std::make_shared<File>(*slot.file);
  slot.digested = false;
  return *slot.file;
}

FileId Tree::add(File file) {
  files_.push_back({std::make_shared<File>(std::move(file)), {}, false});
  return static_cast<FileId>(files_.size() - 1);
}

const Digest& Tree::file_digest(FileId id) const {
  const Slot& slot = files_[id];
  if (slot.digested) return slot.digest;
  const File& file = *slot.file;
  Digest sum{file.size * 2 + (file.directory ? 1 : 0), file.size};
  const std::size_t whole = std::min<std::size_t>(file.pages.size(), file.size / kPageBytes);
  static const Digest zero = digest_of(kZeros.data(), kPageBytes);
  for (std::size_t index = 0; index < whole; ++index) {
    const Page* const page = file.pages[index];
    if (page != nullptr && page->digest != zero) mix(sum, page->digest, index + 1);
  }
  const std::size_t rest = file.size % kPageBytes;
  if (rest != 0 && whole < file.pages.size() && file.pages[whole] != nullptr) {
    const auto& bytes = file.pages[whole]->bytes;
    if (std::memcmp(bytes.data(), kZeros.data(), rest) != 0) {
      mix(sum, digest_of(bytes.data(), rest), whole + 1);
    }
  }
  slot.digest = sum;
  slot.digested = true;
  return slot.digest;
}

std::vector<std::pair<std::string, FileId>> Tree::walk() const {
  std::vector<std::pair<std::string, FileId>> out;
  const std::function<void(FileId, const std::string&, int)> visit =
      [&](FileId directory, const std::string& path, int depth) {
        ASSAY_CHECK(depth < 64, "a directory is inside of itself");
        for (auto at = entries_.lower_bound({directory, ""});
             at != entries_.end() && at->first.first == directory; ++at) {
          out.emplace_back(path + at->first.second, at->second);
          if (file(at->second).directory) {
            visit(at->second, path + at->first.second + "/", depth + 1);
          }
        }
      };
  visit(kRoot, "", 0);
  return out;
}

std::string Tree::path_of(FileId id) const {
  for (const auto& [path, file] : walk()) {
    if (file == id) return path;
  }
  return {};
}

Digest Tree::digest() const {
  Digest sum;
  // Two names of one file differ from two files with the same bytes, hence the first name's number.
  std::map<FileId, std::uint64_t> first;
  const auto all = walk();
  for (std::uint64_t number = 0; number < all.size(); ++number) {
    const auto& [path, id] = all[number];
    Digest entry = digest_of(path.data(), path.size(), 1);
    mix(entry, file_digest(id), first.try_emplace(id, number).first->second);
    mix(sum, entry, 0);
  }
  return sum;
}

std::string difference(const Tree& expected, const Tree& actual) {
  const auto want = expected.walk();
  const auto have = actual.walk();
  for (std::size_t index = 0; index < std::max(want.size(), have.size()); ++index) {
    if (index >= have.size() || (index < want.size() && want[index].first < have[index].first)) {
      return fmt::format("\"{}\" is missing", want[index].first);
    }
    if (index >= want.size() || have[index].first < want[index].first) {
      return fmt::format("\"{}\" is there and was never made", have[index].first);
    }
    const std::string& path = want[index].first;
    const File& a = expected.file(want[index].second);
    const File& b = actual.file(have[index].second);
    if (a.directory != b.directory) return fmt::format("\"{}\" is of another kind", path);
    if (a.size != b.size) {
      return fmt::format("\"{}\" has {} bytes instead of {}", path, b.size, a.size);
    }
    const auto page = [](const File& file, std::size_t at) {
      return at < file.pages.size() && file.pages[at] != nullptr ? file.pages[at]->bytes.data()
                                                                 : kZeros.data();
    };
    for (std::size_t at = 0; at * kPageBytes < a.size; ++at) {
      const std::size_t bytes = std::min<std::size_t>(kPageBytes, a.size - at * kPageBytes);
      const std::byte* const left = page(a, at);
      const std::byte* const right = page(b, at);
      if (left == right || std::memcmp(left, right, bytes) == 0) continue;
      const auto offset =
          static_cast<std::size_t>(std::mismatch(left, left + bytes, right).first - left);
      return fmt::format("\"{}\" differs at byte {}", path, at * kPageBytes + offset);
    }
  }
  return {};
}

}  // namespace assay::qualify::power
