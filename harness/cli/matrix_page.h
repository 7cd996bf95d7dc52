// The matrix of controls as one HTML page: no network, no script, the look of a report.
#pragma once

#include <string>

#include "harness/qualify/matrix.h"

namespace assay::cli {

[[nodiscard]] std::string matrix_page(const qualify::MatrixPlan& plan,
                                      const qualify::Matrix& matrix);

}  // namespace assay::cli
