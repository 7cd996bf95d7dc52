#!/bin/sh
# The lode command from a shell: what its verbs print and return.
# usage: command_test.sh LODE     exit status: 0 when all is as it should be
lode=$1
[ -x "$lode" ] || { echo "usage: $0 LODE" >&2; exit 2; }
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
failures=0

# expect STATUS TEXT COMMAND...: the exit status, and a text that standard output or error holds
expect() {
  status=$1 text=$2
  shift 2
  out=$("$@" 2>&1)
  got=$?
  case $out in
    *"$text"*) ;;
    *) echo "FAILED: $*: expected \"$text\", got: $out"; failures=$((failures + 1)) ;;
  esac
  [ "$got" -eq "$status" ] || {
    echo "FAILED: $*: expected exit status $status, got $got: $out"
    failures=$((failures + 1))
  }
}

expect 2 "usage: lode" "$lode"
expect 2 "unknown verb" "$lode" gett "$dir/s"
expect 3 "not found" "$lode" get "$dir/s" a
expect 0 "" "$lode" put "$dir/s" 'a\x00\x09' '\\'
expect 0 '\\' "$lode" get "$dir/s" 'a\x00\x09'
expect 1 "" "$lode" get "$dir/s" nothing
expect 2 "bad escape" "$lode" get "$dir/s" 'a\q'
expect 0 "" "$lode" put "$dir/s" b 2
expect 0 "" "$lode" mark "$dir/s" here
expect 0 "marker here 3" "$lode" stat "$dir/s"
expect 0 "2 entries up to commit 3" "$lode" backup "$dir/s" "$dir/copy"
expect 0 "no damage" "$lode" verify "$dir/copy"
expect 0 "marker here 3" "$lode" stat "$dir/copy"
expect 3 "new or empty directory" "$lode" backup "$dir/s" "$dir/copy"
"$lode" dump "$dir/s" >"$dir/dump"
expect 0 "2 entries loaded" "$lode" load "$dir/loaded" "$dir/dump"
expect 0 "end 2 " "$lode" dump "$dir/loaded"
expect 0 'b	2' "$lode" scan "$dir/loaded" b
printf 'lode-dump 1 bytes\na\t1\nbad\n' >"$dir/bad"
expect 1 "bad:3: no tab between a key and its value; 0 entries" "$lode" load "$dir/none" "$dir/bad"
[ ! -e "$dir/none" ] || { echo "FAILED: a bad file made a store"; failures=$((failures + 1)); }
expect 0 "checkpoint" "$lode" stat "$dir/s"
expect 0 "" "$lode" checkpoint "$dir/s"
expect 0 "damaged 0" "$lode" rebuild "$dir/s"
expect 2 "unknown argument" "$lode" rebuild "$dir/s" --accept
printf 'lode-dump 1 u64\n1\tone\n18446744073709551615\tlast\nend 2 -\n' | "$lode" load "$dir/n" - \
  >/dev/null || failures=$((failures + 1))
expect 0 "one" "$lode" get --u64 "$dir/n" 1
expect 3 "u64 keys" "$lode" get "$dir/n" 1
expect 2 "not a number" "$lode" get --u64 "$dir/n" x
expect 0 "" "$lode" checkpoint --u64 "$dir/n"
# Its only tree begins at the third page; its leaf is the first page of it.
printf 'damage' | dd of="$dir/n/data" bs=1 seek=$((2 * 8192 + 100)) conv=notrunc 2>/dev/null
expect 1 "damaged" "$lode" verify --u64 "$dir/n"
expect 1 "nothing was changed" "$lode" rebuild --u64 "$dir/n"
expect 1 "2 entries are lost" "$lode" rebuild --u64 "$dir/n" --accept-loss
expect 0 "no damage" "$lode" verify --u64 "$dir/n"
expect 1 "" "$lode" get --u64 "$dir/n" 1
if [ -w /dev/full ]; then
  "$lode" dump "$dir/s" >/dev/full 2>"$dir/error"
  [ $? -eq 3 ] || { echo "FAILED: a full disk went unnoticed"; failures=$((failures + 1)); }
fi
[ "$failures" -eq 0 ] && echo "all as it should be"
[ "$failures" -eq 0 ]
