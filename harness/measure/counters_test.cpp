// Process, machine and device counters move by what a test does, and not without it.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/temporary_directory.h"
#include "harness/measure/barriers.h"
#include "harness/measure/block_device.h"
#include "harness/measure/kernel_file.h"
#include "harness/measure/process_counters.h"

namespace assay {
namespace {

void burn_cpu_ms(long milliseconds) {
  timespec start{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
  for (;;) {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    const long spent = (now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000;
    if (spent >= milliseconds) return;
  }
}

TEST(BarrierCounts, are_unknown_in_a_program_without_the_hooks) {
  const Result<BarrierCounts> counts = barrier_counts();
  ASSERT_FALSE(counts);
  EXPECT_EQ(counts.error().kind(), ErrorKind::environment);
  EXPECT_NE(counts.error().what().find("not linked"), std::string::npos);
}

TEST(ProcessCounters, charge_the_cpu_time_that_was_spent) {
  const ProcessCounters before = *process_counters();
  burn_cpu_ms(30);
  const ProcessCounters spent = *process_counters() - before;
  EXPECT_GE(spent.user_ns + spent.system_ns, 29'000'000U);
}

TEST(ProcessCounters, count_faults_of_touched_memory_and_bytes_of_calls) {
  const TemporaryDirectory directory;
  const int file = ::open(directory.file("f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const std::vector<char> block(1 << 20, 'x');
  const ProcessCounters before = *process_counters();
  std::vector<char> pages(64 << 20);
  // Huge pages would make it as few as 32; the vector is touched whole either way.
  ASSERT_EQ(::pwrite(file, block.data(), block.size(), 0), 1 << 20);
  ASSERT_EQ(::pread(file, pages.data(), 4096, 0), 4096);
  const ProcessCounters spent = *process_counters() - before;
  EXPECT_GE(spent.minor_faults, 32U);
  EXPECT_GE(spent.requested_write_bytes, 1U << 20);
  EXPECT_LT(spent.requested_write_bytes, (1U << 20) + 65536);
  EXPECT_GE(spent.requested_read_bytes, 4096U);
  ::close(file);
}

TEST(ProcessCounters, count_a_voluntary_switch_a_sleep) {
  const ProcessCounters before = *process_counters();
  for (int i = 0; i < 5; ++i) ::usleep(1000);
  EXPECT_GE((*process_counters() - before).voluntary_switches, 5U);
}

TEST(MemoryUse, has_a_peak_that_can_be_made_to_begin_anew) {
  constexpr std::size_t kBytes = 48 << 20;
  // From the kernel and back to it: an allocator may keep what is freed.
  void* const pages =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  std::memset(pages, 'x', kBytes);
  const std::uint64_t high = memory_use()->peak_bytes;
  EXPECT_GE(high, kBytes);
  ASSERT_EQ(::munmap(pages, kBytes), 0);
  const Status reset = reset_peak_memory();
  if (!reset) GTEST_SKIP() << reset.error().message();
  const MemoryUse low = *memory_use();
  EXPECT_LT(low.peak_bytes, high - (32U << 20));
  EXPECT_GE(low.peak_bytes, low.now_bytes);
}

TEST(ForeignCpu, leaves_our_own_out_and_never_goes_below_zero) {
  const MachineCpu before{.busy_ns = 1'000, .own_ns = 100};
  EXPECT_EQ(foreign_cpu(before, {.busy_ns = 1'500, .own_ns = 300}).all_ns, 300U);
  EXPECT_EQ(foreign_cpu(before, {.busy_ns = 1'100, .own_ns = 300}).all_ns, 0U);
  EXPECT_EQ(foreign_cpu(before, {.busy_ns = 900, .own_ns = 100}).all_ns, 0U);
}

TEST(ForeignCpu, in_user_space_has_nothing_of_the_kernels_threads) {
  // 500 of the machine's 800 are a program's, of which 300 are ours; write-back took the rest.
  const ForeignCpu used =
      foreign_cpu({}, {.busy_ns = 800, .user_ns = 500, .own_ns = 400, .own_user_ns = 300});
  EXPECT_EQ(used.all_ns, 400U);
  EXPECT_EQ(used.user_ns, 200U);
}

TEST(ForeignCpu, the_machine_was_at_least_as_busy_as_we_were) {
  const MachineCpu before = *machine_cpu();
  burn_cpu_ms(100);
  const MachineCpu after = *machine_cpu();
  EXPECT_GE(after.own_ns - before.own_ns, 99'000'000U);
  EXPECT_GE(after.busy_ns - before.busy_ns + 40'000'000U, after.own_ns - before.own_ns);
}

TEST(BlockStat, reads_the_fields_of_the_kernels_documentation) {
  // Documentation/block/stat.rst: read I/Os, merges, sectors, ticks, the same for writes, in
  // flight, I/O ticks, queue time, discards (4), flush I/Os, flush ticks.
  const Result<BlockCounters> counters = parse_block_stat(
      "  41442 10567 4982706 53440 31578 9966 3841288 11220 0 21280 65750 6519 60 "
      "911152 862 3342 227\n");
  ASSERT_TRUE(counters);
  EXPECT_EQ(counters->reads, 41442U);
  EXPECT_EQ(counters->read_bytes, 4982706U * 512);
  EXPECT_EQ(counters->writes, 31578U);
  EXPECT_EQ(counters->write_bytes, 3841288U * 512);
  EXPECT_EQ(counters->flushes, 3342U);
  EXPECT_EQ(counters->flush_ns, 227'000'000U);
}

TEST(BlockStat, of_an_old_kernel_has_no_flushes) {
  const Result<BlockCounters> counters = parse_block_stat("1 2 3 4 5 6 7 8 9 10 11");
  ASSERT_TRUE(counters);
  EXPECT_FALSE(counters->flushes.has_value());
  EXPECT_FALSE(parse_block_stat("1 2 3"));
}

TEST(BlockDevice, sees_synced_bytes_and_flushes_of_a_directory_on_a_disk) {
  const TemporaryDirectory directory;
  const Result<BlockDevice> device = BlockDevice::of(directory.path());
  if (!device) GTEST_SKIP() << device.error().message();
  const BlockCounters before = *device->read();
  const int file = ::open(directory.file("f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const std::vector<char> block(1 << 20, 'x');
  ASSERT_EQ(::pwrite(file, block.data(), block.size(), 0), 1 << 20);
  ASSERT_EQ(::fdatasync(file), 0);
  ::close(file);
  const BlockCounters spent = *device->read() - before;
  EXPECT_GE(spent.write_bytes, 1U << 20);
  EXPECT_GE(spent.writes, 1U);
  EXPECT_FALSE(device->name().empty());
  EXPECT_TRUE(device->name().starts_with(device->disk()));
}

TEST(BlockDevice, is_an_error_where_there_is_none) {
  const Result<BlockDevice> device = BlockDevice::of("/proc");
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().kind(), ErrorKind::environment);
}

TEST(KernelFile, takes_the_number_of_the_whole_name_only) {
  EXPECT_EQ(*kernel_number("read_bytes: 7\nread: 3\n", "read", "f"), 3U);
  EXPECT_EQ(*kernel_number("VmRSS:\t  12 kB\n", "VmRSS", "f"), 12U);
  EXPECT_FALSE(kernel_number("cancelled_write_bytes: 1\n", "write_bytes", "f"));
}

}  // namespace
}  // namespace assay
