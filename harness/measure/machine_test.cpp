// Residency, pinning, flush plausibility and the machine's state.
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fcntl.h>

#include <algorithm>
#include <thread>

#include <gtest/gtest.h>

#include "adapters/temporary_directory.h"
#include "harness/measure/flush_plausibility.h"
#include "harness/measure/pinning.h"
#include "harness/measure/residency.h"
#include "harness/measure/system_snapshot.h"

namespace assay {
namespace {

constexpr std::size_t kMiB = 1 << 20;

bool keeps_files_in_memory(const std::string& directory) {
  const Result<std::string> name = file_system_of(directory);
  return name && (*name == "tmpfs" || *name == "ramfs" || *name == "overlay");
}

TEST(Residency, a_file_just_written_is_cached_and_a_dropped_one_is_not) {
  const TemporaryDirectory directory;
  if (keeps_files_in_memory(directory.path())) GTEST_SKIP() << "nothing to drop on tmpfs";
  directory.fill("a", 2 * kMiB);
  std::filesystem::create_directory(directory.file("below"));
  directory.fill("below/b", kMiB);
  ASSERT_TRUE(drop_files(directory.path()));  // allocates the blocks too
  for (const auto look : {residency, residency_by_mincore}) {
    ASSERT_TRUE(drop_files(directory.path()));
    const Residency cold = *look(directory.path());
    EXPECT_EQ(cold.total_bytes, 3 * kMiB);
    EXPECT_LT(cold.fraction(), 0.02);
    std::ifstream(directory.file("a"), std::ios::binary).ignore(2 * kMiB);
    EXPECT_NEAR(look(directory.path())->fraction(), 2.0 / 3, 0.02);
    std::ifstream(directory.file("below/b"), std::ios::binary).ignore(kMiB);
    EXPECT_GT(look(directory.path())->fraction(), 0.98);
  }
}

TEST(Residency, counts_what_is_allocated_and_not_the_holes) {
  const TemporaryDirectory directory;
  if (keeps_files_in_memory(directory.path())) GTEST_SKIP() << "allocation differs on tmpfs";
  const std::string path = directory.fill("sparse", kMiB);
  std::filesystem::resize_file(path, 1024 * kMiB);  // as LMDB's map
  ASSERT_TRUE(drop_files(directory.path()));
  EXPECT_LE(residency(directory.path())->total_bytes, kMiB + 65536);
}

TEST(Residency, of_nothing_is_zero_and_of_no_directory_an_error) {
  const TemporaryDirectory directory;
  EXPECT_EQ(residency(directory.path())->fraction(), 0);
  const Result<Residency> none = residency(directory.file("none"));
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message().find("none"), std::string::npos);
}

TEST(Pinning, keeps_a_thread_on_the_cpu_it_was_given) {
  const std::vector<int> allowed = *allowed_cpus();
  ASSERT_FALSE(allowed.empty());
  const int last = allowed.back();
  std::jthread([&] {
    ASSERT_TRUE(pin_thread(std::vector<int>{last}));
    EXPECT_EQ(*allowed_cpus(), std::vector<int>{last});
    EXPECT_EQ(::sched_getcpu(), last);
  }).join();
  EXPECT_EQ(*allowed_cpus(), allowed);  // the pin was the other thread's
}

TEST(Pinning, a_cpu_that_is_not_there_is_refused_and_nothing_changes) {
  const std::vector<int> before = *allowed_cpus();
  for (const std::vector<int>& cpus : {std::vector<int>{8000}, std::vector<int>{before[0], 8000},
                                       std::vector<int>{100'000}, std::vector<int>{-1}}) {
    const Status pinned = pin_thread(cpus);
    ASSERT_FALSE(pinned);
    EXPECT_EQ(pinned.error().kind(), ErrorKind::environment);
    EXPECT_EQ(*allowed_cpus(), before);
  }
}

TEST(CpuList, is_read_as_the_kernel_writes_it) {
  EXPECT_EQ(*parse_cpu_list("0-3,8"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(*parse_cpu_list("5"), std::vector<int>{5});
  for (const char* bad : {"", "a", "3-1", "1-", "-1", "1,,2", "1 2", "99999"})
    EXPECT_FALSE(parse_cpu_list(bad)) << bad;
}

TEST(Interrupts, are_read_by_number_and_name) {
  const std::vector<Interrupt> interrupts = parse_interrupts(
      "           CPU0       CPU1       \n"
      "  1:          9          0   IO-APIC   1-edge      i8042\n"
      " 36:          0      66443 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n"
      "NMI:          0          0   Non-maskable interrupts\n");
  ASSERT_EQ(interrupts.size(), 2U);
  EXPECT_EQ(interrupts[1].number, 36);
  EXPECT_EQ(interrupts[1].name, "virtio1-req.0");
  EXPECT_EQ(interrupts[1].counts, (std::vector<std::uint64_t>{0, 66443}));
}

TEST(Interrupts, of_a_disk_that_is_not_there_go_nowhere) {
  EXPECT_TRUE(interrupt_cpus("no-such-disk").empty());
}

FlushPlausibility judged(std::uint64_t median_ns, const std::string& file_system) {
  FlushPlausibility probe;
  probe.median_ns = median_ns;
  probe.file_system = file_system;
  judge_flush(probe);
  return probe;
}

TEST(FlushPlausibility, doubts_a_sync_that_is_faster_than_any_medium) {
  EXPECT_TRUE(judged(238'000, "ext4").plausible);
  EXPECT_TRUE(judged(20'000, "xfs").plausible);
  const FlushPlausibility fast = judged(3'000, "ext4");
  EXPECT_FALSE(fast.plausible);
  EXPECT_NE(fast.verdict.find("too fast"), std::string::npos);
  const FlushPlausibility memory = judged(1'000'000, "tmpfs");
  EXPECT_FALSE(memory.plausible);
  EXPECT_NE(memory.verdict.find("syncs do nothing here"), std::string::npos);
}

TEST(FlushPlausibility, probes_a_directory_and_leaves_nothing_there) {
  const TemporaryDirectory directory;
  const Result<FlushPlausibility> probe = probe_flush(directory.path(), 8);
  ASSERT_TRUE(probe) << probe.error().message();
  EXPECT_GT(probe->median_ns, 0U);
  EXPECT_LE(probe->fastest_ns, probe->median_ns);
  EXPECT_FALSE(probe->verdict.empty());
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(FlushPlausibility, calls_tmpfs_what_it_is) {
  const Result<std::string> name = file_system_of("/dev/shm");
  if (!name || *name != "tmpfs") GTEST_SKIP() << "no tmpfs at /dev/shm";
  const TemporaryDirectory directory("/dev/shm");
  EXPECT_FALSE(probe_flush(directory.path(), 4)->plausible);
}

TEST(FlushPlausibility, of_no_directory_is_an_error) {
  EXPECT_FALSE(probe_flush("/no/such/directory"));
}

SystemSnapshot snapshot_at(std::uint64_t seconds) {
  SystemSnapshot snapshot;
  snapshot.taken_ns = snapshot.active_ns = seconds * 1'000'000'000;
  snapshot.boot_id = "boot";
  snapshot.online_cpus = "0-1";
  snapshot.frequency_khz = {3'000'000, 3'000'000};
  snapshot.governors = {"performance", "performance"};
  snapshot.throttle_events = {{"core", 5}};
  return snapshot;
}

TEST(SystemSnapshot, an_undisturbed_span_has_nothing_to_tell) {
  EXPECT_TRUE(disturbances(snapshot_at(1), snapshot_at(2)).empty());
  const SystemSnapshot now = *system_snapshot();
  EXPECT_FALSE(now.boot_id.empty());
  EXPECT_FALSE(now.online_cpus.empty());
  EXPECT_TRUE(disturbances(now, now).empty());
}

void expect_one(const SystemSnapshot& after, const std::string& words) {
  const std::vector<std::string> found = disturbances(snapshot_at(1), after);
  ASSERT_EQ(found.size(), 1U) << words;
  EXPECT_NE(found[0].find(words), std::string::npos) << found[0];
}

TEST(SystemSnapshot, each_change_is_told_by_itself) {
  SystemSnapshot after = snapshot_at(2);
  after.boot_id = "another";
  expect_one(after, "started anew");
  after = snapshot_at(2);
  after.taken_ns += 3'000'000'000;
  expect_one(after, "suspended for 3.0 s");
  after = snapshot_at(2);
  after.online_cpus = "0";
  expect_one(after, "from 0-1 to 0");
  after = snapshot_at(2);
  after.throttle_events["core"] = 7;
  expect_one(after, "throttled 2 times");
  after = snapshot_at(2);
  after.frequency_khz = {2'000'000, 2'000'000};
  expect_one(after, "from 3000 to 2000 MHz");
  after = snapshot_at(2);
  after.governors[0] = "powersave";
  expect_one(after, "governor");
  after = snapshot_at(2);
  after.cpu.user_ns = 900'000'000;
  after.cpu.own_user_ns = 600'000'000;
  expect_one(after, "other processes used 15 %");
  after = snapshot_at(2);
  after.cpu.steal_ns = 400'000'000;
  expect_one(after, "hypervisor took 20 %");
}

TEST(SystemSnapshot, a_clock_that_follows_the_load_is_no_change_of_the_machine) {
  SystemSnapshot before = snapshot_at(1);
  SystemSnapshot after = snapshot_at(2);
  before.governors = after.governors = {"schedutil", "schedutil"};
  after.frequency_khz = {800'000, 800'000};
  EXPECT_TRUE(disturbances(before, after).empty());
}

TEST(SystemSnapshot, our_own_load_does_not_disturb_us) {
  SystemSnapshot after = snapshot_at(2);
  after.cpu.user_ns = after.cpu.own_user_ns = 2'000'000'000;
  EXPECT_TRUE(disturbances(snapshot_at(1), after).empty());
}

}  // namespace
}  // namespace assay
