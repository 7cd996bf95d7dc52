// The dump format: any bytes round, and what is not a whole dump is refused with its line.
#include "engine/command/dump_format.h"

#include <sstream>

#include "engine/base/crc32c.h"
#include "engine/store/store_fixture.h"

namespace lode {
namespace {

std::string dump_of(Store& store, KeyKind keys = KeyKind::bytes) {
  std::ostringstream out;
  const auto entries = write_dump(store.snapshot(), keys, out);
  EXPECT_TRUE(entries);
  return out.str();
}

Status load(Store& store, const std::string& text, LoadReport& report,
            std::size_t batch_bytes = 1 << 20) {
  std::istringstream in(text);
  DumpReader reader(in, "file");
  LODE_TRY(reader.header());
  return load_dump(store, reader, batch_bytes, report);
}

std::string error_of(const std::string& text) {
  std::istringstream in(text);
  const auto checked = check_dump(in, "file");
  return checked ? "(none)" : checked.error().what;
}

std::string random_bytes(std::mt19937_64& random, std::size_t most) {
  std::string text(random() % (most + 1), '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

TEST(Dump, brings_back_any_bytes) {
  const std::uint64_t seed = 42;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  auto store = open_small(SimDisk::make());
  Model model;
  WriteBatch batch;
  std::string every_byte;
  for (int c = 0; c < 256; ++c) every_byte += static_cast<char>(c);
  model[every_byte] = every_byte + every_byte;
  model[""] = "";
  model["end 1 -"] = "end";  // a key like the last line
  model["\\x41"] = "\\";     // looks escaped
  for (int i = 0; i < 300; ++i) model[random_bytes(random, 1024)] = random_bytes(random, 3000);
  for (const auto& [key, value] : model) batch.put(key, value);
  ASSERT_TRUE(store->commit(batch, Durability::sync));
  const std::string dump = dump_of(*store);
  EXPECT_EQ(error_of(dump), "(none)");
  for (const std::size_t batch_bytes : {1, 5000, 1 << 20}) {
    const auto disk = SimDisk::make();
    auto copy = open_small(disk);
    LoadReport report;
    const auto status = load(*copy, dump, report, batch_bytes);
    ASSERT_TRUE(status) << status.error().what;
    EXPECT_EQ(report.entries, model.size());
    EXPECT_EQ(contents_of(open_small(disk->crashed(keep_none))->snapshot()), model) << "durable";
    EXPECT_EQ(dump_of(*copy), dump);
  }
}

TEST(Dump, of_u64_keys_has_numbers) {
  Options options = small_options();
  options.key_kind = KeyKind::u64;
  auto store = Store::open(SimDisk::make(), options).value();
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{17}, ~std::uint64_t{0}}) {
    ASSERT_TRUE(store->put(u64_key(number), "v", Durability::volatile_));
  }
  const std::string dump = dump_of(*store, KeyKind::u64);
  EXPECT_TRUE(dump.starts_with("lode-dump 1 u64\n0\tv\n17\tv\n18446744073709551615\tv\nend 3 "));
  auto copy = Store::open(SimDisk::make(), options).value();
  LoadReport report;
  ASSERT_TRUE(load(*copy, dump, report));
  EXPECT_EQ(contents_of(copy->snapshot()), contents_of(store->snapshot()));
  EXPECT_EQ(error_of("lode-dump 1 u64\n18446744073709551616\tv\nend 1 -\n"),
            "file:2: the key is not a number below 2^64");
}

TEST(Dump, has_a_checksum_that_another_program_can_compute) {
  // CRC-32C of "123456789" is e3069283, the check value of its definition (RFC 3720, B.4, uses the
  // same polynomial); here of a whole file.
  EXPECT_EQ(crc32c(as_bytes("123456789")), 0xe3069283U);
  auto store = open_small(SimDisk::make());
  const std::uint32_t checksum = crc32c(as_bytes("lode-dump 1 bytes\n"));
  std::ostringstream expected;
  expected << "lode-dump 1 bytes\nend 0 ";
  expected.fill('0');
  expected.width(8);
  expected << std::hex << checksum << "\n";
  EXPECT_EQ(dump_of(*store), expected.str());
}

TEST(Dump, that_is_bad_is_refused_with_its_line) {
  const std::string head = "lode-dump 1 bytes\n";
  const std::pair<std::string, std::string> cases[] = {
      {"", "file:1: not a dump"},
      {"something\n", "file:1: not a dump"},
      {"lode-dump 2 bytes\n", "file:1: \"lode-dump 2 bytes\" is not known"},
      {"lode-dump 1 byte\n", "file:1: \"lode-dump 1 byte\" is not known"},
      {head, "file:2: the file ends without its last line"},
      {head + "a\tb\n", "file:3: the file ends without its last line"},
      {head + "a\tb", "file:2: the file ends in the middle of a line"},
      {head + "a b\nend 1 -\n", "file:2: no tab"},
      {head + "a\tb\tc\nend 1 -\n", "file:2: a control character"},
      {head + "a\tb\r\nend 1 -\n", "file:2: a control character"},
      {head + "a\\q\tb\nend 1 -\n", "file:2: a bad escape in the key"},
      {head + "a\tb\nc\t\\x4\nend 2 -\n", "file:3: a bad escape in the value"},
      {head + std::string(1025, 'k') + "\tb\nend 1 -\n", "file:2: a key of more than 1,024"},
      {head + "a\tb\nend 2 -\n", "file:3: the last line says 2 entries; there are 1"},
      {head + "a\tb\nend 1\n", "file:3: the last line is"},
      {head + "a\tb\nend x -\n", "file:3: the last line is"},
      {head + "a\tb\nend 1 00000000\n", "file:3: the last line has another checksum"},
      {head + "a\tb\nend 1 -\nmore\n", "file:4: something follows"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_TRUE(error_of(text).starts_with(message)) << text << ": " << error_of(text);
  }
  EXPECT_EQ(error_of(head + "a\tb\nend 1 -\n"), "(none)");
}

TEST(Dump, with_any_byte_changed_or_the_end_cut_off_is_refused) {
  auto store = open_small(SimDisk::make());
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(store->put("k" + std::to_string(i), std::string(9, 'v'), Durability::volatile_));
  }
  const std::string dump = dump_of(*store);
  for (std::size_t at = 0; at < dump.size(); ++at) {
    std::string changed = dump;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_NE(error_of(changed), "(none)") << "a flip at " << at;
    EXPECT_NE(error_of(dump.substr(0, at)), "(none)") << "cut at " << at;
  }
}

TEST(Load, of_a_bad_file_leaves_out_the_batch_of_the_bad_line_and_says_what_was_loaded) {
  const auto disk = SimDisk::make();
  auto store = open_small(disk);
  std::string text = "lode-dump 1 bytes\n";
  for (int i = 0; i < 20; ++i) text += "k" + std::to_string(100 + i) + "\t1234567890\n";
  text += "bad line\n";
  LoadReport report;
  const auto status = load(*store, text, report, 42);  // batches of three entries of 14 bytes
  ASSERT_FALSE(status);
  EXPECT_TRUE(status.error().what.starts_with("file:22: no tab")) << status.error().what;
  EXPECT_EQ(report.entries, 18U);
  EXPECT_EQ(report.batches, 6U);
  const Model loaded = contents_of(open_small(disk->crashed(keep_none))->snapshot());
  EXPECT_EQ(loaded.size(), 18U);
  EXPECT_EQ(loaded.rbegin()->first, "k117");
}

TEST(Load, cut_off_by_a_crash_leaves_whole_batches) {
  std::string text = "lode-dump 1 bytes\n";
  for (int i = 0; i < 30; ++i)
    text += std::to_string(100 + i) + "\t" + std::string(300, 'v') + "\n";
  text += "end 30 -\n";
  bool finished = false;
  for (std::uint64_t call = 1; !finished; ++call) {
    SCOPED_TRACE("power cut at call " + std::to_string(call));
    const auto disk = SimDisk::make();
    auto store = open_small(disk);
    disk->fail_at(call, Fault::power_cut);
    LoadReport report;
    finished = load(*store, text, report, 900).has_value();
    for (const std::uint64_t seed : {0U, 1U, 2U}) {
      auto copy = open_small(disk->crashed(seed == 0   ? keep_none
                                           : seed == 1 ? keep_all
                                                       : keep_some(call, 50)));
      const Model model = contents_of(copy->snapshot());
      ASSERT_EQ(model.size() % 3, 0U) << "three entries a batch";
      ASSERT_GE(model.size(), report.entries);
      if (!model.empty()) {
        ASSERT_EQ(model.rbegin()->first, std::to_string(99 + model.size())) << "a prefix";
      }
    }
  }
}

}  // namespace
}  // namespace lode
