#include "adapters/result.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <system_error>
#include <vector>

namespace assay {

Error::Error(ErrorKind kind, std::string what)
    : detail_(std::make_shared<Detail>(Detail{kind, std::move(what), {}, {}})) {}

Error::Detail& Error::own() {
  if (detail_.use_count() != 1) detail_ = std::make_shared<Detail>(*detail_);
  return *detail_;
}

Error& Error::at(std::string where) {
  own().where = std::move(where);
  return *this;
}

Error& Error::hint(std::string hint) {
  own().hint = std::move(hint);
  return *this;
}

Error& Error::in(std::string_view context) {
  Detail& detail = own();
  detail.what = std::string(context) + ": " + detail.what;
  return *this;
}

std::string Error::message() const {
  std::string text;
  if (!detail_->where.empty()) text = detail_->where + ": ";
  text += detail_->what;
  if (!detail_->hint.empty()) text += " (" + detail_->hint + ")";
  return text;
}

std::unexpected<Error> fail(ErrorKind kind, std::string what) {
  return std::unexpected(Error(kind, std::move(what)));
}

std::unexpected<Error> fail(Error error) {
  return std::unexpected(std::move(error));
}

Error system_error(std::string what, int code) {
  return {ErrorKind::environment, std::move(what) + ": " + std::generic_category().message(code)};
}

namespace {

/// Bytes of the well-formed UTF-8 sequence at `at` (RFC 3629: no surrogates, no longer form than is
/// needed, nothing above U+10FFFF); 0 when there is none.
std::size_t sequence_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
  }
  const unsigned second = byte(1);
  const bool wrong = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
                     (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
  return wrong ? 0 : length;
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    const std::size_t length = sequence_length(text, i);
    if (byte < 0x20 || byte == 0x7f || length == 0) {
      out += "\\x";
    } else if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {  // U+0080 to U+009F, as UTF-8
      out += "\\u00";
      out += kDigits[next >> 4];
      out += kDigits[next & 15];
      ++i;
      continue;
    } else {
      out += text.substr(i, length);
      i += length - 1;
      continue;
    }
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

void check_failed(const char* file, int line, const char* condition, std::string_view why) {
  std::fprintf(stderr, "assay: broken invariant at %s:%d: %s: %.*s\n", file, line, condition,
               static_cast<int>(why.size()), why.data());
  std::abort();
}

}  // namespace assay
