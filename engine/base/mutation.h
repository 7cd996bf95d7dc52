// Planted mistakes for the tests of the tests. In a build with LODE_MUTATIONS the one named by the
// environment variable LODE_MUTATION is made; engine/mutation_score.sh makes each in turn and
// counts those that some test notices. In every other build the macro is `false`.
#pragma once

#ifdef LODE_MUTATIONS
#include <cstdlib>
#include <string_view>

namespace lode {
inline bool mutated(std::string_view name) {
  static const char* const chosen = std::getenv("LODE_MUTATION");
  return chosen != nullptr && name == chosen;
}
}  // namespace lode
#define LODE_MUTATED(name) ::lode::mutated(name)
#else
#define LODE_MUTATED(name) false
#endif
