// Digests of streams: what was executed, against what the sources say.
#include "workloads/stream_digest.h"
#include "adapters/temporary_directory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

namespace assay {
namespace {

constexpr std::uint64_t kSeed = 23;

Workload declared(const std::string& mix, const std::string& keys = "count = 3000",
                  const std::string& values = "bytes = 40") {
  const auto workload = parse_workload(
      "name = \"t\"\n[keys]\n" + keys + "\n[values]\n" + values +
          "\n[[phases]]\nkind = \"load\"\nload_batch = 64\nload_threads = 2\n"
          "[[phases]]\nkind = \"run\"\nduration_ms = 10\n[[phases.roles]]\nthreads = 2\n" +
          "mix = { " + mix + " }\n" +
          (mix.find("batch") == std::string::npos ? "" : "batch_keys = 5\n"),
      "t.toml");
  if (!workload) {
    ADD_FAILURE() << workload.error().message();
    return {};
  }
  return *workload;
}

/// What a thread that executes `operations` operations of `workload` digests; `spoil` may change
/// each chunk first.
using Spoil = std::function<void(Chunk&)>;
StreamPrefix executed(const Workload& workload, std::size_t phase, std::uint32_t thread,
                      std::uint64_t operations, const Spoil& spoil,
                      std::size_t chunk_operations = 100) {
  const auto stream = make_stream(workload, kSeed, phase, thread);
  ExecutedDigest digest(workload, kSeed, phase);
  Chunk chunk;
  while (stream->position() < operations) {
    stream->fill(chunk, std::min<std::uint64_t>(chunk_operations, operations - stream->position()));
    if (chunk.operations.empty()) break;
    spoil(chunk);
    const std::size_t half = chunk.operations.size() / 2;
    digest.add(chunk, 0, half);
    digest.add(chunk, half, chunk.operations.size());
  }
  return digest.prefix();
}

StreamPrefix executed(const Workload& workload, std::size_t phase, std::uint32_t thread,
                      std::uint64_t operations, std::size_t chunk_operations = 100) {
  return executed(workload, phase, thread, operations, [](Chunk&) {}, chunk_operations);
}

constexpr const char* kEverything =
    "read = 1, update = 1, insert = 1, erase = 1, scan = 1, reverse_scan = 1, "
    "read_modify_write = 1, batch = 1, rollback = 1";

TEST(ExecutedStream, has_the_digest_that_its_sources_say_however_it_was_cut) {
  for (const char* keys : {"count = 3000", "count = 3000\nkind = \"bytes\"\nbytes = 20",
                           "count = 3000\norder = \"ordered\""}) {
    const Workload workload = declared(kEverything, keys, "sizes = \"uniform\"\nmax_bytes = 90");
    for (const std::size_t phase : {0U, 1U}) {
      for (const std::uint32_t thread : {0U, 1U}) {
        for (const std::uint64_t operations : {1U, 7U, 1000U, 9000U}) {
          const StreamPrefix expected = expected_prefix(workload, kSeed, phase, thread, operations);
          EXPECT_EQ(executed(workload, phase, thread, operations), expected);
          EXPECT_EQ(executed(workload, phase, thread, operations, 256), expected);
        }
      }
    }
  }
  const Workload points = declared("read = 1, update = 1");  // drawn many at once
  EXPECT_EQ(executed(points, 1, 1, 1000), expected_prefix(points, kSeed, 1, 1, 1000));
}

TEST(ExecutedStream, is_covered_up_to_a_declared_prefix_whatever_the_size_of_the_data) {
  const Workload reads = declared("read = 1", "count = 100_000_000");
  EXPECT_EQ(expected_prefix(reads, kSeed, 1, 0, 1'000'000).operations, kDigestOperations);
  const StreamPrefix load = expected_prefix(reads, kSeed, 0, 0, 1'000'000);
  EXPECT_LE(load.operations * 64, kDigestKeys + 2 * 64);
  EXPECT_EQ(executed(reads, 0, 0, 2000), load);
  const StreamPrefix all = executed(reads, 1, 0, 3 * kDigestOperations);
  EXPECT_EQ(all, expected_prefix(reads, kSeed, 1, 0, 3 * kDigestOperations));
  EXPECT_EQ(all.operations, kDigestOperations);
}

TEST(ExecutedStream, differs_as_soon_as_one_operation_does) {
  const Workload workload = declared(kEverything);
  const StreamPrefix right = expected_prefix(workload, kSeed, 1, 0, 1000);
  const auto spoiled = [&](auto change) {
    bool done = false;
    return executed(workload, 1, 0, 1000, [&](Chunk& chunk) {
      for (Operation& operation : chunk.operations)
        if (!done) done = change(operation, chunk);
    });
  };
  EXPECT_EQ(spoiled([](Operation&, Chunk&) { return true; }), right);
  EXPECT_NE(spoiled([](Operation& operation, Chunk&) {
              operation.kind = operation.kind == OpKind::read ? OpKind::scan : OpKind::read;
              return true;
            }),
            right);
  EXPECT_NE(spoiled([](Operation& operation, Chunk&) {
              if (operation.key.empty()) return false;
              const_cast<char&>(operation.key.back()) ^= 1;  // the key's bytes, not its index
              return true;
            }),
            right);
  EXPECT_NE(spoiled([](Operation& operation, Chunk&) {
              if (operation.version == 0) return false;
              ++operation.version;
              return true;
            }),
            right);
  EXPECT_NE(spoiled([](Operation& operation, Chunk& chunk) {
              if (operation.kind != OpKind::batch) return false;
              Mutation& last = chunk.mutations[operation.first_mutation + operation.entries - 1];
              last.value = last.value.substr(1);
              return true;
            }),
            right);
  EXPECT_NE(spoiled([](Operation& operation, Chunk&) {
              if (operation.kind != OpKind::scan) return false;
              ++operation.entries;
              return true;
            }),
            right);
  EXPECT_NE(executed(workload, 1, 1, 1000), right) << "another thread's";
  EXPECT_NE(executed(workload, 1, 0, 999), right) << "one operation less";
}

TEST(ExecutedStream, of_a_trace_is_covered_too) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("ops.trace");
  std::ofstream(path) << "1 update 00 10\n2 read \"beta\" 0\n3 scan 01 0 7\n4 update 01 900\n";
  const auto workload = parse_workload(
      "name = \"t\"\n[keys]\ncount = 30\nkind = \"bytes\"\n[[phases]]\nkind = \"load\"\n"
      "[[phases]]\nkind = \"run\"\ntrace = \"" +
          path + "\"\n[[phases.roles]]\nthreads = 2\n",
      "t.toml");
  ASSERT_TRUE(workload) << workload.error().message();
  std::uint64_t operations = 0;
  for (const std::uint32_t thread : {0U, 1U}) {
    const StreamPrefix expected = expected_prefix(*workload, kSeed, 1, thread, 100);
    EXPECT_EQ(executed(*workload, 1, thread, 100), expected);
    operations += expected.operations;
  }
  EXPECT_EQ(operations, 4U);
}

}  // namespace
}  // namespace assay
