// Layout of the trie's inner nodes and the operations on one node. Internal to the overlay.
#pragma once

#include <cstring>

#include "engine/overlay/radix_trie.h"

namespace lode::trie {

struct Inner : Node {
  std::uint16_t count = 0;  ///< children
  std::uint16_t prefix_bytes = 0;
  std::uint16_t prefix_capacity = 0;  ///< bytes of memory for the prefix, behind the node
  Generation birth;
  Leaf* terminal = nullptr;  ///< the entry whose key ends here

  [[nodiscard]] char* prefix_memory();
  [[nodiscard]] std::string_view prefix() const;
};

// Children of the small two are sorted by byte.
struct Inner4 : Inner {
  std::uint8_t bytes[4];
  Node* children[4];
};
struct Inner16 : Inner {
  std::uint8_t bytes[16];
  Node* children[16];
};
struct Inner48 : Inner {
  static constexpr std::uint8_t none = 0xFF;
  std::uint8_t index[256];
  Node* children[48];
};
struct Inner256 : Inner {
  Node* children[256];
};

[[nodiscard]] std::size_t base_bytes(NodeType type);
[[nodiscard]] inline std::size_t memory_of(const Inner* inner) {
  return base_bytes(inner->type) + inner->prefix_capacity;
}
[[nodiscard]] inline std::size_t memory_of(const Leaf* leaf) {
  return sizeof(Leaf) + leaf->key_bytes + leaf->value_bytes;
}

/// The place of the child under `byte`, or null.
[[nodiscard]] Node** child_slot(Inner* inner, unsigned byte);
[[nodiscard]] bool is_full(const Inner* inner);
/// Adds a child under a byte that has none to a node that is not full.
void insert_child(Inner* inner, unsigned byte, Node* child);

struct Child {
  int byte = -1;
  const Node* node = nullptr;  ///< null: there is none
};
/// The child with the lowest byte >= `from`, or the highest byte <= `from`.
[[nodiscard]] Child first_child_from(const Inner* inner, int from);
[[nodiscard]] Child last_child_to(const Inner* inner, int to);

}  // namespace lode::trie
