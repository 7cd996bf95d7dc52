#!/bin/sh
# Makes every planted mistake of the engine in turn and counts those that some test notices.
# usage: engine/mutation_score.sh BUILD   (BUILD was configured with -DLODE_MUTATIONS=ON and has the
#                                          lode_*_test programs)
# exit status: 0 when every mistake is noticed, 1 when one survives, 2 on wrong usage
if [ $# -ne 1 ] || [ ! -x "$1/engine/lode_crash_test" ]; then
  sed -n '2,5s/^# //p' "$0" >&2
  exit 2
fi
tests="wal overlay tree store arena crash model"
names=$(grep -rhoE 'LODE_MUTATED\("[a-z-]+"\)' "$(dirname "$0")" | sed 's/.*"\(.*\)".*/\1/' | sort -u)
for test in $tests; do
  if ! "$1/engine/lode_${test}_test" --gtest_brief=1 >/dev/null 2>&1; then
    echo "lode_${test}_test fails without any planted mistake" >&2
    exit 2
  fi
done
all=0
noticed=0
for name in $names; do
  all=$((all + 1))
  by=""
  for test in $tests; do
    if ! LODE_MUTATION=$name timeout 120 "$1/engine/lode_${test}_test" --gtest_brief=1 \
        --gtest_fail_fast >/dev/null 2>&1; then
      by=$test
      break
    fi
  done
  if [ -n "$by" ]; then
    noticed=$((noticed + 1))
    echo "noticed   $name (lode_${by}_test)"
  else
    echo "SURVIVED  $name"
  fi
done
echo "$noticed of $all planted mistakes noticed"
[ "$noticed" -eq "$all" ]
