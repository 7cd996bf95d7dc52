// What a power cut may leave of a directory: the persistence model, as a pure function of a trace.
//
// A Disk walks the events of a trace. It keeps what is durable for certain and, in order, the units
// that are pending: a version of a page, a size that a write gave a file, a change of names, a
// truncation or allocation. A sync moves what it covers from the second to the first. A crash state
// is the durable tree with a subset of the pending units applied, closed under what each unit
// needs: a page needs its own earlier versions, an entry its own earlier changes. The profiles
// differ in what a sync covers and in what else a unit needs:
//
//   strict   fsync covers the file and not its name; names are independent of each other
//   ordered  names and truncations persist in order, and a sync that has to commit metadata of its
//            file commits all earlier metadata (ext4 with a journal, XFS)
//   btrfs    fsync covers the file, its names and the folders that lead to it, nothing else; what
//   is
//            not synced persists in order
//   prefix   everything persists in order
//
// A failed sync covers nothing, and what it should have covered no later sync covers (the pages are
// clean for the kernel). sync_file_range covers nothing. Sizes that a write gave are not in the
// order of the metadata: they are known when the data is put on the disk, later.
// Threads: none; a Disk belongs to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "harness/qualify/power/trace.h"

namespace assay::qualify::power {

enum class Profile : std::uint8_t { strict, ordered, btrfs, prefix };
inline constexpr Profile kProfiles[] = {Profile::strict, Profile::ordered, Profile::btrfs,
                                        Profile::prefix};
[[nodiscard]] std::string_view to_string(Profile profile);
[[nodiscard]] Result<Profile> parse_profile(std::string_view text);

struct Unit {
  enum class Kind : std::uint8_t { data, size, names, resize };
  Kind kind = Kind::data;
  std::uint32_t id = 0;     ///< grows in the order of events
  std::uint32_t event = 0;  ///< that made it
  FileId file = kNoFile;
  std::uint32_t change = 0;   ///< data: which of the event's pages
  bool lost_to_sync = false;  ///< a sync of it failed: no later one covers it
  /// Units (by id) without which this one cannot persist: earlier ones of the same object.
  std::vector<std::uint32_t> needs;
  std::uint32_t follows = kNone;  ///< the unit before it in the profile's order
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
};

/// Identity of a place in the store's code that syncs: its return addresses, else kind and file.
[[nodiscard]] std::uint64_t sync_site(const Event& event);

class Disk {
 public:
  /// `suppressed`: syncs made from these sites do nothing.
  Disk(const Trace& trace, Profile profile, const std::set<std::uint64_t>* suppressed = nullptr);

  /// Does the next event. False when there is none.
  bool step();
  /// Events done so far.
  [[nodiscard]] std::size_t position() const { return position_; }
  [[nodiscard]] const Tree& durable() const { return durable_; }
  [[nodiscard]] const std::vector<Unit>& pending() const { return pending_; }
  [[nodiscard]] const Trace& trace() const { return trace_; }

  /// Applies a unit to a tree that has all it needs.
  void apply(const Unit& unit, Tree& tree) const;
  /// Removes from `kept` (one flag a pending unit) what needs something that is not kept.
  void close_down(std::vector<char>& kept) const;
  /// Adds to `kept` what the kept ones need.
  void close_up(std::vector<char>& kept) const;
  /// The state with the kept units.
  [[nodiscard]] Tree state(const std::vector<char>& kept) const;

 private:
  struct Sync {
    FileId file = kNoFile;
    bool everything = false;
    bool data_only = false;
    std::uint64_t from = 0;  ///< range of bytes; to = 0: all
    std::uint64_t to = 0;
    std::uint32_t before = 0;  ///< covers units of earlier events
    bool failed = false;
  };

  void add(const Event& event, std::uint32_t index);
  Unit& push(Unit::Kind kind, std::uint32_t event, FileId file);
  void need(Unit& unit, std::optional<std::uint32_t> id) const;
  void sync(const Sync& sync);
  [[nodiscard]] bool own_metadata(const Sync& sync) const;
  [[nodiscard]] bool covers(const Sync& sync, const Unit& unit, bool commits,
                            const std::set<FileId>& reached) const;
  [[nodiscard]] std::set<FileId> folders_of(FileId file) const;
  void cover(std::vector<char> covered);
  [[nodiscard]] std::size_t index_of(std::uint32_t id) const;

  const Trace& trace_;
  Profile profile_;
  const std::set<std::uint64_t>* suppressed_;
  std::size_t position_ = 0;
  Tree durable_;
  std::vector<Unit> pending_;
  std::uint32_t next_id_ = 0;
  std::map<std::pair<FileId, std::uint32_t>, std::uint32_t> last_of_page_;
  std::map<FileId, std::uint32_t> last_of_size_;
  std::map<Tree::Name, std::uint32_t> last_of_name_;
  std::map<FileId, std::uint32_t> last_write_;  ///< event, for timestamps
  std::uint32_t last_ordered_ = Unit::kNone;
  std::uint32_t committed_ = 0;  ///< metadata of earlier events is durable
};

}  // namespace assay::qualify::power
