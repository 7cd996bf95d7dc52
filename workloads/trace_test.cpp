// Operations captured elsewhere: the file format, the replay and its validation.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "adapters/temporary_directory.h"
#include "workloads/memory_session.h"
#include "workloads/model.h"
#include "workloads/trace.h"
#include "workloads/trace_file.h"

namespace assay {
namespace {

constexpr std::uint64_t kSeed = 3;

class Trace : public ::testing::Test {
 protected:
  void write(const std::string& text) { std::ofstream(folder_ + "/ops.trace") << text; }
  Result<Workload> declare(const std::string& phase = "", const std::string& roles = "") {
    return parse_workload(
        "name = \"replay\"\n[keys]\ncount = 10\nkind = \"bytes\"\nbytes = 16\n"
        "[[phases]]\nkind = \"load\"\n[[phases]]\nkind = \"run\"\n"
        "trace = \"ops.trace\"\n" +
            phase + "\n" + roles,
        folder_ + "/w.toml");
  }
  std::string refusal(const std::string& line) {
    write("1 read 00 0\n" + line + "\n");
    const auto workload = declare();
    std::string message = workload ? "accepted" : workload.error().message();
    const auto at = message.find(folder_ + "/");
    return at == std::string::npos ? message : message.erase(at, folder_.size() + 1);
  }

  const TemporaryDirectory own_;
  const std::string folder_ = own_.path();
};

constexpr const char* kOperations = R"(# captured somewhere
1000 update "alpha" 50
1500 update 0x6265746100 20
2000 read "alpha" 0

2500 update "alpha" 60
3000 insert "gam\"ma\x01" 0
3000 read_modify_write 6265746100 33
4000 scan "a" 0 10
5000 erase "alpha" 0
6000 update "alpha" 7
)";

TEST_F(Trace, is_replayed_as_it_was_captured) {
  write(kOperations);
  const auto workload = declare("trace_speed = 2.0");
  ASSERT_TRUE(workload) << workload.error().message();
  EXPECT_EQ(workload->phases[1].operations, 9U);
  const auto stream = make_stream(*workload, kSeed, 1, 0);
  Chunk chunk;
  stream->fill(chunk);
  ASSERT_EQ(chunk.operations.size(), 9U);
  EXPECT_EQ(chunk.operations[0].kind, OpKind::update);
  EXPECT_EQ(chunk.operations[0].key, "alpha");
  EXPECT_EQ(chunk.operations[0].value.size(), 50U);
  EXPECT_EQ(chunk.operations[1].key, std::string_view("beta\0", 5));
  EXPECT_EQ(chunk.operations[4].key, "gam\"ma\x01");
  EXPECT_EQ(chunk.operations[6].entries, 10U);
  EXPECT_EQ(chunk.operations[8].due_ns, 2'500'000U) << "5 ms at twice the speed";
  const ValueCodec values(workload->values, kSeed);
  EXPECT_TRUE(values.belongs_to(chunk.operations[0].index, chunk.operations[0].value));
  stream->fill(chunk);
  EXPECT_TRUE(chunk.operations.empty());
  EXPECT_TRUE(stream->status());
}

TEST_F(Trace, is_validated_with_its_own_keys_beside_the_loaded_ones) {
  for (const std::uint32_t threads : {1U, 3U}) {
    write(kOperations);
    const auto workload =
        declare("", "[[phases.roles]]\nthreads = " + std::to_string(threads) + "\n");
    ASSERT_TRUE(workload) << workload.error().message();
    MemorySession session;
    Model model(*workload, kSeed);
    for (std::size_t phase = 0; phase < 2; ++phase) {
      Executed executed{phase, {}};
      for (std::uint32_t thread = 0; thread < thread_count(workload->phases[phase]); ++thread) {
        const auto stream = make_stream(*workload, kSeed, phase, thread);
        Chunk chunk;
        for (stream->fill(chunk, 2); !chunk.operations.empty(); stream->fill(chunk, 2)) {
          for (const Operation& operation : chunk.operations) execute(operation, chunk, session);
        }
        executed.operations.push_back(stream->position());
      }
      model.apply(executed);
    }
    EXPECT_EQ(model.entries(), 13U);
    for (const bool ordered : {true, false}) {
      const auto check = model.check(session, ordered);
      ASSERT_TRUE(check);
      EXPECT_TRUE(check->ok) << check->first_difference;
      EXPECT_EQ(check->entries, 13U);
    }
    MemorySession lost = session;
    lost.entries.erase("alpha");
    EXPECT_NE(model.check(lost, true)->first_difference.find("is lost"), std::string::npos);
    MemorySession damaged = session;
    damaged.entries["alpha"].back() ^= 1;
    EXPECT_FALSE(model.check(damaged, true)->ok);
    MemorySession ghost = session;
    ghost.entries["zeta"] = "x";
    EXPECT_FALSE(model.check(ghost, true)->ok);
  }
}

TEST_F(Trace, may_write_keys_that_a_load_has_put_there) {
  write("1 read 00 0\n");
  const auto plain = declare();
  ASSERT_TRUE(plain);
  std::string key(16, '\0');
  KeyCodec(plain->keys, kSeed).encode(4, key.data());
  std::string hex;
  for (const char byte : key) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  write("1 update " + hex + " 9\n2 erase " + hex + " 0\n3 update " + hex + " 11\n");
  const auto workload = declare();
  ASSERT_TRUE(workload);
  Model model(*workload, kSeed);
  model.apply({0, {1}});
  EXPECT_EQ(model.entries(), 10U);
  for (const auto& [operations, entries] :
       {std::pair<std::uint64_t, std::uint64_t>{1, 10}, {2, 9}, {3, 10}}) {
    Model cut = model;
    cut.apply({1, {operations}});
    EXPECT_EQ(cut.entries(), entries) << operations;
  }
}

TEST_F(Trace, keys_stay_with_their_thread_and_no_operation_is_lost) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += fmt::format("{} update \"k{}\" 5\n", i, i % 37);
  write(text);
  const auto workload = declare("", "[[phases.roles]]\nthreads = 4\n");
  ASSERT_TRUE(workload);
  std::map<std::string, std::uint32_t> thread_of;
  std::uint64_t operations = 0;
  for (std::uint32_t thread = 0; thread < 4; ++thread) {
    TraceSource source(*workload, kSeed, 1, thread);
    TraceOperation operation;
    while (source.next(operation)) {
      EXPECT_EQ(thread_of.try_emplace(operation.line.key, thread).first->second, thread);
      ++operations;
    }
  }
  EXPECT_EQ(operations, 500U);
  EXPECT_EQ(stream_digest(*workload, 1), stream_digest(*workload, 1));
}

