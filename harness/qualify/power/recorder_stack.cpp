// Return addresses of a trapped call, walked by the unwinder of the compiler's run-time library:
// the stores' libraries keep no frame pointers.
#include <unwind.h>

#include <algorithm>

#include "harness/qualify/power/recorder.h"

namespace assay::qualify::power::detail {
namespace {

struct Walk {
  std::uint64_t* frames;
  std::size_t count;
  std::size_t limit;
  std::uint64_t caller;
  bool begun;
};

_Unwind_Reason_Code step(_Unwind_Context* context, void* raw_walk) {
  auto& walk = *static_cast<Walk*>(raw_walk);
  const std::uint64_t at = _Unwind_GetIP(context);
  walk.begun = walk.begun || at == walk.caller;  // what is above is the handler itself
  if (!walk.begun) return _URC_NO_REASON;
  if (walk.count == walk.limit || at == 0) return _URC_END_OF_STACK;
  walk.frames[walk.count++] = at;
  return _URC_NO_REASON;
}

}  // namespace

std::uint16_t take_stack(std::uint64_t caller, std::uint64_t* frames) {
  const std::size_t limit = std::min<std::size_t>(log()->stacks, kStackMax);
  if (limit == 0) return 0;
  Walk walk{frames, 0, limit, caller, false};
  _Unwind_Backtrace(step, &walk);
  return static_cast<std::uint16_t>(walk.count);
}

}  // namespace assay::qualify::power::detail
