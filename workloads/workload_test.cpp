#include "workloads/workload.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace assay {
namespace {

/// A good declaration; tests change one thing of it.
constexpr const char* kGood = R"(name = "good"
[keys]
count = 1000
[values]
bytes = 100
[[phases]]
kind = "load"
[[phases]]
kind = "run"
operations = 10
[[phases.roles]]
name = "all"
mix = { read = 1 }
)";

std::string changed(const std::string& from, const std::string& to) {
  std::string text = kGood;
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string message(const std::string& toml) {
  const auto workload = parse_workload(toml, "w.toml");
  return workload ? "accepted" : workload.error().message();
}

TEST(Workload, fills_in_the_documented_defaults) {
  const auto workload = parse_workload(kGood, "w.toml");
  ASSERT_TRUE(workload) << workload.error().message();
  EXPECT_EQ(workload->keys.kind, KeyKind::u64);
  EXPECT_EQ(workload->keys.bytes, 8U);
  EXPECT_TRUE(workload->keys.hashed);
  EXPECT_EQ(workload->measured_phase, "run");
  EXPECT_EQ(workload->memory_bytes, std::uint64_t{256} << 20);
  ASSERT_EQ(workload->phases.size(), 2U);
  EXPECT_FALSE(workload->phases[0].timed);
  EXPECT_TRUE(workload->phases[1].timed);
  EXPECT_EQ(workload->phases[0].load_batch, 1000U);
  EXPECT_EQ(workload->phases[1].roles[0].distribution.kind, DistributionKind::uniform);
}

TEST(Workload, the_load_batch_shrinks_with_large_values) {
  const auto workload = parse_workload(changed("bytes = 100", "bytes = 1_000_000"), "w.toml");
  ASSERT_TRUE(workload);
  EXPECT_EQ(workload->phases[0].load_batch, 16U);
}

TEST(Workload, weights_are_normalised) {
  const auto workload =
      parse_workload(changed("{ read = 1 }", "{ read = 3, update = 1 }"), "w.toml");
  ASSERT_TRUE(workload);
  EXPECT_DOUBLE_EQ(workload->phases[1].roles[0].mix[0], 0.75);
  EXPECT_DOUBLE_EQ(workload->phases[1].roles[0].mix[1], 0.25);
}

struct Refusal {
  const char* from;
  const char* to;
  const char* message;
};

class BadWorkload : public ::testing::TestWithParam<Refusal> {};

TEST_P(BadWorkload, is_refused_with_place_and_hint) {
  EXPECT_EQ(message(changed(GetParam().from, GetParam().to)), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    inputs, BadWorkload,
    ::testing::Values(
        Refusal{"count = 1000", "cuont = 1000",
                "w.toml:3: unknown key 'cuont' (did you mean 'count'?)"},
        Refusal{"count = 1000", "count = 1000\ncount = 5",
                "w.toml:4: duplicate key 'count' (it was "
                "already given above; keep one of them)"},
        Refusal{"count = 1000", "count = \"many\"",
                "w.toml:3: 'count' must be an integer, not \"many\""},
        Refusal{"count = 1000", "count = 0",
                "w.toml:3: 'count' must be between 1 and 1099511627776, not 0"},
        Refusal{"count = 1000", "bytes = 8", "w.toml:2: 'count' is missing"},
        Refusal{"count = 1000", "count = 1000\nbytes = 16",
                "w.toml:4: keys of kind \"u64\" have 8 bytes (or say kind = \"bytes\")"},
        Refusal{"count = 1000", "count = 1000\nprefix = \"x\"",
                "w.toml:4: 'prefix' has no effect here: it belongs to keys of kind \"bytes\""},
        Refusal{"count = 1000", "count = 1000\nkind = \"byte\"",
                "w.toml:4: 'kind' must be one of u64, bytes, not \"byte\" (did you mean 'bytes'?)"},
        Refusal{"count = 1000", "count = 1000\nkind = \"bytes\"\nbytes = 4\nprefix = \"user\"",
                "w.toml:6: the prefix takes 4 of the 4 bytes of a key and leaves none to tell keys "
                "apart"},
        Refusal{"count = 1000", "count = 1000\nkind = \"bytes\"\nbytes = 1",
                "w.toml:5: keys with 1 bytes behind their prefix can be told apart 256 times, and "
                "up to 1000 keys are needed (phases that insert without a count of operations need "
                "2^40 each)"},
        Refusal{"bytes = 100", "bytes = 100\nsigma = 1.0",
                "w.toml:6: 'sigma' has no effect here: it belongs to sizes \"lognormal\""},
        Refusal{"count = 1000", "count = 1e3",
                "w.toml:3: 'count' must be an integer, not the float 1000 (write 1000; in TOML a "
                "number with a point or an exponent is a float)"},
        Refusal{"count = 1000", "count = 1.5",
                "w.toml:3: 'count' must be an integer, not the float 1.5"},
        Refusal{"bytes = 100", "sizes = \"lognormal\"\nbytes = 200\nmax_bytes = 100",
                "w.toml:7: 'max_bytes' is below 'bytes', the median of the sizes (100 < 200)"},
        Refusal{"bytes = 100", "sizes = \"lognormal\"\nmin_bytes = 101\nmax_bytes = 900",
                "w.toml:6: 'min_bytes' is above 'bytes', the median of the sizes (101 > 100)"},
        Refusal{"bytes = 100", "sizes = \"uniform\"\nmin_bytes = 9\nmax_bytes = 3",
                "w.toml:7: 'max_bytes' is below 'min_bytes' (3 < 9)"},
        Refusal{"bytes = 100", "compressible = 1.5",
                "w.toml:5: 'compressible' must be between 0 and 1, not 1.5"},
        Refusal{"kind = \"load\"", "kind = \"laod\"",
                "w.toml:7: 'kind' must be one of load, run, restart, rebuild, sync, checkpoint, "
                "settle, load-tables, table, "
                "not \"laod\" (did you mean 'load'?)"},
        Refusal{"operations = 10", "operations = 10\nduration_ms = 5",
                "w.toml:10: a run phase needs exactly one of 'operations' and 'duration_ms'"},
        Refusal{"operations = 10", "cache = \"as-is\"",
                "w.toml:8: a run phase needs exactly one of 'operations' and 'duration_ms'"},
        Refusal{"operations = 10", "operations = 10\nload_batch = 5",
                "w.toml:11: 'load_batch' has no effect here: it belongs to load phases"},
        Refusal{"mix = { read = 1 }", "mix = { read = 0 }",
                "w.toml:13: the role does nothing: 'mix' needs an operation with a positive weight "
                "(for example mix = { read = 0.5, update = 0.5 })"},
        Refusal{
            "bytes = 100",
            "bytes = 1_000_000\n[[phases]]\nkind = \"load\"\nname = \"big\"\n"
            "load_batch = 2000",
            "w.toml:9: a batch of 2000 entries of up to 1000008 bytes takes 1907 MiB of memory, "
            "more than 1024 MiB (at most 1073 entries fit)"},
        Refusal{"mix = { read = 1 }", "mix = { batch = 1 }\nbatch_keys = 1000_000\nthreads = 2",
                "accepted"},
        Refusal{"mix = { read = 1 }", "mix = { reed = 1 }",
                "w.toml:13: unknown key 'reed' (did you mean 'read'?)"},
        Refusal{"mix = { read = 1 }",
                "mix = { read = 1 }\ndistribution = { kind = \"zipfian\", theta = 0 }",
                "w.toml:14: 'theta' must be above 0 (0.99 is YCSB's; use \"uniform\" for none)"},
        Refusal{"mix = { read = 1 }",
                "mix = { read = 1 }\ndistribution = { kind = \"zipfian\", theta = 11.5 }",
                "w.toml:14: 'theta' must be between 0 and 10, not 11.5"},
        Refusal{"mix = { read = 1 }",
                "mix = { read = 1 }\ndistribution = { kind = \"uniform\", theta = 0.5 }",
                "w.toml:14: 'theta' has no effect here: it belongs to \"zipfian\" and \"latest\""},
        Refusal{"mix = { read = 1 }", "mix = { read = 1 }\nbatch_keys = 3",
                "w.toml:14: 'batch_keys' has no effect here: it belongs to roles with batch or "
                "rollback"},
        Refusal{"mix = { read = 1 }",
                "mix = { scan = 1 }\nscan_entries_min = 9\nscan_entries_max = 3",
                "w.toml:14: 'scan_entries_min' is above 'scan_entries_max' (9 > 3)"},
        Refusal{"mix = { read = 1 }", "mix = { update = 1 }\nthreads = 1001",
                "w.toml:11: 1001 writing threads share 1000 keys; each needs one of its own"},
        Refusal{"mix = { read = 1 }", "mix = { read = 1 }\nbackground = true",
                "w.toml:11: every role is in the background, so nothing ends the phase"},
        Refusal{"mix = { read = 1 }",
                "mix = { read = 1 }\n[[phases.roles]]\nname = \"all\"\n"
                "mix = { read = 1 }",
                "w.toml:15: two roles of the phase are called 'all' (give each its own name)"},
        Refusal{"mix = { read = 1 }", "mix = { read = 1 }\npoisson = true",
                "w.toml:14: 'poisson' has no effect here: it belongs to an open loop (rate_per_s)"},
        Refusal{"operations = 10", "operations = 10\nwarm_up = { policy = \"fixed\" }",
                "w.toml:11: a fixed warm-up needs exactly one of 'operations' and 'ms'"},
        Refusal{"operations = 10",
                "operations = 10\ncache = \"cold\"\nwarm_up = { policy = \"fixed\", ms = 5 }",
                "w.toml:11: a warm-up would warm the cache that is to be cold (leave "
                "[phases.warm_up] out or use cache = \"as-is\")"},
        Refusal{"operations = 10", "operations = 10\ntimed_batch = 257",
                "w.toml:11: 'timed_batch' must be between 1 and 256, not 257"},
        Refusal{"operations = 10", "operations = 10\ntimed_batch = \"automatic\"",
                "w.toml:11: 'timed_batch' must be one of auto, not \"automatic\""},
        Refusal{"mix = { read = 1 }\n",
                "mix = { read = 1 }\nrate_per_s = 5\n"
                "[[phases]]\nkind = \"restart\"\nhow = \"kil\"\n",
                "w.toml:17: 'how' must be one of close, kill, not \"kil\" (did you mean 'kill'?)"},
        Refusal{"kind = \"load\"", "kind = \"load\"\nhow = \"kill\"",
                "w.toml:8: 'how' has no effect here: it belongs to restart phases"},
        Refusal{"kind = \"load\"", "kind = \"load\"\nname = \"run\"",
                "w.toml:10: two phases are called 'run' (give each its own name)"},
        Refusal{"operations = 10", "operations = 10\ntimed = false",
                "w.toml:6: no phase is timed, so there is nothing to compare (set timed = true in "
                "one of them)"},
        Refusal{"name = \"good\"", "name = \"good\"\nmeasured_phase = \"rum\"",
                "w.toml:2: 'measured_phase' names no timed phase: \"rum\" (did you mean 'run'?)"},
        Refusal{"name = \"good\"", "name = \"a b/c\"",
                "w.toml:1: 'a b/c' cannot be a name (a name holds letters, digits, '-', '_' and "
                "'.' (not in front), at most 64 of them)"},
        Refusal{"kind = \"load\"", "kind = \"load\"\nname = \"a b\"",
                "w.toml:8: 'a b' cannot be a name (a name holds letters, digits, '-', '_' and "
                "'.' (not in front), at most 64 of them)"},
        Refusal{"mix = { read = 1 }", "mix = { read = 1 }\ncpus = [0, 1, 0]",
                "w.toml:14: 'cpus' names CPU 0 twice (name each once: threads beyond the last of "
                "them begin again with the first)"},
        Refusal{"name = \"good\"", "name = good", "w.toml:1: could not determine value type"}));

TEST(Workload, a_declaration_without_phases_or_keys_is_refused) {
  EXPECT_EQ(message("name = \"x\"\n[keys]\ncount = 1\n"),
            "w.toml:1: the workload has no phases (write [[phases]] kind = \"load\" and "
            "[[phases]] kind = \"run\")");
  EXPECT_EQ(message("name = \"x\"\n"),
            "w.toml:1: the table [keys] is missing (give at least [keys] count = 1000)");
}

TEST(Workload, overrides_obey_the_same_rules) {
  const auto good = parse_workload(kGood, "w.toml",
                                   {{"keys.count", "7"},
                                    {"phases.run.roles.all.distribution.kind", "zipfian"},
                                    {"phases.1.roles.0.threads", "2"}});
  ASSERT_TRUE(good) << good.error().message();
  EXPECT_EQ(good->keys.count, 7U);
  EXPECT_EQ(good->phases[1].roles[0].distribution.kind, DistributionKind::zipfian);
  EXPECT_EQ(good->phases[1].roles[0].threads, 2U);
  const auto bad = parse_workload(kGood, "w.toml", {{"keys.count", "0"}});
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message(),
            "--set keys.count: 'count' must be between 1 and 1099511627776, not 0");
}

TEST(Workload, the_canonical_form_is_complete_sorted_and_reads_back_equal) {
  const std::string rich = R"(
name = "rich"
description = "everything"
source = "test"
measured_phase = "work"
memory_bytes = 2_000_000
best_effort = true
[keys]
count = 5000
kind = "bytes"
bytes = 24
order = "ordered"
prefix = "user"
[values]
sizes = "lognormal"
bytes = 300
sigma = 0.7
max_bytes = 9000
compressible = 0.25
[[phases]]
kind = "load"
load_order = "ascending"
load_batch = 7
load_threads = 3
timed = true
[[phases]]
kind = "run"
name = "work"
duration_ms = 1000
warm_up = { policy = "steady", window_ms = 100 }
[[phases.roles]]
name = "a"
threads = 2
distribution = { kind = "hot-set", hot_fraction = 0.1, hot_probability = 0.9, scrambled = false }
scan_entries_max = 50
batch_keys = 5
cpus = [0, 1]
rate_per_s = 1000.5
poisson = true
[phases.roles.mix]
read = 1
update = 1
insert = 1
erase = 1
scan = 1
reverse_scan = 1
read_modify_write = 1
batch = 1
rollback = 1
[[phases.roles]]
name = "b"
mix = { read = 1 }
distribution = { kind = "latest", theta = 1.2 }
background = true
[[phases]]
kind = "checkpoint"
[[phases]]
kind = "restart"
how = "kill"
[[phases]]
kind = "run"
name = "cold"
operations = 5
timed_batch = 20
cache = "cold"
max_resident = 0.1
max_resident_bytes = 5000
[[phases.roles]]
mix = { read = 1 }
distribution = { kind = "hot-prefix" }
)";
  const auto workload = parse_workload(rich, "rich.toml");
  ASSERT_TRUE(workload) << workload.error().message();
  const nlohmann::json json = to_json(*workload);
  const auto back = workload_from_json(json);
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(*back, *workload);
  EXPECT_EQ(to_json(*back).dump(), json.dump());
  const auto through_text = workload_from_json(nlohmann::json::parse(json.dump()));
  ASSERT_TRUE(through_text);
  EXPECT_EQ(*through_text, *workload);
}

