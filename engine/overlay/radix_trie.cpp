#include "engine/overlay/radix_trie.h"

#include <algorithm>
#include <new>
#include <utility>

#include "engine/base/check.h"
#include "engine/overlay/trie_nodes.h"

namespace lode {

using trie::Inner;
using trie::Leaf;
using trie::Node;
using trie::NodeType;

namespace {

unsigned byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

std::size_t common_prefix(std::string_view a, std::string_view b) {
  const std::size_t length = std::min(a.size(), b.size());
  std::size_t same = 0;
  while (same < length && a[same] == b[same]) ++same;
  return same;
}

void set_prefix(Inner* inner, std::string_view prefix) {
  LODE_CHECK(prefix.size() <= inner->prefix_capacity, "room for a trie prefix");
  if (!prefix.empty()) std::memmove(inner->prefix_memory(), prefix.data(), prefix.size());
  inner->prefix_bytes = static_cast<std::uint16_t>(prefix.size());
}

}  // namespace

RadixTrie::RadixTrie(const Readers& readers, std::shared_ptr<ChunkPool> chunks)
    : arena_(std::move(chunks)), reclaimer_(readers, [this](void* object, std::size_t bytes) {
        arena_.release(object, bytes);
      }) {}

Leaf* RadixTrie::make_leaf(std::string_view key, EntryKind kind, std::string_view value,
                           Sequence sequence) {
  auto* leaf = new (arena_.allocate(sizeof(Leaf) + key.size() + value.size())) Leaf;
  leaf->type = NodeType::leaf;
  leaf->kind = kind;
  leaf->key_bytes = static_cast<std::uint16_t>(key.size());
  leaf->value_bytes = static_cast<std::uint32_t>(value.size());
  leaf->birth = edit_;
  leaf->sequence = sequence;
  char* at = reinterpret_cast<char*>(leaf + 1);
  if (!key.empty()) std::memcpy(at, key.data(), key.size());
  if (!value.empty()) std::memcpy(at + key.size(), value.data(), value.size());
  return leaf;
}

Inner* RadixTrie::make_inner(NodeType type, std::size_t prefix_capacity) {
  const std::size_t bytes = trie::base_bytes(type) + prefix_capacity;
  void* memory = arena_.allocate(bytes);
  Inner* inner = nullptr;
  switch (type) {
    case NodeType::inner4:
      inner = new (memory) trie::Inner4;
      break;
    case NodeType::inner16:
      inner = new (memory) trie::Inner16;
      break;
    case NodeType::inner48: {
      auto* node = new (memory) trie::Inner48;
      std::memset(node->index, trie::Inner48::none, sizeof node->index);
      inner = node;
      break;
    }
    case NodeType::inner256: {
      auto* node = new (memory) trie::Inner256;
      std::fill(std::begin(node->children), std::end(node->children), nullptr);
      inner = node;
      break;
    }
    case NodeType::leaf:
      break;
  }
  inner->type = type;
  inner->prefix_capacity = static_cast<std::uint16_t>(prefix_capacity);
  inner->birth = edit_;
  return inner;
}

// What was born in this generation was never visible and goes at once.
void RadixTrie::discard(Node* node) {
  const bool is_leaf = node->type == NodeType::leaf;
  const Generation birth =
      is_leaf ? static_cast<Leaf*>(node)->birth : static_cast<Inner*>(node)->birth;
  const std::size_t bytes = is_leaf ? trie::memory_of(static_cast<Leaf*>(node))
                                    : trie::memory_of(static_cast<Inner*>(node));
  if (birth == edit_) {
    arena_.release(node, bytes);
  } else {
    reclaimer_.retire(node, bytes, birth, edit_);
  }
}

// The inner node in `slot` as one that may be changed: itself, or a copy in its place.
Inner* RadixTrie::own(Node** slot) {
  auto* inner = static_cast<Inner*>(*slot);
  if (inner->birth == edit_) return inner;
  const std::size_t bytes = trie::memory_of(inner);
  void* memory = arena_.allocate(bytes);
  std::memcpy(memory, static_cast<const void*>(inner), bytes);
  auto* copy = static_cast<Inner*>(memory);
  copy->birth = edit_;
  *slot = copy;
  discard(inner);
  return copy;
}

Inner* RadixTrie::grow(Inner* inner) {
  const NodeType larger = inner->type == NodeType::inner4    ? NodeType::inner16
                          : inner->type == NodeType::inner16 ? NodeType::inner48
                                                             : NodeType::inner256;
  Inner* grown = make_inner(larger, inner->prefix_bytes);
  set_prefix(grown, inner->prefix());
  grown->terminal = inner->terminal;
  for (trie::Child child = trie::first_child_from(inner, 0); child.node != nullptr;
       child = trie::first_child_from(inner, child.byte + 1)) {
    trie::insert_child(grown, static_cast<unsigned>(child.byte), const_cast<Node*>(child.node));
  }
  discard(inner);
  return grown;
}

void RadixTrie::add_child(Node** slot, unsigned byte, Node* child) {
  auto* inner = static_cast<Inner*>(*slot);
  if (trie::is_full(inner)) {
    inner = grow(inner);
    *slot = inner;
  }
  trie::insert_child(inner, byte, child);
}

// Hangs `leaf` at the inner node in `slot`, whose prefix ends at `depth` of the key, where nothing
// of that key is yet.
void RadixTrie::attach(Node** slot, Leaf* leaf, std::size_t depth) {
  const std::string_view key = leaf->key();
  if (key.size() == depth) {
    static_cast<Inner*>(*slot)->terminal = leaf;
  } else {
    add_child(slot, byte_at(key, depth), leaf);
  }
}

Inner* RadixTrie::split_leaf(Leaf* old, Leaf* leaf, std::size_t depth) {
  const std::string_view rest = leaf->key().substr(depth);
  const std::size_t same = common_prefix(old->key().substr(depth), rest);
  Node* parent = make_inner(NodeType::inner4, same);
  set_prefix(static_cast<Inner*>(parent), rest.substr(0, same));
  attach(&parent, old, depth + same);
  attach(&parent, leaf, depth + same);
  return static_cast<Inner*>(parent);
}

// A new parent with the first `match` bytes of the prefix above `inner`, which keeps the bytes
// behind the one that leads to it.
Inner* RadixTrie::split_prefix(Inner* inner, std::size_t match) {
  const std::string_view prefix = inner->prefix();
  Inner* parent = make_inner(NodeType::inner4, match);
  set_prefix(parent, prefix.substr(0, match));
  const unsigned byte = byte_at(prefix, match);
  set_prefix(inner, prefix.substr(match + 1));
  trie::insert_child(parent, byte, inner);
  return parent;
}

void RadixTrie::put(std::string_view key, EntryKind kind, std::string_view value,
                    Sequence sequence) {
  Leaf* leaf = make_leaf(key, kind, value, sequence);
  weights_.add(key.size(), value.size());
  Node** slot = &root_;
  std::size_t depth = 0;
  while (true) {
    Node* node = *slot;
    if (node == nullptr) {
      *slot = leaf;
      break;
    }
    if (node->type == NodeType::leaf) {
      auto* old = static_cast<Leaf*>(node);
      if (old->key() == key) {
        *slot = leaf;
        weights_.remove(old->key_bytes, old->value_bytes);
        discard(old);
        return;
      }
      *slot = split_leaf(old, leaf, depth);
      break;
    }
    Inner* inner = own(slot);
    const std::size_t match = common_prefix(inner->prefix(), key.substr(depth));
    if (match < inner->prefix_bytes) {
      *slot = split_prefix(inner, match);
      attach(slot, leaf, depth + match);
      break;
    }
    depth += match;
    if (depth == key.size()) {
      Leaf* old = inner->terminal;
      inner->terminal = leaf;
      if (old != nullptr) {
        weights_.remove(old->key_bytes, old->value_bytes);
        discard(old);
        return;
      }
      break;
    }
    Node** child = trie::child_slot(inner, byte_at(key, depth));
    if (child == nullptr) {
      add_child(slot, byte_at(key, depth), leaf);
      break;
    }
    slot = child;
    ++depth;
  }
}

void RadixTrie::fetch(std::string_view key, unsigned levels) const {
  const Node* node = root_;
  std::size_t depth = 0;
  for (; levels > 0; --levels, ++depth) {
    if (node == nullptr || node->type == NodeType::leaf) return;
    const auto* inner = static_cast<const Inner*>(node);
    depth += inner->prefix_bytes;
    if (depth >= key.size()) return;
    node = trie::child_of(inner, byte_at(key, depth));
  }
  if (node == nullptr) return;
  constexpr std::size_t line_bytes = 64;
  const char* at = reinterpret_cast<const char*>(node);
  for (std::size_t line = 0; line < 3; ++line) __builtin_prefetch(at + line * line_bytes);
  if (depth >= key.size()) return;
  // The place of the child in a node of the largest kind; in others, a line that is not needed.
  __builtin_prefetch(at + sizeof(Inner) + byte_at(key, depth) * sizeof(Node*));
}

const Leaf* RadixTrie::find(const Node* root, std::string_view key) {
  const Node* node = root;
  std::size_t depth = 0;
  while (node != nullptr) {
    if (node->type == NodeType::leaf) {
      const auto* leaf = static_cast<const Leaf*>(node);
      return leaf->key() == key ? leaf : nullptr;
    }
    const auto* inner = static_cast<const Inner*>(node);
    const std::string_view prefix = inner->prefix();
    if (!key.substr(depth).starts_with(prefix)) return nullptr;
    depth += prefix.size();
    if (depth == key.size()) return inner->terminal;
    node = trie::child_of(inner, byte_at(key, depth));
    ++depth;
  }
  return nullptr;
}

}  // namespace lode
