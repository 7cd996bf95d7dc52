#include "adapters/plugin/plugin_loader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "adapters/temporary_directory.h"

namespace assay {
namespace {

std::string plugin(const std::string& name) {
  return std::string(ASSAY_TEST_PLUGINS) + "/lib" + name + "_store.so";
}

/// The one line that loading `path` ends with.
std::string refusal(const std::string& path) {
  const Result<const Driver*> driver = load_plugin(path);
  if (driver) return "it loads";
  EXPECT_EQ(driver.error().kind(), ErrorKind::bad_input);
  EXPECT_EQ(driver.error().message().find('\n'), std::string::npos);
  EXPECT_NE(driver.error().message().find(path), std::string::npos);
  return driver.error().what();
}

const Driver& crashing() {
  const Result<const Driver*> driver = load_plugin(plugin("crashing"));
  if (!driver) throw std::runtime_error(driver.error().message());
  return **driver;
}

std::unique_ptr<Store> open_in(const std::string& directory, Settings settings = {}) {
  OpenOptions options;
  options.directory = directory;
  options.durability = DurabilityClass::process;
  options.settings = std::move(settings);
  Result<std::unique_ptr<Store>> store = crashing().open(options);
  if (!store) throw std::runtime_error(store.error().message());
  return std::move(*store);
}

TEST(PluginLoader, says_that_a_file_is_missing) {
  EXPECT_EQ(refusal("./no/such/store.so"), "cannot load the plug-in: No such file or directory");
}

TEST(PluginLoader, says_that_a_file_is_no_shared_object) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/text.so";
  std::ofstream(path) << "not a library";
  EXPECT_EQ(refusal(path), "cannot load the plug-in: not a shared object (no ELF header)");
  EXPECT_EQ(refusal(directory.path()), "cannot load the plug-in: not a regular file");
}

TEST(PluginLoader, passes_on_why_the_system_refuses_a_library) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/cut.so";
  std::ofstream(path) << "\177ELF and no more";
  EXPECT_NE(refusal(path).find("cannot load the plug-in: "), std::string::npos);
}

TEST(PluginLoader, says_that_the_entry_is_missing) {
  EXPECT_EQ(refusal(plugin("no_entry")), "not a plug-in: it exports no assay_plugin_entry");
}

TEST(PluginLoader, says_which_version_the_plugin_speaks) {
  EXPECT_EQ(refusal(plugin("wrong_abi")), "the plug-in speaks plug-in ABI 2, this assay speaks 1");
}

TEST(PluginLoader, says_that_the_entry_returned_nothing) {
  EXPECT_EQ(refusal(plugin("null_entry")),
            "assay_plugin_entry(1) returned NULL: the plug-in does not serve plug-in ABI 1");
}

TEST(PluginLoader, names_a_missing_function) {
  EXPECT_EQ(refusal(plugin("null_function")), "plug-in plain lacks the function erase");
}

TEST(PluginLoader, demands_the_functions_that_the_capabilities_declare) {
  EXPECT_EQ(refusal(plugin("undeclared_scan")), "plug-in plain lacks the function scan");
}

TEST(PluginLoader, refuses_a_name_that_cannot_stand_in_a_table) {
  EXPECT_EQ(refusal(plugin("bad_name")), "the plug-in's name \"My Store!\" is not usable");
}

TEST(PluginLoader, refuses_a_version_that_is_no_text) {
  EXPECT_EQ(refusal(plugin("null_version")), "version() of plug-in plain returned NULL");
}

TEST(PluginLoader, refuses_texts_that_no_record_can_hold) {
  EXPECT_EQ(refusal(plugin("no_utf8_name")), "the plug-in's name \"st\\xf6re\" is not usable");
  EXPECT_EQ(refusal(plugin("no_utf8_setting")),
            "a setting of plug-in plain is not printable: \"\\xfffast\"");
}

TEST(PluginDriver, shows_bytes_that_are_no_utf8_in_hexadecimal) {
  const Result<const Driver*> driver = load_plugin(plugin("no_utf8_text"));
  ASSERT_TRUE(driver) << driver.error().message();
  EXPECT_EQ((*driver)->version(), "1.0 \\xe9t\\xe9\\x1b[31m");
  OpenOptions options;
  options.durability = DurabilityClass::process;
  const auto store = (*driver)->open(options);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().what(), "store plain: open: cannot \\xe9tablir");
}

