// The example is built as a stranger would: its folder and plugin.h copied to a place of their own,
// its CMakeLists.txt, and nothing of this tree.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "adapters/conformance/conformance.h"
#include "adapters/plugin/plugin_loader.h"
#include "adapters/temporary_directory.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// Copies and builds; the path of the shared object, or the output of what failed.
std::string build_elsewhere(const fs::path& place, std::string& failure) {
  const fs::path sources = ASSAY_ADAPTERS_FOLDER;
  fs::create_directories(place / "mine");
  for (const char* file : {"CMakeLists.txt", "example_store.cpp"}) {
    fs::copy_file(sources / "example_plugin" / file, place / "mine" / file);
  }
  fs::create_directories(place / "include");
  fs::copy_file(sources / "plugin.h", place / "include" / "plugin.h");
  const std::string log = (place / "log").string();
  const std::string mine = (place / "mine").string();
  const std::string line = "{ cmake -S '" + mine + "' -B '" + mine + "/build' -DASSAY_INCLUDE='" +
                           (place / "include").string() +
                           "' -DCMAKE_CXX_COMPILER='" ASSAY_COMPILER "' && cmake --build '" + mine +
                           "/build'; } >'" + log + "' 2>&1";
  if (std::system(line.c_str()) != 0) failure = read_file(log);  // NOLINT(cert-env33-c)
  return mine + "/build/example_store.so";
}

TEST(ExamplePlugin, builds_outside_the_tree_and_behaves_as_it_declares) {
  const TemporaryDirectory directory;
  std::string failure;
  const std::string path = build_elsewhere(directory.path(), failure);
  ASSERT_TRUE(failure.empty()) << failure;
  const Result<const Driver*> driver = load_plugin(path);
  ASSERT_TRUE(driver) << driver.error().message();
  EXPECT_EQ((*driver)->name(), "example");
  for (const DurabilityClass durability : {DurabilityClass::process, DurabilityClass::power}) {
    ConformanceOptions options;
    options.directory = directory.path();
    options.durability = durability;
    const auto report = check_conformance(**driver, options);
    ASSERT_TRUE(report) << report.error().message();
    for (const CheckOutcome& outcome : report->outcomes) {
      EXPECT_LT(outcome.result, CheckResult::failed)
          << to_string(durability) << ", " << outcome.check << ": " << outcome.detail;
    }
    EXPECT_EQ(report->count(CheckResult::not_supported), 2u);  // rollback, concurrent writers
  }
}

TEST(ExamplePlugin, stays_under_150_lines) {
  const std::string text =
      read_file(fs::path(ASSAY_ADAPTERS_FOLDER) / "example_plugin" / "example_store.cpp");
  ASSERT_FALSE(text.empty());
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 150);
}

}  // namespace
}  // namespace assay
