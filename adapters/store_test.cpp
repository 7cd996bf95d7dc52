// The interface's own functions: names of classes, settings, footprints.
#include "adapters/store.h"

#include <gtest/gtest.h>

#include <fstream>

#include "adapters/store_fixture.h"

namespace assay {
namespace {

TEST(DurabilityNames, read_back_as_they_are_written) {
  for (const char* name : {"volatile", "process", "power-prefix", "power-last", "power"}) {
    const Result<DurabilityClass> parsed = parse_durability(name);
    ASSERT_TRUE(parsed) << name;
    EXPECT_EQ(to_string(*parsed), name);
  }
  const Result<DurabilityClass> unknown = parse_durability("durable");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind(), ErrorKind::bad_input);
  EXPECT_NE(unknown.error().message().find("power-prefix"), std::string::npos);
}

TEST(DurabilityClass, grows_from_weak_to_strong) {
  EXPECT_LT(DurabilityClass::volatile_, DurabilityClass::process);
  EXPECT_LT(DurabilityClass::process, DurabilityClass::power_prefix);
  EXPECT_LT(DurabilityClass::power_prefix, DurabilityClass::power_last);
  EXPECT_LT(DurabilityClass::power_last, DurabilityClass::power);
}

class OneSetting final : public Driver {
 public:
  std::string name() const override { return "one"; }
  std::string version() const override { return "0"; }
  Capabilities capabilities() const override { return {}; }
  std::vector<Setting> settings(DurabilityClass durability) const override {
    const bool power = durability == DurabilityClass::power;
    return {{"sync", power ? "full" : "off", "because", "a test", {"full", "off"}},
            {"bytes", "auto", "because", "a test", {}}};
  }
  Result<std::unique_ptr<Store>> open(const OpenOptions&) const override {
    return fail(ErrorKind::unsupported, "a driver of a test opens nothing");
  }
};

TEST(ResolvedSettings, are_those_of_the_class_with_the_given_ones_on_top) {
  const OneSetting driver;
  EXPECT_EQ(resolve_settings(driver, DurabilityClass::power, {}).value(),
            (Settings{{"bytes", "auto"}, {"sync", "full"}}));
  EXPECT_EQ(resolve_settings(driver, DurabilityClass::process, {{"bytes", "7"}}).value(),
            (Settings{{"bytes", "7"}, {"sync", "off"}}));
  const auto typo = resolve_settings(driver, DurabilityClass::power, {{"sinc", "full"}});
  ASSERT_FALSE(typo);
  EXPECT_NE(typo.error().message().find("did you mean \"sync\"?"), std::string::npos);
  const auto value = resolve_settings(driver, DurabilityClass::power, {{"sync", "half"}});
  ASSERT_FALSE(value);
  EXPECT_NE(value.error().message().find("valid: full, off"), std::string::npos);
}

TEST(ResolvedSettings, take_a_choice_in_any_case_of_letters_and_keep_the_stores_own) {
  EXPECT_EQ(resolve_settings(OneSetting(), DurabilityClass::power, {{"sync", "OFF"}}).value(),
            (Settings{{"bytes", "auto"}, {"sync", "off"}}));
}

TEST(DirectoryFootprint, counts_regular_files_below_a_directory) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path() + "/sub");
  std::ofstream(directory.path() + "/a") << std::string(1'000, 'a');
  std::ofstream(directory.path() + "/sub/b") << std::string(5'000, 'b');
  std::ofstream(directory.path() + "/sparse") << "s";
  std::filesystem::resize_file(directory.path() + "/sparse", 10 << 20);
  const Result<Footprint> footprint = directory_footprint(directory.path());
  ASSERT_TRUE(footprint);
  EXPECT_EQ(footprint->files, 3U);
  EXPECT_EQ(footprint->apparent_bytes, 6'000U + (10U << 20));
  EXPECT_LT(footprint->allocated_bytes, 1U << 20);
  const Result<Footprint> missing = directory_footprint(directory.path() + "/missing");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind(), ErrorKind::environment);
}

TEST(Printable, escapes_control_characters_and_what_is_no_utf_8) {
  EXPECT_EQ(printable("plain st\xc3\xb6re \xf0\x9f\x98\x80"),
            "plain st\xc3\xb6re \xf0\x9f\x98\x80");
  EXPECT_EQ(printable("a\x1b[31m\n\x7f"), "a\\x1b[31m\\x0a\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"), "\\u009b");
  // Alone, cut short, longer than needed, a surrogate, above the last code point.
  EXPECT_EQ(printable("1\xff"), "1\\xff");
  EXPECT_EQ(printable("\xc3"), "\\xc3");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

}  // namespace
}  // namespace assay
