// Commit: sequencing and publication. Steps C1, C2, C3 and C5 of PROTOCOLS.md.
#include <algorithm>
#include <set>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/mutation.h"
#include "engine/store/batch.h"
#include "engine/store/engine.h"

namespace lode {
namespace {

constexpr std::uint64_t max_value_bytes = std::uint64_t{1} << 30;
constexpr std::size_t max_batch_bytes = std::size_t{1} << 31;
constexpr std::size_t volatile_buffer_bytes = std::size_t{1} << 20;
constexpr std::size_t max_frame_bytes = std::size_t{1} << 29;  // of several commits together
// Below, telling the device to begin costs more than applying.
constexpr std::uint64_t least_operations_applied_later = 16;

// The nodes on the way to the keys of the next operations, level by level, so that their cache
// misses overlap with the operation at hand.
void fetch_ahead(const RadixTrie& overlay, const std::vector<BatchOperation>& operations,
                 std::size_t at) {
  constexpr std::size_t distance = 3;  // operations between two levels
  constexpr unsigned levels = 3;
  for (unsigned level = 1; level <= levels; ++level) {
    const std::size_t ahead = at + distance * (levels + 1 - level);
    if (ahead < operations.size()) overlay.fetch(operations[ahead].key, level);
  }
}

}  // namespace

Status Engine::check_batch(const WriteBatch& batch) const {
  if (options_.read_only) return fail(ErrorKind::unsupported, "the store is open for reading only");
  if (closed_.load()) return fail(ErrorKind::bad_input, "the store is closed");
  if (batch.longest_key_ > max_key_bytes) {
    return fail(ErrorKind::bad_input, "a key of " + std::to_string(batch.longest_key_) +
                                          " bytes; at most 1024 are allowed");
  }
  if (batch.longest_value_ > max_value_bytes) {
    return fail(ErrorKind::bad_input, "a value of " + std::to_string(batch.longest_value_) +
                                          " bytes; at most 1 GiB is allowed");
  }
  const bool keyed = batch.shortest_key_ <= max_key_bytes;  // not only range erases
  if (options_.key_kind == KeyKind::u64 &&
      (batch.longest_key_ > 8 || (keyed && batch.shortest_key_ != 8))) {
    return fail(ErrorKind::bad_input, "a key of a u64 store has 8 bytes");
  }
  if (batch.encoded_.size() > max_batch_bytes) {
    return fail(ErrorKind::bad_input, "a batch of more than 2 GiB; split it");
  }
  return {};
}

void Engine::give_up_state() {
  half_changed_.store(true);
  poisoned_.store(true);
}

Error Engine::poisoned_error(ErrorKind kind) const {
  return Error{kind,
               "an earlier write failed (" + poison_reason_ + "); close and open the store again"};
}

void Engine::poison(const Error& error) {
  CommitWaiter* waiters = nullptr;
  {
    const std::lock_guard lock(flush_mutex_);
    poisoned_.store(true);
    try {
      if (poison_reason_.empty()) poison_reason_ = error.what;
    } catch (const std::bad_alloc&) {
      poison_reason_.clear();
    }
    waiters = commit_queue_.take_all();
  }
  CommitQueue::wake(waiters, CommitWaiter::covered);
  flush_changed_.notify_all();
  room_.notify_all();
}

// Back pressure: the overlay may grow to twice its size, and the log to three times, while the one
// before is being flushed.
Status Engine::wait_for_room() {
  if (!options_.background || !flush_due()) return {};
  std::unique_lock lock(background_mutex_);
  background_due_ = true;
  background_wanted_.notify_one();
  while (overfull() && !poisoned_.load()) {
    if (background_error_) return std::unexpected(*background_error_);
    background_due_ = true;
    background_wanted_.notify_one();
    room_.wait_for(lock, std::chrono::milliseconds(50));
  }
  return {};
}

// I10: operations acknowledged in window mode and not durable never exceed the window.
Status Engine::admit(std::uint64_t operations) {
  std::call_once(window_started_,
                 [this] { window_thread_ = std::thread([this] { window_thread(); }); });
  std::unique_lock lock(flush_mutex_);
  while (window_admitted_ - window_durable_ + operations > options_.window_operations &&
         !LODE_MUTATED("window-without-limit")) {
    if (poisoned_.load()) return std::unexpected(poisoned_error(ErrorKind::poisoned));
    window_full_ = true;
    window_wanted_.notify_one();
    flush_changed_.wait(lock);
  }
  if (window_admitted_ == window_durable_) {
    window_since_ = std::chrono::steady_clock::now();
    window_wanted_.notify_one();
  }
  window_admitted_ += operations;
  return {};
}

Engine::WindowShare::~WindowShare() {
  if (operations == 0) return;
  const std::lock_guard lock(engine_.flush_mutex_);
  engine_.window_admitted_ -= operations;
}

void Engine::window_thread() {
  std::unique_lock lock(flush_mutex_);
  while (!stopping_) {
    if (window_admitted_ == window_durable_ || poisoned_.load()) {
      window_wanted_.wait(lock);
      continue;
    }
    const auto due = window_since_ + options_.window_delay;
    if (!window_full_ && std::chrono::steady_clock::now() < due) {
      window_wanted_.wait_until(lock, due);
      continue;
    }
    window_full_ = false;
    window_since_ = std::chrono::steady_clock::now();
    lock.unlock();
    (void)sync();
    lock.lock();
  }
}

Result<Receipt> Engine::commit(const WriteBatch& batch, Durability durability,
                               const Condition& condition) {
  auto receipt = guarded([&] { return make_commit(batch, durability, condition); });
  const bool unknown =
      !receipt && receipt.error().kind == ErrorKind::out_of_memory && half_changed_.load();
  if (unknown) receipt.error().kind = ErrorKind::outcome_unknown;
  return receipt;
}

Result<Receipt> Engine::make_commit(const WriteBatch& batch, Durability durability,
                                    const Condition& condition) {
  LODE_TRY(check_batch(batch));
  if (batch.empty()) return Receipt{0, false};
  LODE_TRY(wait_for_room());
  if (arena_.full.load() && batch.puts_ > 0 && !LODE_MUTATED("full-arena-forgotten")) {
    ++arena_.refused_commits;
    return fail(ErrorKind::arena_full,
                "the last flush found no space in the arena of " +
                    std::to_string(options_.max_bytes) +
                    " bytes; erase, close snapshots, checkpoint or compact, or open it with a "
                    "larger max_bytes");
  }
  const std::uint64_t operations = batch.operations();
  if (durability == Durability::window && operations > options_.window_operations) {
    durability = Durability::sync;
  }
  const bool window = durability == Durability::window;
  const bool later = durability == Durability::sync && !condition && !batch.ranged_ &&
                     operations >= least_operations_applied_later;
  WindowShare share(*this);
  if (window) {
    LODE_TRY(admit(operations));
    share.operations = operations;
  }
  Sequence sequence;
  std::size_t buffered = 0;
  unsigned rooms = 0;
  while (true) {
    std::unique_lock lock(sequencing_mutex_);
    Status status;
    if (poisoned_.load()) {
      lock.unlock();
      const std::lock_guard flush_lock(flush_mutex_);
      return std::unexpected(poisoned_error(ErrorKind::poisoned));
    }
    if (!filling_.empty() && filling_.payload_bytes() + batch.encoded_.size() > max_frame_bytes) {
      const Sequence last = last_sequence_;
      lock.unlock();
      LODE_TRY(flush_until(last, false));
      continue;
    }
    const std::size_t record_bytes = varint_bytes(batch.encoded_.size()) + batch.encoded_.size();
    filling_.reserve(record_bytes);  // before the first change: memory may run out
    const bool deferred =
        later && (!reserves() || (options_.admission == Admission::weighted &&
                                  reserve_by_weight(batch.weights_, batch.puts_ == 0)));
    if (deferred && reserves()) arena_.filling += batch.weights_;
    if (!deferred) apply_all();
    if (condition && !LODE_MUTATED("conflicts-not-checked"))
      status = condition({shape_->active->root(), shape_});
    if (status && !deferred) status = apply(batch.encoded_, last_sequence_ + 1, &batch);
    if (!status) {
      lock.unlock();
      if (status.error().kind == ErrorKind::arena_full) {
        constexpr unsigned steps = 2;
        bool again = false;
        while (!again && rooms < steps) again = make_room(rooms++);
        if (again) continue;
        ++arena_.refused_commits;
      }
      return std::unexpected(std::move(status).error());
    }
    sequence = ++last_sequence_;
    std::byte* out = filling_.extend(varint_bytes(batch.encoded_.size()));
    put_varint(out, batch.encoded_.size());
    std::memcpy(filling_.extend(batch.encoded_.size()), batch.encoded_.data(),
                batch.encoded_.size());
    filling_.count_commit(sequence);
    buffered = filling_.payload_bytes();
    if (!deferred) filling_applied_bytes_ = buffered;
    window_sequenced_ += share.keep();
    if (durability != Durability::sync) ahead_.store(true, std::memory_order_release);
    break;
  }
  commits_.fetch_add(1, std::memory_order_relaxed);
  if (durability == Durability::sync) {
    LODE_TRY(flush_until(sequence, !LODE_MUTATED("acknowledged-before-sync")));
    return Receipt{sequence.value, true};
  }
  if (durability == Durability::buffered || buffered > volatile_buffer_bytes) {
    LODE_TRY(flush_until(sequence, false));
  }
  return Receipt{sequence.value, false};
}

// Changes the overlay. Everything that can fail happens before the first change. Needs the
// sequencing lock (or a store that is still being opened).
Status Engine::apply(std::string_view encoded, Sequence sequence, const WriteBatch* admit) {
  std::vector<std::vector<std::string>> ranges;  // keys that each range erase finds
  EntryWeights erased;                           // by ranges
  operations_.clear();
  Decoder in(as_bytes(encoded));
  while (const auto operation = next_operation(in)) {
    operations_.push_back(*operation);
    if (operation->kind != OperationKind::erase_range &&
        operation->kind != OperationKind::erase_from) {
      continue;
    }
    LODE_ASSIGN(auto keys, keys_in_range(*operation));
    if (admit != nullptr && reserves()) {
      for (const std::string& key : keys) erased.add(key.size(), 0);
    }
    ranges.push_back(std::move(keys));
  }
  if (in.failed()) return fail(ErrorKind::corruption, "malformed batch");
  if (admit != nullptr && reserves()) {
    erased += admit->weights_;
    LODE_TRY(reserve_space(erased, admit->puts_ == 0,
                           [&](RadixTrie& overlay) { change(overlay, ranges, sequence); }));
  }
  in_one_step([&] {
    change(*shape_->active, ranges, sequence);
    for (const BatchOperation& operation : operations_) {
      if (operation.kind == OperationKind::marker) set_marker(operation.key, sequence);
    }
  });
  edited_ = true;
  applied_ = sequence;
  overlay_bytes_.store(shape_->active->memory_bytes(), std::memory_order_relaxed);
  return {};
}

// Makes the changes of operations_. `ranges` has the keys that each range erase finds.
void Engine::change(RadixTrie& overlay, const std::vector<std::vector<std::string>>& ranges,
                    Sequence sequence) {
  const bool ranged = !ranges.empty();
  std::set<std::string, std::less<>> own_keys;  // of puts, where a range may erase them again
  std::size_t range = 0;
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    fetch_ahead(overlay, operations_, i);
    const BatchOperation& operation = operations_[i];
    switch (operation.kind) {
      case OperationKind::put:
        overlay.put(operation.key, EntryKind::value, operation.value, sequence);
        if (ranged) own_keys.emplace(operation.key);
        break;
      case OperationKind::erase:
        overlay.put(operation.key, EntryKind::tombstone, {}, sequence);
        break;
      case OperationKind::erase_range:
      case OperationKind::erase_from:
        for (const std::string& key : ranges[range]) {
          if (LODE_MUTATED("range-erase-forgets-a-key") && &key == &ranges[range].back()) continue;
          overlay.put(key, EntryKind::tombstone, {}, sequence);
        }
        for (auto own = own_keys.lower_bound(operation.key);
             own != own_keys.end() &&
             (operation.kind == OperationKind::erase_from || *own < operation.value);
             ++own) {
          overlay.put(*own, EntryKind::tombstone, {}, sequence);
        }
        ++range;
        break;
      case OperationKind::marker:  // changes no entry
        break;
    }
  }
}

