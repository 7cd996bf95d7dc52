#include "adapters/rewrite_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

#include "adapters/opening.h"

namespace assay {
namespace {

constexpr std::string_view kMagic = "rewrite1";
constexpr std::size_t kHeaderBytes = 24;

template <class Number>
void append_number(std::string& into, Number value) {
  into.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <class Number>
bool take_number(std::string_view& from, Number& value) {
  if (from.size() < sizeof(value)) return false;
  std::memcpy(&value, from.data(), sizeof(value));
  from.remove_prefix(sizeof(value));
  return true;
}

bool take_text(std::string_view& from, std::uint32_t bytes, std::string_view& text) {
  if (from.size() < bytes) return false;
  text = from.substr(0, bytes);
  from.remove_prefix(bytes);
  return true;
}

/// False: these are no bytes of write().
bool decode(std::string_view bytes, RewriteMap& map) {
  std::uint64_t count = 0;
  std::uint64_t checksum = 0;
  if (!bytes.starts_with(kMagic)) return false;
  bytes.remove_prefix(kMagic.size());
  if (!take_number(bytes, count) || !take_number(bytes, checksum)) return false;
  if (XXH3_64bits(bytes.data(), bytes.size()) != checksum) return false;
  for (; count != 0; --count) {
    std::uint32_t key_bytes = 0;
    std::uint32_t value_bytes = 0;
    std::string_view key;
    std::string_view value;
    if (!take_number(bytes, key_bytes) || !take_number(bytes, value_bytes) ||
        !take_text(bytes, key_bytes, key) || !take_text(bytes, value_bytes, value)) {
      return false;
    }
    map.emplace_hint(map.end(), key, value);
  }
  return bytes.empty();
}

Error broken(const char* what, const std::string& path) {
  const int code = errno;
  Error error = system_error(what, code);
  return Error(kind_of_errno(code), error.what()).at(path);
}

}  // namespace

RewriteFile::RewriteFile(const std::string& directory)
    : directory_(directory), path_(directory + "/map"), new_path_(directory + "/map.new") {}

Result<RewriteMap> RewriteFile::read() const {
  std::ifstream file(path_, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.good() && !file.eof()) {
    return fail(Error(ErrorKind::store, "rewrite: cannot read the file").at(path_));
  }
  RewriteMap map;
  if (!decode(bytes, map)) {
    return fail(Error(ErrorKind::store, "rewrite: the file is damaged").at(path_));
  }
  return map;
}

Status RewriteFile::write(const RewriteMap& map, bool synced) {
  bytes_.assign(kHeaderBytes, '\0');
  for (const auto& [key, value] : map) {
    append_number(bytes_, static_cast<std::uint32_t>(key.size()));
    append_number(bytes_, static_cast<std::uint32_t>(value.size()));
    bytes_ += key;
    bytes_ += value;
  }
  std::string header(kMagic);
  append_number(header, static_cast<std::uint64_t>(map.size()));
  append_number(header, static_cast<std::uint64_t>(XXH3_64bits(bytes_.data() + kHeaderBytes,
                                                               bytes_.size() - kHeaderBytes)));
  std::memcpy(bytes_.data(), header.data(), kHeaderBytes);
  ASSAY_TRY(write_new(synced));
  if (::rename(new_path_.c_str(), path_.c_str()) != 0) {
    return fail(broken("rewrite: cannot put the new file in its place", path_));
  }
  if (synced) ASSAY_TRY(sync_directory(directory_));
  ++counters_.rewrites;
  counters_.bytes_written += bytes_.size();
  return {};
}

Status RewriteFile::write_new(bool synced) const {
  const int handle = ::open(new_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (handle < 0) return fail(broken("rewrite: cannot make the new file", new_path_));
  std::string_view left = bytes_;
  bool good = true;
  while (good && !left.empty()) {
    const ssize_t written = ::write(handle, left.data(), left.size());
    good = written > 0 || errno == EINTR;
    if (written > 0) left.remove_prefix(static_cast<std::size_t>(written));
  }
  if (good && synced) good = ::fsync(handle) == 0;
  Status status;
  if (!good) status = fail(broken("rewrite: cannot write the new file", new_path_));
  ::close(handle);
  return status;
}

}  // namespace assay
