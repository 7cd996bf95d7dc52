// Runs the built assay command as a user does; for the end-to-end tests only.
#pragma once

#include <sys/wait.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "adapters/temporary_directory.h"

namespace assay::end_to_end {

/// What a finished command left: exit status (128 + signal when it was killed), and its output.
struct Finished {
  int status = 0;
  std::string out;
  std::string err;
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void write_file(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

/// A test with a directory of its own, in which commands run; removed afterwards.
class EndToEnd : public ::testing::Test {
 protected:
  /// Runs a shell line in the test's directory; "assay" in it is the built command.
  Finished shell(const std::string& line) const {
    const std::string out = (directory_ / ".stdout").string();
    const std::string err = (directory_ / ".stderr").string();
    const std::string whole = "cd '" + directory_.string() +
                              "' && assay() { '" ASSAY_COMMAND "' \"$@\"; } && { " + line +
                              "; } >'" + out + "' 2>'" + err + "'";
    const int code = std::system(("bash -c " + quoted(whole)).c_str());  // NOLINT(cert-env33-c)
    return {WIFEXITED(code) ? WEXITSTATUS(code) : 128 + WTERMSIG(code), read_file(out),
            read_file(err)};
  }
  Finished assay(const std::string& arguments) const { return shell("assay " + arguments); }

  const TemporaryDirectory own_;
  const std::filesystem::path directory_{own_.path()};

 private:
  static std::string quoted(const std::string& text) {
    std::string result = "'";
    for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return result + "'";
  }
};

}  // namespace assay::end_to_end
