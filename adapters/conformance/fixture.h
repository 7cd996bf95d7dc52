// One open store in a directory of its own, and the model of what must be in it.
//
// Every write goes through the fixture, which makes it in the store and then in the model; verify()
// compares the whole contents. A difference is an Error of kind wrong_contents that shows the key.
//
// Invariants: the directory is removed with the fixture. Keys are made with key(), which keeps to
// the shortest and longest key that the store declares.
// Threads: a fixture belongs to one thread; other threads use sessions of their own (another()).
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "adapters/conformance/conformance.h"
#include "adapters/store.h"

namespace assay::conformance {

using Model = std::map<std::string, std::string, std::less<>>;
using Entries = std::vector<std::pair<std::string, std::string>>;

/// What every check gets.
struct Bench {
  const Driver& driver;
  const ConformanceOptions& options;
  Capabilities capabilities;
  bool bytes_keys = true;  ///< opens with keys of kind bytes
  bool u64_keys = true;    ///< opens with keys of kind u64

  /// `tail` behind as many bytes as the shortest key needs; a prefix relation among tails stays.
  [[nodiscard]] std::string key(std::string_view tail) const;
  /// The number as 7 digits behind a 'k'.
  [[nodiscard]] std::string key(std::uint64_t number) const;
};

struct Outcome {
  CheckResult result = CheckResult::passed;
  std::string detail;
};

struct Check {
  const char* name;
  const char* promise;
  Result<Outcome> (*run)(const Bench&);
  bool needs_data = true;  ///< not applicable to a store that keeps none
  bool bytes_keys = true;  ///< works on keys of kind bytes
};

class Fixture {
 public:
  explicit Fixture(const Bench& bench, KeyKind key_kind = KeyKind::bytes);
  ~Fixture();
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  Status open(bool create = true);
  Status close();
  /// close() and open(create = false).
  Status reopen();

  Store& store() { return *store_; }
  Session& session() { return *session_; }
  Result<std::unique_ptr<Session>> another() { return store_->session(); }
  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] OpenOptions open_options() const;

  Status put(const std::string& key, const std::string& value);
  Status erase(const std::string& key);
  Status apply(std::span<const Mutation> mutations);
  /// Many entries, in batches where the store has them.
  Status load(const Entries& entries);
  /// Tells the model what another session has written.
  void note_put(const std::string& key, const std::string& value);
  void note_erase(const std::string& key);
  /// A key that verify() must look for although nothing was written under it.
  void note_touched(const std::string& key) { touched_.insert(key); }

  [[nodiscard]] const Model& model() const { return model_; }
  /// The whole contents, by get and, if the store is ordered, by a scan.
  Status verify() { return verify(*session_); }
  Status verify(Session& session) const;
  /// One key against the model.
  Status verify_key(Session& session, const std::string& key) const;
  /// One scan against the model.
  Status verify_scan(Session& session, const ScanRange& range) const;

 private:
  const Bench& bench_;
  KeyKind key_kind_;
  std::string directory_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Session> session_;
  Model model_;
  std::set<std::string> touched_;  // every key ever named: absent ones must stay absent
};

/// What `range` must show of `model`.
[[nodiscard]] Entries expected_entries(const Model& model, const ScanRange& range);
/// What a scan shows; an error if the count it returns is not the number of entries.
[[nodiscard]] Result<Entries> collect(Session& session, const ScanRange& range);
/// Compares two scans and describes the first difference.
[[nodiscard]] Status same_entries(const Entries& seen, const Entries& expected,
                                  std::string_view what);

/// A key or value for a message: printable, quoted, cut short.
[[nodiscard]] std::string shown(std::string_view bytes);
/// An Error of kind wrong_contents.
[[nodiscard]] std::unexpected<Error> wrong(std::string what);
/// `error` with `context` and a colon before it.
[[nodiscard]] std::unexpected<Error> failed_in(Error error, std::string_view context);
/// The outcome of calling what a store declares not to have: not_supported if it was refused with
/// ErrorKind::unsupported, failed otherwise.
[[nodiscard]] Outcome refusal(const Status& status, std::string_view what);
/// `size` bytes that are a function of `seed` and do not compress.
[[nodiscard]] std::string random_bytes(std::uint64_t seed, std::size_t size);

// The checks, one list a file.
[[nodiscard]] std::span<const Check> description_checks();
[[nodiscard]] std::span<const Check> contents_checks();
[[nodiscard]] std::span<const Check> order_checks();
[[nodiscard]] std::span<const Check> batch_checks();
[[nodiscard]] std::span<const Check> lifetime_checks();
[[nodiscard]] std::span<const Check> thread_checks();
[[nodiscard]] std::span<const Check> history_checks();

}  // namespace assay::conformance
