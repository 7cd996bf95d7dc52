#include "harness/report/ledger_lines.h"

#include <cerrno>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <openssl/evp.h>

namespace assay::report {
namespace {

Error broken(const std::string& path, std::size_t line, std::string what) {
  Error error(ErrorKind::ledger, std::move(what));
  error.at(fmt::format("{}:{}", path, line));
  error.hint("the ledger was changed or cut after it was written; take it from a backup");
  return error;
}

}  // namespace

Result<std::string> read_whole_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    Error error = system_error("cannot read the file", errno);
    return fail(Error(ErrorKind::bad_input, error.what()).at(path));
  }
  return std::move(text).str();
}

std::string sha256_hex(const std::string& bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  const int done = EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr);
  ASSAY_CHECK(done == 1, "libcrypto has SHA-256");
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

Result<std::vector<LedgerLine>> read_ledger_lines(const std::string& path) {
  Result<std::string> text = read_whole_file(path);
  if (!text) return fail(text.error());
  std::vector<LedgerLine> lines;
  std::string previous(64, '0');
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text->size();) {
    ++number;
    const std::size_t end = text->find('\n', begin);
    if (end == std::string::npos) {
      return fail(broken(path, number, "the last record has no end"));
    }
    const std::string line = text->substr(begin, end - begin);
    begin = end + 1;
    nlohmann::json record = nlohmann::json::parse(line, nullptr, false);
    if (!record.is_object() || !record.contains("kind") || !record["kind"].is_string() ||
        !record.contains("body") || !record["body"].is_object() || !record.contains("previous")) {
      return fail(broken(path, number, "this line is no ledger record"));
    }
    if (record.value("schema", 0) != 1) {
      return fail(broken(path, number, "this record has a schema that is not known here"));
    }
    if (record["previous"] != previous) {
      return fail(broken(path, number, "this record does not follow the one before it"));
    }
    previous = sha256_hex(line);
    lines.push_back(
        {record["kind"], record.value("time", std::string()), previous, std::move(record["body"])});
  }
  return lines;
}

}  // namespace assay::report
