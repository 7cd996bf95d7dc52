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

enum Broken {
  wrong_abi,
  null_function,
  null_entry,
  bad_name,
  undeclared_scan,
  crash_at_entry,
  null_version,
  no_utf8_name,
  no_utf8_setting,
  no_utf8_text,
};

void no_utf8_settings(std::uint32_t, assay_setting_sink sink, void* context) {
  const assay_setting setting{sizeof(setting),
                              0,
                              "mode",
                              "\xff"
                              "fast",
                              "",
                              "",
                              nullptr};
  sink(context, &setting);
}

int no_utf8_error(const assay_open_options*, assay_store**, assay_error* error) {
  std::snprintf(error->message, sizeof(error->message), "cannot \xe9tablir");
  return ASSAY_FAILED;
}

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
    case null_version:
      table.version = [] { return static_cast<const char*>(nullptr); };
      break;
    case no_utf8_name:
      table.name = "st\xf6re";
      break;
    case no_utf8_setting:
      table.settings = no_utf8_settings;
      break;
    case no_utf8_text:  // it loads
      table.version = [] { return "1.0 \xe9t\xe9\x1b[31m"; };
      table.open = no_utf8_error;
      break;
  }
  return &table;
}
