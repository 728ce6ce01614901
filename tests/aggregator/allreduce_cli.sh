#!/bin/sh
# tutti bench allreduce as a user calls it: small sizes, both outputs, clear ends; nothing stays in /tmp or running.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
TMPDIR=$dir
export TMPDIR

fail() { echo "FAIL: $*" >&2; exit 1; }

for transport in memory ipc; do
    "$TUTTI" bench allreduce --kib 1 --kib 36 --kib 2500 --runs 20 --transport $transport >table
    [ "$(wc -l <table)" = 4 ] || fail "not three sizes: $(cat table)"
    grep -Eq '^ +36 +[0-9.]+ +[0-9.]+ +[0-9.]+$' table || fail "no numbers for 36 KiB: $(cat table)"
done

"$TUTTI" bench allreduce --kib 9 --runs 10 --output json >json
grep -q '"bench":"allreduce".*"transport":"memory".*"kib":9,.*"median_us":' json || fail "json: $(cat json)"

code=0
"$TUTTI" bench allreduce --kib 0 >out 2>err || code=$?
[ "$code" = 64 ] || fail "--kib 0 ended with $code"
grep -q -- '--kib 0: a number from 1 to 65536' err || fail "--kib 0: $(cat err)"
[ -z "$(ls -d "$dir"/tutti-bench-* 2>/dev/null)" ] || fail "it left its directory"