TEST_F(Trace, bad_lines_are_refused_with_their_place) {
  const std::string hint = " (a line is: time_us kind key value_bytes [entries])";
  EXPECT_EQ(refusal("2 read 00"), "ops.trace:2: the line has fewer than 4 fields" + hint);
  EXPECT_EQ(refusal("2 scan 00 0 1 1"), "ops.trace:2: the line has more than 5 fields" + hint);
  EXPECT_EQ(refusal("x read 00 0"), "ops.trace:2: 'x' is not a time in microseconds" + hint);
  EXPECT_EQ(refusal("2 raed 00 0"),
            "ops.trace:2: 'raed' is not a kind of operation (did you mean 'read'?)");
  EXPECT_EQ(refusal("2 read 0 0"),
            "ops.trace:2: '0' is neither hex digits in pairs nor text in quotes" + hint);
  EXPECT_EQ(refusal("2 read \"open 0"), "ops.trace:2: the line has fewer than 4 fields" + hint);
  EXPECT_EQ(refusal("2 read \"bad\\q\" 0"),
            "ops.trace:2: '\"bad\\q\"' is neither hex digits in pairs nor text in quotes" + hint);
  EXPECT_EQ(refusal("2 update 00 -1"),
            "ops.trace:2: '-1' is not a size of 0 to 268435456 bytes" + hint);
  EXPECT_EQ(refusal("2 read 00 0 5"), "ops.trace:2: only a scan has more than one entry" + hint);
  EXPECT_EQ(refusal("0 read 00 0"), "ops.trace:2: the time goes back from 1 to 0" + hint);
  EXPECT_EQ(refusal("2 scan 00 0 0"), "ops.trace:2: '0' is not a number of entries" + hint);
}

TEST_F(Trace, a_file_that_is_no_text_is_refused_instead_of_read_for_ever) {
  write(std::string(3, '\0'));
  EXPECT_NE(declare().error().message().find("ops.trace:1: the line holds a zero byte"),
            std::string::npos);
  write(std::string((1U << 20) + 8192, 'a') + "\n");
  EXPECT_NE(declare().error().message().find("ops.trace:1: the line is longer than 1 MiB"),
            std::string::npos);
}

