#include "engine/overlay/trie_nodes.h"

#include <algorithm>

#include "engine/base/check.h"

namespace lode::trie {
namespace {

template <class Small>
Node** find_small(Small* inner, unsigned byte) {
  for (std::size_t i = 0; i < inner->count; ++i) {
    if (inner->bytes[i] == byte) return &inner->children[i];
  }
  return nullptr;
}

template <class Small>
void insert_small(Small* inner, unsigned byte, Node* child) {
  std::size_t at = inner->count;
  for (; at > 0 && inner->bytes[at - 1] > byte; --at) {
    inner->bytes[at] = inner->bytes[at - 1];
    inner->children[at] = inner->children[at - 1];
  }
  inner->bytes[at] = static_cast<std::uint8_t>(byte);
  inner->children[at] = child;
}

template <class Small>
Child first_small(const Small* inner, int from) {
  for (std::size_t i = 0; i < inner->count; ++i) {
    if (inner->bytes[i] >= from) return {inner->bytes[i], inner->children[i]};
  }
  return {};
}

template <class Small>
Child last_small(const Small* inner, int to) {
  for (std::size_t i = inner->count; i > 0; --i) {
    if (inner->bytes[i - 1] <= to) return {inner->bytes[i - 1], inner->children[i - 1]};
  }
  return {};
}

}  // namespace

std::size_t base_bytes(NodeType type) {
  switch (type) {
    case NodeType::inner4:
      return sizeof(Inner4);
    case NodeType::inner16:
      return sizeof(Inner16);
    case NodeType::inner48:
      return sizeof(Inner48);
    case NodeType::inner256:
      return sizeof(Inner256);
    case NodeType::leaf:
      break;
  }
  check_failed(__FILE__, __LINE__, "inner node", "the type of a trie node");
}

char* Inner::prefix_memory() {
  return reinterpret_cast<char*>(this) + base_bytes(type);
}

std::string_view Inner::prefix() const {
  return {reinterpret_cast<const char*>(this) + base_bytes(type), prefix_bytes};
}

Node** child_slot(Inner* inner, unsigned byte) {
  switch (inner->type) {
    case NodeType::inner4:
      return find_small(static_cast<Inner4*>(inner), byte);
    case NodeType::inner16:
      return find_small(static_cast<Inner16*>(inner), byte);
    case NodeType::inner48: {
      auto* node = static_cast<Inner48*>(inner);
      return node->index[byte] == Inner48::none ? nullptr : &node->children[node->index[byte]];
    }
    case NodeType::inner256: {
      Node** slot = &static_cast<Inner256*>(inner)->children[byte];
      return *slot == nullptr ? nullptr : slot;
    }
    case NodeType::leaf:
      break;
  }
  return nullptr;
}

const Node* child_of(const Inner* inner, unsigned byte) {
  Node** slot = child_slot(const_cast<Inner*>(inner), byte);
  return slot == nullptr ? nullptr : *slot;
}

bool is_full(const Inner* inner) {
  switch (inner->type) {
    case NodeType::inner4:
      return inner->count == 4;
    case NodeType::inner16:
      return inner->count == 16;
    case NodeType::inner48:
      return inner->count == 48;
    default:
      return false;
  }
}

void insert_child(Inner* inner, unsigned byte, Node* child) {
  switch (inner->type) {
    case NodeType::inner4:
      insert_small(static_cast<Inner4*>(inner), byte, child);
      break;
    case NodeType::inner16:
      insert_small(static_cast<Inner16*>(inner), byte, child);
      break;
    case NodeType::inner48: {
      auto* node = static_cast<Inner48*>(inner);
      node->index[byte] = static_cast<std::uint8_t>(node->count);
      node->children[node->count] = child;
      break;
    }
    case NodeType::inner256:
      static_cast<Inner256*>(inner)->children[byte] = child;
      break;
    case NodeType::leaf:
      break;
  }
  ++inner->count;
}

Child first_child_from(const Inner* inner, int from) {
  switch (inner->type) {
    case NodeType::inner4:
      return first_small(static_cast<const Inner4*>(inner), from);
    case NodeType::inner16:
      return first_small(static_cast<const Inner16*>(inner), from);
    case NodeType::inner48: {
      const auto* node = static_cast<const Inner48*>(inner);
      for (int byte = from; byte < 256; ++byte) {
        if (node->index[byte] != Inner48::none) return {byte, node->children[node->index[byte]]};
      }
      return {};
    }
    case NodeType::inner256: {
      const auto* node = static_cast<const Inner256*>(inner);
      for (int byte = from; byte < 256; ++byte) {
        if (node->children[byte] != nullptr) return {byte, node->children[byte]};
      }
      return {};
    }
    case NodeType::leaf:
      break;
  }
  return {};
}

Child last_child_to(const Inner* inner, int to) {
  switch (inner->type) {
    case NodeType::inner4:
      return last_small(static_cast<const Inner4*>(inner), to);
    case NodeType::inner16:
      return last_small(static_cast<const Inner16*>(inner), to);
    case NodeType::inner48: {
      const auto* node = static_cast<const Inner48*>(inner);
      for (int byte = to; byte >= 0; --byte) {
        if (node->index[byte] != Inner48::none) return {byte, node->children[node->index[byte]]};
      }
      return {};
    }
    case NodeType::inner256: {
      const auto* node = static_cast<const Inner256*>(inner);
      for (int byte = to; byte >= 0; --byte) {
        if (node->children[byte] != nullptr) return {byte, node->children[byte]};
      }
      return {};
    }
    case NodeType::leaf:
      break;
  }
  return {};
}

}  // namespace lode::trie
