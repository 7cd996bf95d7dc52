// The workloads that come with assay against the definitions they claim to follow.
#include <gtest/gtest.h>

#include <map>

#include "workloads/stream.h"
#include "workloads/workload.h"

namespace assay {
namespace {

Workload shipped(const std::string& name) {
  const auto workload = load_workload(name);
  if (!workload) {
    ADD_FAILURE() << workload.error().message();
    return {};
  }
  return *workload;
}

std::size_t only_run(const Workload& workload) {
  std::size_t found = workload.phases.size();
  for (std::size_t i = 0; i < workload.phases.size(); ++i) {
    if (workload.phases[i].kind != PhaseKind::run) continue;
    EXPECT_EQ(found, workload.phases.size()) << workload.name << " runs twice";
    found = i;
  }
  EXPECT_LT(found, workload.phases.size()) << workload.name << " runs nothing";
  return found;
}

const Role& only_role(const Workload& workload) {
  const Phase& run = workload.phases.at(only_run(workload));
  EXPECT_EQ(run.roles.size(), 1U);
  return run.roles.front();
}

TEST(Shipped, every_declaration_is_good_and_is_named_as_its_file) {
  const std::vector<std::string> names = shipped_workloads();
  EXPECT_GE(names.size(), 23U);
  for (const std::string& name : names) {
    const Workload workload = shipped(name);
    EXPECT_EQ(workload.name, name);
    EXPECT_FALSE(workload.description.empty()) << name;
    EXPECT_EQ(stream_digest(workload, 1), stream_digest(workload, 1)) << name;
  }
}

// github.com/brianfrankcooper/YCSB, workloads/workloada to workloadf: the *proportion properties,
// requestdistribution, maxscanlength and scanlengthdistribution. CoreWorkload.java: fieldcount 10,
// fieldlength 100, minscanlength 1. ZipfianGenerator.java: ZIPFIAN_CONSTANT 0.99.
struct Core {
  const char* name;
  std::map<OpKind, double> mix;
  DistributionKind distribution;
};

TEST(Shipped, ycsb_workloads_are_the_core_workloads) {
  using enum OpKind;
  const Core cores[] = {
      {"ycsb-a", {{read, 0.5}, {update, 0.5}}, DistributionKind::zipfian},
      {"ycsb-b", {{read, 0.95}, {update, 0.05}}, DistributionKind::zipfian},
      {"ycsb-c", {{read, 1.0}}, DistributionKind::zipfian},
      {"ycsb-d", {{read, 0.95}, {insert, 0.05}}, DistributionKind::latest},
      {"ycsb-e", {{scan, 0.95}, {insert, 0.05}}, DistributionKind::zipfian},
      {"ycsb-f", {{read, 0.5}, {read_modify_write, 0.5}}, DistributionKind::zipfian},
  };
  for (const Core& core : cores) {
    const Workload workload = shipped(core.name);
    const Role& role = only_role(workload);
    for (std::size_t kind = 0; kind < kOpKinds; ++kind) {
      const auto expected = core.mix.find(static_cast<OpKind>(kind));
      EXPECT_DOUBLE_EQ(role.mix[kind], expected == core.mix.end() ? 0.0 : expected->second)
          << core.name << " " << to_string(static_cast<OpKind>(kind));
    }
    EXPECT_EQ(role.distribution.kind, core.distribution) << core.name;
    EXPECT_DOUBLE_EQ(role.distribution.theta, 0.99) << core.name;
    EXPECT_EQ(workload.values.sizes, ValueSizes::fixed) << core.name;
    EXPECT_EQ(workload.values.bytes, 10U * 100U) << core.name;
    EXPECT_TRUE(workload.keys.hashed) << core.name << ": insertorder hashed is YCSB's default";
  }
  const Workload e_workload = shipped("ycsb-e");
  const Role& e = only_role(e_workload);
  EXPECT_EQ(e.scan_entries_min, 1U);
  EXPECT_EQ(e.scan_entries_max, 100U);
}

TEST(Shipped, db_bench_classics_have_its_default_sizes) {
  // db_bench --help: key_size 16, value_size 100, num 1000000, compression_ratio 0.5.
  for (const char* name :
       {"fillseq", "fillrandom", "fillsync", "overwrite", "readrandom", "readseq", "readreverse",
        "readwhilewriting", "deleterandom", "seekrandom"}) {
    const Workload workload = shipped(name);
    EXPECT_EQ(workload.keys.bytes, 16U) << name;
    EXPECT_EQ(workload.keys.count, 1'000'000U) << name;
    EXPECT_EQ(workload.values.bytes, 100U) << name;
    EXPECT_DOUBLE_EQ(workload.values.compressible, 0.5) << name;
  }
}

// A load's compactions would fall into the run, and a run's into nobody's.
TEST(Shipped, benchmarks_settle_after_the_load_and_drain_after_writing) {
  for (const char* name : {"ycsb-a", "ycsb-d", "overwrite", "deleterandom", "readwhilewriting"}) {
    const Workload workload = shipped(name);
    ASSERT_EQ(workload.phases.size(), 5U) << name;
    EXPECT_EQ(workload.phases[1].kind, PhaseKind::settle) << name;
    EXPECT_EQ(workload.phases[2].kind, PhaseKind::run) << name;
    EXPECT_EQ(workload.phases[3].kind, PhaseKind::checkpoint) << name;
    EXPECT_EQ(workload.phases[4].kind, PhaseKind::settle) << name;
  }
}

TEST(Shipped, fillseq_puts_every_key_once_in_key_order) {
  const auto workload =
      load_workload("fillseq", {{"keys.count", "1000"}, {"phases.run.operations", "1000"}});
  ASSERT_TRUE(workload);
  const auto stream = make_stream(*workload, 1, 0, 0);
  Chunk chunk;
  std::uint64_t expected = 0;
  for (stream->fill(chunk); !chunk.operations.empty(); stream->fill(chunk)) {
    for (const Operation& operation : chunk.operations) {
      EXPECT_EQ(operation.kind, OpKind::update);
      EXPECT_EQ(operation.index, expected++);
    }
  }
  EXPECT_EQ(expected, 1000U);
}

TEST(Shipped, readseq_and_readreverse_cover_the_keys_from_either_end) {
  const Overrides small{{"keys.count", "10000"}, {"phases.run.operations", "10"}};
  for (const bool reverse : {false, true}) {
    const auto workload = load_workload(reverse ? "readreverse" : "readseq", small);
    ASSERT_TRUE(workload);
    const auto stream = make_stream(*workload, 1, only_run(*workload), 0);
    Chunk chunk;
    stream->fill(chunk);
    ASSERT_EQ(chunk.operations.size(), 10U);
    for (std::uint64_t i = 0; i < 10; ++i) {
      EXPECT_EQ(chunk.operations[i].entries, 1000U);
      EXPECT_EQ(chunk.operations[i].index, reverse ? 9999 - 1000 * i : 1000 * i);
    }
  }
}

}  // namespace
}  // namespace assay
