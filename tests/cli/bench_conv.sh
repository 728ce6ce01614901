#!/bin/sh
# tutti bench conv as a user calls it: both outputs, every number a rate, clear ends.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() { echo "FAIL: $*" >&2; exit 1; }

"$TUTTI" bench conv --seconds 0.01 >table
[ "$(wc -l <table)" = 14 ] || fail "not nine layers under their heading: $(cat table)"
[ "$(grep -Ec '^[a-z]+[ ,].*( +[0-9]+\.[0-9]+){7}$' table)" = 9 ] || fail "no numbers for a layer: $(cat table)"

"$TUTTI" bench conv --seconds 0.01 --output json >json
grep -q '"bench":"conv".*"own_gflops":.*"name":"nature 1","side":84,.*"mflop":6.55.*"input_us":' json || fail "json: $(cat json)"

code=0
"$TUTTI" bench conv --seconds 0 >out 2>err || code=$?
[ "$code" = 64 ] || fail "--seconds 0 ended with $code"
grep -q -- "--seconds: '0' is not a number from 0.01" err || fail "--seconds 0: $(cat err)"
