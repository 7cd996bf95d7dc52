// The engine behind lode::Store. PROTOCOLS.md numbers the steps of commit, checkpoint, merge and
// recovery and the invariants that the code asserts.
//
// Locks, in the order in which they may be taken:
//   checkpoint_mutex_   one checkpoint at a time
//   merge_mutex_        one merge at a time, beside checkpoints
//   install_mutex_      the durable roots and the runs of the current shape
//   flush_mutex_        the flusher's role, what is written and durable, the window's account
//   sequencing_mutex_   the order of commits: overlay, frame being filled, published state
// Whoever holds the flusher's role (role_taken_) alone uses the log writer. Neither of the last two
// mutexes is held during a write or sync.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/base/memory_guard.h"
#include "engine/lode.h"
#include "engine/store/arena.h"
#include "engine/store/batch.h"
#include "engine/store/commit_queue.h"
#include "engine/store/root.h"
#include "engine/store/sources.h"
#include "engine/tree/index_restore.h"
#include "engine/wal/log_recovery.h"
#include "engine/wal/log_writer.h"

namespace lode {

/// A published state. Freed when no short reader can hold it.
struct Version {
  Generation generation;
  Sequence sequence;
  State state;
};

/// What a snapshot holds: its generation is pinned as long as this lives.
struct SnapshotCore {
  SnapshotCore(std::shared_ptr<Engine> of, const Version& version);
  ~SnapshotCore();
  SnapshotCore(const SnapshotCore&) = delete;
  SnapshotCore& operator=(const SnapshotCore&) = delete;

  std::shared_ptr<Engine> engine;
  Generation generation;
  Sequence sequence;
  State state;
};

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  static Result<std::shared_ptr<Engine>> open(std::shared_ptr<Disk> disk, const Options& options);
  Engine(std::shared_ptr<Disk> disk, const Options& options);
  ~Engine();

  /// Called under the sequencing lock with the current state; an error refuses the commit.
  using Condition = std::function<Status(const State& current)>;
  Result<Receipt> commit(const WriteBatch& batch, Durability durability,
                         const Condition& condition = {});
  Result<bool> get(std::string_view key, std::string& value);
  /// From a state that the caller keeps alive.
  Result<bool> get(const State& state, std::string_view key, std::string& value);
  std::shared_ptr<const SnapshotCore> snapshot();
  using Values = std::vector<std::optional<std::string>>;
  Result<Values> get_many(std::span<const std::string_view> keys);
  Result<Values> get_many(const State& state, std::span<const std::string_view> keys);
  Result<BackupReport> backup(const SnapshotCore& core, Disk& target);
  static Result<RebuildReport> rebuild(std::shared_ptr<Disk> disk, const Options& options,
                                       const RebuildPolicy& policy);
  static Result<std::uint64_t> drop_inner_pages(std::shared_ptr<Disk> disk, const Options& options);
  Result<Receipt> mark(std::string_view name, Durability durability);
  std::vector<Marker> markers();

  Status sync();
  Status checkpoint();
  Status drain();
  Status compact();
  Status verify();
  Status close();

  static constexpr std::size_t spare_segments = 2;
  [[nodiscard]] std::size_t kept_segments() const {
    return std::max<std::size_t>(spare_segments,
                                 options_.log_prepared_bytes / options_.log_segment_bytes);
  }
  [[nodiscard]] std::map<std::string, double> statistics();
  [[nodiscard]] const RecoveryReport& recovery() const { return report_; }
  [[nodiscard]] LogMethod log_method() const { return log_method_; }
  [[nodiscard]] Options options() const {
    Options options = options_;
    options.log_method = log_method_;
    options.log_segment_bytes = options.log_segment_bytes / direct_alignment * direct_alignment;
    return options;
  }

 private:
  friend struct SnapshotCore;

  /// A state of the overlay that no longer changes, on its way to being published.
  struct Sealed {
    Generation generation;
    Sequence sequence;
    State state;
  };
  /// Extents of a manifest, given back when no durable root needs them.
  class OwnedExtents;
  /// A root on the medium and what keeps its pages from being used again (I8).
  struct DurableRoot {
    Root root;
    Runs runs;
    std::vector<Marker> markers;  // up to its sequence
    std::shared_ptr<OwnedExtents> manifest;
  };
  struct Operation;

