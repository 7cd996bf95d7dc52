#include "engine/tree/tree.h"

namespace lode {

bool TreeCursor::pin(const PageRef& ref, PinnedPage& page) {
  auto pinned = tree_->space_.pool.pin(ref, tree_->info_.number);
  if (!pinned) {
    error_ = std::move(pinned).error();
    path_.clear();
    leaf_ = {};
    return false;
  }
  page = std::move(*pinned);
  page.view().prefetch();
  return true;
}

void TreeCursor::begin_leaf() {
  leaf_ = LeafReader(leaf_page_.view());
  leaf_.begin_key(key_.data());
}

// Down to a leaf, to its first or last entry.
bool TreeCursor::descend(PageRef from, bool to_last) {
  while (true) {
    PinnedPage page;
    if (!pin(from, page)) return false;
    const PageView view = page.view();
    const std::size_t index = to_last ? view.count() - 1 : 0;
    if (view.leaf()) {
      leaf_page_ = std::move(page);
      begin_leaf();
      index_ = index;
      return true;
    }
    from = view.child(index);
    path_.push_back({std::move(page), index});
  }
}

void TreeCursor::seek_first() {
  path_.clear();
  position_.valid = false;
  if (descend(tree_->info_.root, false)) show(1);
}

void TreeCursor::seek_last() {
  path_.clear();
  position_.valid = false;
  if (descend(tree_->info_.root, true)) show(-1);
}

void TreeCursor::seek(std::string_view key) {
  path_.clear();
  position_.valid = false;
  PageRef ref = tree_->info_.root;
  while (true) {
    PinnedPage page;
    if (!pin(ref, page)) return;
    const PageView view = page.view();
    if (!view.leaf()) {
      const std::size_t index = view.child_index(key);
      ref = view.child(index);
      path_.push_back({std::move(page), index});
      continue;
    }
    leaf_page_ = std::move(page);
    begin_leaf();
    bool equal = false;
    index_ = view.lower_bound(key, equal);
    if (index_ < leaf_.count()) return show(1);
    // All of the leaf is below the key: the next one begins above it.
    return next_leaf();
  }
}

void TreeCursor::next_leaf() {
  position_.valid = false;
  while (!path_.empty() && path_.back().index + 1 >= path_.back().page.view().count()) {
    path_.pop_back();
  }
  if (path_.empty()) return;
  Step& step = path_.back();
  ++step.index;
  const PageView parent = step.page.view();
  const PageRef ref = parent.child(step.index);
  // The one behind it will be wanted soon.
  if (step.index + 1 < parent.count()) {
    tree_->space_.pool.prefetch(parent.child(step.index + 1).page);
  }
  if (descend(ref, false)) show(1);
}

void TreeCursor::previous_leaf() {
  position_.valid = false;
  while (!path_.empty() && path_.back().index == 0) path_.pop_back();
  if (path_.empty()) return;
  Step& step = path_.back();
  --step.index;
  const PageView parent = step.page.view();
  const PageRef ref = parent.child(step.index);
  if (step.index > 0) tree_->space_.pool.prefetch(parent.child(step.index - 1).page);
  if (descend(ref, true)) show(-1);
}

Result<std::string_view> TreeCursor::load_value() {
  auto status = tree_->read_value(decode_value_ref(as_bytes(position_.data).data()), scratch_);
  if (!status) {
    error_ = status.error();
    return std::unexpected(std::move(status).error());
  }
  return std::string_view(scratch_);
}

Status TreeCursor::status() const {
  if (error_) return std::unexpected(*error_);
  return {};
}

}  // namespace lode
