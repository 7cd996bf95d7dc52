// Sweeps: a plan that lists values for keys of its workload or settings of its arms. Internal to
// the plan reader.
//
// Every point of the cross product is a cell, and every cell is a plan of its own: the declaration
// with the cell's values put in, read by the reader that every plan goes through. The plan of the
// sweep joins them: arms of all cells under ARM@CELL, claims within each cell, one family of all.
// Cells that differ in workload.measured_phase alone share their trials: each runs all phases once.
// Axes are ordered by their keys, so that two spellings of one plan are one plan. Stateless.
#pragma once

#include <string>
#include <vector>

#include "harness/experiment/plan.h"
#include "harness/experiment/plan_declaration.h"

namespace assay {

/// More cells than this are refused: each is an experiment, and a family of more claims shows
/// little.
inline constexpr std::uint64_t kMostCells = 64;

/// Reads [sweep]; what is wrong is reported by TomlDocument::finish().
[[nodiscard]] std::vector<SweepAxis> read_sweep(TomlTable& root, const Declaration& declaration);

/// The points of the cross product with their names; their plans are still empty.
[[nodiscard]] std::vector<Cell> cells_of(const std::vector<SweepAxis>& axes);

/// Puts the values of `cell` where a plan without a sweep has them.
[[nodiscard]] Status put_values(const std::vector<SweepAxis>& axes, const Cell& cell,
                                const std::vector<Arm>& arms, TomlDocument& document);

/// An error of one cell, at the line of the sweep that it is about.
[[nodiscard]] Error placed_in_sweep(Error error, const std::vector<SweepAxis>& axes,
                                    const Cell& cell, const std::vector<Arm>& arms,
                                    const TomlTable& root);

/// One plan of cells whose plans are there. Error where they aggregate differently.
[[nodiscard]] Result<Plan> joined(std::vector<SweepAxis> axes, std::vector<Cell> cells);

}  // namespace assay
