#include "workloads/stream.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace assay {
namespace {

constexpr const char* kSmall = R"(
name = "small"
[keys]
count = 1000
[[phases]]
kind = "load"
load_batch = 64
load_threads = 2
[[phases]]
kind = "run"
operations = 5000
[[phases.roles]]
name = "all"
threads = 2
mix = { read = 0.5, update = 0.5 }
distribution = { kind = "zipfian" }
)";

Workload small(const Overrides& overrides = {}) {
  auto workload = parse_workload(kSmall, "small.toml", overrides);
  EXPECT_TRUE(workload) << workload.error().message();
  return *workload;
}

TEST(Workload, survives_its_canonical_form) {
  const Workload workload = small();
  const auto back = workload_from_json(to_json(workload));
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(*back, workload);
}

TEST(Stream, a_load_puts_every_key_once) {
  const Workload workload = small();
  const KeyCodec keys(workload.keys, 7);
  std::vector<int> seen(1000);
  for (std::uint32_t thread = 0; thread < 2; ++thread) {
    const auto stream = make_stream(workload, 7, 0, thread);
    Chunk chunk;
    for (stream->fill(chunk); !chunk.operations.empty(); stream->fill(chunk)) {
      for (const Mutation& mutation : chunk.mutations) {
        std::uint64_t index = 0;
        ASSERT_TRUE(keys.decode(mutation.key, index));
        ASSERT_LT(index, 1000U);
        ++seen[index];
      }
    }
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 1000);
}

TEST(Stream, its_digest_depends_on_workload_and_seed_only) {
  EXPECT_EQ(stream_digest(small(), 7), stream_digest(small(), 7));
  EXPECT_NE(stream_digest(small(), 7), stream_digest(small(), 8));
  EXPECT_NE(stream_digest(small(), 7), stream_digest(small({{"keys.count", "1001"}}), 7));
}

}  // namespace
}  // namespace assay
