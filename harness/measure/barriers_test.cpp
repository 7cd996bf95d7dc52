// Linked with the hooks: the calls of this program first, then those that the stores' shared
// libraries make.
#include "harness/measure/barriers.h"
#include "adapters/temporary_directory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/registry.h"

namespace assay {
namespace {

class Barriers : public testing::Test {
 protected:
  void SetUp() override {
    const Result<BarrierCounts> counts = barrier_counts();
    if (!counts) GTEST_SKIP() << counts.error().message();  // a build with sanitizers
    before_ = *counts;
  }
  /// Since the start of the test or the last call.
  BarrierCounts since() {
    const BarrierCounts now = *barrier_counts();
    const BarrierCounts difference = now - before_;
    before_ = now;
    return difference;
  }

  TemporaryDirectory directory_;
  BarrierCounts before_;
};

TEST_F(Barriers, each_call_counts_as_what_it_is) {
  const int file = ::open(directory_.file("f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  ASSERT_EQ(::pwrite(file, "abcd", 4, 0), 4);
  ASSERT_EQ(::fsync(file), 0);
  ASSERT_EQ(::fdatasync(file), 0);
  ASSERT_EQ(::fdatasync(file), 0);
  ASSERT_EQ(::sync_file_range(file, 0, 4, SYNC_FILE_RANGE_WRITE), 0);
  ASSERT_EQ(::syncfs(file), 0);
  void* const map = ::mmap(nullptr, 4, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_NE(map, MAP_FAILED);
  ASSERT_EQ(::msync(map, 4, MS_SYNC), 0);
  ASSERT_EQ(::msync(map, 4, MS_ASYNC), 0);  // not a barrier
  ::munmap(map, 4);
  const BarrierCounts counts = since();
  EXPECT_EQ(counts.fsync, 1U);
  EXPECT_EQ(counts.fdatasync, 2U);
  EXPECT_EQ(counts.sync_file_range, 1U);
  EXPECT_EQ(counts.syncfs, 1U);
  EXPECT_EQ(counts.msync, 1U);
  EXPECT_EQ(counts.dsync_writes, 0U);
  EXPECT_EQ(counts.write_calls, 1U);
  EXPECT_EQ(counts.write_bytes, 4U);
  EXPECT_EQ(counts.total(), 6U);
  ::close(file);
}

TEST_F(Barriers, the_calls_still_do_their_work_and_report_errors) {
  const std::string path = directory_.file("f");
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
  ASSERT_GE(file, 0);
  EXPECT_EQ(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640), -1);
  EXPECT_EQ(errno, EEXIST);
  iovec parts[2] = {{const_cast<char*>("abc"), 3}, {const_cast<char*>("de"), 2}};
  EXPECT_EQ(::writev(file, parts, 2), 5);
  EXPECT_EQ(::pwritev(file, parts, 2, 5), 5);
  EXPECT_EQ(::pwritev2(file, parts, 2, 10, 0), 5);
  char read_back[16] = {};
  EXPECT_EQ(::pread(file, read_back, sizeof read_back, 0), 15);
  EXPECT_STREQ(read_back, "abcdeabcdeabcde");
  EXPECT_EQ(::fcntl(file, F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(::close(file), 0);
  EXPECT_EQ(::fsync(file), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(::write(file, "x", 1), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(::close(file), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(std::filesystem::status(path).permissions() & std::filesystem::perms::others_all,
            std::filesystem::perms::none);
}

TEST_F(Barriers, writes_to_dsync_files_count_as_barriers_through_every_duplicate) {
  const int file =
      ::open(directory_.file("f").c_str(), O_WRONLY | O_CREAT | O_DSYNC | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  EXPECT_EQ(::pwrite(file, "a", 1, 0), 1);
  EXPECT_EQ(since().dsync_writes, 1U);
  const int by_dup = ::dup(file);
  const int by_fcntl = ::fcntl(file, F_DUPFD_CLOEXEC, 100);
  ASSERT_GE(by_fcntl, 100);
  EXPECT_EQ(::write(by_dup, "b", 1), 1);
  EXPECT_EQ(::write(by_fcntl, "c", 1), 1);
  EXPECT_EQ(since().dsync_writes, 2U);
  const int plain = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  EXPECT_EQ(::write(plain, "d", 1), 1);
  EXPECT_EQ(since().dsync_writes, 0U);
  ASSERT_EQ(::dup2(plain, by_dup), by_dup);  // the duplicate becomes a plain file
  EXPECT_EQ(::write(by_dup, "e", 1), 1);
  EXPECT_EQ(since().dsync_writes, 0U);
  for (const int open_file : {file, by_dup, by_fcntl, plain}) ::close(open_file);
}

TEST_F(Barriers, a_reused_descriptor_number_inherits_nothing) {
  const std::string path = directory_.file("f");
  const int synced = ::open(path.c_str(), O_WRONLY | O_CREAT | O_SYNC | O_CLOEXEC, 0600);
  ASSERT_GE(synced, 0);
  EXPECT_EQ(::write(synced, "a", 1), 1);
  EXPECT_EQ(since().dsync_writes, 1U);
  ::close(synced);
  int ends[2];  // pipe() takes the lowest free number and is not one of the hooks
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ASSERT_TRUE(ends[0] == synced || ends[1] == synced);
  EXPECT_EQ(::write(ends[1], "b", 1), 1);
  EXPECT_EQ(since().dsync_writes, 0U);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(Barriers, a_write_may_be_a_barrier_by_itself) {
  const int file = ::open(directory_.file("f").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  iovec part = {const_cast<char*>("a"), 1};
  const ssize_t wrote = ::pwritev2(file, &part, 1, 0, RWF_DSYNC);
  EXPECT_EQ(wrote, 1);
  EXPECT_EQ(since().dsync_writes, 1U);
  ::close(file);
}

TEST_F(Barriers, threads_lose_no_count) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kWrites = 1'000;
  std::vector<std::jthread> threads;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([] {
      const int file = ::open("/dev/null", O_WRONLY | O_DSYNC | O_CLOEXEC);
      for (std::uint64_t i = 0; i < kWrites; ++i)
        if (::write(file, "abc", 3) != 3) std::abort();
      ::close(file);
    });
  }
  threads.clear();
  const BarrierCounts counts = since();
  EXPECT_EQ(counts.write_calls, kThreads * kWrites);
  EXPECT_EQ(counts.write_bytes, 3 * kThreads * kWrites);
  EXPECT_EQ(counts.dsync_writes, kThreads * kWrites);
}

constexpr int kCommits = 20;

/// Barriers of `kCommits` single puts of 100 bytes in class `power`, after one put to begin with.
class StoreBarriers : public Barriers {
 protected:
  void commit(const std::string& store_name, BarrierCounts& counts) {
    const Result<const Driver*> driver = find_driver(store_name);
    ASSERT_TRUE(driver) << driver.error().message();
    OpenOptions options;
    options.directory = directory_.path();
    options.key_kind = KeyKind::u64;
    options.memory_bytes = std::uint64_t{8} << 20;
    Result<std::unique_ptr<Store>> store = (*driver)->open(options);
    ASSERT_TRUE(store) << store.error().message();
    Result<std::unique_ptr<Session>> session = (*store)->session();
    ASSERT_TRUE(session) << session.error().message();
    std::string key(8, '\0');
    const std::string value(100, 'v');
    ASSERT_TRUE((*session)->put(key, value));
    since();
    for (int i = 1; i <= kCommits; ++i) {
      key[7] = static_cast<char>(i);
      ASSERT_TRUE((*session)->put(key, value));
    }
    counts = since();
    session->reset();
    ASSERT_TRUE((*store)->close());
  }
};

TEST_F(StoreBarriers, sqlite_syncs_its_log_once_a_commit) {
  BarrierCounts counts;
  ASSERT_NO_FATAL_FAILURE(commit("sqlite", counts));
  EXPECT_EQ(counts.fdatasync + counts.fsync, kCommits);
  EXPECT_EQ(counts.total(), kCommits);
}

TEST_F(StoreBarriers, rocksdb_syncs_its_log_once_a_commit) {
  BarrierCounts counts;
  ASSERT_NO_FATAL_FAILURE(commit("rocksdb", counts));
  EXPECT_EQ(counts.fdatasync + counts.fsync, kCommits);
  EXPECT_EQ(counts.total(), kCommits);
}

TEST_F(StoreBarriers, lmdb_syncs_its_pages_and_writes_its_meta_page_through) {
  BarrierCounts counts;
  ASSERT_NO_FATAL_FAILURE(commit("lmdb", counts));
  EXPECT_EQ(counts.fdatasync, kCommits);
  EXPECT_EQ(counts.dsync_writes, kCommits);
  EXPECT_EQ(counts.total(), 2 * kCommits);
}

TEST_F(StoreBarriers, null_has_none) {
  BarrierCounts counts;
  ASSERT_NO_FATAL_FAILURE(commit("null", counts));
  EXPECT_EQ(counts.total(), 0U);
  EXPECT_EQ(counts.write_calls, 0U);
}

}  // namespace
}  // namespace assay
