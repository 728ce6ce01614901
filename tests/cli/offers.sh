#!/bin/sh
# What zsh and fish are offered, by the binary alone and, where they are installed, by the scripts in these shells.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export XDG_STATE_HOME="$dir/state"
fail() {
    echo "FAILED: $*" >&2
    exit 1
}
# offered WORD...: one offer a line, whole lines only
offered() {
    for word; do
        set -- "$@" "--word=$word"
        shift
    done
    "$TUTTI" completion "$@" >out
}
expect() { # OFFER WORD...
    wanted=$1
    shift
    offered "$@"
    grep -qxF -- "$wanted" out || fail "'$*' offers no '$wanted': $(cat out)"
}
refuse() {
    unwanted=$1
    shift
    offered "$@"
    ! grep -qxF -- "$unwanted" out || fail "'$*' offers '$unwanted'"
}
expect check ''
expect --version --ver
expect :files check ''
expect cartpole-ppo check ''
expect --set check --s
expect --help check -
refuse --output check ''
expect algorithm.learning_rate= check config.yaml --set algorithm.lear
expect algorithm.learning_rate= check config.yaml -s ''
expect json check --output ''
refuse cartpole-ppo check --output ''
expect ppo algorithms p
expect envs bench ''
expect --seconds bench envs --sec
expect :folders run x --run-dir ''
expect :files export r --onnx ''
expect zsh completion ''
expect retry task ''
expect learner= scale r ''
offered nothing '' && [ ! -s out ] || fail "of no command: $(cat out)"
offered x '' && [ ! -s out ] || fail "of no command: $(cat out)"

"$TUTTI" completion zsh >_tutti
"$TUTTI" completion fish >tutti.fish

# its functions for completion stand in here
if command -v zsh >/dev/null; then
    zsh -n _tutti || fail "zsh does not read its script"
    cat >drive.zsh <<'END'
compdef() { }
compadd() { print -r -- "${@[1,-3]}|${@[-1]}" }
_files() { print -r -- "files ${*:-.}" }
source ./_tutti
drive() { local -a words=("$@") ; local CURRENT=$# PREFIX=${@[-1]}; _tutti }
drive "$TUTTI" check --s
drive "$TUTTI" check x --set algorithm.g
drive "$TUTTI" run x --run-dir ''
drive "$TUTTI" eval ''
END
    zsh -f drive.zsh >out || fail "zsh: $(cat out)"
    for line in '|--set' "-S |algorithm.gamma=" 'files -/' 'files .'; do
        grep -qxF -- "$line" out || fail "zsh does not say '$line': $(cat out)"
    done
fi

if command -v fish >/dev/null; then
    fish -N -n tutti.fish || fail "fish does not read its script"
    PATH=$(dirname "$TUTTI"):$PATH HOME=$dir fish -N -c 'source tutti.fish
        complete -C "tutti check --se"; complete -C "tutti check x --set algorithm.gam"; complete -C "tutti bench e"' >out
    for line in --set --seed algorithm.gamma= envs; do
        grep -qxF -- "$line" out || fail "fish does not offer '$line': $(cat out)"
    done
    ! grep -qx 'kernels' out || fail "fish offers what begins otherwise"
fi
