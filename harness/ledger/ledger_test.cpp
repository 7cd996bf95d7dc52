#include "harness/ledger/ledger.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "adapters/temporary_directory.h"
#include "harness/ledger/durable_file.h"
#include "harness/provenance/sha256.h"

namespace assay {
namespace {

class Ledger : public ::testing::Test {
 protected:
  const TemporaryDirectory own_;
  const std::string folder_ = own_.path();
  const std::string path_ = own_.file("ledger.jsonl");
};

// FIPS 180-2, appendix B.1 and B.2.
TEST(Sha256, gives_the_digests_of_the_standard) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST_F(Ledger, gives_back_what_was_appended) {
  std::string head;
  {
    auto writer = LedgerWriter::open(path_);
    ASSERT_TRUE(writer) << writer.error().message();
    ASSERT_TRUE(writer->append("plan", {{"result", "r"}, {"x", 0.1}}));
    head = writer->append("trial", {{"index", 1}, {"note", "caf\xc3\xa9"}}).value();
  }
  const auto contents = read_ledger(path_);
  ASSERT_TRUE(contents) << contents.error().message();
  ASSERT_EQ(contents->records.size(), 2U);
  EXPECT_EQ(contents->records[0].kind, "plan");
  EXPECT_EQ(contents->records[0].body["x"], 0.1);
  EXPECT_EQ(contents->records[1].body["note"], "caf\xc3\xa9");
  EXPECT_EQ(contents->head, head);
  EXPECT_TRUE(contents->torn.empty());
}

TEST_F(Ledger, without_a_record_can_be_taken_away_and_one_with_records_cannot) {
  {
    auto writer = LedgerWriter::open(path_);
    ASSERT_TRUE(writer);
    writer->remove_if_empty();
    EXPECT_FALSE(std::filesystem::exists(path_));
    EXPECT_FALSE(writer->append("plan", {{"result", "r"}}));
    auto next = LedgerWriter::open(path_);  // another run need not wait for the first to be gone
    ASSERT_TRUE(next) << next.error().message();
    ASSERT_TRUE(next->append("plan", {{"result", "r"}}));
    next->remove_if_empty();
  }
  EXPECT_EQ(read_ledger(path_)->records.size(), 1U);
}

TEST_F(Ledger, is_written_in_the_documented_line_format) {
  {
    auto writer = LedgerWriter::open(path_);
    ASSERT_TRUE(writer->append("plan", {{"b", 1}, {"a", 2}}));
  }
  const std::string text = read_whole_file(path_).value();
  const std::string start = R"({"body":{"a":2,"b":1},"kind":"plan","previous":")" +
                            std::string(64, '0') +
                            R"(","schema":2,"seq":0,"source":null,"time":"20)";
  EXPECT_EQ(text.substr(0, start.size()), start);
  EXPECT_EQ(text.back(), '\n');
  const auto contents = read_ledger(path_);
  EXPECT_EQ(contents->head, sha256_hex(text.substr(0, text.size() - 1)));
}

TEST_F(Ledger, continues_the_chain_when_it_is_opened_again) {
  for (int i = 0; i < 3; ++i) {
    auto writer = LedgerWriter::open(path_);
    ASSERT_TRUE(writer) << writer.error().message();
    EXPECT_EQ(writer->records().size(), static_cast<std::size_t>(i));
    ASSERT_TRUE(writer->append("trial", {{"index", i}}));
  }
  EXPECT_EQ(read_ledger(path_)->records.size(), 3U);
}

TEST_F(Ledger, keeps_a_record_whose_text_is_not_utf8) {
  {
    auto writer = LedgerWriter::open(path_);
    ASSERT_TRUE(writer->append("trial", {{"reason", "bad \xff byte"}}));
  }
  const auto contents = read_ledger(path_);
  ASSERT_TRUE(contents) << contents.error().message();
  EXPECT_NE(contents->records[0].body["reason"].get<std::string>().find("bad "), std::string::npos);
}

TEST_F(Ledger, has_one_writer_at_a_time) {
  auto first = LedgerWriter::open(path_);
  ASSERT_TRUE(first);
  const auto second = LedgerWriter::open(path_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind(), ErrorKind::environment);
  EXPECT_NE(second.error().message().find("another assay"), std::string::npos);
  ASSERT_TRUE(first->append("plan", nlohmann::json::object()));
  {
    const LedgerWriter gone = std::move(*first);
  }
  EXPECT_TRUE(LedgerWriter::open(path_));
}

TEST_F(Ledger, loses_nothing_to_processes_that_race_to_write) {
  constexpr int kProcesses = 4;
  constexpr int kRecords = 10;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child != 0) continue;
    for (int done = 0; done < kRecords;) {
      auto writer = LedgerWriter::open(path_);
      if (writer && writer->append("trial", {{"process", p}, {"index", done}})) ++done;
    }
    ::_exit(0);
  }
  for (int p = 0; p < kProcesses; ++p) {
    int how = 0;
    ASSERT_GT(::wait(&how), 0);
    EXPECT_EQ(how, 0);
  }
  const auto contents = read_ledger(path_);
  ASSERT_TRUE(contents) << contents.error().message();
  EXPECT_EQ(contents->records.size(), static_cast<std::size_t>(kProcesses * kRecords));
}

TEST_F(Ledger, is_cut_back_to_whole_records_when_the_disk_is_full) {
  {
    auto writer = LedgerWriter::open(path_);
    ASSERT_TRUE(writer->append("plan", {{"result", "r"}}));
  }
  const std::string before = read_whole_file(path_).value();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {  // the limit must not reach the other tests
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{before.size() + 100, before.size() + 100};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto writer = LedgerWriter::open(path_);
    const bool failed = writer && !writer->append("trial", {{"note", std::string(500, 'x')}});
    // The writer stays usable: a smaller record would have found its place.
    ::_exit(failed && writer->records().size() == 1 ? 0 : 1);
  }
  int how = 0;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  EXPECT_EQ(how, 0) << "the child saw no error";
  EXPECT_EQ(read_whole_file(path_).value(), before);
}

TEST_F(Ledger, that_is_missing_is_named) {
  const auto contents = read_ledger(path_);
  ASSERT_FALSE(contents);
  EXPECT_EQ(contents.error().kind(), ErrorKind::bad_input);
  EXPECT_EQ(contents.error().where(), path_);
}

TEST_F(Ledger, in_a_folder_that_is_missing_is_an_error) {
  EXPECT_FALSE(LedgerWriter::open(folder_ + "/none/ledger.jsonl"));
}

}  // namespace
}  // namespace assay
