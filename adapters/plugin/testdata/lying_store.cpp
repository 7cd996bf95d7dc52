// A store that works, and lies as its setting `lie` says. Every lie but `reorder` is told when a
// store with contents is opened again, so that only a validation after a reopen can catch it.
//   lose_last    the last commit is gone
//   wrong_value  one bit of the value of the middle key is another
//   lose_key     the middle key is gone
//   ghost_key    a key after the last one, which nobody wrote
//   reorder      a scan shows its first two entries the wrong way round
#include <string>

#include "adapters/plugin/testdata/toy_store.h"

namespace {

constexpr const char* kLies[] = {"none",      "lose_last", "wrong_value", "lose_key",
                                 "ghost_key", "reorder",   nullptr};

/// The next number of the same length, so that a u64 key stays one.
std::string successor(std::string key) {
  for (auto byte = key.rbegin(); byte != key.rend(); ++byte) {
    *byte = static_cast<char>(static_cast<unsigned char>(*byte) + 1);
    if (*byte != '\0') return key;
  }
  return std::string(key.size() + 1, '\xff');
}

struct Lying {
  static constexpr const char* name = "lying";
  static constexpr std::array<toy::Choice, 1> settings{{{"lie", "none", kLies}}};

  explicit Lying(const toy::Values& values) {
    if (const auto given = values.find("lie"); given != values.end()) lie = given->second;
  }
  void before(const char*) {}
  [[nodiscard]] std::size_t commits_to_forget() const { return lie == "lose_last" ? 1 : 0; }

  void opened(toy::Entries& entries) const {
    if (entries.empty()) return;
    const auto middle = std::next(entries.begin(), static_cast<long>(entries.size() / 2));
    if (lie == "lose_key") {
      entries.erase(middle);
    } else if (lie == "wrong_value") {
      if (middle->second.empty()) middle->second = "x";
      middle->second.back() = static_cast<char>(middle->second.back() ^ 1);
    } else if (lie == "ghost_key") {
      const auto& [key, value] = *entries.rbegin();
      entries[successor(key)] = value;
    }
  }

  void order(std::vector<toy::Entry>& entries) const {
    if (lie == "reorder" && entries.size() >= 2) std::swap(entries[0], entries[1]);
  }

  std::string lie = "none";
};

const assay_plugin kTable = toy::toy_table<Lying>();

}  // namespace

const assay_plugin* assay_plugin_entry(std::uint32_t) {
  return &kTable;
}
