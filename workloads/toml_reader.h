// Strict reading of a declaration in TOML: workloads and experiment plans.
//
// A TomlDocument is parsed text plus overrides (`--set a.b=1`). A TomlTable is a view of one of its
// tables with typed getters. A getter never fails by itself: a wrong type, a value out of range or
// an unknown choice is recorded in the document with its place, and the default is returned, so
// that a reader can be written straight down. TomlDocument::finish() ends the reading: it reports
// keys that no getter has asked for (with the nearest name that was asked for in that table), then
// the first recorded error. Use nothing that was read before finish() has returned success.
//
//   ASSAY_TRY(...); auto document = TomlDocument::parse(text, "plan.toml");
//   TomlTable root = document->root();
//   plan.name = root.required_text("name");
//   TomlTable keys = root.table("keys");
//   spec.count = keys.required_integer("count", 1);
//   spec.kind = keys.choice<KeyKind>("kind", KeyKind::u64, kKeyKinds);
//   if (keys.has("prefix") && ...) keys.reject("prefix", "only keys of kind bytes take a prefix");
//   ASSAY_TRY(document->finish());
//
// Invariants: every key of the text is consumed once by name or reported; places are "file:line",
// or "--set path" for a value that came from an override. One thread at a time. TomlTables share
// the document's state and may outlive it.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "adapters/result.h"

namespace assay {

struct TomlNode;
struct TomlState;

/// The spelling of each value of an enumeration, for TomlTable::choice().
template <class Enum>
using Spellings = std::span<const std::pair<std::string_view, Enum>>;

class TomlTable {
 public:
  static constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
  static constexpr double kNoBound = std::numeric_limits<double>::infinity();

  /// True when the key was written. Asking also makes the name known as a valid one.
  [[nodiscard]] bool has(std::string_view name) const;
  /// True when the table itself was written (false: table() of an absent name).
  [[nodiscard]] bool present() const;

  /// True when the key was written as a text, for keys that take a number or a word.
  [[nodiscard]] bool has_text(std::string_view name) const;

  [[nodiscard]] bool boolean(std::string_view name, bool otherwise);
  [[nodiscard]] std::string text(std::string_view name, std::string_view otherwise = {});
  [[nodiscard]] std::string required_text(std::string_view name);
  /// An integer in [min, max]. A float is a wrong type, even 1.0.
  [[nodiscard]] std::uint64_t integer(std::string_view name, std::uint64_t otherwise,
                                      std::uint64_t min = 0, std::uint64_t max = kNoLimit);
  [[nodiscard]] std::uint64_t required_integer(std::string_view name, std::uint64_t min = 0,
                                               std::uint64_t max = kNoLimit);
  /// The same with a range of 32 bits.
  [[nodiscard]] std::uint32_t integer32(
      std::string_view name, std::uint32_t otherwise, std::uint32_t min = 0,
      std::uint32_t max = std::numeric_limits<std::uint32_t>::max());
  /// A float or an integer in [min, max]; never NaN.
  [[nodiscard]] double number(std::string_view name, double otherwise, double min = -kNoBound,
                              double max = kNoBound);
  [[nodiscard]] double required_number(std::string_view name, double min = -kNoBound,
                                       double max = kNoBound);
  /// One of the names in `spellings`; another text is an error that names the nearest.
  template <class Enum>
  [[nodiscard]] Enum choice(std::string_view name, Enum otherwise,
                            std::type_identity_t<Spellings<Enum>> spellings);

  [[nodiscard]] std::vector<std::string> texts(std::string_view name);
  /// Integers in [min, max].
  [[nodiscard]] std::vector<std::int64_t> integers(
      std::string_view name, std::int64_t min = std::numeric_limits<std::int64_t>::min(),
      std::int64_t max = std::numeric_limits<std::int64_t>::max());
  [[nodiscard]] std::vector<double> numbers(std::string_view name);

