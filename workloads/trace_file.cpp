#include "workloads/trace_file.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include <fmt/format.h>
#include <xxhash.h>

#include "workloads/operation_source.h"
#include "workloads/regular_file.h"
#include "workloads/spellings.h"
#include "workloads/stream.h"

namespace assay {
namespace {

constexpr std::uint32_t kMaxValueBytes = 1U << 28;
constexpr std::size_t kMaxKeyBytes = 1U << 16;
constexpr std::size_t kMaxLineBytes = 1U << 20;  // a key written as \xNN takes a quarter of it

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

/// Takes the next field off `rest`; a quoted one keeps its quotes.
std::string_view take_field(std::string_view& rest) {
  while (!rest.empty() && is_blank(rest.front())) rest.remove_prefix(1);
  std::size_t end = 0;
  if (!rest.empty() && rest.front() == '"') {
    end = 1;
    while (end < rest.size() && rest[end] != '"') end += rest[end] == '\\' ? 2 : 1;
    end = std::min(end + 1, rest.size());
  } else {
    while (end < rest.size() && !is_blank(rest[end])) ++end;
  }
  const std::string_view field = rest.substr(0, end);
  rest.remove_prefix(end);
  return field;
}

bool parse_number(std::string_view text, std::uint64_t& number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size();
}

bool parse_hex(std::string_view text, std::string& key) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  if (text.size() % 2 != 0) return false;
  for (std::size_t at = 0; at < text.size(); at += 2) {
    const int high = hex_digit(text[at]);
    const int low = hex_digit(text[at + 1]);
    if (high < 0 || low < 0) return false;
    key.push_back(static_cast<char>(high * 16 + low));
  }
  return true;
}

bool parse_quoted(std::string_view text, std::string& key) {
  if (text.size() < 2 || text.back() != '"') return false;
  text = text.substr(1, text.size() - 2);
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\') {
      key.push_back(text[at]);
      continue;
    }
    if (++at == text.size()) return false;
    if (text[at] == '"' || text[at] == '\\') {
      key.push_back(text[at]);
    } else if (text[at] != 'x' || at + 2 >= text.size() ||
               !parse_hex(text.substr(at + 1, 2), key)) {
      return false;
    } else {
      at += 2;
    }
  }
  return true;
}

std::uint64_t hash_of(std::string_view key) {
  return XXH3_64bits(key.data(), key.size());
}

}  // namespace

Result<TraceFile> TraceFile::open(const std::string& path) {
  const Result<std::FILE*> file = open_regular_file(path);
  if (!file) {
    Error error = file.error();
    return fail(error.in("cannot read the trace")
                    .at(path)
                    .hint("a relative path is taken from the folder of the declaration"));
  }
  return TraceFile(*file, path);
}

Error TraceFile::bad(std::string what) const {
  Error error(ErrorKind::bad_input, std::move(what));
  error.at(fmt::format("{}:{}", path_, line_number_))
      .hint("a line is: time_us kind key value_bytes [entries]");
  return error;
}

Result<bool> TraceFile::read_text() {
  text_.clear();
  char buffer[4096];
  while (std::fgets(buffer, sizeof buffer, file_.get()) != nullptr) {
    // Not text: such a "line" might never end, as that of a device.
    if (buffer[0] == '\0' || text_.size() > kMaxLineBytes) {
      ++line_number_;
      return fail(
          bad(buffer[0] == '\0' ? "the line holds a zero byte" : "the line is longer than 1 MiB"));
    }
    text_ += buffer;
    if (text_.back() == '\n') {
      text_.pop_back();
      break;
    }
  }
  if (std::ferror(file_.get()) != 0) {
    return fail(Error(ErrorKind::environment, "cannot read the trace").at(path_));
  }
  if (text_.empty() && std::feof(file_.get()) != 0) return false;
  ++line_number_;
  return true;
}

