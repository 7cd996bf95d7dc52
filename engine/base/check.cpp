#include "engine/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace lode {

void check_failed(const char* file, int line, const char* condition, const char* why) {
  std::fprintf(stderr, "%s:%d: lode invariant broken: %s (%s)\n", file, line, condition, why);
  std::abort();
}

}  // namespace lode
