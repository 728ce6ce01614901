#!/bin/sh
# tutti bench handoff as a user calls it: both outputs, clear ends; nothing stays in /tmp or running. That it ends also
# says that no version of a lock-step run is lost, however fast they come.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
TMPDIR=$dir
export TMPDIR

fail() { echo "FAIL: $*" >&2; exit 1; }

"$TUTTI" bench handoff --kib 1 --kib 36 --runs 200 >table
[ "$(wc -l <table)" = 3 ] || fail "not two sizes: $(cat table)"
grep -Eq '^ +36( +[0-9.]+){4}$' table || fail "no numbers for 36 KiB: $(cat table)"

"$TUTTI" bench handoff --kib 9 --runs 10 --segment 100000 --output json >json
grep -q '"bench":"handoff".*"segment_bytes":100000.*"kib":9,.*"median_us":' json || fail "json: $(cat json)"

code=0
"$TUTTI" bench handoff --kib 0 >out 2>err || code=$?
[ "$code" = 64 ] || fail "--kib 0 ended with $code"
grep -q -- '--kib 0: a number from 1 to 65536' err || fail "--kib 0: $(cat err)"
[ -z "$(ls -d "$dir"/tutti-bench-* 2>/dev/null)" ] || fail "it left its directory"
