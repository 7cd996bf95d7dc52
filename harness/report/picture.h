// A drawn figure as a report embeds it.
#pragma once

#include <string>

#include "harness/report/model.h"

namespace assay::report {

struct Picture {
  std::string name;  ///< file name in plots/ without suffix
  std::string title;
  std::string svg;  ///< the whole file
};

}  // namespace assay::report