  /// What `work` returns. When memory ran out in it: an error; and when that has left the state in
  /// memory half changed, the store is poisoned. For whoever holds no lock.
  template <class Work>
  std::invoke_result_t<Work> guarded(Work&& work) {
    auto result = guard_memory(std::forward<Work>(work));
    if (!result && half_changed_.load()) [[unlikely]] {
      poison(out_of_memory());
    }
    return result;
  }
  /// Memory ran out where the state in memory cannot be put back. Whoever holds no lock any more
  /// calls poison().
  void give_up_state();
  /// What `work` returns; when memory runs out in it, the state is given up.
  template <class Work>
  std::invoke_result_t<Work> in_one_step(Work&& work) {
    try {
      return std::forward<Work>(work)();
    } catch (const std::bad_alloc&) {
      give_up_state();
      throw;
    }
  }

  // Opening (engine_open.cpp).
  static Result<std::shared_ptr<Engine>> open_at(std::chrono::steady_clock::time_point start,
                                                 std::shared_ptr<Disk> disk,
                                                 const Options& options);
  Status open_files();
  Status create();
  Status remove_unfinished_creation(const std::vector<std::string>& names);
  // Without `confirm` the caller has confirm_roots() to call.
  Status load_roots(bool confirm = true);
  Status confirm_roots();
  Result<Runs> load_runs(const Root& root,
                         std::map<std::uint64_t, std::shared_ptr<const Tree>>& known,
                         std::vector<Marker>& markers);
  Status replay();
  Status replay_frame(Sequence first, std::uint32_t commits, ConstBytes payload);
  void start_threads();
  void count_group(std::uint64_t commits);
  Result<std::shared_ptr<const Tree>> finish_tree(TreeBuilder& builder);

  Status copy_into(const SnapshotCore& core, File& data, Root& root, BackupReport& report);

  // Several keys at once (get_many.cpp).
  std::vector<std::size_t> resident_values(const State& state,
                                           std::span<const std::string_view> keys, Values& values,
                                           ShortRead& read);
  Status read_rest(const State& state, std::span<const std::string_view> keys,
                   const std::vector<std::size_t>& rest, Values& values);

  // Rebuilding (rebuild.cpp).
  struct DamagedTree;
  Result<DamagedTree> inspect(const std::shared_ptr<const Tree>& tree) const;
  Result<std::shared_ptr<const Tree>> build_from_leaves(const DamagedTree& damaged,
                                                        RebuildReport& report);
  std::optional<RestoredIndex> restore_tree(const Tree& tree, bool check_values) const;
  Status write_restored(const std::vector<RestoredIndex>& indexes);
  Result<RebuildReport> rebuild_trees(const RebuildPolicy& policy);
  static Result<std::shared_ptr<Engine>> open_for_rebuild(std::shared_ptr<Disk> disk,
                                                          const Options& options);

  // Commits (engine_commit.cpp).
  Result<Receipt> make_commit(const WriteBatch& batch, Durability durability,
                              const Condition& condition);
  Status check_batch(const WriteBatch& batch) const;
  Status wait_for_room();
  Status admit(std::uint64_t operations);
  /// Operations admitted to the window, which go back unless their commit is made.
  class WindowShare {
   public:
    explicit WindowShare(Engine& engine) : engine_(engine) {}
    ~WindowShare();
    WindowShare(const WindowShare&) = delete;
    WindowShare& operator=(const WindowShare&) = delete;
    std::uint64_t keep() { return std::exchange(operations, 0); }
    std::uint64_t operations = 0;

   private:
    Engine& engine_;
  };
  /// `admit`: the batch it was encoded for; an error refuses it before anything is changed.
  /// Throws std::bad_alloc; where changes were begun, after give_up_state().
  Status apply(std::string_view encoded, Sequence sequence, const WriteBatch* admit = nullptr);
  void change(RadixTrie& overlay, const std::vector<std::vector<std::string>>& ranges,
              Sequence sequence);
  Result<std::vector<std::string>> keys_in_range(const BatchOperation& erase) const;
  void set_marker(std::string_view name, Sequence sequence);
  Sealed seal(bool always);
  void publish(const Sealed& sealed, bool reclaim = true);
  void publish_ahead();
  void poison(const Error& error);
  Error poisoned_error(ErrorKind kind) const;
  void window_thread();

  // Group commit (engine_flush.cpp).
  Status flush_until(Sequence target, bool sync);
  Status flush_group(bool sync, const std::function<void()>& change);
  Status write_group(bool sync, const std::function<void()>& change);
  void take_role();
  void give_role();
  /// The flusher's role, taken for a checkpoint or a merge.
  class Role {
   public:
    explicit Role(Engine& engine);
    ~Role();
    Role(const Role&) = delete;
    Role& operator=(const Role&) = delete;