Result<std::vector<std::string>> Engine::keys_in_range(const BatchOperation& erase) const {
  std::vector<std::string> keys;
  const auto cursor = open_cursor({shape_->active->root(), shape_});
  for (cursor->seek(erase.key); cursor->valid(); cursor->next()) {
    if (erase.kind == OperationKind::erase_range && cursor->key() >= erase.value) break;
    keys.emplace_back(cursor->key());
  }
  LODE_TRY(cursor->status());
  return keys;
}

Engine::Sealed Engine::seal(bool always) {
  if ((edited_ || always) &&
      !(LODE_MUTATED("published-without-sealing") && published_ > 0 && !always)) {
    ++edit_generation_;
    shape_->active->begin_generation(edit_generation_);
    edited_ = false;
  }
  return {Generation(edit_generation_.value - 1), applied_, State{shape_->active->root(), shape_}};
}

void Engine::publish(const Sealed& sealed, bool reclaim) {
  const Generation published(published_.load(std::memory_order_relaxed));
  if (sealed.generation <= published) return;
  auto version = std::make_unique<Version>(sealed.generation, sealed.sequence, sealed.state);
  if (Version* const old = current_.load(); old != nullptr) {
    LODE_CHECK(old->sequence <= version->sequence, "I5: published states only advance");
    versions_.retire(old, sizeof(Version), old->generation, sealed.generation);
  }
  current_.store(version.release(), std::memory_order_seq_cst);
  published_.store(sealed.generation.value, std::memory_order_seq_cst);
  versions_.reclaim(sealed.generation);
  if (reclaim) shape_->active->reclaim(sealed.generation);
}

// Readers come here when commits were acknowledged without having been published: publishing on
// demand lets a stream of writes edit the overlay in place.
void Engine::publish_ahead() {
  const std::lock_guard lock(sequencing_mutex_);
  if (!ahead_.load(std::memory_order_relaxed)) return;
  // What was acknowledged cannot be shown any more, and what is older would be a lie.
  if (half_changed_.load()) throw std::bad_alloc();
  apply_flushing();  // else the group in flight would be sealed with a part of the next
  publish(seal(false));
  ahead_.store(false, std::memory_order_release);
}

}  // namespace lode
