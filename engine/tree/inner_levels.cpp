#include "engine/tree/inner_levels.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"

namespace lode {

std::string_view separator_of(std::string_view left, std::string_view right) {
  const std::size_t length = std::min(left.size(), right.size());
  std::size_t same = 0;
  while (same < length && left[same] == right[same]) ++same;
  return right.substr(0, same + 1);
}

std::string_view leaf_separator(KeyKind keys, std::string_view last_before,
                                std::string_view first) {
  // Numbers are as narrow as they get; of texts the shortest does.
  return keys == KeyKind::u64 ? first : separator_of(last_before, first);
}

Status InnerLevels::add_reference(std::size_t level, std::string_view key, const PageRef& ref) {
  if (level > levels_.size()) {
    levels_.push_back(std::make_unique<Level>(page_kind(keys_, false)));
    levels_.back()->separator = key;
  }
  Level& here = *levels_[level - 1];
  std::byte data[page_ref_bytes];
  encode_page_ref(ref, data);
  const std::string_view text = as_text(ConstBytes(data, sizeof data));
  if (here.page.add(key, CellKind::value, text)) return {};
  LODE_ASSIGN(const PageRef full, sink_.put(here.page, level));
  const std::string full_separator = std::exchange(here.separator, std::string(key));
  LODE_TRY(add_reference(level + 1, full_separator, full));
  LODE_CHECK(here.page.add(key, CellKind::value, text), "a reference fits a page");
  return {};
}

Result<PageRef> InnerLevels::finish(std::string_view separator, const PageRef& last_leaf) {
  PageRef ref = last_leaf;
  std::string key(separator);
  for (std::size_t level = 1; level <= levels_.size(); ++level) {
    LODE_TRY(add_reference(level, key, ref));
    LODE_ASSIGN(ref, sink_.put(levels_[level - 1]->page, level));
    key = levels_[level - 1]->separator;
  }
  return ref;
}

}  // namespace lode
