// Memory that runs out, as an error value.
//
// Inside the engine an allocation that fails throws std::bad_alloc; what it has changed by then is
// put back by destructors, or the engine says that it cannot go on (Engine::guarded). Where a
// function of the public interface returns a Result, nothing is thrown.
#pragma once

#include <new>
#include <type_traits>
#include <utility>

#include "engine/base/result.h"

namespace lode {

/// Short enough to need no memory itself.
[[nodiscard]] inline Error out_of_memory() {
  return Error{ErrorKind::out_of_memory, "out of memory"};
}

/// What `work` returns, a Result; ErrorKind::out_of_memory where it threw std::bad_alloc.
template <class Work>
std::invoke_result_t<Work> guard_memory(Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const std::bad_alloc&) {
    return std::unexpected(out_of_memory());
  }
}

}  // namespace lode
