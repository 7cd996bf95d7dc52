// An experiment at a scale of seconds: whether every declared experiment still runs, in minutes.
//
// make_small() lowers what takes time and keeps what the experiment is about: arms, settings,
// class, sizes of keys and values, phases, mixes, metric and claims stay. What it lowered is told
// in words, which become notes of the plan, so that every table shows them. The plan is another one
// then (its digest differs): it is exploratory, and nothing of it belongs into the ledger of the
// registered one. A figure of it is no result. Stateless.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/experiment/plan.h"

namespace assay {

/// The most that is left of each part of a plan.
struct SmallScale {
  std::uint64_t trials = 2;  ///< an arm; more where a rank test of medians needs them
  std::uint64_t windows = 6;
  std::uint64_t window_operations = 5;
  std::uint64_t keys = 10'000;
  std::uint64_t table_rows = 100'000;  ///< keys of a workload of tables: their trades
  std::uint64_t data_bytes = std::uint64_t{16} << 20;  ///< keys and values of a store
  std::uint64_t operations = 2'000;                    ///< a thread and run phase
  std::uint64_t duration_ms = 150;                     ///< of a run phase; also of a warm-up
  /// Of each axis of a sweep that is no number of keys: its first and its last value.
  std::size_t axis_values = 2;
};

/// Lowers `plan`, adds a note for what was lowered, and returns the same as short texts: "blocks:
/// 48 -> 2". A number of keys that is swept is not lowered, for its cells are named after it: cells
/// with more than `keys` are left out, all but the smallest.
std::vector<std::string> make_small(Plan& plan, const SmallScale& scale = {});

}  // namespace assay
