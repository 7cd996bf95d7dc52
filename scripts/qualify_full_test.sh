#!/usr/bin/env bash
# Runs qualify-full in a throw-away tree whose tests and assay are stubs: every level is run, one that
# is stopped ends it, and what has passed is not run again. Run by ctest.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
tests=build/release/harness/qualify
mkdir -p "$tree/scripts" "$tree/$tests/power" "$tree/$tests/block"
cp "$here/qualify-full" "$tree/scripts/"
printf '#!/bin/sh\n' >"$tree/scripts/build"
for name in kill_test power/power_test power/power_level_test block/block_level_test error_level_test rot_level_test; do
  printf '#!/bin/sh\necho "test %s" >>"%s/log"\n' "$name" "$tree" >"$tree/$tests/$name"
done
cat >"$tree/build/release/assay" <<END
#!/bin/sh
echo "\$*" >>"$tree/log"
case "\$*" in *"--level \$(cat "$tree/stop" 2>/dev/null || echo none)"*) exit 130 ;; *"--level R"*) exit 8 ;; esac
END
chmod +x "$tree"/scripts/build "$tree"/build/release/assay "$tree/$tests"/*_test "$tree/$tests"/*/*_test
run() { local result=0; "$tree/scripts/qualify-full" --out o "$@" >/dev/null || result=$?; echo "$result"; }
fail() { echo "$1"; cat "$tree/log"; exit 1; }
echo B >"$tree/stop"
[ "$(run --row lode)" = 130 ] || fail "a stopped level did not end it"
[ "$(grep -c '^test ' "$tree/log")" = 6 ] || fail "not every test was run"
grep -q -- '--level E' "$tree/log" && fail "it went on behind a stopped level"
rm "$tree/stop" "$tree/log"
[ "$(run --row lode)" = 8 ] || fail "the status is not the worst one"
grep -q '^test ' "$tree/log" && fail "a test that had passed was run again"
for level in K F B E R; do
  grep -q -- "qualify matrix --level $level .*--row lode" "$tree/log" || fail "level $level was not run"
done
echo "# changed" >>"$tree/$tests/kill_test"
rm "$tree/log"
run >/dev/null
[ "$(grep '^test ' "$tree/log")" = "test kill_test" ] || fail "a changed test was not run again, or another was"
echo "qualify-full runs every level and goes on where it was"
