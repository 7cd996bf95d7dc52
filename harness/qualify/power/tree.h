// The contents of a directory as values: names, sizes, and pages that are shared between versions.
//
// A Tree is cheap to copy (files are shared until they are changed), so that thousands of crash
// states can be built from one durable state. Pages are made once for each content and never freed
// while their PagePool lives: equal pages are equal pointers. A hole (nothing was ever written, or
// it was punched) is a null pointer and reads as zeros.
// Threads: a PagePool and the Trees over it belong to one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "adapters/result.h"

namespace assay::qualify::power {

inline constexpr std::size_t kPageBytes = 4096;
inline constexpr std::size_t kSectorBytes = 512;

struct Digest {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  auto operator<=>(const Digest&) const = default;
};

struct Page {
  std::array<std::byte, kPageBytes> bytes;
  Digest digest;
};

/// Pages by content. Lies in shared memory, so that a fork need not copy its page tables.
class PagePool {
 public:
  PagePool() = default;
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;
  ~PagePool();
  /// The page with these bytes; exactly kPageBytes.
  const Page* intern(std::span<const std::byte> bytes);
  /// The page that `write` at `offset` in the page makes of `before` (null: zeros).
  const Page* overwrite(const Page* before, std::size_t offset, std::span<const std::byte> write);
  [[nodiscard]] const Page* zero();
  [[nodiscard]] std::size_t bytes() const { return chunks_.size() * kChunkBytes; }

 private:
  static constexpr std::size_t kChunkBytes = std::size_t{8} << 20;
  struct Hash {
    std::size_t operator()(const Digest& digest) const { return digest.low; }
  };
  std::unordered_map<Digest, const Page*, Hash> pages_;
  std::vector<void*> chunks_;
  std::size_t used_ = kChunkBytes;
  const Page* zero_ = nullptr;
};

using FileId = std::uint32_t;
inline constexpr FileId kNoFile = ~FileId{0};
inline constexpr FileId kRoot = 0;

struct File {
  bool directory = false;
  std::uint64_t size = 0;
  std::vector<const Page*> pages;  ///< may go beyond `size`: not visible there
};

class Tree {
 public:
  using Name = std::pair<FileId, std::string>;  ///< in which directory

  /// Entry for `name`; kNoFile if there is none.
  [[nodiscard]] FileId find(const Name& name) const;
  void set_entry(const Name& name, FileId file);  ///< kNoFile removes it
  [[nodiscard]] const std::map<Name, FileId>& entries() const { return entries_; }

  [[nodiscard]] const File& file(FileId id) const { return *files_[id].file; }
  /// The file, to be changed: a copy of its own if it is shared.
  File& change(FileId id);
  FileId add(File file);
  [[nodiscard]] std::size_t files() const { return files_.size(); }

  /// Of what a reader of the directory can see; holes and zeros are the same.
  [[nodiscard]] Digest digest() const;
  /// Paths below the root with their files, directories before what is in them.
  [[nodiscard]] std::vector<std::pair<std::string, FileId>> walk() const;
  /// One path of a file; empty if it has none.
  [[nodiscard]] std::string path_of(FileId id) const;

 private:
  struct Slot {
    std::shared_ptr<File> file;
    mutable Digest digest;
    mutable bool digested = false;
  };
  [[nodiscard]] const Digest& file_digest(FileId id) const;

  std::map<Name, FileId> entries_;
  std::vector<Slot> files_;
};

/// A directory of the file system, read. `inodes` gets the inode of each file of the tree.
[[nodiscard]] Result<Tree> read_tree(const std::string& directory, PagePool& pool,
                                     std::vector<std::uint64_t>& inodes);
/// Puts the tree into an empty directory. Nothing is synced. Sparse where it can be.
[[nodiscard]] Status write_tree(const Tree& tree, const std::string& directory);
/// Empty when both read the same; else a sentence about the first difference.
[[nodiscard]] std::string difference(const Tree& expected, const Tree& actual);
/// Removes what is in a directory, but not itself.
void empty_directory(const std::string& directory);

}  // namespace assay::qualify::power
