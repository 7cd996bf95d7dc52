// End to end: bad input of every sort gets one message that names the place and the remedy, the
// documented exit status, and leaves nothing behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "harness/cli/command_line.h"

namespace assay::end_to_end {
namespace {

using BadInput = EndToEnd;

const std::string kWorkload = R"(name = "own"
[keys]
count = 1000
[values]
bytes = 100
[[phases]]
kind = "load"
[[phases]]
kind = "run"
operations = 200
[[phases.roles]]
name = "clients"
mix = { read = 0.5, update = 0.5 }
)";

/// One line, beginning as every message does, and no output beside it.
void expect_one_message(const Finished& run, int status, const std::vector<std::string>& parts) {
  EXPECT_EQ(run.status, status) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(run.err.find("assay: "), 0U) << run.err;
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  for (const std::string& part : parts) {
    EXPECT_NE(run.err.find(part), std::string::npos) << "\"" << part << "\" not in: " << run.err;
  }
}

std::string with(const std::string& from, const std::string& to) {
  std::string text = kWorkload;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST_F(BadInput, a_fine_workload_passes_the_check) {
  write_file(directory_ / "own.toml", kWorkload);
  EXPECT_EQ(assay("workload check own.toml").status, 0);
}

TEST_F(BadInput, an_unknown_key_is_told_with_file_line_and_the_nearest_name) {
  write_file(directory_ / "own.toml", with("count = 1000", "cuont = 1000"));
  expect_one_message(assay("workload check own.toml"), 2, {"own.toml:3", "cuont", "count"});
}

TEST_F(BadInput, a_duplicate_key_is_told_with_file_and_line) {
  write_file(directory_ / "own.toml", with("count = 1000", "count = 1000\ncount = 7"));
  expect_one_message(assay("workload check own.toml"), 2, {"own.toml:4", "count"});
}

TEST_F(BadInput, a_wrong_type_is_told_with_file_and_line) {
  write_file(directory_ / "own.toml", with("bytes = 100", "bytes = \"many\""));
  expect_one_message(assay("workload check own.toml"), 2, {"own.toml:5", "bytes"});
}

TEST_F(BadInput, zero_keys_are_refused) {
  write_file(directory_ / "own.toml", with("count = 1000", "count = 0"));
  expect_one_message(assay("workload check own.toml"), 2, {"own.toml:3", "count"});
}

TEST_F(BadInput, an_impossible_theta_is_refused) {
  write_file(directory_ / "own.toml",
             kWorkload + "distribution = { kind = \"zipfian\", theta = -1.0 }\n");
  expect_one_message(assay("workload check own.toml"), 2, {"own.toml:14", "theta"});
}

TEST_F(BadInput, broken_toml_is_told_with_file_and_line) {
  write_file(directory_ / "own.toml", with("[values]", "[values"));
  expect_one_message(assay("workload check own.toml"), 2, {"own.toml:4"});
}

TEST_F(BadInput, a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for) {
  const std::string traced = with("count = 1000", "count = 1000\nkind = \"bytes\"\nbytes = 24");
  write_file(directory_ / "piped.toml",
             traced.substr(0, traced.find("operations")) + "trace = \"pipe.toml\"\n");
  ASSERT_EQ(shell("mkfifo pipe.toml").status, 0);
  for (const char* line :
       {"workload check ./pipe.toml", "run pipe.toml",
        "compare --stores lmdb --workload ./pipe.toml", "workload check ./piped.toml"}) {
    expect_one_message(shell("timeout 10 '" ASSAY_COMMAND "' " + std::string(line)), 2,
                       {"pipe.toml", "no regular file"});
  }
}

TEST_F(BadInput, a_missing_file_is_told) {
  expect_one_message(assay("workload check nowhere.toml"), 2, {"nowhere.toml"});
}

TEST_F(BadInput, a_misspelt_shipped_workload_is_told_with_the_nearest_name) {
  expect_one_message(assay("workload show ycbs-a"), 2, {"ycbs-a", "ycsb-a"});
}

TEST_F(BadInput, a_rocksdb_adapter_that_cannot_be_loaded_is_told_and_stops_no_other_store) {
  std::filesystem::copy_file(ASSAY_COMMAND, directory_ / "assay");
  write_file(directory_ / "assay_rocksdb.so", "no shared object");
  expect_one_message(shell("./assay store show rocksdb"), 7, {"assay_rocksdb.so", "RocksDB"});
  EXPECT_EQ(shell("./assay store show lmdb").status, 0);
  const Finished list = shell("./assay store list");
  EXPECT_EQ(list.status, 7);
  EXPECT_NE(list.out.find("lmdb"), std::string::npos) << "the others are listed";
  // A command that was copied without it takes no other build's.
  std::filesystem::remove(directory_ / "assay_rocksdb.so");
  expect_one_message(shell("./assay store show rocksdb"), 7, {"assay_rocksdb.so", "copy both"});
}

TEST_F(BadInput, an_unknown_store_is_told_with_the_nearest_name) {
  expect_one_message(assay("compare --stores sqlte,lmdb --workload durable-put"), 2,
                     {"sqlte", "sqlite"});
  expect_one_message(assay("store show rocsdb"), 2, {"rocsdb", "rocksdb"});
}

TEST_F(BadInput, an_unknown_setting_is_told_with_the_nearest_name) {
  expect_one_message(assay("compare --stores sqlite,lmdb --workload durable-put "
                           "--set sqlite.synchronus=FULL"),
                     2, {"synchronus", "synchronous"});
}

TEST_F(BadInput, a_setting_with_an_impossible_value_is_told_with_the_valid_ones) {
  expect_one_message(assay("compare --stores sqlite,lmdb --workload durable-put "
                           "--set sqlite.synchronous=MAYBE"),
                     2, {"MAYBE", "full"});
}

TEST_F(BadInput, settings_that_only_the_store_would_refuse_are_refused_before_the_first_trial) {
  const std::string compare =
      "compare --stores sqlite,lmdb,rocksdb --workload durable-put --root bench ";
  expect_one_message(assay(compare + "--set lmdb.map_bytes=-1"), 2, {"command line", "map_bytes"});
  expect_one_message(assay(compare + "--set rocksdb.block_cache_bytes=-5"), 2,
                     {"command line", "block_cache_bytes"});
  expect_one_message(assay(compare + "--set sqlite.cache_kib=abc"), 2,
                     {"command line", "cache_kib"});
  expect_one_message(
      assay(compare + "--set sqlite.locking_mode=exclusive --set phases.run.roles.0.threads=2"), 2,
      {"locking_mode", "exclusive"});
  write_file(directory_ / "tiny.toml",
             "name = \"tiny\"\nworkload = \"durable-put\"\n[[arms]]\nstore = \"lmdb\"\n"
             "[arms.settings]\nnordahead = \"on\"\nmap_bytes = -1\n");
  const Finished run = assay("run tiny.toml");
  EXPECT_EQ(run.status, 2) << run.err;
  EXPECT_FALSE(std::filesystem::exists(directory_ / "runs"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "bench"));
}

TEST_F(BadInput, space_that_no_disk_has_is_told_in_few_digits) {
  const Finished run = assay(
      "compare --stores lmdb --workload durable-put --trials 2 --no-a-a --root bench "
      "--set keys.count=1099511627776");
  EXPECT_EQ(run.status, 7) << run.err;
  EXPECT_NE(run.err.find("TiB of disk, but "), std::string::npos) << run.err;
}

TEST_F(BadInput, a_key_that_is_set_twice_is_refused) {
  expect_one_message(assay("compare --stores lmdb --workload durable-put --set keys.count=10 "
                           "--set workload.keys.count=20"),
                     2, {"keys.count", "twice"});
  expect_one_message(assay("compare --stores lmdb --workload durable-put --set "
                           "lmdb.map_bytes=1000000 --set lmdb.map_bytes=2000000"),
                     2, {"map_bytes", "twice"});
  expect_one_message(assay("workload show durable-put --set keys.count=10 --set keys.count=20"), 2,
                     {"keys.count", "twice"});
}

TEST_F(BadInput, a_reference_among_the_arms_is_told_to_be_there_anyway) {
  expect_one_message(assay("compare --stores lmdb,null --workload durable-put"), 2,
                     {"'null' is a reference", "beside the arms anyway"});
}

TEST_F(BadInput, control_characters_do_not_reach_the_terminal) {
  for (const std::string& line :
       {std::string("workload show $'ycsb\\e[2J'"), std::string("store show $'x\\e[2J'"),
        std::string("run $'x\\e[2J'"), std::string("$'x\\e[2J'"),
        std::string("compare --stores lmdb --workload durable-put $'--x\\e[2J'"),
        std::string("report $'x\\e[2J'")}) {
    const Finished run = assay(line);
    EXPECT_EQ(run.status, 2) << line << run.err;
    EXPECT_EQ((run.err + run.out).find('\x1b'), std::string::npos) << line << run.err;
    EXPECT_NE(run.err.find("\\x1b[2J"), std::string::npos) << line << run.err;
  }
}

TEST_F(BadInput, pins_that_are_impossible_are_told_with_the_place_in_the_workload) {
  write_file(directory_ / "own.toml", kWorkload + "cpus = [0, 1, 4095]\n");
  expect_one_message(assay("compare --stores lmdb --workload ./own.toml --root bench"), 2,
                     {"own.toml:14", "pin"});
}

TEST_F(BadInput, more_pins_than_processors_are_refused) {
  write_file(directory_ / "own.toml", kWorkload + "cpus = [0, 1, 4095]\n");
  const Finished run =
      assay("compare --stores sqlite,lmdb --workload ./own.toml --trials 2 --root bench");
  EXPECT_TRUE(run.status == 2 || run.status == 7) << run.status << run.err;
  EXPECT_TRUE(run.err.find("4095") != std::string::npos ||
              run.err.find("3 pins on") != std::string::npos)
      << run.err;
  EXPECT_FALSE(std::filesystem::exists(directory_ / "runs"));
}

TEST_F(BadInput, an_unknown_durability_class_is_refused) {
  expect_one_message(
      assay("compare --stores sqlite,lmdb --workload durable-put --durability eternal"), 2,
      {"eternal", "power-prefix"});
}

TEST_F(BadInput, an_empty_name_and_a_seed_that_wraps_round_are_refused) {
  const std::string compare = "compare --stores lmdb --workload durable-put --trials 2 ";
  expect_one_message(assay(compare + "--name ''"), 2, {"--name", "empty"});
  EXPECT_EQ(assay(compare + "--seed -1").status, 2);
  EXPECT_EQ(assay(compare + "--seed 99999999999999999999999").status, 2);
  for (const char* other : {"workload trace durable-put", "workload digest durable-put",
                            "workload check durable-put", "store check null"}) {
    EXPECT_EQ(assay(std::string(other) + " --seed -1").status, 2) << other;
  }
  EXPECT_FALSE(std::filesystem::exists(directory_ / "runs"));
}

TEST_F(BadInput, numbers_out_of_range_are_refused_in_one_way) {
  const std::string compare = "compare --stores lmdb --workload durable-put ";
  const struct {
    std::string line;
    std::string range;
  } cases[] = {
      {"workload trace ycsb-a --operations -1", "'-1' is not a whole number, 1 or more"},
      {"workload trace ycsb-a --operations 0", "1 or more"},
      {"workload trace ycsb-a --operations 1e3", "'1e3' is not a whole number"},
      {"workload trace ycsb-a --thread -1", "from 0 to 65535"},
      {"workload trace ycsb-a --seed -1", "0 or more"},
      {"workload trace ycsb-a --seed 99999999999999999999", "too large"},
      {"store check null --timeout nan", "'nan' is not a number, from 0.1 to 86400"},
      {"store check null --timeout inf", "from 0.1 to 86400"},
      {"store check null --timeout 0", "from 0.1 to 86400"},
      {compare + "--trials -1", "'-1' is not a whole number, from 2 to 100000"},
      {compare + "--trials 1", "from 2 to 100000"},
      {compare + "--void-trials-max -1", "from 0 to 1000000"},
      {compare + "--effect-percent nan", "from 0.01 to 10000"},
      {compare + "--cv-percent -1", "from 0 to 1000"},
      {compare + "--foreign-cpus-max -0.5", "from 0 to 10000"},
      {compare + "--frequency-change-max 2", "from 0 to 1"},
      {compare + "--steal-share-max inf", "from 0 to 1"},
      {"run tiny.toml --trials -1", "from 2 to 100000"},
  };
  for (const auto& [line, range] : cases) {
    const Finished run = shell("assay " + line + " | head -c 100000; exit ${PIPESTATUS[0]}");
    EXPECT_EQ(run.status, 2) << line << run.err;
    EXPECT_NE(run.err.find(range), std::string::npos) << line << ": " << run.err;
  }
}

TEST_F(BadInput, an_output_file_that_cannot_be_written_is_refused_before_the_first_trial) {
  std::ofstream(directory_ / "taken") << "a file";  // so that nobody can write below it
  const std::string compare =
      "compare --stores lmdb --workload durable-put --trials 2 --root bench "
      "--set keys.count=100 --set phases.run.duration_ms=20 --google-benchmark-json ";
  expect_one_message(assay(compare + "taken/x.json"), 7, {"taken/x.json"});
  expect_one_message(assay(compare + "nowhere/x.json"), 7, {"nowhere/x.json"});
  expect_one_message(assay(compare + "."), 2, {"directory"});
  EXPECT_FALSE(std::filesystem::exists(directory_ / "runs"));
}

TEST_F(BadInput, an_index_page_replaces_neither_a_link_nor_a_ledger) {
  write_file(directory_ / "ledgers/tiny/ledger.jsonl", "");
  write_file(directory_ / "site/target.html", "old");
  std::filesystem::create_symlink("target.html", directory_ / "site/index.html");
  EXPECT_EQ(assay("report --all --out site").status, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(directory_ / "site/index.html"));
  EXPECT_NE(read_file(directory_ / "site/target.html"), "old");
  write_file(directory_ / "other/index.html", "{\"body\":{");
  const Finished refused = assay("report --all --out other");
  EXPECT_EQ(refused.status, 2) << refused.err;
  EXPECT_EQ(read_file(directory_ / "other/index.html"), "{\"body\":{");
}

TEST_F(BadInput, a_plug_in_that_crashes_while_it_is_loaded_is_told) {
  expect_one_message(
      assay("compare --stores lmdb," ASSAY_CRASH_AT_ENTRY_STORE " --workload durable-put"), 9,
      {"crash_at_entry_store"});
  write_file(directory_ / "tiny.toml",
             "name = \"tiny\"\nworkload = \"durable-put\"\n[[arms]]\nstore = "
             "\"" ASSAY_CRASH_AT_ENTRY_STORE "\"\n");
  expect_one_message(assay("run tiny.toml"), 9, {"tiny.toml:4", "crash_at_entry_store"});
  EXPECT_FALSE(std::filesystem::exists(directory_ / "runs"));
}

TEST_F(BadInput, an_empty_store_or_experiment_is_told_as_such) {
  write_file(directory_ / "experiment.toml", "name = \"tiny\"\n");
  expect_one_message(assay("run ''"), 2, {"experiment", "empty"});
  expect_one_message(assay("compare --stores '' --workload durable-put"), 2, {"--stores"});
  std::filesystem::create_directories(directory_ / "folder");
  const Finished run = assay("run '" + directory_.string() + "/folder'");
  expect_one_message(run, 2, {"there is no experiment.toml here"});
  EXPECT_EQ(run.err.find("ledgers//"), std::string::npos) << run.err;
  expect_one_message(assay("run nothing"), 2, {"below " + directory_.string()});
}

TEST_F(BadInput, pins_that_this_machine_lacks_are_a_warning_of_the_check) {
  write_file(directory_ / "own.toml", kWorkload + "cpus = [4095]\n");
  const Finished check = assay("workload check own.toml");
  EXPECT_EQ(check.status, 0) << check.err;
  EXPECT_NE(check.out.find("warning: phase run pins to CPU 4095"), std::string::npos) << check.out;
}

TEST_F(BadInput, an_empty_text_is_refused_by_every_flag_that_takes_one) {
  const std::string compare = "compare --stores lmdb --workload durable-put --trials 2 --no-a-a ";
  const struct {
    std::string line;
    std::string flag;
  } cases[] = {
      {compare + "--root ''", "--root"},
      {compare + "--out ''", "--out"},
      {compare + "--google-benchmark-json ''", "--google-benchmark-json"},
      {compare + "--durability ''", "--durability"},
      {compare + "--latency ''", "--latency"},
      {"run tiny --out ''", "--out"},
      {"report tiny --out ''", "--out"},
      {"report tiny --result ''", "--result"},
      {"plot tiny --out ''", "--out"},
      {"qualify --store lmdb --root ''", "--root"},
      {"qualify --store lmdb --out ''", "--out"},
      {"qualify replay x --root ''", "--root"},
      {"qualify matrix --row ''", "--row"},
      {"gate tiny --baseline accepted --junit ''", "--junit"},
      {"gate tiny --baseline accepted --markdown ''", "--markdown"},
      {"reproduce tiny --root ''", "--root"},
      {"doctor --root ''", "--root"},
      {"doctor --plan ''", "--plan"},
      {"store check lmdb --dir ''", "--dir"},
      {"store show lmdb --durability ''", "--durability"},
      {"calibrate --workload ycsb-c --out ''", "--out"},
      {"ledger export tiny --format csv --out ''", "--out"},
      {"ledger merge a b --out ''", "--out"},
      {"ledger verify ''", "ledgers"},
  };
  for (const auto& [line, flag] : cases) {
    expect_one_message(assay(line), 2, {flag, "empty text"});
  }
  EXPECT_FALSE(std::filesystem::exists(directory_ / "runs"));
}

TEST_F(BadInput, an_empty_name_in_a_list_is_refused_wherever_it_stands) {
  for (const char* stores : {"sqlite,", "sqlite,,lmdb", ",sqlite", ","}) {
    expect_one_message(
        assay("compare --workload durable-put --trials 2 --stores " + std::string(stores)), 2,
        {"--stores", "empty name"});
  }
  expect_one_message(assay("doctor --demand thp,"), 2, {"--demand", "empty name"});
  expect_one_message(assay("qualify --store lmdb --level K,,F"), 2, {"--level", "empty name"});
  expect_one_message(assay("qualify --store lmdb --level B --file-system ext4,ext4"), 2,
                     {"--file-system", "ext4 twice"});
  EXPECT_FALSE(std::filesystem::exists(directory_ / "runs"));
}

TEST_F(BadInput, a_store_that_is_named_twice_gets_advice_that_flags_can_follow) {
  expect_one_message(assay("compare --workload durable-put --stores sqlite,sqlite"), 2,
                     {"--stores names 'sqlite' twice", "A/A arm", "experiment.toml"});
  expect_one_message(assay("compare --workload durable-put --stores ./a/mine.so,./b/mine.so"), 2,
                     {"both be called 'mine'", "different names"});
}

TEST_F(BadInput, a_name_that_is_too_long_for_files_is_refused_where_it_is_read) {
  const std::string name(300, 'x');
  const std::string arms = "[[arms]]\nstore = \"lmdb\"\n";
  write_file(directory_ / "arm.toml",
             "name = \"tiny\"\nworkload = \"durable-put\"\n" + arms + "name = \"" + name + "\"\n");
  write_file(directory_ / "plan.toml",
             "name = \"" + name + "\"\nworkload = \"durable-put\"\n" + arms);
  write_file(directory_ / "own.toml", with("\"own\"", "\"" + name + "\""));
  write_file(directory_ / "role.toml", with("\"clients\"", "\"" + name + "\""));
  expect_one_message(assay("run arm.toml"), 2, {"arm.toml:5", "too long for a name", "at most 64"});
  expect_one_message(assay("run plan.toml"), 2, {"plan.toml:1", "too long for a name"});
  expect_one_message(assay("workload check own.toml"), 2, {"own.toml:1", "too long for a name"});
  expect_one_message(assay("workload check role.toml"), 2, {"role.toml:12", "too long for a name"});
  expect_one_message(assay("compare --stores lmdb --workload durable-put --name " + name), 2,
                     {"too long for a name"});
  EXPECT_FALSE(std::filesystem::exists(directory_ / "runs"));
}

TEST_F(BadInput, a_processor_that_is_pinned_twice_is_refused) {
  write_file(directory_ / "own.toml", kWorkload + "cpus = [0, 0]\n");
  expect_one_message(assay("workload check own.toml"), 2, {"own.toml:14", "CPU 0 twice"});
  expect_one_message(assay("compare --stores lmdb --workload durable-put --set "
                           "phases.run.roles.0.cpus=[0,0]"),
                     2, {"CPU 0 twice"});
}

TEST_F(BadInput, an_unknown_verb_or_flag_has_the_status_of_bad_input) {
  expect_one_message(assay("comapre"), 2, {"comapre", "compare"});
  EXPECT_EQ(assay("compare --sores a").status, 2);
  EXPECT_EQ(assay("").status, 2);
  EXPECT_EQ(assay("--help").status, 0);
}

TEST_F(BadInput, a_misspelt_experiment_is_told_with_the_nearest_name) {
  write_file(directory_ / "ledgers/tiny/experiment.toml", "name = \"tiny\"\n");
  expect_one_message(assay("run tinny"), 2, {"tinny", "tiny"});
}

TEST_F(BadInput, an_unknown_key_of_an_experiment_is_told_with_file_and_line) {
  write_file(directory_ / "tiny.toml",
             "name = \"tiny\"\nworkload = \"durable-put\"\ntrails = 3\n[[arms]]\nstore = "
             "\"sqlite\"\n[[arms]]\nstore = \"lmdb\"\n");
  expect_one_message(assay("run tiny.toml"), 2, {"tiny.toml:3", "trails", "trials"});
}

TEST_F(BadInput, arms_of_unequal_durability_are_refused) {
  write_file(
      directory_ / "tiny.toml",
      "name = \"tiny\"\nworkload = \"durable-put\"\n[[arms]]\nstore = \"sqlite\"\ndurability "
      "= \"power\"\n[[arms]]\nstore = \"lmdb\"\ndurability = \"process\"\n");
  expect_one_message(assay("run tiny.toml"), 2, {"tiny.toml", "mixed_durability"});
}

TEST_F(BadInput, a_setting_that_breaks_the_declared_durability_is_refused) {
  expect_one_message(assay("compare --stores lmdb,sqlite --workload durable-put --durability power "
                           "--set sqlite.synchronous=OFF --set keys.count=1000 --trials 3"),
                     2,
                     {"sqlite: synchronous=OFF gives durability process", "power",
                      "--durability process", "--mixed-durability"});
  EXPECT_FALSE(std::filesystem::exists(directory_ / "runs"));
}

TEST_F(BadInput, a_plug_in_that_is_no_library_is_told) {
  write_file(directory_ / "mine.so", "not a library");
  expect_one_message(assay("compare --stores ./mine.so,lmdb --workload durable-put"), 2,
                     {"mine.so"});
  expect_one_message(assay("store check ./absent.so"), 2, {"absent.so"});
}

TEST_F(BadInput, an_unreadable_ledger_is_told_with_file_and_line) {
  write_file(directory_ / "ledgers/tiny/ledger.jsonl", "{\"schema\":1,\n");
  const Finished run = assay("report ledgers/tiny/ledger.jsonl");
  EXPECT_EQ(run.status, 10) << run.err;
  EXPECT_NE(run.err.find("ledger.jsonl:1"), std::string::npos) << run.err;
}

TEST_F(BadInput, a_folder_or_a_torn_ledger_in_the_place_of_a_ledger_is_told) {
  std::filesystem::create_directories(directory_ / "empty");
  for (const char* verb : {"report", "plot"}) {
    expect_one_message(assay(std::string(verb) + " empty"), 2, {"empty", "holds no ledger.jsonl"});
  }
  write_file(directory_ / "ledgers/tiny/ledger.jsonl", "{\"body\":{");
  for (const char* verb : {"report", "plot"}) {
    expect_one_message(assay(std::string(verb) + " tiny"), 2,
                       {"ledger.jsonl", "no verdict", "last line is unfinished"});
  }
}

TEST_F(BadInput, a_benchmark_root_that_is_a_file_is_refused_and_kept) {
  write_file(directory_ / "precious", "do not touch");
  const Finished run = assay(
      "compare --stores sqlite,lmdb --workload durable-put --trials 2 --root precious "
      "--set workload.keys.count=1000");
  EXPECT_TRUE(run.status == 2 || run.status == 7) << run.status << run.err;
  EXPECT_EQ(read_file(directory_ / "precious"), "do not touch");
}

}  // namespace
}  // namespace assay::end_to_end