TEST(Workload, batches_for_the_clock_show_in_the_canonical_form_and_need_a_closed_loop) {
  const auto plain = parse_workload(kGood, "w.toml");
  EXPECT_EQ(to_json(*plain)["phases"][1]["timed_batch"], 1);
  const auto decided = parse_workload(
      changed("operations = 10", "operations = 10\ntimed_batch = \"auto\""), "w.toml");
  ASSERT_TRUE(decided) << decided.error().message();
  EXPECT_EQ(decided->phases[1].timed_batch, kTimedBatchAuto);
  EXPECT_EQ(to_json(*decided)["phases"][1]["timed_batch"], "auto");
  const auto back = workload_from_json(to_json(*decided));
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(*back, *decided);
  EXPECT_EQ(
      message(changed("operations = 10\n[[phases.roles]]\n",
                      "operations = 10\ntimed_batch = 4\n[[phases.roles]]\nrate_per_s = 5\n")),
      "w.toml:11: 'timed_batch' needs a closed loop: in an open one each operation has an "
      "intended start of its own (leave it out, or leave out 'rate_per_s' (or "
      "'trace_speed'))");
}

TEST(Workload, an_entry_that_no_batch_can_hold_is_blamed_on_the_size_of_the_values) {
  const std::string text =
      "name = \"w\"\n[keys]\ncount = 1\n[values]\nbytes = 100\n[[phases]]\nkind = \"load\"\n"
      "[[phases]]\nkind = \"run\"\noperations = 1\n[[phases.roles]]\nmix = { read = 1 }\n";
  const auto refused = parse_workload(text, "w.toml", {{"values.bytes", "268435456"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().where(), "--set values.bytes");
  EXPECT_NE(refused.error().message().find("more than the 268435456 bytes (256 MiB)"),
            std::string::npos)
      << refused.error().message();
}

TEST(Workload, a_rebuild_is_timed_can_be_measured_and_takes_no_way_to_end) {
  const std::string text =
      "name = \"w\"\n[keys]\ncount = 1\n[[phases]]\nkind = \"load\"\n"
      "[[phases]]\nkind = \"rebuild\"\n";
  const auto workload = parse_workload(text, "w.toml");
  ASSERT_TRUE(workload) << workload.error().message();
  EXPECT_EQ(workload->phases[1].kind, PhaseKind::rebuild);
  EXPECT_TRUE(workload->phases[1].timed);
  EXPECT_EQ(workload->measured_phase, "rebuild");
  EXPECT_EQ(*workload_from_json(to_json(*workload)), *workload);
  const auto refused = parse_workload(text + "how = \"kill\"\n", "w.toml");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(),
            "w.toml:8: 'how' has no effect here: it belongs to restart phases");
}

TEST(Workload, of_tables_loads_them_once_asks_them_later_and_holds_nothing_else) {
  const auto parsed = [](const std::string& phases, const std::string& keys = "") {
    return parse_workload(
        "name = \"t\"\n[keys]\ncount = 1000\n" +
            (keys.empty() ? std::string("kind = \"bytes\"\nbytes = 19\n") : keys) + phases,
        "t.toml");
  };
  const std::string load = "[[phases]]\nkind = \"load-tables\"\ndata_seed = 3\n";
  const std::string join =
      "[[phases]]\nkind = \"table\"\noperation = \"join\"\nrows = 10\noperations = 5\n"
      "warm_up = { policy = \"fixed\", operations = 1 }\ncache = \"cold-files\"\n";
  const auto good = parsed(load + join.substr(0, join.find("warm_up")));
  ASSERT_TRUE(good) << good.error().message();
  EXPECT_EQ(good->measured_phase, "table");
  EXPECT_EQ(good->phases[1].operation, TableOperation::join);
  EXPECT_EQ(*workload_from_json(to_json(*good)), *good);
  const auto refused = [&](const std::string& phases, const std::string& keys = "") {
    const auto bad = parsed(phases, keys);
    return bad ? std::string("accepted") : bad.error().message();
  };
  EXPECT_NE(refused(load + join).find("a warm-up would warm the cache"), std::string::npos);
  EXPECT_NE(refused(join.substr(0, join.find("warm_up"))).find("asked before a phase"),
            std::string::npos);
  EXPECT_NE(refused(load + "[[phases]]\nkind = \"load-tables\"\nname = \"b\"\n").find("twice"),
            std::string::npos);
  EXPECT_NE(refused(load + "[[phases]]\nkind = \"load\"\n").find("no phases of kind"),
            std::string::npos);
  EXPECT_NE(refused(load, "kind = \"u64\"\n").find("up to 19 bytes"), std::string::npos);
  EXPECT_NE(refused(load + "[[phases]]\nkind = \"table\"\noperation = \"ful-scan\"\n")
                .find("did you mean 'full-scan'?"),
            std::string::npos);
  EXPECT_NE(refused(load + "[[phases]]\nkind = \"table\"\noperation = \"create-index\"\n"
                           "operations = 2\n")
                .find("an index is made once"),
            std::string::npos);
}

TEST(Workload, a_canonical_form_with_an_unknown_key_is_refused) {
  nlohmann::json json = to_json(*parse_workload(kGood, "w.toml"));
  json["keys"]["cuont"] = 3;
  const auto workload = workload_from_json(json);
  ASSERT_FALSE(workload);
  EXPECT_EQ(workload.error().message(),
            "canonical workload: unknown key 'cuont' (did you mean 'count'?)");
}

TEST(Workload, an_unknown_name_gets_the_nearest_shipped_one) {
  const auto workload = load_workload("ycbs-a");
  ASSERT_FALSE(workload);
  EXPECT_EQ(workload.error().message(), "there is no workload 'ycbs-a' (did you mean 'ycsb-a'?)");
  EXPECT_FALSE(load_workload("no/such/file.toml"));
}

}  // namespace
}  // namespace assay
