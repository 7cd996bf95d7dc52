// The overlay: an ordered map in memory from byte keys to values or tombstones, as a path-copying
// adaptive radix trie.
//
// A state of the trie is a root. A sealed root never changes: edits copy the nodes on the path,
// except nodes that were born in the generation being edited, which nobody can see yet and which
// are changed in place, so that a commit group costs one copy of a node and not one a commit.
// Inner nodes have 4, 16, 48 or 256 children and carry the whole of their compressed prefix; a key
// that ends inside the trie (a prefix of others) hangs at the node as its `terminal`. Entries are
// never removed, only replaced (a deletion is a tombstone): the trie goes away as a whole.
// Threads: edits and reclaim by one thread at a time; sealed roots are read from any thread that
// keeps their generation alive (readers.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/base/types.h"
#include "engine/overlay/node_arena.h"
#include "engine/overlay/readers.h"
#include "engine/tree/entry_weights.h"

namespace lode {

namespace trie {

enum class NodeType : std::uint8_t { leaf, inner4, inner16, inner48, inner256 };

struct Node {
  NodeType type;
};

struct Leaf : Node {
  EntryKind kind;
  std::uint16_t key_bytes;
  std::uint32_t value_bytes;
  Generation birth;
  Sequence sequence;

  [[nodiscard]] std::string_view key() const {
    return {reinterpret_cast<const char*>(this + 1), key_bytes};
  }
  [[nodiscard]] std::string_view value() const {
    return {reinterpret_cast<const char*>(this + 1) + key_bytes, value_bytes};
  }
};

struct Inner;

/// The child of `inner` under `byte`, or null.
[[nodiscard]] const Node* child_of(const Inner* inner, unsigned byte);

}  // namespace trie

class RadixTrie {
 public:
  explicit RadixTrie(const Readers& readers, std::shared_ptr<ChunkPool> chunks = {});

  /// Sets the generation that edits belong to from now on. The root as it was is sealed.
  void begin_generation(Generation generation) { edit_ = generation; }
  void put(std::string_view key, EntryKind kind, std::string_view value, Sequence sequence);
  [[nodiscard]] const trie::Node* root() const { return root_; }
  /// Asks the CPU for the node `levels` below the root on the way to `key`, for a put to come. The
  /// nodes above should have been asked for before.
  void fetch(std::string_view key, unsigned levels) const;
  /// Frees replaced nodes that nobody can see; see Reclaimer::reclaim.
  void reclaim(Generation published) { reclaimer_.reclaim(published); }

  /// The entry of `key` in a state, or null.
  [[nodiscard]] static const trie::Leaf* find(const trie::Node* root, std::string_view key);

  [[nodiscard]] std::uint64_t entries() const { return weights_.entries; }
  /// Of the entries that the current root shows.
  [[nodiscard]] const EntryWeights& weights() const { return weights_; }
  [[nodiscard]] std::size_t memory_bytes() const { return arena_.used_bytes(); }
  [[nodiscard]] std::size_t retired_nodes() const { return reclaimer_.waiting(); }

 private:
  trie::Leaf* make_leaf(std::string_view key, EntryKind kind, std::string_view value,
                        Sequence sequence);
  trie::Inner* own(trie::Node** slot);
  trie::Inner* split_leaf(trie::Leaf* old, trie::Leaf* leaf, std::size_t depth);
  trie::Inner* split_prefix(trie::Inner* inner, std::size_t match);
  void add_child(trie::Node** slot, unsigned byte, trie::Node* child);
  trie::Inner* grow(trie::Inner* inner);
  void attach(trie::Node** slot, trie::Leaf* leaf, std::size_t depth);
  trie::Inner* make_inner(trie::NodeType type, std::size_t prefix_capacity);
  void discard(trie::Node* node);

  NodeArena arena_;
  Reclaimer reclaimer_;
  trie::Node* root_ = nullptr;
  Generation edit_{1};
  EntryWeights weights_;
};

/// Walks one sealed state in key order, both ways. Stays valid as long as its generation does.
class TrieCursor {
 public:
  TrieCursor() = default;
  explicit TrieCursor(const trie::Node* root) : root_(root) {}

  void seek_first();
  void seek_last();
  /// To the first entry with a key >= `key`.
  void seek(std::string_view key);
  /// From a valid position; behind the last or before the first entry the cursor is invalid.
  void next();
  void prev();

  [[nodiscard]] bool valid() const { return leaf_ != nullptr; }
  [[nodiscard]] const trie::Leaf* leaf() const { return leaf_; }
  [[nodiscard]] std::string_view key() const { return leaf_->key(); }

 private:
  struct Step {
    const trie::Inner* inner;
    int position;  // byte of the child that was taken, -1 = the terminal
  };
  void descend_first(const trie::Node* node);
  void descend_last(const trie::Node* node);

  const trie::Node* root_ = nullptr;
  const trie::Leaf* leaf_ = nullptr;
  std::vector<Step> path_;
};

}  // namespace lode
