// What damage does to a ledger: every cut, every flipped byte, every removed or moved line.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/temporary_directory.h"
#include "harness/ledger/durable_file.h"
#include "harness/ledger/ledger.h"
#include "harness/ledger/ledger_lines_test.h"

namespace assay {
namespace {

class DamagedLedger : public ::testing::Test {
 protected:
  static constexpr std::size_t kRecords = 4;

  void SetUp() override {
    auto writer = LedgerWriter::open(path_);
    ASSERT_TRUE(writer);
    for (std::size_t i = 0; i < kRecords; ++i) {
      ASSERT_TRUE(writer->append("trial", {{"arm", "a"}, {"index", i}, {"value", 1.5}}));
    }
    text_ = read_whole_file(path_).value();
    head_ = writer->head();
    for (std::size_t at = 0; at < text_.size();) {
      const std::size_t end = text_.find('\n', at) + 1;
      lines_.push_back(text_.substr(at, end - at));
      at = end;
    }
  }

  [[nodiscard]] std::string damage_of(const std::string& text) const {
    const auto contents = parse_ledger(text, "L");
    return contents ? "" : contents.error().message();
  }

  const TemporaryDirectory own_;
  const std::string folder_ = own_.path();
  const std::string path_ = own_.file("ledger.jsonl");
  std::string text_;
  std::string head_;
  std::vector<std::string> lines_;
};

TEST_F(DamagedLedger, cut_anywhere_keeps_every_whole_record_and_reports_the_rest) {
  for (std::size_t cut = 0; cut <= text_.size(); ++cut) {
    const std::string prefix = text_.substr(0, cut);
    const auto contents = parse_ledger(prefix, "L");
    ASSERT_TRUE(contents) << "cut at " << cut << ": " << contents.error().message();
    const auto whole = static_cast<std::size_t>(std::count(prefix.begin(), prefix.end(), '\n'));
    ASSERT_EQ(contents->records.size(), whole) << "cut at " << cut;
    ASSERT_EQ(contents->valid_bytes + contents->torn.size(), cut);
    ASSERT_EQ(contents->torn, prefix.substr(contents->valid_bytes));
  }
}

TEST_F(DamagedLedger, cut_anywhere_is_mended_by_the_next_writer_only) {
  // Every byte of the last record: the cases of the others are the same.
  for (std::size_t cut = text_.size() - lines_[3].size(); cut < text_.size(); ++cut) {
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      std::filesystem::remove(entry);
    }
    ledger_lines::put(path_, text_.substr(0, cut));
    const std::string torn = read_ledger(path_)->torn;
    ASSERT_EQ(read_whole_file(path_)->size(), cut) << "a reader changed the file";
    auto writer = LedgerWriter::open(path_);
    ASSERT_TRUE(writer) << writer.error().message();
    ASSERT_EQ(writer->torn_file().empty(), torn.empty());
    if (!torn.empty()) {
      ASSERT_EQ(writer->torn_file(), path_ + ".torn-1");
      ASSERT_EQ(read_whole_file(writer->torn_file()).value(), torn);
    }
    const std::size_t before = writer->records().size();
    ASSERT_TRUE(writer->append("trial", {{"after", cut}}));
    const auto mended = read_ledger(path_);
    ASSERT_TRUE(mended) << mended.error().message();
    ASSERT_EQ(mended->records.size(), before + 1);
    ASSERT_TRUE(mended->torn.empty());
  }
}

TEST_F(DamagedLedger, whose_end_is_no_beginning_of_a_record_was_not_cut_by_a_killed_writer) {
  for (const std::string& tail : {std::string("\x93\x07random"), std::string("{\"boby\":"),
                                  std::string("hello"), std::string("\0\0x", 3)}) {
    const auto refused = parse_ledger(text_ + tail, "l.jsonl");
    ASSERT_FALSE(refused) << tail;
    EXPECT_EQ(refused.error().kind(), ErrorKind::ledger);
    EXPECT_EQ(refused.error().where(), "l.jsonl:" + std::to_string(lines_.size() + 1));
    EXPECT_FALSE(parse_ledger(tail, "l.jsonl"));
  }
  for (const std::string& tail :
       {std::string("{\"bo"), std::string("{\"body\":{\"x\":1"), std::string(40, '\0')}) {
    const auto torn = parse_ledger(text_ + tail, "l.jsonl");
    ASSERT_TRUE(torn) << torn.error().message();
    EXPECT_EQ(torn->torn, tail);
  }
}

TEST_F(DamagedLedger, with_a_second_torn_line_keeps_both) {
  for (int number = 1; number <= 2; ++number) {
    const std::string whole = read_whole_file(path_).value();
    ASSERT_TRUE(write_file_durably(path_, whole + "{\"body\":" + std::to_string(number)));
    auto writer = LedgerWriter::open(path_);
    ASSERT_TRUE(writer);
    EXPECT_EQ(writer->torn_file(), path_ + ".torn-" + std::to_string(number));
  }
  EXPECT_EQ(read_whole_file(path_).value(), text_);
}

TEST_F(DamagedLedger, with_any_byte_flipped_is_found_out) {
  for (std::size_t at = 0; at < text_.size(); ++at) {
    for (const char mask : {'\x01', '\x20'}) {
      std::string changed = text_;
      changed[at] = static_cast<char>(changed[at] ^ mask);
      const auto contents = parse_ledger(changed, "L");
      if (!contents) continue;
      // Only the last line can change unseen by the chain; the head's hash shows it.
      ASSERT_GE(at, text_.size() - lines_.back().size()) << "byte " << at;
      ASSERT_FALSE(contents->torn.empty() && contents->head == head_) << "byte " << at;
    }
  }
}

TEST_F(DamagedLedger, names_the_first_bad_line) {
  std::string changed = lines_[1];
  changed.replace(changed.find("1.5"), 3, "2.5");
  // The line itself still is a record; the one after it shows that it was changed.
  const std::string message = damage_of(lines_[0] + changed + lines_[2] + lines_[3]);
  EXPECT_EQ(message.substr(0, 4), "L:3:") << message;
  EXPECT_NE(message.find("chain is broken"), std::string::npos) << message;
  const std::string garbage = damage_of(lines_[0] + "not JSON\n" + lines_[2]);
  EXPECT_EQ(garbage.substr(0, 4), "L:2:") << garbage;
  EXPECT_NE(garbage.find("not JSON"), std::string::npos) << garbage;
}

TEST_F(DamagedLedger, with_a_line_removed_or_moved_is_found_out) {
  EXPECT_NE(damage_of(lines_[1] + lines_[2] + lines_[3]).find("L:1: "), std::string::npos);
  EXPECT_NE(damage_of(lines_[0] + lines_[2] + lines_[3]).find("a line was removed"),
            std::string::npos);
  EXPECT_NE(damage_of(lines_[0] + lines_[2] + lines_[1] + lines_[3]).find("L:2: "),
            std::string::npos);
  EXPECT_NE(damage_of(lines_[0] + lines_[0] + lines_[1]).find("repeated or moved"),
            std::string::npos);
}

TEST_F(DamagedLedger, is_whole_after_a_disk_that_was_full_at_any_byte_of_a_record) {
  const nlohmann::json body = {{"arm", "b"}, {"note", std::string(100, 'x')}};
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {  // the limit must not reach the other tests
    ::signal(SIGXFSZ, SIG_IGN);
    for (rlim_t room = 0;; ++room) {
      rlimit limit{};
      ::getrlimit(RLIMIT_FSIZE, &limit);
      limit.rlim_cur = text_.size() + room;
      ::setrlimit(RLIMIT_FSIZE, &limit);
      auto writer = LedgerWriter::open(path_);
      if (!writer) ::_exit(1);
      if (writer->append("trial", body)) ::_exit(room > 250 ? 0 : 2);
      if (read_whole_file(path_).value() != text_) ::_exit(3);
    }
  }
  int how = 0;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  EXPECT_EQ(how, 0);
  const auto contents = read_ledger(path_);
  ASSERT_TRUE(contents) << contents.error().message();
  EXPECT_EQ(contents->records.size(), kRecords + 1);
}

TEST_F(DamagedLedger, of_a_nesting_that_would_exhaust_the_stack_is_refused) {
  std::string deep = R"({"body":{"a":)" + std::string(200'000, '[') + std::string(200'000, ']') +
                     R"(},"kind":"x","previous":")" + genesis_hash() +
                     R"(","schema":1,"seq":0,"time":"t"})" + "\n";
  EXPECT_NE(damage_of(deep).find("nested deeper"), std::string::npos);
}

TEST_F(DamagedLedger, of_another_schema_or_with_other_keys_is_refused) {
  const std::string other = R"({"body":{},"kind":"plan","previous":")" + genesis_hash() +
                            R"(","schema":9,"seq":0,"time":"t"})" + "\n";
  EXPECT_NE(damage_of(other).find("schema 9 is not known"), std::string::npos);
  const std::string extra = R"({"body":{},"extra":1,"kind":"plan","previous":")" + genesis_hash() +
                            R"(","schema":1,"seq":0,"time":"t"})" + "\n";
  EXPECT_NE(damage_of(extra).find("\"extra\" does not belong here"), std::string::npos);
  EXPECT_NE(damage_of("[]\n").find("not a JSON object"), std::string::npos);
  std::string spaced = lines_[0];
  spaced.insert(1, " ");
  EXPECT_NE(damage_of(spaced).find("canonical form"), std::string::npos);
}

}  // namespace
}  // namespace assay
