// --set name=value of the verbs that open one store. Stateless; any thread.
#pragma once

#include <string>
#include <vector>

#include "adapters/store.h"

namespace assay::cli {

/// Errors: no '=', no name, a name that is given twice.
[[nodiscard]] Result<Settings> parse_set_flags(const std::vector<std::string>& given);

}  // namespace assay::cli
