#!/bin/sh
# The algorithm of docs/guide/add-an-algorithm.md, built from the page's own text (tutti_guide, see CMakeLists.txt): it is
# listed, its rules hold, it learns, and one process and several come to the same weights.
set -eu
tutti=$TT_BUILD_DIR/tests/learner/tutti_guide
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export XDG_STATE_HOME="$dir/state"
page=$TT_SOURCE_DIR/docs/guide/add-an-algorithm.md
awk '/^```yaml$/ { on = 1; next } /^```$/ { on = 0 } on' "$page" >"$dir/cartpole-vpg.yaml"

fail() {
    echo "FAILED: $*"
    exit 1
}

# refuses WORDS ARGUMENTS: `tutti check` ends with 78 and says these words.
refuses() {
    words=$1
    shift
    code=0
    "$tutti" check "$dir/cartpole-vpg.yaml" "$@" >"$dir/out" 2>&1 || code=$?
    [ "$code" = 78 ] || fail "$*: exit $code: $(cat "$dir/out")"
    grep -q "$words" "$dir/out" || fail "$*: no '$words' in: $(cat "$dir/out")"
}

"$tutti" algorithms vpg | grep -q 'algorithm.entropy_coef' || fail "its options are not listed"
"$tutti" check "$dir/cartpole-vpg.yaml" >/dev/null || fail "its config is refused"
refuses "lag 0, not 1" --set lag=1
refuses "one choice.*Pendulum-v1 has float32" --set env=Pendulum-v1
refuses "algorithm.clip" --set algorithm.clip=0.2
refuses "learner.shards" --set learner.shards=32 --set num_envs=1

# weights NAME ARGUMENTS: the hash of a run's weights; $dir/NAME.json is its summary.
weights() {
    name=$1
    shift
    timeout 100 "$tutti" run "$dir/cartpole-vpg.yaml" --output json --run-dir "$dir/$name" "$@" >"$dir/$name.json" \
        2>"$dir/$name.err" || fail "$name: exit $?: $(cat "$dir/$name.err")"
    sed -n 's/.*"weights_sha256":"\([0-9a-f]*\)".*/\1/p' "$dir/$name.json"
}

one=$(weights one)
several=$(weights several --set collector.replicas=3 --set learner.replicas=2)
grep -q '"reason":"return_mean"' "$dir/one.json" || fail "it has not learnt: $(cat "$dir/one.json")"
[ -n "$one" ] && [ "$one" = "$several" ] || fail "other weights: $one $several"
grep -q '"losses/entropy":' "$dir/one/metrics.jsonl" || fail "its metrics are missing: $(tail -1 "$dir/one/metrics.jsonl")"
echo "learnt: $(cat "$dir/one.json")"
