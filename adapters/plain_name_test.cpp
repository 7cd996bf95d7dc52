#include "adapters/plain_name.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(PlainName, takes_what_files_can_be_called_after) {
  for (const char* name : {"a", "ycsb-a", "big_values.2", "-", "A9"}) {
    EXPECT_EQ(plain_name_fault(name), "") << name;
  }
  EXPECT_EQ(plain_name_fault(std::string(kPlainNameLettersMax, 'x')), "");
}

TEST(PlainName, refuses_what_no_file_can_be_called_after_and_shows_no_more_than_is_of_use) {
  EXPECT_EQ(plain_name_fault(""), "a name is empty");
  for (const char* name : {".", "..", ".hidden", "a/b", "a b", "caf\xc3\xa9", "a\nb"}) {
    EXPECT_NE(plain_name_fault(name).find("cannot be a name"), std::string::npos) << name;
  }
  EXPECT_EQ(plain_name_fault(std::string(300, 'x')),
            "'" + std::string(40, 'x') + "...' is too long for a name: 300 letters");
  std::string half = "x";  // so that byte 40 is the second of a letter
  for (int i = 0; i < 30; ++i) half += "\xc3\xa9";
  EXPECT_EQ(plain_name_fault(half).find("\xc3..."), std::string::npos);
}

}  // namespace
}  // namespace assay