   private:
    Engine& engine_;
  };
  void release_role(std::unique_lock<std::mutex>& lock, const CommitWaiter* leader);
  void apply_frame(const FrameBuffer& frame, std::size_t& applied_bytes);
  void apply_flushing();
  void apply_all();

  // Admission into a bounded data file (admission.cpp).
  static Options in_force(Options options);
  [[nodiscard]] bool bounded() const { return options_.max_bytes != 0; }
  [[nodiscard]] bool reserves() const {
    return bounded() && options_.admission != Admission::unreserved;
  }
  [[nodiscard]] TreeLimits tree_limits() const;
  void weigh_runs(const Runs& runs);
  Status walk_runs();
  [[nodiscard]] EntryWeights pending_weights() const;
  [[nodiscard]] PageNeed reserve_for(const EntryWeights& pending,
                                     const std::optional<PageNeed>& flush, EntryWeights merged,
                                     std::uint64_t merged_trees, std::uint64_t manifests) const;
  bool promise_kept();
  [[nodiscard]] std::uint64_t usable_pages(std::uint64_t piece);
  [[nodiscard]] PageNeed count_pending(const RadixTrie* batch);
  [[nodiscard]] bool fits(const PageNeed& need, bool only_erases);
  void promise(const PageNeed& need, const EntryWeights& batch);
  bool reserve_by_weight(const EntryWeights& batch, bool only_erases);
  Status reserve_space(const EntryWeights& batch, bool only_erases,
                       const std::function<void(RadixTrie&)>& fill);
  bool make_room(unsigned step);
  bool merge_fits(const Runs& inputs);
  bool reclaim_versions();
  Status release_older_root();

  // Checkpoints and merges (engine_checkpoint.cpp).
  Status flush_overlay();
  Status flush_once();
  Status freeze();
  /// Which runs are merged: those of a level that is full; neighbours of like size; all.
  enum class MergeRule : std::uint8_t { full_level, like_size, everything };
  struct MergeChoice {
    std::size_t first = 0;
    std::size_t last = 0;  ///< one behind the last input; first = nothing to do
    unsigned level = 0;    ///< of the result
    bool move_last_down = false;
  };
  MergeChoice choose_merge(const Runs& runs, MergeRule rule) const;
  Result<bool> merge_once(MergeRule rule);
  Result<std::vector<std::shared_ptr<const Tree>>> build_trees(EntryCursor& source);
  Result<std::vector<std::shared_ptr<const Tree>>> merge_trees(
      const std::vector<std::shared_ptr<const Run>>& inputs, bool drop_tombstones);
  Status install(const Runs& runs, Sequence sequence, Lsn log_start, std::uint32_t log_chain,
                 const std::vector<Marker>& markers, std::size_t flushed_overlays);
  Status write_durable_root(const Runs& runs, Root root, const std::vector<Marker>& markers);
  Status write_slot(Root root, DurableRoot durable);
  void background_thread();
  void merge_thread();
  [[nodiscard]] Runs current_runs();
  Status make_spare_segment();
  [[nodiscard]] Lsn log_needed() const;
  [[nodiscard]] std::uint64_t log_limit() const;
  [[nodiscard]] bool flush_due() const;
  [[nodiscard]] bool overfull() const;

  TreeSpace tree_space() { return {*data_, space_, *pool_}; }

  const Options options_;  // as in_force() has them
  ArenaAccount arena_;
  std::shared_ptr<Disk> disk_;
  std::unique_ptr<File> data_;
  ExtentAllocator space_{root_slots};
  std::unique_ptr<PagePool> pool_;
  Readers readers_;
  const std::shared_ptr<ChunkPool> chunks_;  // from overlay to overlay
  RecoveryReport report_;
  LogMethod log_method_ = LogMethod::fdatasync;
  std::unique_ptr<LogWriter> log_;

