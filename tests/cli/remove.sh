#!/bin/sh
# tutti rm --all and --older, and what tutti ps says of a name whose run is gone.
set -eu
dir=$(mktemp -d)
export XDG_STATE_HOME="$dir/state"
trap '[ ! -d "$dir/live" ] || "$TUTTI" stop --now "$dir/live" >"$dir/out" 2>&1 || true; rm -rf "$dir"' EXIT
cd "$dir"
fail() {
    echo "FAILED: $*" >&2
    exit 1
}
# expect CODE WORDS COMMAND...: the exit code, and words that stand in stdout or stderr
expect() {
    code=$1 words=$2
    shift 2
    got=0
    "$@" >out 2>err || got=$?
    [ "$got" = "$code" ] || fail "$* gave $got, not $code: $(cat out err)"
    cat out err | grep -qF -- "$words" || fail "$* did not say '$words': $(cat out err)"
}
train() {
    "$TUTTI" run CartPole-v1 --quiet --run-dir "$1" --set num_envs=4 --set learner.shards=1 --set stop.env_steps=2k >out 2>&1 ||
        fail "run $1: $(cat out)"
}
for name in young old older kept gone; do train $name; done
find old kept -exec touch -h -d '2 days ago' {} +
find older -exec touch -h -d '8 days ago' {} +
mv kept/.tutti-run mark # as of 0.1, and in a directory with other things
touch kept/mine
ln -s ../../young older/logs/elsewhere
expect 0 'live is running' "$TUTTI" run CartPole-v1 --run-dir live --detach --set stop.env_steps=null --set stop.return_mean=null
# what its processes write now is younger again, and what they remove meanwhile is not missed
find live -ignore_readdir_race -exec touch -c -h -d '9 days ago' {} +

expect 64 'RUN is missing; or --all, or --older AGE' "$TUTTI" rm
expect 64 "--all and --older choose the runs; 'young' is one too many" "$TUTTI" rm --all young
for age in 7 d 7y -1d 7dd 1.5h 12345678d ''; do
    expect 64 "is not a whole number with s, m, h, d or w behind it, such as 7d" "$TUTTI" rm "--older=$age"
done
[ -d young ] && [ -d old ] && [ -d older ] || fail "a refusal removed something"

expect 0 'removed older, ' "$TUTTI" rm --older 1w
[ "$(wc -l <out)" = 1 ] || fail "more than one went: $(cat out)"
[ ! -e older ] && [ -d young ] && [ -d old ] && [ -d live ] || fail "the wrong one went"
[ -f young/summary.json ] || fail "a link was followed"
expect 77 'kept holds other things than its run' "$TUTTI" rm --older 36h
grep -q '^removed old, ' out || fail "old: $(cat out)"
[ -f kept/mine ] && [ ! -e old ] || fail "kept or old"

# a name whose run is gone is told of once
rm -r gone
expect 0 "tutti ps: run 'gone' was at $(pwd -P)/gone, which is gone: its name is forgotten" "$TUTTI" ps
expect 0 'young' "$TUTTI" ps -a
! grep -q gone out err || fail "said twice: $(cat out err)"

# what came after the mark is somebody's
mv mark kept/.tutti-run
mkdir kept/.git
touch kept/thesis.tex kept/zebra kept/alpha
expect 77 "$(pwd -P)/kept holds what is not its run's: .git, alpha, mine and 2 more; move that away, or 'tutti rm --force kept' removes it, too" "$TUTTI" rm kept
expect 77 "kept holds what is not its run's: .git, alpha, mine and 2 more;" "$TUTTI" rm --older 36h
[ -d kept/.git ] && [ -f kept/summary.json ] && [ -f kept/checkpoints/final.safetensors ] || fail "a refusal removed something"
rm -r kept/.git kept/mine kept/thesis.tex kept/zebra
expect 77 "kept holds what is not its run's: alpha; move that away" "$TUTTI" rm kept
expect 73 'live is running' "$TUTTI" rm --force live
expect 0 'removed young, ' "$TUTTI" rm --all --force
grep -q '^removed kept, ' out || fail "kept: $(cat out)"
[ ! -e young ] && [ ! -e kept ] && [ -d live ] || fail "--all"
expect 0 'live' "$TUTTI" ps
"$TUTTI" stop live >out 2>&1 || fail "stop: $(cat out)"
expect 0 'removed live, ' "$TUTTI" rm --all
"$TUTTI" rm --all >out 2>&1 && [ ! -s out ] || fail "what is gone was removed: $(cat out)"