  /// The sub-table `[name]`; an absent one reads as empty.
  [[nodiscard]] TomlTable table(std::string_view name);
  /// The array of tables `[[name]]`, in order; empty when absent.
  [[nodiscard]] std::vector<TomlTable> tables(std::string_view name);
  /// The keys of this table as written, in order. For tables whose keys are the user's own names:
  /// read each one with a getter.
  [[nodiscard]] std::vector<std::string> names() const;
  /// A free-form sub-table name -> scalar, each value as text (true, 12, 0.5, or the string). Names
  /// may be dotted, quoted or not. With `arrays` an array of scalars is taken too, as TOML: [0, 1].
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> settings(std::string_view name,
                                                                          bool arrays = false);
  /// A free-form sub-table name -> array, each element as TOML. Names as in settings(); an array
  /// within one of them is an element.
  [[nodiscard]] std::vector<std::pair<std::string, std::vector<std::string>>> lists(
      std::string_view name);
  /// "file:line" of one of settings(name) or lists(name), by its dotted name.
  [[nodiscard]] std::string where_setting(std::string_view name, std::string_view path) const;

  /// Marks a key as read whatever it holds, for a key that is rejected anyway. False: not there.
  bool take(std::string_view name);

  /// "file:line" of a key, of the table itself when the key is absent or `name` is empty.
  [[nodiscard]] std::string where(std::string_view name = {}) const;
  /// Records an error at where(name): a combination that makes no sense, a range of one's own.
  void reject(std::string_view name, std::string what, std::string hint = {});
  /// Records an error that has a place of its own (of another file that was read).
  void reject(Error error);

 private:
  friend class TomlDocument;
  TomlTable(std::shared_ptr<TomlState> state, TomlNode* node, int parent_line);
  const TomlNode* ask(std::string_view name) const;
  TomlNode* ask_as(std::string_view name, int kind, std::string_view kind_name);
  void missing(std::string_view name);
  /// Position among `count` names, or -1 after recording the error.
  int choose(std::string_view name, const std::vector<std::string_view>& names);

  std::shared_ptr<TomlState> state_;
  TomlNode* node_;   ///< null: the table was not written
  int parent_line_;  ///< where an absent table would have been
};

class TomlDocument {
 public:
  /// `file` is for messages. Syntax errors and duplicate keys carry file and line.
  [[nodiscard]] static Result<TomlDocument> parse(std::string_view text, const std::string& file);
  /// Reads the file at `path`.
  [[nodiscard]] static Result<TomlDocument> load(const std::string& path);
  /// A canonical form read back through the same strict reader. `origin` is for messages.
  [[nodiscard]] static Result<TomlDocument> from_json(const nlohmann::json& json,
                                                      const std::string& origin);

  /// Replaces or adds one value. `path` is dotted; an element of an array is named by its number
  /// (from 0) or, for tables, by their `name`, else their `kind`: "phases.run.duration_ms". `value`
  /// is TOML (12, 0.5, true, [1, 2], "text"); what is not TOML is taken as text, so that
  /// distribution=zipfian needs no quotes.
  [[nodiscard]] Status set(std::string_view path, std::string_view value);
  /// `assignment` is "path=value", as --set takes it.
  [[nodiscard]] Status set_assignment(std::string_view assignment);

  [[nodiscard]] TomlTable root();
  /// The end of reading: see the head of this file.
  [[nodiscard]] Status finish();

 private:
  explicit TomlDocument(std::shared_ptr<TomlState> state) : state_(std::move(state)) {}
  std::shared_ptr<TomlState> state_;
};

/// Splits "path=value"; an error when there is no '=' or no path.
[[nodiscard]] Result<std::pair<std::string, std::string>> split_assignment(
    std::string_view assignment);
/// The whole of a text file, with a message that names the path.
[[nodiscard]] Result<std::string> read_text_file(const std::string& path);

template <class Enum>
Enum TomlTable::choice(std::string_view name, Enum otherwise,
                       std::type_identity_t<Spellings<Enum>> spellings) {
  if (!has(name)) return otherwise;
  std::vector<std::string_view> names;
  for (const auto& spelling : spellings) names.push_back(spelling.first);
  const int position = choose(name, names);
  return position < 0 ? otherwise : spellings[static_cast<std::size_t>(position)].second;
}

}  // namespace assay
