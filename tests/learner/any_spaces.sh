#!/bin/sh
# Every kind of space at once (puzzle.c: a dict with a choice, bytes and a float64; choices, bits and a box to act with; a mask; cut by
# the env itself): PPO and A2C learn it, one process and several come to the same weights, the checkpoint plays as well, and the learner
# computes from a segment what the collector computed when it made it, to the bit.
set -eu
tutti=$TT_BUILD_DIR/bin/tutti
env=$TT_BUILD_DIR/tests/learner/puzzle.so
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export XDG_STATE_HOME="$dir/state"
config=$TT_SOURCE_DIR/tests/learner/puzzle.yaml
sed -e '/epochs:\|minibatches:/d' -e 's/name: ppo/name: a2c/' -e 's/num_steps: 32/num_steps: 8/' "$config" >"$dir/a2c.yaml"

fail() {
    echo "FAILED: $*"
    exit 1
}

# Under a sanitizer runs are shorter, and have not learned yet.
length=
[ -z "${TT_SANITIZE:-}" ] || length="--set stop.env_steps=8k"

# field NAME FILE: a number or a word of a summary.
field() {
    sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p" "$2"
}

# weights NAME CONFIG ARGUMENTS: the hash of a run's weights; $dir/NAME.json is its summary.
weights() {
    name=$1
    from=$2
    shift 2
    # shellcheck disable=SC2086
    timeout 100 "$tutti" run "$from" --set env="$env" --output json --run-dir "$dir/$name" $length "$@" >"$dir/$name.json" \
        2>"$dir/$name.err" || fail "$name: exit $?: $(cat "$dir/$name.err")"
    field weights_sha256 "$dir/$name.json"
}

# plays_well NAME LEAST: the mean of greedy episodes of a run's last checkpoint.
plays_well() {
    "$tutti" eval "$dir/$1" --episodes 20 --output json >"$dir/$1.eval" || fail "eval of $1: exit $?"
    mean=$(field return_mean "$dir/$1.eval")
    [ -n "$length" ] || awk "BEGIN { exit !($mean >= $2) }" || fail "$1 plays for $mean, not $2"
}

one=$(weights one "$config")
several=$(weights several "$config" --set collector.replicas=3 --set learner.replicas=2)
[ -n "$one" ] && [ "$one" = "$several" ] || fail "other weights: $one $several"
plays_well one 45
plays_well several 45
one=$(weights a2c "$dir/a2c.yaml")
several=$(weights a2c-several "$dir/a2c.yaml" --set collector.replicas=2 --set learner.replicas=2)
[ -n "$one" ] && [ "$one" = "$several" ] || fail "A2C: other weights: $one $several"
plays_well a2c 43
# one pass over what the very same policy did: all ratios are 1
weights once "$config" --set lag=0 --set algorithm.epochs=1 --set algorithm.minibatches=1 --set stop.env_steps=10k >/dev/null
grep -q '"losses/approx_kl":0,' "$dir/once/metrics.jsonl" || fail "no approx_kl: $(tail -1 "$dir/once/metrics.jsonl")"
! grep '"losses/' "$dir/once/metrics.jsonl" | grep -v '"losses/approx_kl":0,"losses/old_approx_kl":0,"losses/clipfrac":0,' ||
    fail "the learner's log-probabilities are not the collector's"
echo "learnt: $(cat "$dir/one.json")"
