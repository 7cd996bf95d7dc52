#include "engine/base/result.h"

#include <cerrno>
#include <system_error>

namespace lode {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::bad_input:
      return "bad input";
    case ErrorKind::not_found:
      return "not found";
    case ErrorKind::locked:
      return "locked";
    case ErrorKind::corruption:
      return "corruption";
    case ErrorKind::wrong_version:
      return "wrong version";
    case ErrorKind::io:
      return "input/output error";
    case ErrorKind::arena_full:
      return "arena full";
    case ErrorKind::no_space:
      return "no space";
    case ErrorKind::conflict:
      return "conflict";
    case ErrorKind::outcome_unknown:
      return "outcome unknown";
    case ErrorKind::poisoned:
      return "poisoned";
    case ErrorKind::out_of_memory:
      return "out of memory";
    case ErrorKind::unsupported:
      return "unsupported";
  }
  return "unknown";
}

Error system_error(std::string_view what, int code) {
  const ErrorKind kind = code == ENOSPC || code == EDQUOT ? ErrorKind::no_space : ErrorKind::io;
  return Error{kind, std::string(what) + ": " + std::generic_category().message(code)};
}

}  // namespace lode
