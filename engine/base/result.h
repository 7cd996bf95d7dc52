// Errors as values, for every layer of the engine.
//
// An operating error (a full disk, a damaged page, a conflict) is an `Error` inside a Result. A
// broken invariant of our own code is not an operating error: LODE_CHECK (check.h) aborts.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace lode {

enum class ErrorKind : std::uint8_t {
  bad_input,        ///< an argument, key, value or option that the engine refuses
  not_found,        ///< the store (not a key) is not there
  locked,           ///< another process or handle holds the store
  corruption,       ///< what was read differs from what was written
  wrong_version,    ///< written by a version that this one cannot read
  io,               ///< the operating system reported an error
  no_space,         ///< the disk is full
  arena_full,       ///< the data file would grow beyond Options::max_bytes
  conflict,         ///< a transaction read or wrote what another one has changed
  outcome_unknown,  ///< a write or sync failed: the commit may be there or not, whole
  poisoned,         ///< an earlier write or sync failed: the handle only reads from now on
  out_of_memory,    ///< an allocation failed; what was asked for was not done
  unsupported,      ///< not available in this mode (a write to a read-only store)
};
[[nodiscard]] std::string_view to_string(ErrorKind kind);

/// What happened, in one sentence that names the place and, where one is known, the remedy.
struct [[nodiscard]] Error {
  ErrorKind kind = ErrorKind::io;
  std::string what;

  /// Puts `context` and a colon before the sentence.
  Error in(std::string_view context) && {
    what = std::string(context) + ": " + what;
    return std::move(*this);
  }
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

[[nodiscard]] inline std::unexpected<Error> fail(ErrorKind kind, std::string what) {
  return std::unexpected(Error{kind, std::move(what)});
}
/// An error of the operating system; ENOSPC and EDQUOT become `no_space`.
[[nodiscard]] Error system_error(std::string_view what, int code);

}  // namespace lode

#define LODE_CONCAT_INNER(a, b) a##b
#define LODE_CONCAT(a, b) LODE_CONCAT_INNER(a, b)

/// Hands the error of `expression` to the caller, else goes on.
#define LODE_TRY(expression)                                                \
  do {                                                                      \
    if (auto lode_try_result = (expression); !lode_try_result) [[unlikely]] \
      return std::unexpected(std::move(lode_try_result).error());           \
  } while (false)

#define LODE_ASSIGN_INNER(target, expression, temporary)  \
  auto temporary = (expression);                          \
  if (!temporary) [[unlikely]]                            \
    return std::unexpected(std::move(temporary).error()); \
  target = std::move(*temporary)

/// `LODE_ASSIGN(auto x, f());`: the value of f(), or f()'s error to the caller.
#define LODE_ASSIGN(target, expression) \
  LODE_ASSIGN_INNER(target, expression, LODE_CONCAT(lode_result_, __LINE__))