  std::mutex checkpoint_mutex_;
  std::mutex merge_mutex_;
  std::mutex install_mutex_;
  std::array<std::optional<DurableRoot>, root_slots> roots_;
  std::size_t newest_slot_ = 0;
  std::atomic<std::uint64_t> next_tree_{1};
  std::atomic<std::uint64_t> checkpoints_{0};
  std::atomic<std::uint64_t> merges_{0};
  std::atomic<std::uint64_t> checkpoint_bytes_{0};
  std::atomic<std::uint64_t> merge_bytes_{0};
  std::atomic<std::uint64_t> manifest_bytes_{0};
  std::atomic<std::uint64_t> checkpoint_requested_bytes_{0};
  std::atomic<std::uint64_t> merge_requested_bytes_{0};
  std::atomic<std::uint64_t> value_requested_bytes_{0};  // of large values, by both
  std::atomic<std::uint64_t> value_bytes_{0};            // with filters
  std::atomic<std::uint64_t> leaf_pages_{0};
  std::atomic<std::uint64_t> inner_pages_{0};
  std::atomic<std::uint64_t> checkpoint_barriers_{0};
  std::atomic<std::uint64_t> merge_barriers_{0};
  std::atomic<std::uint64_t> data_barriers_{0};
  // Where the newest frozen overlay ends.
  Sequence frozen_sequence_;
  Lsn frozen_lsn_;
  std::uint32_t frozen_chain_ = 0;
  std::vector<Marker> frozen_markers_;

  mutable std::mutex flush_mutex_;
  std::condition_variable flush_changed_;
  std::condition_variable window_wanted_;
  bool role_taken_ = false;
  std::size_t role_wanted_ = 0;  // by checkpoints and merges, which go before commits
  CommitQueue commit_queue_;
  Sequence written_;
  Sequence durable_;
  std::uint64_t window_admitted_ = 0;  // operations acknowledged or about to be
  std::uint64_t window_durable_ = 0;
  bool window_full_ = false;
  std::chrono::steady_clock::time_point window_since_;
  std::string poison_reason_;
  std::atomic<bool> poisoned_{false};
  // Memory ran out between two steps that belong together: what is behind the published state is
  // of no use, and never shown.
  std::atomic<bool> half_changed_{false};
  bool stopping_ = false;
  std::atomic<bool> closed_{false};
  std::atomic<bool> going_{false};  // the engine is being destroyed: background work gives up

  std::mutex sequencing_mutex_;
  std::shared_ptr<const Shape> shape_;
  Generation edit_generation_{1};
  bool edited_ = false;  // since the last seal
  Sequence last_sequence_;
  std::vector<Marker> markers_;  // oldest first
  std::uint64_t window_sequenced_ = 0;
  FrameBuffer filling_;
  FrameBuffer flushing_;                    // changed by the holder of the role only
  std::vector<BatchOperation> operations_;  // of the batch being applied
  // Commits that are in a frame and not yet in the overlay: the last ones, so that the overlay
  // always shows a prefix. C2 says whose may be.
  Sequence applied_;
  std::size_t filling_applied_bytes_ = 0;
  std::size_t flushing_applied_bytes_ = 0;
  bool seal_due_ = false;  // the flushing group is sealed as soon as all of it is applied
  std::optional<Sealed> group_sealed_;
  Reclaimer versions_;

  std::atomic<Version*> current_{nullptr};
  std::atomic<std::uint64_t> published_{0};
  std::atomic<bool> ahead_{false};  // acknowledged commits that are not published yet
  std::atomic<std::size_t> handles_{0};
  std::atomic<std::uint64_t> commits_{0};
  std::atomic<std::uint64_t> groups_{0};
  static constexpr std::size_t group_classes = 8;  // 1, 2 to 3, 4 to 7, ... 128 and more commits
  std::array<std::atomic<std::uint64_t>, group_classes> groups_by_size_{};
  std::atomic<std::uint64_t> largest_group_{0};
  std::atomic<std::uint64_t> marks_{0};
  std::atomic<std::uint64_t> mark_memory_nanoseconds_{0};
  std::atomic<std::uint64_t> durable_marks_{0};
  std::atomic<std::uint64_t> mark_durable_nanoseconds_{0};
  std::atomic<std::size_t> overlay_bytes_{0};
  std::atomic<bool> spare_wanted_{false};         // a log segment, made in the background
  std::atomic<std::uint64_t> log_end_{0};         // LSN behind the last frame
  std::atomic<std::uint64_t> checkpoint_lsn_{0};  // from which the newest root replays

  std::mutex background_mutex_;
  std::condition_variable background_wanted_;
  std::condition_variable room_;
  std::condition_variable merge_wanted_;
  bool background_due_ = false;
  bool merge_due_ = false;
  bool background_stop_ = false;
  std::optional<Error> background_error_;
  std::once_flag window_started_;
  std::thread window_thread_;
  std::thread background_thread_;
  std::thread merge_thread_;
};

}  // namespace lode
