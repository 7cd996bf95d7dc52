#include "workloads/model.h"

#include <gtest/gtest.h>

#include "workloads/memory_session.h"

namespace assay {
namespace {

Workload declared(const char* toml) {
  auto workload = parse_workload(toml, "test.toml");
  EXPECT_TRUE(workload) << workload.error().message();
  return *workload;
}

constexpr std::uint64_t kSeed = 42;

/// Runs `operations` of every thread of a phase, round robin, and tells the model.
void run_phase(const Workload& workload, std::size_t phase, std::uint64_t operations,
               MemorySession& session, Model& model) {
  Executed executed{phase, {}};
  for (std::uint32_t thread = 0; thread < thread_count(workload.phases[phase]); ++thread) {
    const auto stream = make_stream(workload, kSeed, phase, thread);
    Chunk chunk;
    std::uint64_t done = 0;
    while (done < operations) {
      stream->fill(chunk, std::min<std::uint64_t>(kChunkOperations, operations - done));
      if (chunk.operations.empty()) break;
      for (const Operation& operation : chunk.operations) execute(operation, chunk, session);
      done += chunk.operations.size();
    }
    executed.operations.push_back(done);
  }
  model.apply(executed);
}

constexpr const char* kMixed = R"(
name = "mixed"
[keys]
count = 1000
[values]
bytes = 64
[[phases]]
kind = "load"
[[phases]]
kind = "run"
duration_ms = 10
[[phases.roles]]
threads = 3
mix = { read = 1, update = 3, insert = 1, erase = 1, batch = 0.1, rollback = 0.1 }
batch_keys = 5
)";

TEST(Model, agrees_with_what_a_store_holds) {
  const Workload workload = declared(kMixed);
  MemorySession session;
  Model model(workload, kSeed);
  run_phase(workload, 0, ~0ULL, session, model);
  EXPECT_EQ(model.entries(), 1000U);
  run_phase(workload, 1, 2000, session, model);
  EXPECT_EQ(model.entries(), session.entries.size());
  for (const bool ordered : {true, false}) {
    const auto check = model.check(session, ordered);
    ASSERT_TRUE(check);
    EXPECT_TRUE(check->ok) << check->first_difference;
    EXPECT_EQ(check->digest, check->expected_digest);
  }
}

}  // namespace
}  // namespace assay
