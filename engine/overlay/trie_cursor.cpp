#include "engine/overlay/trie_nodes.h"

namespace lode {

using trie::Inner;
using trie::Leaf;
using trie::Node;
using trie::NodeType;

namespace {

// A walk visits leaves that lie anywhere: the one behind the current one is fetched while that is
// looked at.
void fetch(const Node* node) {
  if (node == nullptr) return;
  const char* at = reinterpret_cast<const char*>(node);
  __builtin_prefetch(at);
  __builtin_prefetch(at + 64);
  __builtin_prefetch(at + 128);
}

}  // namespace

void TrieCursor::descend_first(const Node* node) {
  while (node->type != NodeType::leaf) {
    const auto* inner = static_cast<const Inner*>(node);
    if (inner->terminal != nullptr) {
      path_.push_back({inner, -1});
      leaf_ = inner->terminal;
      return;
    }
    const trie::Child child = trie::first_child_from(inner, 0);
    path_.push_back({inner, child.byte});
    fetch(trie::first_child_from(inner, child.byte + 1).node);
    node = child.node;
  }
  leaf_ = static_cast<const Leaf*>(node);
}

void TrieCursor::descend_last(const Node* node) {
  while (node->type != NodeType::leaf) {
    const auto* inner = static_cast<const Inner*>(node);
    const trie::Child child = trie::last_child_to(inner, 255);
    path_.push_back({inner, child.byte});
    if (child.node == nullptr) {
      leaf_ = inner->terminal;
      return;
    }
    node = child.node;
  }
  leaf_ = static_cast<const Leaf*>(node);
}

void TrieCursor::seek_first() {
  path_.clear();
  leaf_ = nullptr;
  if (root_ != nullptr) descend_first(root_);
}

void TrieCursor::seek_last() {
  path_.clear();
  leaf_ = nullptr;
  if (root_ != nullptr) descend_last(root_);
}

void TrieCursor::next() {
  leaf_ = nullptr;
  while (!path_.empty()) {
    Step& step = path_.back();
    const trie::Child child = trie::first_child_from(step.inner, step.position + 1);
    if (child.node != nullptr) {
      step.position = child.byte;
      fetch(trie::first_child_from(step.inner, child.byte + 1).node);
      descend_first(child.node);
      return;
    }
    path_.pop_back();
  }
}

void TrieCursor::prev() {
  leaf_ = nullptr;
  while (!path_.empty()) {
    Step& step = path_.back();
    if (step.position >= 0) {
      const trie::Child child = trie::last_child_to(step.inner, step.position - 1);
      if (child.node != nullptr) {
        step.position = child.byte;
        descend_last(child.node);
        return;
      }
      if (step.inner->terminal != nullptr) {
        step.position = -1;
        leaf_ = step.inner->terminal;
        return;
      }
    }
    path_.pop_back();
  }
}

void TrieCursor::seek(std::string_view key) {
  path_.clear();
  leaf_ = nullptr;
  const Node* node = root_;
  std::size_t depth = 0;
  while (node != nullptr) {
    if (node->type == NodeType::leaf) {
      const auto* leaf = static_cast<const Leaf*>(node);
      if (leaf->key() >= key) {
        leaf_ = leaf;
      } else {
        next();
      }
      return;
    }
    const auto* inner = static_cast<const Inner*>(node);
    const std::string_view prefix = inner->prefix();
    const std::string_view rest = key.substr(depth);
    const int order = prefix.compare(rest.substr(0, prefix.size()));
    if (order < 0) return next();  // the whole subtree is smaller: backtrack
    // Larger, or the key ends within or at the end of the prefix: the subtree begins behind it.
    if (order > 0 || rest.size() <= prefix.size()) return descend_first(node);
    depth += prefix.size();
    const int byte = static_cast<unsigned char>(key[depth]);
    const trie::Child child = trie::first_child_from(inner, byte);
    if (child.node == nullptr) return next();
    path_.push_back({inner, child.byte});
    if (child.byte != byte) return descend_first(child.node);
    node = child.node;
    ++depth;
  }
}

}  // namespace lode
