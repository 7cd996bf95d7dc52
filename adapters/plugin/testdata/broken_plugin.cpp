// Plug-ins that cannot be loaded, one a value of BROKEN (set by CMakeLists.txt).
#include "adapters/plugin/testdata/toy_store.h"

namespace {

struct Plain {
  static constexpr const char* name = "plain";
  static constexpr std::array<toy::Choice, 0> settings{};
  explicit Plain(const toy::Values&) {}
  void before(const char*) {}
  std::size_t commits_to_forget() { return 0; }
  void opened(toy::Entries&) {}
  void order(std::vector<toy::Entry>&) {}
};

enum Broken { wrong_abi, null_function, null_entry, bad_name, undeclared_scan, crash_at_entry };

}  // namespace

const assay_plugin* assay_plugin_entry(std::uint32_t) {
  static assay_plugin table = toy::toy_table<Plain>();
  switch (BROKEN) {
    case wrong_abi:
      table.abi_version = ASSAY_PLUGIN_ABI + 1;
      break;
    case null_function:
      table.erase = nullptr;
      break;
    case null_entry:
      return nullptr;
    case bad_name:
      table.name = "My Store!";
      break;
    case undeclared_scan:
      table.scan = nullptr;
      break;  // while `ordered` is declared
    case crash_at_entry:
      std::abort();
  }
  return &table;
}
