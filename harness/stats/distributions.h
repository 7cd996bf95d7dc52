// The distribution functions that the tests need, so that Boost.Math is compiled once.
//
// Every function is pure and may be called from any thread. Infinite arguments are allowed where
// the limit is defined; NaN is not (ASSAY_CHECK).
#pragma once

#include <cstddef>
#include <span>

namespace assay::stats {

/// P(T > |t|) + P(T < -|t|) of Student's t with `degrees_of_freedom` > 0.
[[nodiscard]] double student_t_two_sided(double t, double degrees_of_freedom);
/// P(T > t).
[[nodiscard]] double student_t_upper(double t, double degrees_of_freedom);
/// t such that P(T <= t) = `probability`, 0 < probability < 1.
[[nodiscard]] double student_t_quantile(double probability, double degrees_of_freedom);
/// P(|T| > critical) of the noncentral t with noncentrality `delta`.
[[nodiscard]] double noncentral_t_outside(double critical, double degrees_of_freedom, double delta);
/// P(|Z| > |z|) of the standard normal.
[[nodiscard]] double normal_two_sided(double z);

/// Smallest k with P(K <= k) >= `probability` for K of `trials` tries that succeed with `success`.
[[nodiscard]] std::size_t binomial_quantile(std::size_t trials, double success, double probability);

/// Aborts unless every value is finite: a NaN in a sample is a defect of the caller, which must
/// have refused the trial that produced it.
void check_finite(std::span<const double> values);

}  // namespace assay::stats
