// Errors as values, and the check that aborts on a broken invariant.
//
// Every layer above engine/ reports an operating error (bad input, a store that failed, a full
// disk) as an `Error` inside `Result<T>`. An Error says what happened, where, and what to do.
// A broken invariant of our own code is not an operating error: ASSAY_CHECK aborts loudly.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>

namespace assay {

/// What sort of thing went wrong. It decides the exit status of the command (see exit_status.h).
enum class ErrorKind : std::uint8_t {
  bad_input,        ///< a flag, file, workload, plan or setting that we refuse
  environment,      ///< the machine lacks something (privilege, space, a CPU, a program)
  store,            ///< a store returned an error of its own
  wrong_contents,   ///< a store returned data that differ from what was written
  unsupported,      ///< the store declares that it cannot do this
  child,            ///< a child process died, hung or spoke nonsense
  ledger,           ///< a ledger or raw result file cannot be trusted
  plan_changed,     ///< a registered plan does not match what was asked for
  void_experiment,  ///< the experiment ran but may not be judged
  interrupted,      ///< the user stopped it
  internal,         ///< a defect of ours that could still be reported
};

/// An operating error. Cheap to move and to return: one pointer.
class [[nodiscard]] Error {
 public:
  /// `what` is one clear sentence without a trailing full stop.
  Error(ErrorKind kind, std::string what);

  /// Adds the place: "file.toml:12" or a path. Returns itself, to be chained.
  Error& at(std::string where);
  /// Adds what the user can do about it. Returns itself, to be chained.
  Error& hint(std::string hint);
  /// Puts `context` and a colon before the sentence. Returns itself, to be chained.
  Error& in(std::string_view context);

  [[nodiscard]] ErrorKind kind() const { return detail_->kind; }
  [[nodiscard]] const std::string& what() const { return detail_->what; }
  [[nodiscard]] const std::string& where() const { return detail_->where; }
  [[nodiscard]] const std::string& hint_text() const { return detail_->hint; }
  /// "where: what (hint)" on one line, as it is shown to the user.
  [[nodiscard]] std::string message() const;

 private:
  struct Detail {
    ErrorKind kind;
    std::string what;
    std::string where;
    std::string hint;
  };
  Detail& own();  // copy on write: an Error may be shared between threads once returned
  std::shared_ptr<Detail> detail_;
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

/// std::unexpected of an Error, in one word: `return fail(ErrorKind::store, "...")`.
[[nodiscard]] std::unexpected<Error> fail(ErrorKind kind, std::string what);
/// The same from an Error that was built with at(), hint() or in().
[[nodiscard]] std::unexpected<Error> fail(Error error);
/// An error of kind `environment` that ends in the text of errno value `code`.
[[nodiscard]] Error system_error(std::string what, int code);

/// `text` with control characters and what is no UTF-8 as \\x1b or \\u009b: what a user, a file or
/// a store gave must neither drive the terminal that it is shown on nor break JSON.
[[nodiscard]] std::string printable(std::string_view text);

/// The nearest of `valid` to `given` (edit distance), for "did you mean ...?". Empty if none is.
template <class Names>
[[nodiscard]] std::string nearest_name(std::string_view given, const Names& valid);
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               std::string_view why);

template <class Names>
std::string nearest_name(std::string_view given, const Names& valid) {
  std::string best;
  std::size_t best_distance = given.size() / 2 + 1;  // farther than half of it is no typing error
  for (const auto& name : valid) {
    const std::size_t distance = edit_distance(given, std::string_view(name));
    if (distance < best_distance) {
      best_distance = distance;
      best = std::string(std::string_view(name));
    }
  }
  return best;
}

}  // namespace assay

/// Aborts with file, line and reason when `condition` is false. Always on, in every build.
#define ASSAY_CHECK(condition, why)                                 \
  do {                                                              \
    if (!(condition)) [[unlikely]]                                  \
      ::assay::check_failed(__FILE__, __LINE__, #condition, (why)); \
  } while (false)

/// Hands the error of `expression` (a Result or Status) to the caller, else goes on.
#define ASSAY_TRY(expression)                                                 \
  do {                                                                        \
    if (auto assay_try_result = (expression); !assay_try_result) [[unlikely]] \
      return std::unexpected(std::move(assay_try_result).error());            \
  } while (false)
