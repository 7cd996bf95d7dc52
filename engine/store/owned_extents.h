// Extents that are given back when their last holder goes.
#pragma once

#include <vector>

#include "engine/store/engine.h"

namespace lode {

class Engine::OwnedExtents {
 public:
  explicit OwnedExtents(ExtentAllocator& space) : space_(space) {}
  ~OwnedExtents() {
    for (const Extent& extent : extents) space_.free(extent);
  }
  OwnedExtents(const OwnedExtents&) = delete;
  OwnedExtents& operator=(const OwnedExtents&) = delete;

  std::vector<Extent> extents;

 private:
  ExtentAllocator& space_;
};

}  // namespace lode
