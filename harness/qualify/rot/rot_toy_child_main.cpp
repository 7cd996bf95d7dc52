// The server of level R over the toy store, for the tests: `rot_toy_child qualify-worker FILE`.
#include <cstdio>
#include <string_view>

#include "harness/qualify/kill/kill_request.h"
#include "harness/qualify/rot/testdata/rot_toy.h"

int main(int argc, char** argv) {
  if (argc != 3 || std::string_view(argv[1]) != "qualify-worker") {
    std::fprintf(stderr, "usage: %s qualify-worker REQUEST-FILE\n", argv[0]);
    return 2;
  }
  return assay::qualify::kill_server_main(
      argv[2], [](std::string_view) -> assay::Result<const assay::Driver*> {
        return &assay::qualify::rot::rot_toy_driver();
      });
}
