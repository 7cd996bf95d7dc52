#include "workloads/toml_reader.h"

#include <sys/stat.h>

#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "adapters/temporary_directory.h"

namespace assay {
namespace {

enum class Colour { red, green };
constexpr std::pair<std::string_view, Colour> kColours[] = {{"red", Colour::red},
                                                            {"green", Colour::green}};

TomlDocument document(std::string_view text) {
  auto parsed = TomlDocument::parse(text, "f.toml");
  EXPECT_TRUE(parsed) << parsed.error().message();
  return std::move(*parsed);
}

TEST(TomlReader, reads_typed_values_and_defaults) {
  TomlDocument doc = document(
      "name = \"x\"\ncount = 3\nshare = 0.5\nwhole = 2\non = true\ncolour = \"green\"\n"
      "list = [1, -2]\nwords = [\"a\", \"b\"]\n[sub]\nk = 1\n[[row]]\nn = 1\n[[row]]\nn = 2\n");
  TomlTable root = doc.root();
  EXPECT_EQ(root.required_text("name"), "x");
  EXPECT_EQ(root.required_integer("count", 1), 3U);
  EXPECT_EQ(root.number("share", 0), 0.5);
  EXPECT_EQ(root.number("whole", 0), 2.0);
  EXPECT_TRUE(root.boolean("on", false));
  EXPECT_EQ(root.choice("colour", Colour::red, kColours), Colour::green);
  EXPECT_EQ(root.choice("other", Colour::red, kColours), Colour::red);
  EXPECT_EQ(root.integers("list"), (std::vector<std::int64_t>{1, -2}));
  EXPECT_EQ(root.texts("words"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(root.integer("absent", 7), 7U);
  EXPECT_EQ(root.table("sub").integer("k", 0), 1U);
  EXPECT_FALSE(root.table("gone").present());
  EXPECT_EQ(root.table("gone").integer("k", 9), 9U);
  auto rows = root.tables("row");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].integer("n", 0) + rows[1].integer("n", 0), 3U);
  const Status end = doc.finish();
  EXPECT_TRUE(end) << end.error().message();
}

TEST(TomlReader, an_unknown_key_gets_its_line_and_the_nearest_name) {
  TomlDocument doc = document("[keys]\nkind = 1\ncuont = 3\n");
  TomlTable keys = doc.root().table("keys");
  (void)keys.integer("kind", 0);
  (void)keys.required_integer("count", 1);
  const Status end = doc.finish();
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().message(), "f.toml:3: unknown key 'cuont' (did you mean 'count'?)");
}

TEST(TomlReader, a_table_that_nobody_reads_is_unknown) {
  TomlDocument doc = document("a = 1\n\n[extra]\nb = 1\n");
  (void)doc.root().integer("a", 0);
  const Status end = doc.finish();
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().where(), "f.toml:3");
}

TEST(TomlReader, a_duplicate_key_gets_its_line) {
  const auto doc = TomlDocument::parse("a = 1\nb = 2\na = 3\n", "f.toml");
  ASSERT_FALSE(doc);
  EXPECT_EQ(doc.error().where(), "f.toml:3");
  EXPECT_EQ(doc.error().what(), "duplicate key 'a'");
  const auto table = TomlDocument::parse("[t]\na = 1\n[t]\nb = 1\n", "f.toml");
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().where(), "f.toml:3");
}

TEST(TomlReader, a_syntax_error_gets_its_line) {
  const auto doc = TomlDocument::parse("a = 1\nb = = 2\n", "f.toml");
  ASSERT_FALSE(doc);
  EXPECT_EQ(doc.error().where(), "f.toml:2");
}

TEST(TomlReader, a_wrong_type_says_what_it_should_be) {
  TomlDocument doc = document("\ncount = \"many\"\n");
  EXPECT_EQ(doc.root().integer("count", 5), 5U);
  const Status end = doc.finish();
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().message(), "f.toml:2: 'count' must be an integer, not \"many\"");
}

TEST(TomlReader, ranges_are_checked) {
  TomlDocument low = document("n = -1\n");
  (void)low.root().integer("n", 1, 1);
  EXPECT_EQ(low.finish().error().message(), "f.toml:1: 'n' must be at least 1, not -1");
  TomlDocument high = document("x = 2.5\n");
  (void)high.root().number("x", 0, 0, 1);
  EXPECT_EQ(high.finish().error().message(), "f.toml:1: 'x' must be between 0 and 1, not 2.5");
  TomlDocument nan = document("x = nan\n");
  (void)nan.root().number("x", 0, 0, 1);
  EXPECT_FALSE(nan.finish());
}

TEST(TomlReader, a_misspelt_choice_gets_the_nearest_one) {
  TomlDocument doc = document("colour = \"grene\"\n");
  (void)doc.root().choice("colour", Colour::red, kColours);
  EXPECT_EQ(doc.finish().error().message(),
            "f.toml:1: 'colour' must be one of red, green, not \"grene\" (did you mean 'green'?)");
}

