// The check that aborts on a broken invariant. Always on, in every build. The second argument
// names the invariant of PROTOCOLS.md where it is one of those ("I3: ...").
#pragma once

namespace lode {

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const char* why);

}  // namespace lode

#define LODE_CHECK(condition, why)                                 \
  do {                                                             \
    if (!(condition)) [[unlikely]]                                 \
      ::lode::check_failed(__FILE__, __LINE__, #condition, (why)); \
  } while (false)
