#!/usr/bin/env bash
# Plants one offence of each kind in a throw-away tree; layers.py must name every one and pass
# the clean tree. Run by ctest.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{engine,adapters,workloads,plots,harness/stats}
run() { "${PYTHON:-python3}" "$here/layers.py" "$tree" 2>/dev/null; }
expect() {  # expect FILE LINE-OF-CODE
  printf '%s\n' "$2" >"$tree/$1"
  if out=$(run); then echo "not found: $1 with $2"; exit 1; fi
  grep -q "^$1:1: " <<<"$out" || { echo "wrong place: $out"; exit 1; }
  rm "$tree/$1"
}
run || { echo "the empty tree has offences"; exit 1; }
expect engine/a.h '#include "adapters/store.h"'
expect workloads/a.cpp '#include "harness/stats/stats.h"'
expect harness/a.cpp '#include <rocksdb/db.h>'
expect harness/a.cpp '#include "adapters/sqlite_store.h"'
expect harness/stats/a.h '#include "harness/trial/trial.h"'
expect plots/a.cpp '#include "harness/report/model.h"'
expect adapters/a.cpp '#include "workloads/stream.h"'
seq 700 | sed 's/.*/;/' >"$tree/engine/long.cpp"
(run || true) | grep -q '^engine/long.cpp:601: ' || { echo "a long file was not found"; exit 1; }
rm "$tree/engine/long.cpp"
printf '#include "adapters/store.h"\n#include "harness/stats/stats.h"\n' >"$tree/harness/fine.cpp"
run || { echo "a rightful include was refused"; exit 1; }
echo "all planted offences were found"
