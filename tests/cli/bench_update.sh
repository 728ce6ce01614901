#!/bin/sh
# tutti bench update as a user calls it: each algorithm, a network by its name, another device, and what there is not.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() { echo "FAIL: $*" >&2; exit 1; }

# rate FILE MFLOP: it has numbers, and the work is what the network's shape says.
rate() {
    grep -q "\"us\":[0-9.]*,\"rows_per_s\":[0-9.e+]*,\"mflop\":$2,\"gflops\":[0-9]" "$1" || fail "not a rate of $2 MFLOP: $(cat "$1")"
}

# 2 FLOP a multiply-add; an actor of 4-64-64-4 and a critic of 4-64-64-1, forward and two ways back but for the first layers' inputs: 16 rows
"$TUTTI" bench update --rows 16 --seconds 0.01 --output json >json
rate json 0.84992
"$TUTTI" bench update --rows 16 --shards 4 --seconds 0.01 --output json >json
grep -q '"rows":16,"batch":64,"shards":4,' json || fail "not so many shards: $(cat json)"
rate json 0.84992
# 4-64-64-4, and its forward once more for what comes next: 16 units
"$TUTTI" bench update --algorithm dqn --rows 16 --seconds 0.01 --output json >json
rate json 0.581632
# An actor of 4-64-64-8 and two critics of 8-64-64-1. Critics: one forward of the actor, of both targets, of both critics and their two ways
# back. Actor: forward and two ways back, both critics forward and the way back to the action: 16 units
"$TUTTI" bench update --algorithm sac --rows 16 --seconds 0.01 --output json >json
rate json 2.3593
grep -q '"steps":\[{"name":"critics","us":[0-9.]*,"mflop":1.31891,"gflops":[0-9.]*},{"name":"actor","us":[0-9.]*,"mflop":1.04038,' json ||
    fail "not the work of each step: $(cat json)"
"$TUTTI" bench update --algorithm sac --out 1 --rows 3 --seconds 0.01 >out
grep -q "mlp, 13829 parameters, sac" out || fail "not an actor of 4-64-64-2, two critics of 5-64-64-1 and a weight: $(cat out)"
grep -q "^a step of the actor .* GFLOP/s" out || fail "no rate of a step: $(cat out)"
# An actor of 4-64-64-4, two critics of 8-64-64-1. Critics: as SAC's. Actor: forward and two ways back, one critic forward and the way back
# to the action
"$TUTTI" bench update --algorithm td3 --rows 16 --seconds 0.01 --output json >json
grep -q '"steps":\[{"name":"critics","us":[0-9.]*,"mflop":1.31072,"gflops":[0-9.]*},{"name":"actor","us":[0-9.]*,"mflop":0.724992,' json ||
    fail "not the work of each step: $(cat json)"
"$TUTTI" bench update --algorithm td3 --out 1 --rows 3 --seconds 0.01 >out
grep -q "mlp, 13763 parameters, td3" out || fail "not an actor of 4-64-64-1 and two critics of 5-64-64-1: $(cat out)"
# An encoder before the actor, one before both critics, which is computed once for them; the actor's step does not go back through it: 2 units
"$TUTTI" bench update --algorithm td3 --net minatar --rows 2 --seconds 0.01 --output json >json
grep -q '"steps":\[{"name":"critics","us":[0-9.]*,"mflop":3.66285,"gflops":[0-9.]*},{"name":"actor","us":[0-9.]*,"mflop":2.75814,' json ||
    fail "not the work of each step: $(cat json)"
"$TUTTI" bench update --algorithm sac --net minatar --rows 2 --seconds 0.01 >out
grep -q "minatar, 301995 parameters, sac" out || fail "not two encoders, an actor of 128-64-64-8, two critics of 132-64-64-1 and a weight: $(cat out)"
"$TUTTI" bench update --net minatar --rows 2 --seconds 0.01 >out
grep -q "minatar, 132437 parameters, ppo" out || fail "not MinAtar's network: $(cat out)"
if [ -e "$(dirname "$TUTTI")/tutti-cuda-sim.so" ]; then
    "$TUTTI" bench update --device cuda-sim --rows 4 --seconds 0.01 >out
    grep -q "^device  *cuda-sim:0 simulated$" out || fail "it is exact unless asked: $(cat out)"
    grep -q "^a batch to where it is computed .* GB/s" out || fail "a card's memory is elsewhere: $(cat out)"
    "$TUTTI" bench update --device cuda-sim --algorithm sac --rows 4 --seconds 0.01 >out
    grep -q "^a step of the critics .* GFLOP/s" out || fail "not both steps on a card: $(cat out)"
    "$TUTTI" bench update --device cuda-sim --precision bf16 --rows 16 --seconds 0.01 >out
    grep -q "^device  *cuda-sim:0 simulated, bf16 by cuBLASLt " out || fail "it says what multiplies: $(cat out)"
fi

refuse() {
    code=0
    "$TUTTI" bench update "$@" >out 2>err || code=$?
    cat err
    [ "$code" = "$expected" ] || fail "$* ended with $code"
}
expected=64
refuse --algorithm ppx | grep -q "is not one of ppo|dqn|sac|td3" || fail "$(cat err)"
refuse --net tiny | grep -q "no network is called 'tiny'" || fail "$(cat err)"
refuse --algorithm sac --net tiny | grep -q "no network is called 'tiny'" || fail "$(cat err)"
refuse --precision fp8 | grep -q "is not one of exact|tf32|bf16" || fail "$(cat err)"
refuse --shards 3 | grep -q -- "--shards 3: it must be a power of two" || fail "$(cat err)"
expected=69
refuse --precision tf32 | grep -q "it can only compute exactly; tf32 wants a card" || fail "$(cat err)"
expected=78
refuse --device gpu | grep -q "'gpu' is no device; there is cpu, cuda" || fail "$(cat err)"
