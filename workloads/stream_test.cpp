#include "workloads/stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "workloads/operation_source.h"

namespace assay {
namespace {

constexpr std::uint64_t kSeed = 7;

Workload declared(const std::string& roles, const std::string& run = "duration_ms = 1000",
                  const std::string& head = "[keys]\ncount = 1000\n[values]\nbytes = 40\n") {
  const std::string toml = "name = \"t\"\n" + head +
                           "[[phases]]\nkind = \"load\"\nload_batch = 64\nload_threads = 3\n"
                           "[[phases]]\nkind = \"run\"\n" +
                           run + "\n" + roles;
  auto workload = parse_workload(toml, "t.toml");
  if (!workload) {
    ADD_FAILURE() << workload.error().message();
    return {};
  }
  return *workload;
}

std::string role(const std::string& body, const std::string& name = "all") {
  return "[[phases.roles]]\nname = \"" + name + "\"\n" + body + "\n";
}

/// What is left of an operation when its chunk is gone.
struct Seen {
  OpKind kind;
  std::uint32_t entries;
  std::uint64_t index;
  std::uint64_t due_ns;
  std::string key;
  std::string value;
  std::vector<std::pair<std::string, std::string>> mutations;
  bool operator==(const Seen&) const = default;
};

std::vector<Seen> take(Stream& stream, std::size_t operations, std::size_t chunk_operations = 256) {
  std::vector<Seen> all;
  Chunk chunk;
  while (all.size() < operations) {
    stream.fill(chunk, std::min(chunk_operations, operations - all.size()));
    if (chunk.operations.empty()) break;
    for (const Operation& operation : chunk.operations) {
      Seen seen{operation.kind,
                operation.entries,
                operation.index,
                operation.due_ns,
                std::string(operation.key),
                std::string(operation.value),
                {}};
      if (operation.kind == OpKind::batch || operation.kind == OpKind::rollback) {
        for (std::uint32_t i = 0; i < operation.entries; ++i) {
          const Mutation& mutation = chunk.mutations[operation.first_mutation + i];
          seen.mutations.emplace_back(mutation.key, mutation.value);
        }
      }
      all.push_back(std::move(seen));
    }
  }
  return all;
}

const std::string kEverything = role(
    "threads = 3\nmix = { read = 2, update = 2, insert = 1, erase = 1, scan = 1, reverse_scan = 1, "
    "read_modify_write = 1, batch = 0.5, rollback = 0.5 }\nbatch_keys = 4\nscan_entries_max = 9");

TEST(Stream, does_not_depend_on_how_it_is_cut_into_chunks) {
  for (const std::string& body : {kEverything, role("mix = { read = 1, update = 1 }")}) {
    const Workload workload = declared(body);
    const auto whole = make_stream(workload, kSeed, 1, 0);
    const auto cut = make_stream(workload, kSeed, 1, 0);
    EXPECT_EQ(take(*whole, 700), take(*cut, 700, 13));
    EXPECT_EQ(cut->position(), 700U);
  }
}

TEST(Stream, a_chunk_of_points_equals_the_logical_source) {
  for (const char* mix : {"mix = { read = 1, update = 2, insert = 1, erase = 1 }\nthreads = 2",
                          "mix = { read = 1, scan = 1 }\ndistribution = { kind = \"zipfian\" }",
                          "mix = { read = 1, insert = 1 }\ndistribution = { kind = \"latest\" }",
                          "mix = { update = 1 }\ndistribution = { kind = \"sequential\" }"}) {
    const Workload workload = declared(role(mix));
    const auto source = make_source(workload, kSeed, 1, 0);
    const ValueCodec values(workload.values, kSeed);
    for (const Seen& seen : take(*make_stream(workload, kSeed, 1, 0), 1000)) {
      LogicalOperation logical;
      ASSERT_TRUE(source->next(logical));
      ASSERT_EQ(seen.kind, logical.kind);
      ASSERT_EQ(seen.index, logical.index);
      ASSERT_EQ(seen.entries, logical.entries);
      if (logical.version != 0) {
        ASSERT_TRUE(values.matches(logical.index, logical.version, seen.value));
      } else {
        ASSERT_TRUE(seen.value.empty());
      }
    }
  }
}

TEST(Stream, a_load_puts_every_key_once_whatever_the_batch) {
  for (const char* batch : {"1", "64", "1000"}) {
    for (const char* order : {"random", "ascending"}) {
      const auto workload = parse_workload(
          std::string("name = \"t\"\n[keys]\ncount = 1000\n[[phases]]\nkind = \"load\"\ntimed = "
                      "true\nload_threads = 3\nload_batch = ") +
              batch + "\nload_order = \"" + order + "\"\n",
          "t.toml");
      ASSERT_TRUE(workload) << workload.error().message();
      std::map<std::string, int> keys;
      for (std::uint32_t thread = 0; thread < 3; ++thread) {
        for (const Seen& seen : take(*make_stream(*workload, kSeed, 0, thread), 5000)) {
          if (seen.mutations.empty()) ++keys[seen.key];
          for (const auto& mutation : seen.mutations) ++keys[mutation.first];
        }
      }
      EXPECT_EQ(keys.size(), 1000U);
      EXPECT_TRUE(
          std::all_of(keys.begin(), keys.end(), [](const auto& k) { return k.second == 1; }));
    }
  }
}

TEST(Stream, writers_write_only_what_they_own) {
  const Workload workload = declared(kEverything + role("mix = { read = 1 }", "readers") +
                                     role("mix = { update = 1 }\nthreads = 2", "more"));
  const KeyCodec keys(workload.keys, kSeed);
  // Threads 0 to 2 and 4, 5 write: five of them, numbered in the order in which they are declared.
  const std::vector<std::pair<std::uint32_t, std::uint64_t>> writers{
      {0, 0}, {1, 1}, {2, 2}, {4, 3}, {5, 4}};
  std::set<std::uint64_t> inserted;
  for (const auto& [thread, number] : writers) {
    for (const Seen& seen : take(*make_stream(workload, kSeed, 1, thread), 3000)) {
      if (!is_write(seen.kind)) continue;
      EXPECT_EQ(seen.index % 5, number);
      if (seen.kind == OpKind::insert) {
        EXPECT_GE(seen.index, 1000U);
        EXPECT_TRUE(inserted.insert(seen.index).second) << "inserted twice";
      } else {
        EXPECT_LT(seen.index, 1000U);
      }
      for (const auto& mutation : seen.mutations) {
        std::uint64_t index = 0;
        ASSERT_TRUE(keys.decode(mutation.first, index));
        EXPECT_EQ(index % 5, number);
      }
    }
  }
  EXPECT_EQ(*inserted.begin(), 1000U);
}

TEST(Stream, owned_writes_cover_all_keys_evenly) {
  const Workload workload = declared(role("mix = { update = 1 }\nthreads = 3"));
  std::vector<double> counts(1000);
  for (std::uint32_t thread = 0; thread < 3; ++thread) {
    for (const Seen& seen : take(*make_stream(workload, kSeed, 1, thread), 30'000)) {
      counts[seen.index] += 1.0;
    }
  }
  for (std::size_t index = 0; index < 996; ++index) {
    EXPECT_NEAR(counts[index], 90, 6 * std::sqrt(90.0)) << index;
  }
}

TEST(Stream, a_mix_has_its_proportions) {
  const Workload workload = declared(role("mix = { read = 0.7, update = 0.2, scan = 0.1 }"));
  std::map<OpKind, double> kinds;
  for (const Seen& seen : take(*make_stream(workload, kSeed, 1, 0), 100'000)) ++kinds[seen.kind];
  const std::pair<OpKind, double> expected[] = {
      {OpKind::read, 0.7}, {OpKind::update, 0.2}, {OpKind::scan, 0.1}};
  for (const auto& [kind, share] : expected) {
    EXPECT_NEAR(kinds[kind], 1e5 * share, 5 * std::sqrt(1e5 * share * (1 - share)));
  }
}

TEST(Stream, scans_have_their_lengths) {
  const Workload workload =
      declared(role("mix = { scan = 1 }\nscan_entries_min = 3\nscan_entries_max = 7"));
  std::map<std::uint32_t, int> lengths;
  for (const Seen& seen : take(*make_stream(workload, kSeed, 1, 0), 10'000))
    ++lengths[seen.entries];
  ASSERT_EQ(lengths.size(), 5U);
  for (const auto& [length, count] : lengths) {
    EXPECT_GE(length, 3U);
    EXPECT_LE(length, 7U);
    EXPECT_NEAR(count, 2000, 5 * std::sqrt(1600.0));
  }
}

TEST(Stream, a_count_ends_it_and_a_duration_does_not) {
  const Workload counted = declared(role("mix = { read = 1 }"), "operations = 500");
  EXPECT_EQ(take(*make_stream(counted, kSeed, 1, 0), 10'000).size(), 500U);
  const Workload warmed =
      declared(role("mix = { read = 1 }"),
               "operations = 500\nwarm_up = { policy = \"fixed\", operations = 50 }");
  EXPECT_EQ(take(*make_stream(warmed, kSeed, 1, 0), 10'000).size(), 550U);
  const Workload timed = declared(role("mix = { read = 1 }"));
  EXPECT_EQ(take(*make_stream(timed, kSeed, 1, 0), 10'000).size(), 10'000U);
  const Workload background =
      declared(role("mix = { read = 1 }") + role("mix = { update = 1 }\nbackground = true", "bg"),
               "operations = 500");
  EXPECT_EQ(take(*make_stream(background, kSeed, 1, 1), 10'000).size(), 10'000U);
}

TEST(Stream, threads_and_phases_differ) {
  const Workload workload = declared(role("mix = { read = 1 }\nthreads = 2") +
                                     "[[phases]]\nkind = \"run\"\nname = \"again\"\n"
                                     "duration_ms = 1\n[[phases.roles]]\nmix = { read = 1 }\n");
  const auto first = take(*make_stream(workload, kSeed, 1, 0), 100);
  EXPECT_NE(first, take(*make_stream(workload, kSeed, 1, 1), 100));
  EXPECT_NE(first, take(*make_stream(workload, kSeed, 2, 0), 100));
  EXPECT_NE(first, take(*make_stream(workload, kSeed + 1, 1, 0), 100));
  EXPECT_EQ(first, take(*make_stream(workload, kSeed, 1, 0), 100));
}

TEST(Stream, latest_reads_the_newest_own_insert_most) {
  const Workload workload = declared(role(
      "threads = 2\nmix = { read = 0.9, insert = 0.1 }\ndistribution = { kind = \"latest\" }"));
  std::set<std::uint64_t> own;
  std::uint64_t newest = 999;
  int at_newest = 0;
  int reads = 0;
  for (const Seen& seen : take(*make_stream(workload, kSeed, 1, 1), 20'000)) {
    if (seen.kind == OpKind::insert) {
      newest = seen.index;
      own.insert(seen.index);
      continue;
    }
    ++reads;
    at_newest += seen.index == newest;
    EXPECT_TRUE(seen.index < 1000 || own.contains(seen.index)) << "not its own insert";
  }
  // Rank 1 of 1000 with theta 0.99 has the probability 1 / 7.7289...
  const double p = 1.0 / zipfian_weight(1, 1000, 0.99);
  EXPECT_NEAR(at_newest, reads * p, 5 * std::sqrt(reads * p * (1 - p)));
}

TEST(Stream, phases_insert_into_ranges_of_their_own) {
  const std::string insert = "[[phases.roles]]\nthreads = 2\nmix = { insert = 1 }\n";
  const Workload workload =
      declared(insert + "[[phases]]\nkind = \"run\"\nname = \"two\"\nduration_ms = 5\n" + insert +
                   "[[phases]]\nkind = \"run\"\nname = \"three\"\noperations = 5\n" + insert,
               "operations = 10");
  EXPECT_EQ(insert_range(workload, 1).first, 1000U);
  EXPECT_EQ(insert_range(workload, 1).span, 20U);
  EXPECT_EQ(insert_range(workload, 2).first, 1020U);
  EXPECT_EQ(insert_range(workload, 3).first, 1020U + kOpenInsertSpan);
  EXPECT_EQ(take(*make_stream(workload, kSeed, 2, 1), 1)[0].index, 1021U);
}

TEST(Stream, constant_arrivals_are_evenly_spaced_and_take_turns) {
  const Workload workload = declared(role("mix = { read = 1 }\nthreads = 2\nrate_per_s = 1000"));
  const auto first = take(*make_stream(workload, kSeed, 1, 0), 1000);
  const auto second = take(*make_stream(workload, kSeed, 1, 1), 3);
  EXPECT_EQ(first[0].due_ns, 0U);
  EXPECT_EQ(first[999].due_ns, 999'000'000U);
  EXPECT_EQ(second[0].due_ns, 500'000U);
  EXPECT_EQ(second[1].due_ns, 1'500'000U);
}

TEST(Stream, poisson_arrivals_have_exponential_gaps_and_do_not_change_the_operations) {
  const std::string mix = "mix = { read = 1, update = 1 }\nrate_per_s = 1000\npoisson = ";
  const auto poisson = take(*make_stream(declared(role(mix + "true")), kSeed, 1, 0), 50'000);
  const auto constant = take(*make_stream(declared(role(mix + "false")), kSeed, 1, 0), 50'000);
  double sum = 0;
  double squares = 0;
  double beyond = 0;
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < poisson.size(); ++i) {
    ASSERT_GE(poisson[i].due_ns, before);
    ASSERT_EQ(poisson[i].index, constant[i].index);
    const auto gap_ms = static_cast<double>(poisson[i].due_ns - before) / 1e6;
    before = poisson[i].due_ns;
    sum += gap_ms;
    squares += gap_ms * gap_ms;
    beyond += gap_ms > 2.0;
  }
  EXPECT_NEAR(sum / 5e4, 1.0, 5 / std::sqrt(5e4));
  EXPECT_NEAR(squares / 5e4, 2.0, 5 * std::sqrt(20.0 / 5e4));  // variance of the square is 4! - 4
  EXPECT_NEAR(beyond / 5e4, std::exp(-2.0), 5 * std::sqrt(0.117 / 5e4));
}

TEST(Stream, does_not_allocate_once_it_is_warm) {
  const Workload workload = declared(kEverything);
  const auto stream = make_stream(workload, kSeed, 1, 0);
  Chunk chunk;
  for (int i = 0; i < 50; ++i) stream->fill(chunk);
  const auto* const operations = chunk.operations.data();
  const auto* const bytes = chunk.bytes.data();
  const std::size_t mutations = chunk.mutations.capacity();
  for (int i = 0; i < 50; ++i) stream->fill(chunk);
  EXPECT_EQ(chunk.operations.data(), operations);
  EXPECT_EQ(chunk.bytes.data(), bytes);
  EXPECT_LE(chunk.mutations.capacity(), mutations * 2);
}

TEST(Stream, values_larger_than_a_chunk_come_one_by_one) {
  const Workload workload = declared(role("mix = { update = 1 }"), "operations = 3",
                                     "[keys]\ncount = 10\n[values]\nbytes = 2_000_000\n");
  const auto stream = make_stream(workload, kSeed, 1, 0);
  Chunk chunk;
  for (int i = 0; i < 3; ++i) {
    stream->fill(chunk);
    ASSERT_EQ(chunk.operations.size(), 1U);
    EXPECT_EQ(chunk.operations[0].value.size(), 2'000'000U);
  }
  stream->fill(chunk);
  EXPECT_TRUE(chunk.operations.empty());
}

TEST(Stream, a_hundred_million_keys_need_no_table) {
  const Workload workload =
      declared(role("mix = { read = 1 }\ndistribution = { kind = \"zipfian\" }"), "duration_ms = 1",
               "[keys]\ncount = 100_000_000\n");
  const auto seen = take(*make_stream(workload, kSeed, 1, 0), 1000);
  EXPECT_TRUE(
      std::any_of(seen.begin(), seen.end(), [](const Seen& s) { return s.index > 50'000'000; }));
}

TEST(Stream, its_digest_depends_on_workload_and_seed_and_not_on_the_encoding) {
  const Workload workload = declared(kEverything);
  EXPECT_EQ(stream_digest(workload, 7), stream_digest(workload, 7));
  EXPECT_NE(stream_digest(workload, 7), stream_digest(workload, 8));
  Workload other = workload;
  other.keys.kind = KeyKind::bytes;
  other.keys.bytes = 24;
  other.name = "renamed";
  EXPECT_EQ(stream_digest(other, 7), stream_digest(workload, 7));
  other.values.bytes = 41;
  EXPECT_NE(stream_digest(other, 7), stream_digest(workload, 7)) << "value sizes are covered";
  other = workload;
  other.phases[0].load_batch = 63;
  EXPECT_NE(stream_digest(other, 7), stream_digest(workload, 7)) << "the load is covered";
  other = workload;
  other.phases[1].roles[0].mix[0] += 0.01;
  EXPECT_NE(stream_digest(other, 7), stream_digest(workload, 7));
}

TEST(Stream, digests_stay_as_they_are) {
  // A change here makes recorded experiments incomparable with new ones: change it knowingly.
  EXPECT_EQ(stream_digest(declared(role("mix = { read = 1, update = 1 }")), 1),
            "3e659fc6e4ad857e595d080af47afa5b");
}

}  // namespace
}  // namespace assay
