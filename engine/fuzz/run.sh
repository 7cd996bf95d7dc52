#!/bin/sh
# Builds the fuzz targets with clang++ and runs each for a while from its corpus. New inputs go below
# BUILD, what makes a target fail too; copy the latter into engine/fuzz/corpus/TARGET.
# usage: engine/fuzz/run.sh BUILD [SECONDS [TARGET...]]   (default: 20 seconds each of page, root,
#                                                          dump, recovery)
# JOBS limits what is compiled at a time.
# exit status: 0 nothing found (or no clang++ here, which is said), 1 a target failed, 2 wrong usage
if [ $# -lt 1 ]; then
  sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
build=$1
seconds=${2:-20}
[ $# -ge 2 ] && shift
shift
[ $# -gt 0 ] || set -- page root dump recovery
here=$(cd "$(dirname "$0")" && pwd)
compiler=$(command -v clang++-19 || command -v clang++)
if [ -z "$compiler" ]; then
  echo "fuzz: no clang++ here; the corpora are replayed by ctest (Fuzz.*)"
  exit 0
fi
cmake -S "$here/../.." -B "$build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DLODE_FUZZ=ON \
  -DASSAY_TESTS=ON -DASSAY_PRECOMPILED_HEADERS=OFF -DCMAKE_BUILD_TYPE=RelWithDebInfo >"$build.log" 2>&1 || {
  cat "$build.log" >&2
  exit 2
}
for target in "$@"; do
  ninja -C "$build" -j "${JOBS:-$(nproc)}" "lode_${target}_fuzz" >"$build.log" 2>&1 || {
    cat "$build.log" >&2
    exit 2
  }
done
status=0
for target in "$@"; do
  mkdir -p "$build/corpus/$target"
  "$build/engine/lode_${target}_fuzz" -max_total_time="$seconds" -max_len=9000 -print_final_stats=1 \
    -artifact_prefix="$build/$target-" "$build/corpus/$target" "$here/corpus/$target" \
    >"$build/$target.log" 2>&1 || status=1
  grep -E 'stat::number_of_executed_units|ERROR|SUMMARY|fuzz:|Test unit' "$build/$target.log" |
    sed "s/^/$target: /"
done
exit $status
