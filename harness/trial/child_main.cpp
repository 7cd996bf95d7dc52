// The child of a trial as a program of its own, for the tests: `trial_child worker REQUEST-FILE`.
#include <cstdio>
#include <string_view>

#include "harness/trial/trial.h"

int main(int argc, char** argv) {
  if (argc != 3 || std::string_view(argv[1]) != "worker") {
    std::fprintf(stderr, "usage: %s worker REQUEST-FILE\n", argv[0]);
    return 2;
  }
  return assay::worker_main(argv[2]);
}
