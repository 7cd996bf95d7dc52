#include "harness/cli/set_flags.h"

#include <fmt/format.h>

namespace assay::cli {

Result<Settings> parse_set_flags(const std::vector<std::string>& given) {
  Settings settings;
  for (const std::string& one : given) {
    const std::size_t equals = one.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return fail(Error(ErrorKind::bad_input, fmt::format("--set {} is no setting", one))
                      .hint("write --set name=value"));
    }
    const std::string name = one.substr(0, equals);
    if (!settings.emplace(name, one.substr(equals + 1)).second) {
      return fail(ErrorKind::bad_input, fmt::format("--set gives \"{}\" twice", name));
    }
  }
  return settings;
}

}  // namespace assay::cli
