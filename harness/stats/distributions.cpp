#include "harness/stats/distributions.h"

#include <algorithm>
#include <cmath>

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

#include "adapters/result.h"

namespace assay::stats {
namespace {

namespace policies = boost::math::policies;
// An overflow or a failed expansion must surface as a value that we check, not as an exception.
using Policy = policies::policy<policies::overflow_error<policies::ignore_error>,
                                policies::evaluation_error<policies::ignore_error>,
                                policies::domain_error<policies::ignore_error>>;
using StudentsT = boost::math::students_t_distribution<double, Policy>;
using NoncentralT = boost::math::non_central_t_distribution<double, Policy>;
using Normal = boost::math::normal_distribution<double, Policy>;

}  // namespace

double student_t_upper(double t, double degrees_of_freedom) {
  ASSAY_CHECK(!std::isnan(t) && degrees_of_freedom > 0, "not a point of a t distribution");
  if (std::isinf(t)) return t > 0 ? 0.0 : 1.0;
  return boost::math::cdf(boost::math::complement(StudentsT(degrees_of_freedom), t));
}

double student_t_two_sided(double t, double degrees_of_freedom) {
  return std::min(1.0, 2.0 * student_t_upper(std::fabs(t), degrees_of_freedom));
}

double student_t_quantile(double probability, double degrees_of_freedom) {
  ASSAY_CHECK(probability > 0 && probability < 1 && degrees_of_freedom > 0,
              "not a quantile of a t distribution");
  return boost::math::quantile(StudentsT(degrees_of_freedom), probability);
}

double noncentral_t_outside(double critical, double degrees_of_freedom, double delta) {
  ASSAY_CHECK(critical >= 0 && degrees_of_freedom > 0 && !std::isnan(delta),
              "not a point of a noncentral t distribution");
  // Beyond these the test cannot miss (the critical value is far below the noncentrality); the
  // series would need as many terms as the square of the noncentrality.
  if (std::fabs(delta) > critical + 40 * (1 + critical / std::sqrt(2 * degrees_of_freedom)))
    return 1.0;
  const NoncentralT distribution(degrees_of_freedom, delta);
  const double above = boost::math::cdf(boost::math::complement(distribution, critical));
  const double below = boost::math::cdf(distribution, -critical);
  ASSAY_CHECK(std::isfinite(above) && std::isfinite(below), "the noncentral t did not converge");
  return std::clamp(above + below, 0.0, 1.0);
}

double normal_two_sided(double z) {
  ASSAY_CHECK(!std::isnan(z), "not a point of the normal distribution");
  if (std::isinf(z)) return 0.0;
  return std::min(1.0, 2.0 * boost::math::cdf(boost::math::complement(Normal(), std::fabs(z))));
}

std::size_t binomial_quantile(std::size_t trials, double success, double probability) {
  ASSAY_CHECK(success > 0 && success < 1 && probability > 0 && probability < 1,
              "not a quantile of a binomial distribution");
  const boost::math::binomial_distribution<double, Policy> distribution(static_cast<double>(trials),
                                                                        success);
  std::size_t k = 0;
  while (k < trials && boost::math::cdf(distribution, static_cast<double>(k)) < probability) ++k;
  return k;
}

void check_finite(std::span<const double> values) {
  for (const double value : values)
    ASSAY_CHECK(std::isfinite(value), "a sample of a test holds a NaN or an infinity");
}

}  // namespace assay::stats
