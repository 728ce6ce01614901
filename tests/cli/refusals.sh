#!/bin/sh
# What tutti will not do: the exit code, one line with the reason, and nothing left behind. bad_input.py has what belongs to
# config files, and what needs a run that goes on.
set -eu
dir=$(mktemp -d)
export XDG_STATE_HOME="$dir/state"
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() {
    echo "FAILED: $*" >&2
    exit 1
}
# refused CODE WORDS COMMAND...: the exit code, and words that stand in the first line on stderr
refused() {
    code=$1 words=$2
    shift 2
    got=0
    "$@" >out 2>err </dev/null || got=$?
    [ "$got" = "$code" ] || fail "$* gave $got, not $code: $(cat out err)"
    head -n 1 err | grep -qF -- "$words" || fail "$* did not say '$words': $(cat out err)"
}

# output that nobody gets: the reason is the write's own, and nothing opened later stands in for a closed stdout
lost() {
    code=0
    sh -c "$1" 2>err || code=$?
    [ "$code" = 74 ] || fail "$1 gave $code, not 74: $(cat err)"
    tail -n 1 err | grep -qx "tutti: not all of the output could be written\\(: $2\\)\\?" || fail "$1 said: $(cat err)"
}
short="'$TUTTI' run CartPole-v1 --set stop.env_steps=2k --set num_envs=4 --set learner.shards=1"
lost "'$TUTTI' envs >/dev/full" 'No space left on device'
lost "'$TUTTI' envs >&-" 'Bad file descriptor'
lost "$short >/dev/full" 'No space left on device'
lost "$short >&-" 'Bad file descriptor'

refused 64 "data set 'foo': the name has to begin with 'user." "$TUTTI" dataset add -d foo -p /etc/hostname
me="user.$(id -un)"
refused 64 'the command does not hold %OUT' "$TUTTI" task create -c "$me.c" -o out -t "$me.t" --exec 'cat %IN'
refused 64 'secondary data' "$TUTTI" task create -c "$me.c" -o out -t "$me.t" --exec 'cat %IN >%OUT' --sd '{x'
refused 64 "output file '../out'" "$TUTTI" task create -c "$me.c" -o ../out -t "$me.t" --exec 'cat %IN >%OUT'
refused 78 "--seed: seed: '-1' is below 0, which is the least" "$TUTTI" check CartPole-v1 --seed -1
refused 78 "cuda:N and auto; did you mean 'cuda'?" "$TUTTI" check CartPole-v1 --set learner.device=GPU
refused 78 "cuda:N and auto; did you mean 'cpu'?" "$TUTTI" check CartPole-v1 --set collector.device=CPU
refused 66 "no bundled config or environment is called that; did you mean 'CartPole-v1'?" "$TUTTI" run CartPole
refused 66 "called that; Gymnasium's is called 'gym:Hopper-v5' here" "$TUTTI" run Hopper-v5
refused 66 "'gym:LunarLander-v3' here; did you mean 'lunarlander-ppo'?" "$TUTTI" check LunarLander-v3
refused 66 "called that; Gymnasium's is called 'gym:ALE/Pong-v5' here" "$TUTTI" check ALE/Pong-v5
refused 78 "Gymnasium's is called 'gym:Hopper-v5' here" "$TUTTI" check cartpole-ppo --set env=Hopper-v5
refused 78 "No such file or directory; Gymnasium's is called 'gym:ALE/Pong-v5' here" "$TUTTI" check cartpole-ppo --env ALE/Pong-v5
refused 64 "did you mean 'tutti status'?" "$TUTTI" top x
refused 64 "did you mean 'tutti ps'?" "$TUTTI" ls
refused 64 "did you mean 'tutti run'?" "$TUTTI" train CartPole-v1
refused 66 'nothere.so' "$TUTTI" envs ./nothere.so
refused 64 'An id of Gymnasium' "$TUTTI" envs gym:
before=$(ls)
refused 64 "the run's directory: a control character (U+001B) at byte 2" "$TUTTI" run CartPole-v1 --run-dir "$(printf 'x\033[31mred')"
refused 64 "the run's directory: a control character (U+000A) at byte 2" "$TUTTI" run CartPole-v1 --run-dir "$(printf 'x\nred')"
refused 64 "the run's directory: a control character (U+009B) at byte 2" "$TUTTI" run CartPole-v1 --run-dir "$(printf 'x\302\2331mred')"
[ "$(ls)" = "$before" ] || fail "something was made: $(ls)"
refused 64 'the directory of a run needs a name' "$TUTTI" run CartPole-v1 --run-dir ''

# what a run may not change is said of the setting itself, not of another that would not fit to it
"$TUTTI" run CartPole-v1 -q --run-dir remembers --set network.rnn=lstm --set network.hidden=[] --set num_envs=4 \
    --set learner.shards=1 --set stop.env_steps=1k >out
