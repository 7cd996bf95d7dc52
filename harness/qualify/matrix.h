// The harness's own examination: every setting whose legal loss is known (controls.h), at the
// levels asked for, one campaign a row.
//
// A row passes when nothing beyond its contract was reached and a lossy one reached what it must.
// Invariants: a row that has ended is not run again below the same `out`, so that a stopped matrix
// goes on with the row that it was at; another seed, budget or set of levels needs another `out`.
// Threads: as run_campaign().
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "harness/qualify/campaign.h"
#include "harness/qualify/controls.h"

namespace assay::qualify {

struct MatrixPlan {
  std::vector<MatrixRow> rows;
  std::vector<Level> levels;
  Budget budget;  ///< of each level of each row
  std::string budget_text;
  std::uint64_t seed = 1;
  std::uint32_t writers = 3;
  std::uint32_t jobs = 2;
  std::uint32_t open_timeout_ms = 30'000;
  std::string root;
  std::string out;
  std::string ledger;  ///< empty = `out`/ledger.jsonl
};

/// Those of the table whose names or stores are asked for, all where none is; an unknown name is
/// an error that lists the valid ones.
[[nodiscard]] Result<std::vector<MatrixRow>> choose_rows(const std::vector<std::string>& names);

/// One row at one level.
struct MatrixEntry {
  MatrixRow row;
  DurabilityClass claimed = DurabilityClass::power;
  std::optional<Control> control;
  LevelOutcome outcome;
  Loss reached = Loss::intact;  ///< under any profile
  /// The level's own; HARNESS-ERROR as well when it could not be run, INCONCLUSIVE when a budget
  /// below the standard one did not show what a lossy control must lose.
  Verdict verdict = Verdict::inconclusive;
  std::string reason;
};

struct Matrix {
  std::vector<MatrixEntry> entries;
  bool interrupted = false;
  std::string ledger_path;
};

/// Whether a matrix with these flags was begun at `plan.out` and has rows that have not ended.
[[nodiscard]] bool is_unfinished(const MatrixPlan& plan);

/// Rows of the plan that have not ended below `plan.out`.
[[nodiscard]] std::size_t rows_left(const MatrixPlan& plan);

/// `row_begins` hears which row of how many is next.
[[nodiscard]] Result<Matrix> run_matrix(
    const MatrixPlan& plan, const std::vector<std::string>& command_line,
    const std::atomic<bool>& stop, CampaignObserver& observer,
    const std::function<void(std::size_t number, const MatrixRow& row)>& row_begins);

/// What is said of a row at a level: did the control reach what it must, did it keep to its
/// maximum. Sets `reached`, `verdict` and `reason` from the rest.
void examine(MatrixEntry& entry);

[[nodiscard]] Verdict worst_verdict(const Matrix& matrix);

constexpr std::size_t kMatrixColumns = 10;
using MatrixLine = std::array<std::string, kMatrixColumns>;
/// The titles, then a line a row, level and profile; the verdict stands at the profile that it
/// rests on, and what the others say in brackets.
[[nodiscard]] std::vector<MatrixLine> matrix_lines(const Matrix& matrix);
[[nodiscard]] std::string matrix_text(const Matrix& matrix);
[[nodiscard]] std::string matrix_markdown(const Matrix& matrix);
[[nodiscard]] nlohmann::json matrix_json(const MatrixPlan& plan, const Matrix& matrix);
/// A suite a level, a case a row: FAIL is a failure, HARNESS-ERROR an error, the rest skipped.
[[nodiscard]] std::string matrix_junit(const Matrix& matrix);

}  // namespace assay::qualify