Status TraceFile::parse(TraceLine& line) const {
  std::string_view rest = text_;
  const std::string_view time = take_field(rest);
  const std::string_view kind = take_field(rest);
  const std::string_view key = take_field(rest);
  const std::string_view value_bytes = take_field(rest);
  const std::string_view entries = take_field(rest);
  if (value_bytes.empty()) return fail(bad("the line has fewer than 4 fields"));
  if (!take_field(rest).empty()) return fail(bad("the line has more than 5 fields"));
  if (!parse_number(time, line.time_us)) {
    return fail(bad(fmt::format("'{}' is not a time in microseconds", time)));
  }
  std::vector<std::string_view> kinds;
  for (const auto& [name, op_kind] : kOpKindNames) {
    if (op_kind == OpKind::batch || op_kind == OpKind::rollback) continue;
    kinds.push_back(name);
    if (name == kind) line.kind = op_kind;
  }
  if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
    const std::string nearest = nearest_name(kind, kinds);
    Error error = bad(fmt::format("'{}' is not a kind of operation", kind));
    error.hint(nearest.empty() ? fmt::format("there are {}", fmt::join(kinds, ", "))
                               : fmt::format("did you mean '{}'?", nearest));
    return fail(std::move(error));
  }
  line.key.clear();
  if (key.front() == '"' ? !parse_quoted(key, line.key) : !parse_hex(key, line.key)) {
    return fail(bad(fmt::format("'{}' is neither hex digits in pairs nor text in quotes", key)));
  }
  if (line.key.empty() || line.key.size() > kMaxKeyBytes) {
    return fail(bad(fmt::format("a key has 1 to {} bytes", kMaxKeyBytes)));
  }
  std::uint64_t number = 0;
  if (!parse_number(value_bytes, number) || number > kMaxValueBytes) {
    return fail(
        bad(fmt::format("'{}' is not a size of 0 to {} bytes", value_bytes, kMaxValueBytes)));
  }
  line.value_bytes = static_cast<std::uint32_t>(number);
  number = 1;
  const bool scans = line.kind == OpKind::scan || line.kind == OpKind::reverse_scan;
  if (!entries.empty() && (!parse_number(entries, number) || number == 0 || number > ~0U)) {
    return fail(bad(fmt::format("'{}' is not a number of entries", entries)));
  }
  if (!scans && number != 1) return fail(bad("only a scan has more than one entry"));
  line.entries = static_cast<std::uint32_t>(number);
  return {};
}

Result<bool> TraceFile::next(TraceLine& line) {
  while (true) {
    const Result<bool> more = read_text();
    if (!more || !*more) return more;
    std::string_view text = text_;
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
    if (text.empty() || text.front() == '#') continue;
    ASSAY_TRY(parse(line));
    if (line.time_us < last_time_us_) {
      return fail(
          bad(fmt::format("the time goes back from {} to {}", last_time_us_, line.time_us)));
    }
    last_time_us_ = line.time_us;
    return true;
  }
}

Result<TraceSummary> summarise_trace(const std::string& path) {
  Result<TraceFile> file = TraceFile::open(path);
  if (!file) return std::unexpected(file.error());
  TraceSummary summary;
  TraceLine line;
  std::uint64_t first_us = 0;
  XXH3_state_t* state = XXH3_createState();
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> owner(state,
                                                                              XXH3_freeState);
  XXH3_128bits_reset(state);
  while (true) {
    const Result<bool> more = file->next(line);
    if (!more) return std::unexpected(more.error());
    if (!*more) break;
    const std::uint64_t words[] = {line.time_us, static_cast<std::uint64_t>(line.kind),
                                   line.value_bytes, line.entries, line.key.size()};
    XXH3_128bits_update(state, words, sizeof words);
    XXH3_128bits_update(state, line.key.data(), line.key.size());
    if (summary.operations == 0) first_us = line.time_us;
    summary.span_us = line.time_us - first_us;
    summary.mix[static_cast<std::size_t>(line.kind)] += 1.0;
    ++summary.operations;
  }
  if (summary.operations == 0) {
    return fail(Error(ErrorKind::bad_input, "the trace has no operations").at(path));
  }
  for (double& share : summary.mix) share /= static_cast<double>(summary.operations);
  const XXH128_hash_t hash = XXH3_128bits_digest(state);
  summary.digest = fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
  return summary;
}

TraceSource::TraceSource(const Workload& workload, std::uint64_t seed, std::size_t phase,
                         std::uint32_t thread)
    : keys_(workload.keys, seed),
      thread_(thread),
      threads_(thread_count(workload.phases[phase])),
      phase_(phase) {
  Result<TraceFile> file = TraceFile::open(workload.phases[phase].trace);
  if (file) {
    file_ = std::make_unique<TraceFile>(std::move(*file));
  } else {
    status_ = std::unexpected(file.error());
  }
}

bool TraceSource::next(TraceOperation& operation) {
  while (file_ != nullptr) {
    const Result<bool> more = file_->next(operation.line);
    if (!more) status_ = std::unexpected(more.error());
    if (!more || !*more) break;
    if (ordinal_ == 0) first_time_us_ = operation.line.time_us;
    const std::uint64_t ordinal = ordinal_++;
    if (threads_ > 1 && hash_of(operation.line.key) % threads_ != thread_) continue;
    const OpKind kind = operation.line.kind;
    ASSAY_CHECK(keys_.decode(operation.line.key, operation.index),
                "a workload with a trace accepts any key");
    operation.version =
        is_write(kind) && kind != OpKind::erase ? version_of_write(phase_, ordinal) : 0;
    return true;
  }
  file_.reset();
  return false;
}

}  // namespace assay