refused 78 '--set: network.rnn: the run has lstm, now it is none' "$TUTTI" resume remembers --set network.rnn=none
refused 78 '--set: num_steps: the run has 64, now it is 7' "$TUTTI" resume remembers --set num_steps=7
refused 78 '--set: algorithm.name: the run has ppo, now it is dqn' "$TUTTI" resume remembers --set algorithm.name=dqn
refused 78 "did you mean 'lstm'?" "$TUTTI" resume remembers --set network.rnn=LSTM
refused 78 "--set: unknown key 'network.rn'" "$TUTTI" resume remembers --set network.rn=none

# another algorithm than that of the bundled config, which has options of its own
refused 78 'this is dqn; with dqn there is the bundled config cartpole-dqn' "$TUTTI" run CartPole-v1 --set algorithm.name=dqn
refused 78 'this is dqn; with dqn there is the bundled config cartpole-dqn' "$TUTTI" run cartpole-a2c --set algorithm.name=dqn
refused 78 'this is dqn; with dqn there is the bundled config cartpole-novel-dqn-lstm' "$TUTTI" run CartPoleNoVel-v1 --set algorithm.name=dqn
refused 78 "no algorithm 'dqm' (did you mean 'dqn'?)" "$TUTTI" run CartPole-v1 --set algorithm.name=dqm

refused 64 "'collector=2': collector is there already" "$TUTTI" scale remembers collector=1 collector=2

# weights of a folder, and to one
"$TUTTI" eval remembers/checkpoints --episodes 1 >out || fail "the folder of checkpoints is not taken: $(cat out)"
mkdir empty
refused 66 'empty is not the directory of a run' "$TUTTI" eval empty
refused 74 'cannot write .: Is a directory' "$TUTTI" fetch remembers -o .
refused 74 'cannot write empty: Is a directory' "$TUTTI" export remembers --onnx empty --force

# names that a terminal would obey, in directories above a run's and in what was typed: nothing of them gets to it
odd=$(printf 'p\033[31m\302\2331mq')
mkdir "$odd"
(
    cd "$odd"
    for command in "run CartPole-v1 --run-dir there --set stop.env_steps=2k --set num_envs=4" 'ps -a' 'status there' 'resume there' \
        'resume there --set stop.env_steps=3k' 'fetch there -o ./got.safetensors' 'eval there --episodes 1' 'export there --onnx x.onnx' \
        'logs there' 'run ./nothere.yaml' 'run ./nothere.so' 'status .' "eval $PWD/nothere" "$odd" "help $odd" "run $odd" \
        "ps -o $odd" "check CartPole-v1 --set $odd" "run CartPole-v1 --set env=$odd" "run CartPole-v1 --set $odd=3" 'rm there' \
        "task $odd" "run CartPole-v1 --$odd" 'stop there' 'scale there collector=2' "scale there $odd=2"; do
        # shellcheck disable=SC2086
        "$TUTTI" $command >>../out 2>>../err </dev/null || true
    done
)
grep -qF 'p\x1b[31m\u009b1mq/there' out || fail "the name is not shown: $(cat out)"
grep -qF 'p\x1b[31m\u009b1mq' err || fail "the name is not shown: $(cat err)"
if LC_ALL=C grep -q "$(printf '\033\\|\302\233')" out err; then
    fail "a terminal would obey: $(LC_ALL=C grep "$(printf '\033\\|\302\233')" out err | cat -v)"
fi

"$TUTTI" config >out
tr -s ' \n' ' ' <out | grep -qF 'concat KEY; embed KEY 16' || fail "tutti config lists no embed"

# a folder where a config is wanted: manifests are kubectl's to apply, and which of its files can be run here is said
refused 64 "$TT_SOURCE_DIR/k8s/samples/results is a folder of Kubernetes manifests, which 'kubectl apply -k $TT_SOURCE_DIR/k8s/samples/results' applies" \
    "$TUTTI" run "$TT_SOURCE_DIR/k8s/samples/results"
refused 64 "which 'kubectl apply -k $TT_SOURCE_DIR/configs/k8s' applies; of its files these can be run: dijob-cartpole.yaml, dijob-qbert.yaml" \
    "$TUTTI" check "$TT_SOURCE_DIR/configs/k8s"
mkdir one many none
cp "$TT_SOURCE_DIR/configs/k8s/dijob-cartpole.yaml" one/a.yml
for name in a b c d e f; do cp one/a.yml many/$name.yaml; done
echo 'seed: 1' >many/aa.yaml
refused 64 'one is a folder; of its files this one can be run: a.yml' "$TUTTI" run one
refused 64 'many is a folder; of its files these can be run: a.yaml, b.yaml, c.yaml, d.yaml and 2 more' "$TUTTI" run many
refused 74 'Is a directory' "$TUTTI" run none
