// The recorder: everything that a process does to the files of a directory, and nothing missing.
#include "harness/qualify/power/record.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <thread>

#include "adapters/temporary_directory.h"
#include "harness/qualify/power/recorder.h"

namespace assay::qualify::power {
namespace {

int make(const std::string& path, int flags = 0) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | flags, 0644);
  ASSAY_CHECK(file >= 0, "a file can be made");
  return file;
}

void put(int file, std::string_view text, off_t at) {
  ASSAY_CHECK(::pwrite(file, text.data(), text.size(), at) == static_cast<ssize_t>(text.size()),
              "a write is whole");
}

Result<Trace> record(const std::string& directory, const std::function<void()>& work) {
  RecordPlan plan;
  plan.directory = directory;
  plan.log_bytes = 64 << 20;
  return record_call(plan, [&]() -> Status {
    work();
    return {};
  });
}

std::vector<std::string> lines(const Trace& trace) {
  std::vector<std::string> out;
  for (const Event& event : trace.events) out.push_back(describe(event));
  return out;
}

bool has(const Trace& trace, const std::string& line) {
  for (const std::string& each : lines(trace)) {
    if (each == line) return true;
  }
  return false;
}

TEST(Record, GivesTheCallsInOrderAndTheDirectoryByteForByte) {
  const TemporaryDirectory home;
  const auto trace = record(home.path(), [&] {
    const int file = make(home.file("log"));
    put(file, "hello", 0);
    ::fdatasync(file);
    ::close(file);
    ::rename(home.file("log").c_str(), home.file("new").c_str());
    const int folder = ::open(home.path().c_str(), O_RDONLY | O_DIRECTORY);
    ::fsync(folder);
    ::close(folder);
  });
  ASSERT_TRUE(trace) << trace.error().message();
  EXPECT_EQ(lines(*trace), (std::vector<std::string>{"create log", "write log 0+5", "fdatasync log",
                                                     "sync of log returned 0", "rename log to new",
                                                     "fsync .", "sync of . returned 0"}));
  EXPECT_FALSE(trace->events[2].stack.empty());
}

