// The account of a bounded data file: what is promised to commits that were acknowledged, and what
// admission has done. Steps A1 to A4 of PROTOCOLS.md.
// Threads: the counters from any; the rest needs the sequencing lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>

#include "engine/tree/weights.h"

namespace lode {

struct ArenaAccount {
  // Of the current runs.
  EntryWeights runs;
  std::uint64_t run_trees = 0;
  std::uint64_t run_manifest_bytes = 0;
  bool runs_guessed = false;  ///< trees of an earlier opening count with more than they may weigh
  std::map<std::uint64_t, EntryWeights> walked;  ///< by tree: weights of trees that were read

  // Commits that are in a frame and not yet in the overlay.
  EntryWeights filling;
  EntryWeights flushing;

  bool promised = false;             ///< I17 holds: since the last admitted commit
  std::uint64_t admitted_bytes = 0;  ///< since the engine made room by itself

  // The last answer of the allocator.
  std::uint64_t usable = 0;
  std::uint64_t usable_piece = 0;
  std::uint64_t usable_changes = 0;

  std::atomic<std::uint64_t> fast_accepts{0};
  std::atomic<std::uint64_t> exact_fallbacks{0};
  std::atomic<std::uint64_t> full_recounts{0};
  std::atomic<std::uint64_t> counted_entries{0};
  std::atomic<std::uint64_t> refused_commits{0};
  std::atomic<std::uint64_t> reserved_pages{0};
  std::atomic<std::uint64_t> rooms_made{0};
  std::atomic<std::uint64_t> roots_released{0};
  std::atomic<std::uint64_t> merges_put_off{0};
  std::atomic<bool> full{false};  ///< the last flush found no space
};

}  // namespace lode