TEST(PluginLoader, refuses_a_file_name_that_no_arm_can_have) {
  const TemporaryDirectory directory;
  for (const std::string name : {"st\xc3\xb6re.so", "st\xf6re.so", "my store.so", ".hidden.so"}) {
    const std::string path = directory.path() + "/" + name;
    std::filesystem::copy_file(plugin("lying"), path);
    const Result<const Driver*> driver = load_plugin(path);
    ASSERT_FALSE(driver) << name;
    EXPECT_EQ(driver.error().kind(), ErrorKind::bad_input);
    EXPECT_EQ(printable(driver.error().message()), driver.error().message()) << name;
    EXPECT_NE(driver.error().message().find("plug-in's"), std::string::npos);
  }
  const std::string longest = directory.path() + "/" + std::string(64, 'x') + ".so";
  std::filesystem::copy_file(plugin("lying"), longest);
  EXPECT_TRUE(load_plugin(longest));
  const std::string too_long = directory.path() + "/" + std::string(65, 'x') + ".so";
  std::filesystem::copy_file(plugin("lying"), too_long);
  EXPECT_FALSE(load_plugin(too_long));
}

TEST(PluginLoader, refuses_a_path_that_no_record_can_hold) {
  const TemporaryDirectory directory;
  const std::string folder = directory.path() + "/\xff";
  std::filesystem::create_directory(folder);
  std::filesystem::copy_file(plugin("lying"), folder + "/mine.so");
  const Result<const Driver*> driver = load_plugin(folder + "/mine.so");
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().what(), "the plug-in's path is not printable");
}

TEST(PluginLoader, loads_a_plugin_once_whatever_its_path) {
  const TemporaryDirectory directory;
  const std::string link = directory.path() + "/link.so";
  std::filesystem::create_symlink(plugin("crashing"), link);
  const Result<const Driver*> driver = load_plugin(link);
  ASSERT_TRUE(driver) << driver.error().message();
  EXPECT_EQ(*driver, &crashing());
}

TEST(PluginDriver, tells_what_the_plugin_declares) {
  EXPECT_EQ(crashing().name(), "crashing");
  EXPECT_EQ(crashing().version(), "0.1");
  const Capabilities declared = crashing().capabilities();
  EXPECT_TRUE(declared.ordered);
  EXPECT_TRUE(declared.retains_data);
  EXPECT_FALSE(declared.concurrent_writers);
  EXPECT_EQ(declared.durability, (std::vector{DurabilityClass::volatile_, DurabilityClass::process,
                                              DurabilityClass::power}));
  EXPECT_EQ(crashing().settings(DurabilityClass::power).size(), 3u);
}

TEST(PluginDriver, refuses_a_class_that_the_plugin_does_not_claim) {
  OpenOptions options;
  options.durability = DurabilityClass::power_last;
  const auto store = crashing().open(options);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().kind(), ErrorKind::unsupported);
}

TEST(PluginDriver, names_the_nearest_setting) {
  OpenOptions options;
  options.settings = {{"crash_inn", "put"}};
  const auto store = crashing().open(options);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().kind(), ErrorKind::bad_input);
  EXPECT_NE(store.error().message().find("did you mean \"crash_in\"?"), std::string::npos);
}

TEST(PluginDriver, passes_on_the_error_of_the_plugin) {
  OpenOptions options;
  options.directory = "/nowhere/at/all";
  options.durability = DurabilityClass::process;
  const auto store = crashing().open(options);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().what(),
            "store crashing: open: cannot open the log: No such file or directory");
}

TEST(PluginDriver, hands_everything_to_the_plugin_and_back) {
  const TemporaryDirectory directory;
  const auto store = open_in(directory.path());
  EXPECT_EQ(store->effective_settings()->at("crash_in"), "none");
  const auto session = store->session();
  ASSERT_TRUE(session);
  ASSERT_TRUE((*session)->put("key", "value"));
  std::string_view value;
  ASSERT_TRUE(*(*session)->get("key", value));
  EXPECT_EQ(value, "value");
  EXPECT_FALSE(*(*session)->get("other", value));
  EXPECT_EQ(store->counters().at("toy.entries"), 1.0);
  EXPECT_EQ(store->footprint()->files, 1u);
  EXPECT_TRUE(store->settle());  // the plug-in has none: nothing is ever pending
}

TEST(PluginDriver, turns_an_exception_into_an_error) {
  const TemporaryDirectory directory;
  const auto store = open_in(directory.path(), {{"crash_in", "get"}, {"crash_how", "throw"}});
  const auto session = store->session();
  std::string_view value;
  const Result<bool> found = (*session)->get("key", value);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().what(), "store crashing: get let a C++ exception out: thrown on purpose");
}

TEST(PluginDriver, lets_the_exception_of_a_sink_pass_around_the_plugin) {
  class Throwing final : public ScanSink {
   public:
    bool entry(std::string_view, std::string_view) override { throw std::logic_error("stop"); }
  };
  const TemporaryDirectory directory;
  const auto store = open_in(directory.path());
  const auto session = store->session();
  ASSERT_TRUE((*session)->put("key", "value"));
  Throwing sink;
  EXPECT_THROW(static_cast<void>((*session)->scan(ScanRange{}, sink)), std::logic_error);
  ASSERT_TRUE((*session)->put("key", "still works"));
}

}  // namespace
}  // namespace assay
