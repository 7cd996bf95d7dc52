// The conversions that the README shows, run as it shows them over output in the formats of the two
// tools, and replayed. RocksDB: WriteTraceSequence in tools/trace_analyzer_tool.cc (0xKEY type
// column-family value-size time); YCSB: core/src/main/java/site/ycsb/BasicDB.java.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "adapters/temporary_directory.h"
#include "workloads/memory_session.h"
#include "workloads/model.h"
#include "workloads/stream.h"
#include "workloads/trace_file.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class TraceConversion : public ::testing::Test {
 protected:
  /// Runs the awk program of the README that reads `name`, over the sample of that name.
  std::string convert(const std::string& name) {
    const std::string readme = text_of(ASSAY_WORKLOADS_SOURCE "/README.md");
    const std::size_t end = readme.find("' " + name);
    const std::size_t begin = readme.rfind("\nawk '", end);
    EXPECT_NE(end, std::string::npos) << "the README shows no conversion of " << name;
    EXPECT_NE(begin, std::string::npos);
    if (end == std::string::npos || begin == std::string::npos) return {};
    const std::string trace = folder_ + "/captured.trace";
    const std::string command =
        fmt::format("{} {}/testdata/{} > {}", readme.substr(begin + 1, end + 1 - (begin + 1)),
                    ASSAY_WORKLOADS_SOURCE, name, trace);
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return trace;
  }
  static std::string line_of(const TraceLine& line) {
    return fmt::format("{} {} {} {} {}", line.time_us, to_string(line.kind), line.key,
                       line.value_bytes, line.entries);
  }
  static std::vector<std::string> lines_of(const std::string& path) {
    std::vector<std::string> lines;
    Result<TraceFile> file = TraceFile::open(path);
    if (!file) return {file.error().message()};
    TraceLine line;
    while (true) {
      const Result<bool> more = file->next(line);
      if (!more) lines.push_back(more.error().message());
      if (!more || !*more) return lines;
      lines.push_back(line_of(line));
    }
  }
  /// Replays the trace into a map, by one thread or two, and validates what is there.
  static void replay(const std::string& trace, int threads) {
    const Result<Workload> workload = parse_workload(
        fmt::format("name = \"replay\"\n[keys]\ncount = 10\nkind = \"bytes\"\n[[phases]]\n"
                    "kind = \"run\"\ntrace = \"{}\"\n[[phases.roles]]\nthreads = {}\n",
                    trace, threads),
        "replay.toml");
    ASSERT_TRUE(workload) << workload.error().message();
    MemorySession session;
    Executed executed;
    for (int thread = 0; thread < threads; ++thread) {
      const auto stream = make_stream(*workload, 1, 0, static_cast<std::uint32_t>(thread));
      Chunk chunk;
      for (stream->fill(chunk); !chunk.operations.empty(); stream->fill(chunk)) {
        for (const Operation& operation : chunk.operations) execute(operation, chunk, session);
      }
      ASSERT_TRUE(stream->status());
      executed.operations.push_back(stream->position());
    }
    Model model(*workload, 1);
    model.apply(executed);
    const Result<ModelCheck> check = model.check(session, true);
    ASSERT_TRUE(check) << check.error().message();
    EXPECT_TRUE(check->ok) << check->first_difference;
    EXPECT_GT(check->entries, 0U);
  }

  const TemporaryDirectory own_;
  const std::string folder_ = own_.path();
};

TEST_F(TraceConversion, takes_what_rocksdbs_trace_analyzer_prints) {
  const std::string trace = convert("human_readable_trace.txt");
  EXPECT_EQ(lines_of(trace), (std::vector<std::string>{
                                 "1699000000000001 update key0001 120 1",
                                 "1699000000000250 update key0002 40 1",
                                 "1699000000000400 read key0001 0 1",
                                 "1699000000000500 update key0003 17 1",
                                 "1699000000000600 erase key0002 0 1",
                                 "1699000000000700 scan key0001 0 1",
                                 "1699000000000800 reverse_scan key0003 0 1",
                                 "1699000000000900 erase key0002 0 1",
                                 "1699000000001100 read key0003 0 1",
                             }));
  replay(trace, 1);
  replay(trace, 2);
}

TEST_F(TraceConversion, takes_what_ycsbs_basic_database_prints) {
  const std::string trace = convert("ycsb.out");
  EXPECT_EQ(lines_of(trace), (std::vector<std::string>{
                                 "5 insert user6284781860667377211 1000 1",
                                 "6 insert user8517097267634966620 1000 1",
                                 "7 read user6284781860667377211 0 1",
                                 "8 update user8517097267634966620 1000 1",
                                 "9 scan user6284781860667377211 0 42",
                                 "10 read user8517097267634966620 0 1",
                                 "11 erase user6284781860667377211 0 1",
                             }));
  replay(trace, 1);
  replay(trace, 2);
}

}  // namespace
}  // namespace assay