TEST(Record, FollowsEveryWayToWrite) {
  const TemporaryDirectory home;
  const auto trace = record(home.path(), [&] {
    const std::string text(10'000, 'x');
    const int file = make(home.file("a"));
    static_cast<void>(!::write(file, "begin", 5));
    static_cast<void>(!::write(file, "more", 4));
    char first[] = "first";
    char second[] = "second";
    const iovec pieces[] = {{first, 5}, {second, 6}};
    static_cast<void>(!::writev(file, pieces, 2));
    static_cast<void>(!::pwritev(file, pieces, 2, 5000));
    static_cast<void>(!::pwritev2(file, pieces, 2, 9000, RWF_DSYNC));
    put(file, text, 12'345);
    ::ftruncate(file, 15'000);
    ::fallocate(file, 0, 20'000, 5'000);
    ::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4'000, 5'000);
    ::fallocate(file, FALLOC_FL_ZERO_RANGE, 12'400, 100);
    const int end = make(home.file("a"), O_APPEND);
    static_cast<void>(!::write(end, "appended", 8));
    const int copy = make(home.file("b"));
    loff_t from = 100;
    loff_t to = 50;
    ::copy_file_range(file, &from, copy, &to, 7'000, 0);
    ::sendfile(copy, file, nullptr, 300);
    const int other = ::dup(copy);
    put(other, "through a duplicate", 100);
    std::FILE* const stream = std::fopen(home.file("c").c_str(), "w");
    std::fputs("through stdio", stream);
    std::fclose(stream);
    ::syscall(SYS_pwrite64, file, "direct", 6, 700);
    ::truncate(home.file("c").c_str(), 3);
    ::mkdir(home.file("d").c_str(), 0755);
    ::close(::openat(::open(home.file("d").c_str(), O_RDONLY), "e", O_CREAT | O_WRONLY, 0644));
    ::link(home.file("a").c_str(), home.file("d/f").c_str());
    ::rename(home.file("d").c_str(), home.file("g").c_str());
    ::unlink(home.file("a").c_str());
    ::mkdir(home.file("h").c_str(), 0755);
    ::rmdir(home.file("h").c_str());
    ::close(::creat(home.file("b").c_str(), 0644));
  });
  ASSERT_TRUE(trace) << trace.error().message();
  EXPECT_TRUE(has(*trace, "write a 14+6"));
  EXPECT_TRUE(has(*trace, "write a 9005+6 (synchronous)"));
  EXPECT_TRUE(has(*trace, "write c 0+13"));
  EXPECT_TRUE(has(*trace, "rename d to g"));
}

TEST(Record, SeesStoresThroughAMapping) {
  const TemporaryDirectory home;
  home.fill("map", 64 << 10);
  const auto trace = record(home.path(), [&] {
    const int file = make(home.file("map"));
    auto* const bytes =
        static_cast<char*>(::mmap(nullptr, 64 << 10, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    ::close(file);
    bytes[5'000] = 'a';
    ::msync(bytes, 64 << 10, MS_SYNC);
    bytes[5'001] = 'b';
    bytes[40'000] = 'c';
    ::munmap(bytes, 64 << 10);
  });
  ASSERT_TRUE(trace) << trace.error().message();
  EXPECT_EQ(lines(*trace),
            (std::vector<std::string>{"store to mapping of map 4096+4096", "fdatasync map",
                                      "sync of map returned 0", "store to mapping of map 4096+4096",
                                      "store to mapping of map 36864+4096"}));
}

TEST(Record, SeesWhatIsStoredToAMappingThatIsNeverUnmapped) {
  const TemporaryDirectory home;
  home.fill("map", 8192);
  const auto trace = record(home.path(), [&] {
    const int file = make(home.file("map"));
    auto* const bytes =
        static_cast<char*>(::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    bytes[1] = 'a';
  });
  ASSERT_TRUE(trace) << trace.error().message();
  EXPECT_EQ(trace->events.size(), 1U);
}

TEST(Record, KeepsTheOrderOfThreadsAndForks) {
  const TemporaryDirectory home;
  const auto trace = record(home.path(), [&] {
    const int file = make(home.file("log"), O_APPEND);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&] {
        for (int count = 0; count < 50; ++count) static_cast<void>(!::write(file, "123456789", 9));
      });
    }
    for (std::thread& thread : threads) thread.join();
    const pid_t child = ::fork();
    if (child == 0) {
      static_cast<void>(!::write(file, "child", 5));
      ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
  });
  ASSERT_TRUE(trace) << trace.error().message();
  EXPECT_EQ(trace->events.size(), 202U);
  EXPECT_EQ(trace->final.file(1).size, 4U * 50 * 9 + 5);
}

TEST(Record, PutsMarksIntoTheOrderOfTheCalls) {
  const TemporaryDirectory home;
  const auto trace = record(home.path(), [&] {
    RecordSink sink;
    const int file = make(home.file("log"));
    sink.begun(0, 1);
    put(file, "x", 0);
    sink.acknowledged(0, 1);
  });
  ASSERT_TRUE(trace) << trace.error().message();
  EXPECT_EQ(lines(*trace),
            (std::vector<std::string>{"create log", "transaction 1 of writer 0 begun",
                                      "write log 0+1", "transaction 1 of writer 0 acknowledged"}));
  const Acknowledgements all = receipts_of(*trace, std::vector<Baseline>(1), true);
  EXPECT_EQ(receipts_at(*trace, all, 0).writers[0].since.size(), 0U);
  EXPECT_EQ(receipts_at(*trace, all, 2).writers[0].since.size(), 1U);
  EXPECT_EQ(receipts_at(*trace, all, 2).acknowledged_commits(), 0U);
  EXPECT_EQ(receipts_at(*trace, all, 3).acknowledged_commits(), 1U);
}

TEST(Record, LeavesFilesOutsideOfTheDirectoryAlone) {
  const TemporaryDirectory home;
  const TemporaryDirectory other;
  const auto trace = record(home.path(), [&] {
    const int file = make(other.file("log"));
    put(file, "x", 0);
    ::fsync(file);
    ::unlink(other.file("log").c_str());
  });
  ASSERT_TRUE(trace) << trace.error().message();
  EXPECT_TRUE(trace->events.empty());
}

TEST(Record, RefusesAFileWithoutAName) {
  const TemporaryDirectory home;
  const auto trace =
      record(home.path(), [&] { ::open(home.path().c_str(), O_TMPFILE | O_RDWR, 0644); });
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().kind(), ErrorKind::unsupported);
  EXPECT_NE(trace.error().message().find("O_TMPFILE"), std::string::npos)
      << trace.error().message();
}

TEST(Record, RefusesAFileThatIsMovedInFromOutside) {
  const TemporaryDirectory home;
  const TemporaryDirectory other;
  const std::string from = other.fill("file", 10);
  const auto trace =
      record(home.path(), [&] { ::rename(from.c_str(), home.file("file").c_str()); });
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().message().find("moved into"), std::string::npos);
}

TEST(Record, TurnsDownARingAndSaysSo) {
  const TemporaryDirectory home;
  const auto trace = record(home.path(), [&] {
    char parameters[120] = {};
    ASSAY_CHECK(::syscall(SYS_io_uring_setup, 8, parameters) == -1 && errno == ENOSYS,
                "no ring while recording");
  });
  ASSERT_TRUE(trace) << trace.error().message();
  EXPECT_NE(trace->notes.find("io_uring"), std::string::npos);
}

TEST(Record, RefusesARecordThatDoesNotGiveTheDirectory) {
  const TemporaryDirectory home;
  home.fill("file", 10);
  // Somebody else writes: a process that was there before and is not recorded.
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t stranger = ::fork();
  if (stranger == 0) {
    char byte;
    static_cast<void>(!::read(pipe[0], &byte, 1));
    put(make(home.file("file")), "unseen", 3);
    ::_exit(0);
  }
  const auto trace = record(home.path(), [&] {
    static_cast<void>(!::write(pipe[1], "x", 1));
    ::usleep(200'000);
  });
  ::waitpid(stranger, nullptr, 0);
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().message().find("\"file\" differs at byte 3"), std::string::npos)
      << trace.error().message();
}

TEST(Record, SaysHowTheProcessDied) {
  const TemporaryDirectory home;
  const auto trace = record(home.path(), [] { ::abort(); });
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().message().find("signal 6"), std::string::npos);
}

TEST(Record, SaysThatAThreadBlockedTheRecordersSignal) {
  const TemporaryDirectory home;
  const auto trace = record(home.path(), [&] {
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, nullptr);
    make(home.file("x"));
  });
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().message().find("blocked its signal"), std::string::npos)
      << trace.error().message();
}

TEST(Record, RefusesARecordThatOutgrewItsMemory) {
  const TemporaryDirectory home;
  RecordPlan plan;
  plan.directory = home.path();
  plan.log_bytes = 4096;
  const auto trace = record_call(plan, [&]() -> Status {
    put(make(home.file("x")), std::string(10'000, 'y'), 0);
    return {};
  });
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().message().find("larger than the memory"), std::string::npos);
}

}  // namespace
}  // namespace assay::qualify::power
