// The spelling of a plan's enumerations, both ways. Internal to plan.cpp and the plan reader.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "harness/experiment/plan.h"

namespace assay {

inline constexpr std::array<std::pair<std::string_view, Design>, 3> kDesigns = {
    {{"random", Design::random}, {"blocks", Design::blocks}, {"windows", Design::windows}}};
inline constexpr std::array<std::pair<std::string_view, HypothesisKind>, 4> kHypotheses = {
    {{"superiority", HypothesisKind::superiority},
     {"equivalence", HypothesisKind::equivalence},
     {"non-inferiority", HypothesisKind::non_inferiority},
     {"regression", HypothesisKind::regression}}};
inline constexpr std::array<std::pair<std::string_view, ProcessValue>, 3> kProcessValues = {
    {{"phase", ProcessValue::phase},
     {"median-of-windows", ProcessValue::median_of_windows},
     {"restart-hot", ProcessValue::restart_hot}}};

}  // namespace assay
