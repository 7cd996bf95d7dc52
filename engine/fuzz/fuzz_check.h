// What the fuzz targets share: a check that ends the process, and input that is taken in pieces.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "engine/base/types.h"

namespace lode::fuzz {

/// Ends the process with a message: the fuzzer and the replay of the corpus both notice.
inline void require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s\n", what.c_str());
  std::abort();
}

/// Numbers from the front of the input; zeros when it is used up.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    for (; bytes > 0 && left_ > 0; --bytes, --left_) value = value << 8 | *data_++;
    return value;
  }
  [[nodiscard]] bool empty() const { return left_ == 0; }
  [[nodiscard]] ConstBytes rest() const {
    return {reinterpret_cast<const std::byte*>(data_), left_};
  }

 private:
  const std::uint8_t* data_;
  std::size_t left_;
};

}  // namespace lode::fuzz

/// The entry of libFuzzer; replay_main.cpp calls it as well.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
