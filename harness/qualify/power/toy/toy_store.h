// Toy stores for the tests of level F: each is a page of file operations that is right, and has a
// switch for each classic mistake of its kind.
//
// They are not meant to be fast or to have more than a few keys. A commit writes what it must, the
// whole contents are kept in memory.
// Threads: one session, one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "adapters/store.h"

namespace assay::qualify::power::toy {

using Map = std::map<std::string, std::string>;

/// What keeps a map on the disk.
class Engine {
 public:
  virtual ~Engine() = default;
  /// Reads what is there; an empty directory is an empty map.
  virtual Status load(Map& map) = 0;
  /// Makes `after` durable; `changes` is what differs from before.
  virtual Status commit(const Map& after, std::span<const Mutation> changes) = 0;
  virtual Status close() { return {}; }
};

using Mistakes = std::set<std::string>;
using MakeEngine =
    std::function<std::unique_ptr<Engine>(const std::string& directory, const Mistakes&)>;

/// A store over an engine with these mistakes.
[[nodiscard]] std::unique_ptr<Driver> make_driver(MakeEngine engine, Mistakes mistakes);

/// A log of changes with snapshots of everything now and then (LevelDB's manner).
[[nodiscard]] std::unique_ptr<Engine> log_engine(const std::string& directory, const Mistakes&);
/// The whole contents in one of two places, and a header that says in which (LMDB's manner).
[[nodiscard]] std::unique_ptr<Engine> slot_engine(const std::string& directory, const Mistakes&);
/// Pages in place, and a journal of what they were before (SQLite's manner).
[[nodiscard]] std::unique_ptr<Engine> undo_engine(const std::string& directory, const Mistakes&);

// ---- what engines are made of ----

[[nodiscard]] std::string pack(const Map& map);
[[nodiscard]] bool unpack(std::string_view bytes, Map& map);
[[nodiscard]] std::string pack(std::span<const Mutation> changes);
[[nodiscard]] bool apply(std::string_view changes, Map& map);
[[nodiscard]] std::uint64_t checksum(std::string_view bytes, std::uint64_t seed);
/// A number as 8 bytes, and back.
[[nodiscard]] std::string number(std::uint64_t value);
[[nodiscard]] std::uint64_t number(std::string_view bytes);

/// An open file; every call checks its result.
class Handle {
 public:
  Handle(const std::string& path, int flags);
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle();
  [[nodiscard]] bool is_open() const { return file_ >= 0; }
  [[nodiscard]] int get() const { return file_; }
  void write(std::string_view bytes, std::uint64_t at) const;
  [[nodiscard]] std::string read() const;  ///< all of it
  [[nodiscard]] bool sync() const;
  void resize(std::uint64_t bytes) const;

 private:
  int file_;
};
void sync_directory(const std::string& path);

}  // namespace assay::qualify::power::toy
