#include "engine/command/dump_format.h"

#include <array>
#include <charconv>

#include "engine/base/crc32c.h"

namespace lode {
namespace {

constexpr std::string_view first_words = "lode-dump 1 ";
constexpr std::string_view last_word = "end ";
// The longest entry: 1 KiB of key and 1 GiB of value, four characters a byte, a tab.
constexpr std::size_t longest_line = 4 * ((std::size_t{1} << 10) + (std::size_t{1} << 30)) + 1;

bool is_control(char c) {
  return static_cast<unsigned char>(c) < ' ' || c == '\x7f';
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string hex8(std::uint32_t number) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (int shift = 28; shift >= 0; shift -= 4) out += digits[number >> shift & 15U];
  return out;
}

template <class Number>
bool parse_whole(std::string_view text, Number& out, int base) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), out, base);
  return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

}  // namespace

void append_escaped(std::string_view text, std::string& out) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\') {
      out += "\\\\";
    } else if (is_control(c) || byte >= 0x80) {
      out += "\\x";
      out += digits[byte >> 4];
      out += digits[byte & 15U];
    } else {
      out += c;
    }
  }
}

bool unescape(std::string_view text, std::string& out) {
  out.clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == '\\') {
      out += '\\';
      ++i;
    } else if (i + 3 < text.size() && text[i + 1] == 'x' && hex_digit(text[i + 2]) >= 0 &&
               hex_digit(text[i + 3]) >= 0) {
      out += static_cast<char>(hex_digit(text[i + 2]) * 16 + hex_digit(text[i + 3]));
      i += 3;
    } else {
      return false;
    }
  }
  return true;
}

void append_key(KeyKind keys, std::string_view key, std::string& out) {
  if (keys != KeyKind::u64 || key.size() != 8) return append_escaped(key, out);
  std::uint64_t number = 0;
  for (const char c : key) number = number << 8 | static_cast<unsigned char>(c);
  out += std::to_string(number);
}

bool parse_key(KeyKind keys, std::string_view text, std::string& key) {
  if (keys != KeyKind::u64) return unescape(text, key);
  std::uint64_t number = 0;
  if (!parse_whole(text, number, 10)) return false;
  key = u64_key(number);
  return true;
}

Result<std::uint64_t> write_dump(const Snapshot& snapshot, KeyKind keys, std::ostream& out) {
  std::uint32_t checksum = 0;
  std::uint64_t entries = 0;
  std::string line;
  const auto write = [&](const std::string& text) {
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    checksum = crc32c(as_bytes(text), checksum);
  };
  write(std::string(first_words) + (keys == KeyKind::u64 ? "u64\n" : "bytes\n"));
  Cursor cursor = snapshot.cursor();
  for (cursor.seek_first(); cursor.valid() && out; cursor.next()) {
    LODE_ASSIGN(const std::string_view value, cursor.value());
    line.clear();
    append_key(keys, cursor.key(), line);
    line += '\t';
    append_escaped(value, line);
    line += '\n';
    write(line);
    ++entries;
  }
  LODE_TRY(cursor.status());
  out << last_word << entries << ' ' << hex8(checksum) << '\n' << std::flush;
  if (!out) return fail(ErrorKind::io, "the dump could not be written; what there is of it is cut");
  return entries;
}

std::unexpected<Error> DumpReader::bad_line(std::string_view what) const {
  return fail(ErrorKind::bad_input,
              name_ + ":" + std::to_string(line_number_) + ": " + std::string(what));
}

// True: line_ is the next line. False: the end of the file.
Result<bool> DumpReader::read_line() {
  if (line_number_ > 0) {
    checksum_ = crc32c(as_bytes(line_), checksum_);
    checksum_ = crc32c(as_bytes("\n"), checksum_);
  }
  line_.clear();
  ++line_number_;
  std::streambuf& from = *in_.rdbuf();
  constexpr auto end = std::char_traits<char>::eof();
  for (auto c = from.sbumpc(); c != '\n'; c = from.sbumpc()) {
    if (c == end) {
      if (line_.empty()) return false;
      return bad_line("the file ends in the middle of a line");
    }
    if (line_.size() == longest_line) return bad_line("longer than any entry can be");
    line_ += std::char_traits<char>::to_char_type(c);
  }
  return true;
}

