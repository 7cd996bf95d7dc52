// Making damaged trees whole from their leaves: steps N1 to N4 of PROTOCOLS.md.
//
// A tree's pages carry its number, their own place and a checksum, so that its leaves are found
// without the inner pages, and a builder writes pages in the order of the keys, so that the extents
// have the leaves in that order.
#include <array>
#include <map>
#include <set>

#include "engine/base/mutation.h"
#include "engine/file/real_disk.h"
#include "engine/store/engine.h"
#include "engine/tree/index_restore.h"

namespace lode {

/// A tree that does not verify, and what its leaves still have.
struct Engine::DamagedTree {
  std::shared_ptr<const Tree> tree;
  std::vector<PageId> leaves;  // intact ones, in key order
  std::uint64_t entries = 0;   // in them
  std::set<std::string> lost_values;
  std::vector<LostRange> lost;
};

namespace {

enum class PageState : std::uint8_t { bad, leaf, inner };

struct ScannedPage {
  PageId page;
  PageState state = PageState::bad;
};

std::string key_at(const PageView& view, std::size_t i) {
  std::array<char, key_buffer_bytes> buffer;
  return std::string(buffer.data(), view.key(i, buffer.data()));
}

// All pages of a tree up to the last intact one: what lies behind are large values and the filter.
struct Scan {
  std::vector<ScannedPage> pages;
  std::set<std::uint64_t> known_inner;  // pages that are no leaves, whatever is in them
};

Scan scan_pages(File& data, const TreeInfo& info) {
  Scan scan;
  const AlignedBuffer buffer(page_bytes);
  std::size_t end = 0;  // behind the last intact page
  for (const Extent& extent : info.extents) {
    for (std::uint64_t i = 0; i < extent.pages; ++i) {
      const PageId page = extent.first + i;
      scan.pages.push_back({page, PageState::bad});
      if (!read_own_page(data, page, info.number, buffer.data())) continue;
      const PageView view(buffer.data());
      scan.pages.back().state = view.leaf() ? PageState::leaf : PageState::inner;
      end = scan.pages.size();
      if (page != info.root.page) scan.known_inner.insert(info.root.page.value);
      for (std::size_t c = 0; !view.leaf() && view.level() > 1 && c < view.count(); ++c) {
        scan.known_inner.insert(view.child(c).page.value);
      }
    }
  }
  scan.pages.resize(end);
  return scan;
}

}  // namespace

// N2: what the leaves of a tree still have, and where entries are missing. Damage between two
// intact leaves can only have cost keys between them.
Result<Engine::DamagedTree> Engine::inspect(const std::shared_ptr<const Tree>& tree) const {
  const TreeInfo& info = tree->info();
  DamagedTree damaged;
  damaged.tree = tree;
  const Scan scan = scan_pages(*data_, info);
  const AlignedBuffer buffer(page_bytes);
  std::string last_key = info.first_key;
  bool gap = false;
  std::string scratch;
  for (const ScannedPage& page : scan.pages) {
    if (page.state == PageState::bad) gap = gap || !scan.known_inner.contains(page.page.value);
    if (page.state != PageState::leaf) continue;
    LODE_TRY(read_exactly(*data_, buffer.bytes(), page.page.value * page_bytes));
    const PageView view(buffer.data());
    const std::string first = key_at(view, 0);
    if (!damaged.leaves.empty() && first <= last_key) {
      return fail(ErrorKind::corruption, "tree " + std::to_string(info.number) +
                                             ": the leaves are not in the order of their keys; "
                                             "this is beyond a rebuild");
    }
    if (gap && !LODE_MUTATED("rebuild-overlooks-a-lost-leaf")) {
      damaged.lost.push_back({last_key, first});
    }
    gap = false;
    for (std::size_t i = 0; i < view.count(); ++i) {
      const Cell cell = view.cell(i);
      if (cell.kind != CellKind::reference) continue;
      if (tree->read_value(decode_value_ref(as_bytes(cell.data).data()), scratch)) continue;
      damaged.lost_values.insert(key_at(view, i));
    }
    damaged.leaves.push_back(page.page);
    damaged.entries += view.count();
    last_key = key_at(view, view.count() - 1);
  }
  if (gap || last_key != info.last_key) damaged.lost.push_back({last_key, info.last_key});
  if (damaged.entries > info.entries) {
    return fail(ErrorKind::corruption, "tree " + std::to_string(info.number) +
                                           " has more entries than its manifest says; this is "
                                           "beyond a rebuild");
  }
  // Nothing is missing: what was damaged were inner pages.
  if (damaged.entries == info.entries) damaged.lost.clear();
  for (const std::string& key : damaged.lost_values) damaged.lost.push_back({key, key});
  return damaged;
}

// N3. Null: nothing is left of it.
Result<std::shared_ptr<const Tree>> Engine::build_from_leaves(const DamagedTree& damaged,
                                                              RebuildReport& report) {
  TreeBuilder builder(tree_space(), next_tree_++, options_.key_kind);
  const AlignedBuffer buffer(page_bytes);
  std::string value;
  for (const PageId page : damaged.leaves) {
    if (!read_own_page(*data_, page, damaged.tree->info().number, buffer.data())) {
      return fail(ErrorKind::io, "a leaf that was intact cannot be read any more");
    }
    const PageView view(buffer.data());
    for (std::size_t i = 0; i < view.count(); ++i) {
      const std::string key = key_at(view, i);
      const Cell cell = view.cell(i);
      if (cell.kind == CellKind::reference) {
        if (damaged.lost_values.contains(key)) continue;
        LODE_TRY(damaged.tree->read_value(decode_value_ref(as_bytes(cell.data).data()), value));
        LODE_TRY(builder.add(key, EntryKind::value, value));
      } else if (cell.kind == CellKind::tombstone) {
        LODE_TRY(builder.add(key, EntryKind::tombstone, {}));
      } else {
        LODE_TRY(builder.add(key, EntryKind::value, cell.data));
      }
    }
  }
  report.rebuilt_entries += builder.entries();
  if (builder.entries() == 0) return std::shared_ptr<const Tree>();
  return builder.finish();
}

// N1. Nothing: more than inner pages is damaged, or it cannot be proven that it is not.
std::optional<RestoredIndex> Engine::restore_tree(const Tree& tree, bool check_values) const {
  std::string value;
  if (!tree.read_value(tree.info().filter, value)) return std::nullopt;
  return restore_index(*data_, tree.info(), options_.key_kind, [&](const PageView& leaf) {
    for (std::size_t i = 0; check_values && i < leaf.count(); ++i) {
      const Cell cell = leaf.cell(i);
      if (cell.kind != CellKind::reference) continue;
      if (!tree.read_value(decode_value_ref(as_bytes(cell.data).data()), value)) return false;
    }
    return true;
  });
}

// N1: what was proven needs no new place; a crash on the way leaves what is made again.
Status Engine::write_restored(const std::vector<RestoredIndex>& indexes) {
  if (indexes.empty()) return {};
  for (const RestoredIndex& index : indexes) {
    for (const RestoredPage& page : index) {
      LODE_TRY(data_->write_at(page.bytes.bytes(), page.page.value * page_bytes));
    }
  }
  if (LODE_MUTATED("rebuild-restores-without-sync")) return {};
  return data_->sync();
}

Result<RebuildReport> Engine::rebuild_trees(const RebuildPolicy& policy) {
  RebuildReport report;
  const Runs runs = roots_[newest_slot_]->runs;
  std::map<const Tree*, DamagedTree> damaged;
  std::vector<RestoredIndex> indexes;
  std::uint64_t entries_below = 0;  // of the indexes
  for (const auto& run : runs) {
    for (const auto& tree : run->trees) {
      ++report.trees;
      auto index = restore_tree(*tree, policy.check_values);
      if (index && index->empty()) continue;
      if (index) {
        report.restored_pages += index->size();
        entries_below += tree->info().entries;
        indexes.push_back(std::move(*index));
        continue;
      }
      if (tree->verify()) continue;  // whole, but not as this engine would lay it out
      LODE_ASSIGN(DamagedTree found, inspect(tree));
      report.lost_entries +=
          tree->info().entries - found.entries + std::uint64_t{found.lost_values.size()};
      report.lost.insert(report.lost.end(), found.lost.begin(), found.lost.end());
      damaged.emplace(tree.get(), std::move(found));
    }
  }
  report.damaged_trees = damaged.size() + indexes.size();
  if (report.lost_entries > 0 && !policy.accept_loss) {
    report.restored_pages = 0;
    return report;
  }
  LODE_TRY(write_restored(indexes));
  report.rebuilt_trees = indexes.size();
  report.rebuilt_entries = entries_below;
  if (damaged.empty()) return report;
  Runs rebuilt;
  for (const auto& run : runs) {
    Run::Trees trees;
    for (const auto& tree : run->trees) {
      const auto found = damaged.find(tree.get());
      if (found == damaged.end()) {
        trees.push_back(tree);
        continue;
      }
      LODE_ASSIGN(auto copy, build_from_leaves(found->second, report));
      if (copy) trees.push_back(std::move(copy));
      ++report.rebuilt_trees;
    }
    if (!trees.empty())
      rebuilt.push_back(std::make_shared<const Run>(run->level, std::move(trees)));
  }
  // N4: the root before stays as the other one, with the damaged trees, until the next checkpoint.
  LODE_TRY(write_durable_root(rebuilt, roots_[newest_slot_]->root, roots_[newest_slot_]->markers));
  return report;
}

// Files and roots alone: the log is not replayed, for it may have to read what is damaged.
Result<std::shared_ptr<Engine>> Engine::open_for_rebuild(std::shared_ptr<Disk> disk,
                                                         const Options& options) {
  Options quiet = options;
  quiet.create = false;
  quiet.background = false;
  if (quiet.read_only) return fail(ErrorKind::unsupported, "a rebuild has to write");
  auto engine = std::make_shared<Engine>(std::move(disk), quiet);
  LODE_TRY(engine->open_files());
  LODE_TRY(engine->load_roots());
  return engine;
}

Result<RebuildReport> Engine::rebuild(std::shared_ptr<Disk> disk, const Options& options,
                                      const RebuildPolicy& policy) {
  LODE_ASSIGN(auto engine, open_for_rebuild(std::move(disk), options));
  return engine->rebuild_trees(policy);
}

Result<std::uint64_t> Engine::drop_inner_pages(std::shared_ptr<Disk> disk, const Options& options) {
  LODE_ASSIGN(auto engine, open_for_rebuild(std::move(disk), options));
  const AlignedBuffer zeros(page_bytes);
  std::uint64_t dropped = 0;
  for (const auto& run : engine->roots_[engine->newest_slot_]->runs) {
    for (const auto& tree : run->trees) {
      for (const ScannedPage& page : scan_pages(*engine->data_, tree->info()).pages) {
        if (page.state != PageState::inner) continue;
        LODE_TRY(engine->data_->write_at(zeros.bytes(), page.page.value * page_bytes));
        ++dropped;
      }
    }
  }
  LODE_TRY(engine->data_->sync());
  return dropped;
}

Result<std::uint64_t> Store::drop_inner_pages(const std::string& directory,
                                              const Options& options) {
  LODE_ASSIGN(auto disk, guard_memory([&] { return open_directory(directory, false); }));
  return drop_inner_pages(std::move(disk), options);
}

Result<std::uint64_t> Store::drop_inner_pages(std::shared_ptr<Disk> disk, const Options& options) {
  return guard_memory([&] { return Engine::drop_inner_pages(std::move(disk), options); });
}

Result<RebuildReport> Store::rebuild(const std::string& directory, const Options& options,
                                     const RebuildPolicy& policy) {
  LODE_ASSIGN(auto disk, guard_memory([&] { return open_directory(directory, false); }));
  return rebuild(std::move(disk), options, policy);
}

Result<RebuildReport> Store::rebuild(std::shared_ptr<Disk> disk, const Options& options,
                                     const RebuildPolicy& policy) {
  return guard_memory([&] { return Engine::rebuild(std::move(disk), options, policy); });
}

}  // namespace lode
