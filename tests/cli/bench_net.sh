#!/bin/sh
# tutti bench kernels --net as a user calls it: a network by its name, both ways, and a name that there is not.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() { echo "FAIL: $*" >&2; exit 1; }

"$TUTTI" bench kernels --net minatar --seconds 0.01 --output json >json
for name in "forward 1" "forward 128" "shard_grad 128, 1 shards" "update 128"; do
    grep -q "\"name\":\"$name\",\"us\":[0-9.]*,\"gflops\":[0-9]" json || fail "no rate of $name: $(cat json)"
done
grep -q '"obs":400,' json || fail "not MinAtar's observation: $(cat json)"

code=0
"$TUTTI" bench kernels --net tiny >out 2>err || code=$?
[ "$code" = 64 ] || fail "--net tiny ended with $code"
grep -q -- "--net: no network is called 'tiny'; there are nature, impala and minatar" err || fail "--net tiny: $(cat err)"