Result<KeyKind> DumpReader::header() {
  LODE_ASSIGN(const bool there, read_line());
  if (!there || !line_.starts_with("lode-dump ")) {
    return bad_line("not a dump; the first line is \"lode-dump 1 bytes\" or \"lode-dump 1 u64\"");
  }
  if (line_ == std::string(first_words) + "bytes") {
    keys_ = KeyKind::bytes;
  } else if (line_ == std::string(first_words) + "u64") {
    keys_ = KeyKind::u64;
  } else {
    return bad_line("\"" + line_.substr(0, 40) +
                    "\" is not known here; \"lode-dump 1 bytes\" and \"lode-dump 1 u64\" are");
  }
  return keys_;
}

Status DumpReader::check_last_line() {
  const std::string_view rest = std::string_view(line_).substr(last_word.size());
  const std::size_t space = rest.find(' ');
  std::uint64_t count = 0;
  if (space == std::string_view::npos || !parse_whole(rest.substr(0, space), count, 10)) {
    return bad_line("the last line is \"end COUNT CHECKSUM\"");
  }
  if (count != entries_) {
    return bad_line("the last line says " + std::to_string(count) + " entries; there are " +
                    std::to_string(entries_));
  }
  const std::string_view checksum = rest.substr(space + 1);
  const std::string expected = hex8(checksum_);
  if (checksum != expected && checksum != "-") {
    return bad_line("the last line has another checksum than the lines before it (" + expected +
                    "); the file was changed. \"-\" in its place says that there is none");
  }
  LODE_ASSIGN(const bool more, read_line());
  if (more) return bad_line("something follows the last line");
  return {};
}

Result<bool> DumpReader::next(std::string& key, std::string& value) {
  LODE_ASSIGN(const bool there, read_line());
  if (!there) return bad_line("the file ends without its last line, \"end COUNT CHECKSUM\"");
  const std::size_t tab = line_.find('\t');
  if (tab == std::string::npos) {
    if (!line_.starts_with(last_word)) return bad_line("no tab between a key and its value");
    LODE_TRY(check_last_line());
    return false;
  }
  const std::string_view line(line_);
  const std::string_view key_text = line.substr(0, tab);
  const std::string_view value_text = line.substr(tab + 1);
  for (const std::string_view text : {key_text, value_text}) {
    for (const char c : text) {
      if (is_control(c)) return bad_line("a control character; \\xNN stands for one");
    }
  }
  if (!parse_key(keys_, key_text, key)) {
    return bad_line(keys_ == KeyKind::u64 ? "the key is not a number below 2^64"
                                          : "a bad escape in the key; \\xNN and \\\\ are allowed");
  }
  if (!unescape(value_text, value)) {
    return bad_line("a bad escape in the value; \\xNN and \\\\ are allowed");
  }
  // What the store would refuse, with the line.
  if (key.size() > 1024) return bad_line("a key of more than 1,024 bytes");
  if (value.size() > std::size_t{1} << 30) return bad_line("a value of more than 1 GiB");
  ++entries_;
  return true;
}

Result<KeyKind> check_dump(std::istream& in, const std::string& name) {
  DumpReader reader(in, name);
  LODE_ASSIGN(const KeyKind keys, reader.header());
  std::string key;
  std::string value;
  bool more = true;
  while (more) {
    LODE_ASSIGN(more, reader.next(key, value));
  }
  return keys;
}

Status load_dump(Store& store, DumpReader& reader, std::size_t batch_bytes, LoadReport& report) {
  WriteBatch batch;
  std::size_t bytes = 0;
  std::uint64_t committed = 0;
  std::string key;
  std::string value;
  Status status;
  for (bool more = true; more;) {
    auto read = reader.next(key, value);
    if (!read) {
      status = std::unexpected(std::move(read).error());
      break;
    }
    more = *read;
    if (more) {
      batch.put(key, value);
      bytes += key.size() + value.size();
    }
    if (batch.empty() || (more && bytes < batch_bytes)) continue;
    const std::uint64_t operations = batch.operations();
    auto receipt = store.commit(batch, Durability::volatile_);
    if (!receipt) {
      status = std::unexpected(std::move(receipt).error());
      break;
    }
    committed += operations;
    ++report.batches;
    batch.clear();
    bytes = 0;
  }
  const Status synced = store.sync();
  if (synced) report.entries = committed;
  return status ? synced : status;
}

}  // namespace lode
