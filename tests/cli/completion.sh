#!/bin/bash
# The completion script, driven as bash would drive it.
set -eu
command -v bash >/dev/null || exit 77
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
touch config.yaml
mkdir runs
compopt() { :; } # works only inside a completion that the shell itself started
"$TUTTI" completion bash >script
. ./script

# offered WORD... : complete the last of the words; prints what is offered on one line
offered() {
    COMP_WORDS=("$TUTTI" "$@")
    COMP_CWORD=$#
    _tutti
    echo " ${COMPREPLY[*]} "
}
expect() {
    local wanted=$1 got
    shift
    got=$(offered "$@")
    case $got in
    *" $wanted "*) ;;
    *) echo "FAILED: '$*' offers '$got', without '$wanted'" >&2 && exit 1 ;;
    esac
}
refuse() {
    local unwanted=$1 got
    shift
    got=$(offered "$@")
    case $got in
    *" $unwanted "*) echo "FAILED: '$*' offers '$unwanted'" >&2 && exit 1 ;;
    *) ;;
    esac
}

expect check ch
expect --version --ver
expect config.yaml check con
expect --set check --s
refuse --output check --s
expect algorithm.learning_rate= check config.yaml --set algorithm.lear
expect json check --output j
expect json check --output = j
expect ppo algorithms p
expect CartPole-v1 envs Cart
expect envs bench e
expect --seconds bench envs --sec
expect check help che
expect config.yaml run con
expect cartpole-ppo-zoo run cartpole-ppo-z
expect CartPole-v1 run Cart
expect CartPole-v1 run config.yaml --env Cart
expect config.yaml eval con
expect bash completion ''

# names of runs come from the registry of the moment
export XDG_STATE_HOME="$dir/state"
mkdir -p "$dir/state/tutti/runs" "$dir/runs/cartpole-7"
echo 'tutti-run 1' >"$dir/runs/cartpole-7/.tutti-run"
ln -s "$dir/runs/cartpole-7" "$dir/state/tutti/runs/cartpole-7"
expect cartpole-7 status ''
expect cartpole-7 eval cart
expect learner= scale cartpole-7 lea
