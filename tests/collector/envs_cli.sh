#!/bin/sh
# tutti envs and tutti bench envs as a user calls them: the table, JSON, an env of one's own, clear ends.
set -eu
plugins=$TT_BUILD_DIR/tests/collector/plugins
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() { echo "FAIL: $*" >&2; exit 1; }
ends() { # ends CODE WORDS COMMAND...: exit code, and words on stderr, nothing on stdout
    want=$1 words=$2
    shift 2
    code=0
    "$@" >out 2>err || code=$?
    [ "$code" = "$want" ] || fail "$* ended with $code, not $want: $(cat err)"
    grep -qF -- "$words" err || fail "$*: no '$words' in: $(cat err)"
    [ ! -s out ] || fail "$*: wrote to stdout: $(cat out)"
}

"$TUTTI" envs >table
for id in CartPole-v1 Acrobot-v1 MountainCar-v0 MountainCarContinuous-v0 Pendulum-v1 CartPoleNoVel-v1 PendulumNoVel-v1; do
    grep -q "^$id " table || fail "tutti envs lacks $id"
done
grep -Eq '^CartPole-v1 +float32\[4\] +discrete\(2\) +500 +475 ' table || fail "CartPole-v1: $(cat table)"
grep -Eq '^CartPoleNoVel-v1 +float32\[4\] +discrete\(2\) +500 +475 ' table || fail "CartPoleNoVel-v1: $(cat table)"
grep -Eq '^PendulumNoVel-v1 +float32\[3\] +float32\[1\] +200 +- ' table || fail "PendulumNoVel-v1: $(cat table)"
grep -Eq '^Pendulum-v1 +float32\[3\] +float32\[1\] +200 +- ' table || fail "Pendulum-v1: $(cat table)"

for game in Asterix:4:5 Breakout:4:3 Freeway:7:3 Seaquest:10:6 SpaceInvaders:6:4; do # channels, actions that do something
    id=${game%%:*} channels=${game#*:} actions=${game##*:}
    grep -Eq "^MinAtar/$id-v0 +bool\[10, 10, ${channels%:*}\] +discrete\(6\) +- +- " table || fail "$id: $(cat table)"
    grep -Eq "^MinAtar/$id-v1 +bool\[10, 10, ${channels%:*}\] +discrete\($actions\) +- +- " table || fail "$id: $(cat table)"
done
"$TUTTI" bench envs MinAtar/Breakout-v1 --seconds 0.05 2>/dev/null | grep -q '^MinAtar/Breakout-v1 ' || fail "bench of an id with a /"

"$TUTTI" envs --output json >json
grep -q '"id":"CartPole-v1"' json || fail "json: $(cat json)"
if command -v python3 >/dev/null; then
    python3 -c 'import json; e = json.load(open("json"))["envs"]; assert len(e) >= 5 and e[0]["action"]["n"] == 2' ||
        fail "json: $(cat json)"
fi

cp "$plugins/drift.so" .
"$TUTTI" envs ./drift.so 2>/dev/null | grep -q '^Drift-v0 ' || fail "a path"
"$TUTTI" envs drift.so 2>/dev/null | grep -q '^Drift-v0 ' || fail "a bare name"
"$TUTTI" bench envs CartPole-v1 ./drift.so --seconds 0.05 2>/dev/null | grep -q '^Drift-v0 ' || fail "bench"
"$TUTTI" bench envs "$plugins/four.so" --seconds 0.05 2>/dev/null | grep -q '^ConnectFour-v0 ' || fail "bench with a mask"
"$TUTTI" bench envs -s 0.05 --output json CartPole-v1 | grep -q '"steps_per_s":' || fail "bench json"

ends 66 "did you mean 'CartPole-v1'" "$TUTTI" envs CartPole-v0
ends 66 "./nothing.so" "$TUTTI" envs ./nothing.so
ends 65 "env ABI 3" "$TUTTI" envs "$plugins/bad_other_abi.so"
ends 65 "reset and step take tt_env_out_t" "$TUTTI" envs "$plugins/bad_first_abi.so"
ends 70 "Bad-v0: observation[0]" "$TUTTI" bench envs "$plugins/bad_nan_in_step.so"
ends 70 "env Bad-v0 crashed in step (SIGSEGV" "$TUTTI" bench envs "$plugins/bad_crash_in_step.so"
ends 70 "env Bad-v0 called exit() in step" "$TUTTI" bench envs "$plugins/bad_exit_in_step.so"
echo "ok"