TEST_F(Trace, a_declaration_must_fit_it) {
  write("# nothing\n");
  EXPECT_NE(declare().error().message().find("the trace has no operations"), std::string::npos);
  write("1 read 00 0\n");
  EXPECT_FALSE(declare("operations = 5"));
  EXPECT_FALSE(declare("trace_speed = 1.0")) << "one time only";
  EXPECT_FALSE(declare("", "[[phases.roles]]\nmix = { read = 1 }\n"));
  std::filesystem::remove(folder_ + "/ops.trace");
  EXPECT_NE(declare().error().message().find("cannot read the trace"), std::string::npos);
}

TEST_F(Trace, survives_the_canonical_form_and_refuses_a_changed_file) {
  write(kOperations);
  const auto workload = declare("trace_speed = 1.0", "[[phases.roles]]\nthreads = 2\n");
  ASSERT_TRUE(workload) << workload.error().message();
  const nlohmann::json json = to_json(*workload);
  const auto back = workload_from_json(json);
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(*back, *workload);
  write("1 read 00 0\n2 read 00 0\n");
  const auto changed = workload_from_json(json);
  ASSERT_FALSE(changed);
  EXPECT_NE(changed.error().message().find("was changed since it was declared"), std::string::npos);
}

TEST_F(Trace, a_file_that_goes_away_ends_the_stream_with_an_error) {
  write(kOperations);
  const auto workload = declare();
  ASSERT_TRUE(workload);
  std::filesystem::remove(folder_ + "/ops.trace");
  const auto stream = make_stream(*workload, kSeed, 1, 0);
  Chunk chunk;
  stream->fill(chunk);
  EXPECT_TRUE(chunk.operations.empty());
  EXPECT_FALSE(stream->status());
}

TEST_F(Trace, the_printed_stream_has_a_line_an_operation_and_a_line_a_mutation) {
  const auto workload = parse_workload(
      "name = \"t\"\n[keys]\ncount = 4\n[values]\nbytes = 3\n[[phases]]\nkind = \"load\"\n"
      "load_batch = 3\nload_order = \"ascending\"\ntimed = true\n",
      "t.toml");
  ASSERT_TRUE(workload) << workload.error().message();
  const std::string path = folder_ + "/out";
  std::FILE* out = std::fopen(path.c_str(), "w");
  ASSERT_NE(out, nullptr);
  print_trace(*make_stream(*workload, kSeed, 0, 0), "load", 0, 10, TraceFormat::text, out);
  std::fclose(out);
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_TRUE(lines[0].starts_with("load 0 0 batch 0 "));
  EXPECT_TRUE(lines[0].ends_with(" 3 9 0"));
  EXPECT_TRUE(lines[1].starts_with("  put "));
  EXPECT_TRUE(lines[4].starts_with("load 0 1 batch 3 "));
}

TEST(PrintedStream, a_limit_counts_the_keys_of_batches_and_says_what_is_left) {
  const Result<Workload> workload = parse_workload(
      "name = \"t\"\n[keys]\ncount = 2000\n[values]\nbytes = 3\n"
      "[[phases]]\nkind = \"load\"\nload_batch = 1000\ntimed = true\n",
      "t.toml");
  ASSERT_TRUE(workload);
  const auto printed = [&](std::uint64_t keys, TraceFormat format) {
    char* text = nullptr;
    std::size_t size = 0;
    std::FILE* const out = ::open_memstream(&text, &size);
    print_trace(*make_stream(*workload, kSeed, 0, 0), "load", 0, keys, format, out);
    std::fclose(out);
    std::string all(text, size);
    std::free(text);
    return all;
  };
  const std::string first = printed(20, TraceFormat::text);
  EXPECT_EQ(std::count(first.begin(), first.end(), '\n'), 22) << first;
  EXPECT_TRUE(first.ends_with("\n  ... 980 more puts\n")) << first;
  const std::string over_two = printed(1500, TraceFormat::text);
  EXPECT_EQ(std::count(over_two.begin(), over_two.end(), '\n'), 1503);
  EXPECT_TRUE(over_two.ends_with("\n  ... 500 more puts\n"));
  EXPECT_NE(printed(20, TraceFormat::json).find("\"mutations_left\":980"), std::string::npos);
  EXPECT_EQ(printed(1000, TraceFormat::text).find("more puts"), std::string::npos);
}

}  // namespace
}  // namespace assay