TEST(TomlReader, overrides_reach_tables_arrays_by_number_and_by_name) {
  TomlDocument doc = document("[[phases]]\nname = \"load\"\n[[phases]]\nname = \"run\"\nms = 1\n");
  ASSERT_TRUE(doc.set("keys.count", "1000"));
  ASSERT_TRUE(doc.set("phases.run.ms", "20"));
  ASSERT_TRUE(doc.set_assignment("phases.0.ms=30"));
  ASSERT_TRUE(doc.set("colour", "green"));
  TomlTable root = doc.root();
  EXPECT_EQ(root.table("keys").integer("count", 0), 1000U);
  EXPECT_EQ(root.choice("colour", Colour::red, kColours), Colour::green);
  auto phases = root.tables("phases");
  for (auto& phase : phases) (void)phase.text("name");
  EXPECT_EQ(phases[0].integer("ms", 0), 30U);
  EXPECT_EQ(phases[1].integer("ms", 0), 20U);
  EXPECT_TRUE(doc.finish());
}

TEST(TomlReader, bad_overrides_say_where_and_why) {
  TomlDocument doc = document("n = 1\n[[phases]]\nname = \"load\"\n");
  EXPECT_EQ(doc.set("phases.laod.ms", "1").error().message(),
            "--set phases.laod.ms: there is no element named 'laod' (did you mean 'load'?)");
  EXPECT_FALSE(doc.set("phases.7.ms", "1"));
  EXPECT_FALSE(doc.set("n.below", "1"));
  EXPECT_FALSE(doc.set_assignment("nothing"));
  ASSERT_TRUE(doc.set("m", "lots"));
  TomlTable root = doc.root();
  (void)root.integer("n", 0);
  (void)root.integer("m", 0);
  for (auto& phase : root.tables("phases")) (void)phase.text("name");
  EXPECT_EQ(doc.finish().error().message(), "--set m: 'm' must be an integer, not \"lots\"");
}

TEST(TomlReader, a_canonical_form_is_read_by_the_same_rules) {
  auto doc = TomlDocument::from_json(
      nlohmann::json{{"big", 18446744073709551615ULL}, {"x", 0.25}, {"odd", 1}}, "record");
  ASSERT_TRUE(doc);
  TomlTable root = doc->root();
  EXPECT_EQ(root.integer("big", 0), 18446744073709551615ULL);
  EXPECT_EQ(root.number("x", 0), 0.25);
  EXPECT_EQ(doc->finish().error().message(), "record: unknown key 'odd' (valid here: big, x)");
}

TEST(TomlReader, lists_keep_elements_as_toml_and_name_what_is_none) {
  auto doc = document("[sweep]\na.b = [1, 2]\n\"a.c\" = [\"x\", true, [0, 1]]\n");
  const auto lists = doc.root().lists("sweep");
  ASSERT_EQ(lists.size(), 2U);
  EXPECT_EQ(lists[0].first, "a.b");
  EXPECT_EQ(lists[0].second, (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(lists[1].first, "a.c");
  EXPECT_EQ(lists[1].second, (std::vector<std::string>{"\"x\"", "true", "[0, 1]"}));
  EXPECT_TRUE(doc.finish());
  auto wrong = document("[sweep]\na.b = 3\n");
  (void)wrong.root().lists("sweep");
  const Status status = wrong.finish();
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message().find("'sweep.a.b' must be an array"), std::string::npos);
}

TEST(TomlReader, settings_keep_scalars_as_text) {
  TomlDocument doc = document("[settings]\na = 1\nb = true\nc = \"x\"\n");
  const auto settings = doc.root().settings("settings");
  ASSERT_EQ(settings.size(), 3U);
  EXPECT_EQ(settings[0].second, "1");
  EXPECT_EQ(settings[1].second, "true");
  EXPECT_EQ(settings[2].second, "x");
  EXPECT_TRUE(doc.finish());
}

TEST(TomlReader, a_key_of_very_many_parts_is_refused_before_it_overflows_the_stack) {
  std::string key = "a";
  for (int part = 0; part < 50000; ++part) key += ".a";
  const auto deep = TomlDocument::parse("x = 1\n" + key + " = 1\n", "f.toml");
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().message(), "f.toml:2: a key has more than 200 parts");
  EXPECT_TRUE(TomlDocument::parse("a.b.c = 1  # " + std::string(300, '.') + "\n", "f.toml"));
}

TEST(TomlReader, what_is_no_file_of_text_is_refused_without_reading_all_of_it) {
  const auto endless = read_text_file("/dev/zero");
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().message(), "/dev/zero: this is no regular file (a pipe or a device)");
  const TemporaryDirectory own;
  const std::string long_file = own.path() + "/long.toml";
  std::ofstream(long_file) << std::string((1U << 20) + 1, '#');
  const auto too_long = read_text_file(long_file);
  ASSERT_FALSE(too_long);
  EXPECT_EQ(too_long.error().message(),
            long_file + ": the file is longer than 1 MiB, so no declaration");
  const std::string pipe = own.path() + "/pipe.toml";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto piped = read_text_file(pipe);
  ASSERT_FALSE(piped);
  EXPECT_EQ(piped.error().message(), pipe + ": this is no regular file (a pipe or a device)");
  const auto folder = read_text_file("/");
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().kind(), ErrorKind::bad_input);
}

}  // namespace
}  // namespace assay
