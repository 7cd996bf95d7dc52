#include "adapters/plain_name.h"

#include <algorithm>

#include <fmt/format.h>

namespace assay {
namespace {

constexpr std::size_t kShown = 40;  ///< bytes of a bad name in a message

bool may_stand_in_a_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

}  // namespace

std::string plain_name_fault(std::string_view text) {
  if (text.empty()) return "a name is empty";
  const bool plain = text.front() != '.' && std::ranges::all_of(text, may_stand_in_a_name);
  if (plain && text.size() <= kPlainNameLettersMax) return {};
  std::size_t end = kShown;
  while (end > 0 && end < text.size() && (text[end] & 0xC0) == 0x80) --end;  // no half a letter
  const std::string shown =
      text.size() <= kShown ? std::string(text) : fmt::format("{}...", text.substr(0, end));
  return plain ? fmt::format("'{}' is too long for a name: {} letters", shown, text.size())
               : fmt::format("'{}' cannot be a name", shown);
}

std::string plain_name_rule() {
  return fmt::format(
      "a name holds letters, digits, '-', '_' and '.' (not in front), at most {} of them",
      kPlainNameLettersMax);
}

}  // namespace assay
