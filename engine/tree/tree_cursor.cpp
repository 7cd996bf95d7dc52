#include "engine/tree/tree.h"

namespace lode {

bool TreeCursor::push(const PageRef& ref) {
  auto page = tree_->space_.pool.pin(ref, tree_->info_.number);
  if (!page) {
    error_ = std::move(page).error();
    path_.clear();
    return false;
  }
  path_.push_back({std::move(*page), 0});
  prefix_there_ = false;
  return true;
}

// Down to a leaf, to its first or last entry.
bool TreeCursor::descend(const PageRef& from, bool to_last) {
  PageRef ref = from;
  while (true) {
    if (!push(ref)) return false;
    Step& step = path_.back();
    const PageView view = step.page.view();
    step.index = to_last ? view.count() - 1 : 0;
    if (view.leaf()) return true;
    ref = view.child(step.index);
  }
}

void TreeCursor::show() {
  const Step& step = path_.back();
  const PageView view = step.page.view();
  cell_ = view.cell(step.index);
  key_bytes_ = view.key(step.index, key_.data(), prefix_there_);
  prefix_there_ = true;
  valid_ = true;
}

void TreeCursor::seek_first() {
  path_.clear();
  valid_ = false;
  if (descend(tree_->info_.root, false)) show();
}

void TreeCursor::seek_last() {
  path_.clear();
  valid_ = false;
  if (descend(tree_->info_.root, true)) show();
}

void TreeCursor::seek(std::string_view key) {
  path_.clear();
  valid_ = false;
  PageRef ref = tree_->info_.root;
  while (true) {
    if (!push(ref)) return;
    Step& step = path_.back();
    const PageView view = step.page.view();
    if (!view.leaf()) {
      step.index = view.child_index(key);
      ref = view.child(step.index);
      continue;
    }
    bool equal = false;
    step.index = view.lower_bound(key, equal);
    if (step.index < view.count()) return show();
    // All of the leaf is below the key: the next one begins above it.
    step.index = view.count() - 1;
    return next();
  }
}

void TreeCursor::next() {
  valid_ = false;
  if (!path_.empty() && path_.back().index + 1 < path_.back().page.view().count()) {
    ++path_.back().index;
    return show();
  }
  while (!path_.empty() && path_.back().index + 1 >= path_.back().page.view().count()) {
    path_.pop_back();
  }
  if (path_.empty()) return;
  ++path_.back().index;
  if (descend(path_.back().page.view().child(path_.back().index), false)) show();
}

void TreeCursor::prev() {
  valid_ = false;
  if (!path_.empty() && path_.back().index > 0) {
    --path_.back().index;
    return show();
  }
  while (!path_.empty() && path_.back().index == 0) path_.pop_back();
  if (path_.empty()) return;
  --path_.back().index;
  if (descend(path_.back().page.view().child(path_.back().index), true)) show();
}

Result<std::string_view> TreeCursor::value() {
  if (cell_.kind != CellKind::reference) return cell_.data;
  auto status = tree_->read_value(decode_value_ref(as_bytes(cell_.data).data()), scratch_);
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
