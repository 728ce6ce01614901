#!/bin/sh
# tutti check, config, algorithms, version, help: output, exit codes and messages.
set -eu
dir=$(mktemp -d)
export XDG_STATE_HOME="$dir/state"
trap '[ ! -d "$dir/endless" ] || "$TUTTI" stop --now "$dir/endless" >"$dir/out" 2>&1 || true; rm -rf "$dir"' EXIT
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
    cat out err | tr -s ' ' | grep -qF -- "$words" || fail "$* did not say '$words': $(cat out err)"
}

printf 'env: CartPole-v1\nnum_envs: 16\nlearner:\n  shards: 4\nalgorithm: {learning_rate: 1e-3}\n' >good.yaml
expect 0 'shards: 4 # good.yaml:4:3' "$TUTTI" check good.yaml
expect 0 'obs: "float32[4]" # environment CartPole-v1' "$TUTTI" check good.yaml
expect 0 'action: "discrete(2)" # environment CartPole-v1' "$TUTTI" check good.yaml
expect 0 'seed: 5 # --seed' "$TUTTI" check good.yaml --seed 5
expect 0 'seed: 9 # --seed' "$TUTTI" check --seed 5 good.yaml --seed=9
expect 0 'name: CartPole-v1 # env' "$TUTTI" check good.yaml
expect 0 'kind: sample # algorithm ppo' "$TUTTI" check good.yaml

expect 0 '# actor 4 -> 64 tanh -> 64 tanh -> 2: 4,610 parameters' "$TUTTI" check good.yaml
expect 0 '# critic 4 -> 64 tanh -> 64 tanh -> 1: 4,545 parameters' "$TUTTI" check good.yaml
expect 0 '# together 9,155 parameters, 37 kB' "$TUTTI" check good.yaml
expect 0 '# a row 18 kFLOP to act, 53 kFLOP to train on it once; 34 B' "$TUTTI" check good.yaml
expect 0 '# observation float32[4]' "$TUTTI" check good.yaml
expect 0 '# columns obs float32[4], 16 B' "$TUTTI" check good.yaml
expect 0 '# terminated uint8, 1 B' "$TUTTI" check good.yaml
expect 0 '# flattened 4 numbers that the networks read' "$TUTTI" check good.yaml
expect 0 '# actor 3 -> 8 relu -> 1 means: 41 parameters' "$TUTTI" check Pendulum-v1 --set network.hidden=[8] \
    --set network.activation=relu
expect 0 '# critic 3 -> 8 relu -> 1: 41 parameters' "$TUTTI" check Pendulum-v1 --set network.hidden=[8] \
    --set network.activation=relu
expect 0 '# together 83 parameters with log_std, 332 B' "$TUTTI" check Pendulum-v1 --set network.hidden=[8] \
    --set network.activation=relu

# an env whose id looks like a path
printf 'env: MinAtar/Breakout-v1\n' >minatar.yaml
printf 'env: MinAtar/Brekout-v1\n' >typo.yaml
expect 0 'name: Breakout-v1 # env' "$TUTTI" check minatar.yaml
expect 0 'obs: "bool[10, 10, 4]" # environment MinAtar/Breakout-v1' "$TUTTI" check MinAtar/Breakout-v1
expect 66 "did you mean 'MinAtar/Breakout-v1'" "$TUTTI" check MinAtar/Brekout-v1
expect 78 "did you mean 'MinAtar/Breakout-v1'" "$TUTTI" check typo.yaml
expect 66 "did you mean 'MinAtar/Breakout-v1'" "$TUTTI" check MinAtar2/Breakout-v1

# a value and advantages
printf 'env: CartPole-v1\nalgorithm: {name: dqn, dueling: true}\nnetwork: {hidden: [16, 8]}\nstop: {env_steps: 50k}\n' >dueling.yaml
for line in '# trunk 4 -> 16 tanh: 80 parameters' '# value trunk -> 8 tanh -> 1: 145 parameters' \
    '# advantage trunk -> 8 tanh -> 2: 154 parameters' '# q value + advantage - mean -> 2' '# together 379 parameters, 1.5 kB' \
    '# copies 1 of all parameters' '# a row 688 FLOP to act, 2.8 kFLOP to train on it once'; do
    expect 0 "$line" "$TUTTI" check dueling.yaml
done
# quantiles, and their means
printf 'env: CartPole-v1\nalgorithm: {name: dqn, quantiles: 50}\nnetwork: {hidden: [16]}\nstop: {env_steps: 50k}\n' >quantiles.yaml
for line in '# quantiles 4 -> 16 tanh -> 100: 1,780 parameters' '# q means of quantiles -> 2' ' quantiles: 50 # algorithm dqn'; do
    expect 0 "$line" "$TUTTI" check quantiles.yaml
done
for line in '# value 4 -> 16 tanh -> 50: 930 parameters' '# advantage 4 -> 16 tanh -> 100: 1,780 parameters' '# quantiles value + advantage - mean -> 100' \
    '# q means of quantiles -> 2'; do
    expect 0 "$line" "$TUTTI" check quantiles.yaml --set algorithm.dueling=true
done
expect 78 'algorithm.quantiles: 50, but algorithm.loss is mse' "$TUTTI" check quantiles.yaml --set algorithm.loss=mse
# probabilities of atoms, and what is expected by them
for line in '# atoms 4 -> 16 tanh -> 102: 1,814 parameters' '# q expected of atoms from -10 to 20 -> 2' ' atoms: 51 # algorithm dqn'; do
    expect 0 "$line" "$TUTTI" check quantiles.yaml --set algorithm.quantiles=0 --set algorithm.atoms=51 --set algorithm.v_max=20
done
expect 78 'algorithm.atoms: 51, but a choice has quantiles' "$TUTTI" check quantiles.yaml --set algorithm.atoms=51
expect 78 "here it is called 'algorithm.atoms'" "$TUTTI" check quantiles.yaml --set algorithm.n_atom=51
expect 78 "here it is called 'algorithm.quantiles'" "$TUTTI" check quantiles.yaml --set algorithm.num_quantiles=50
expect 0 '# a row 688 FLOP to act, 3.4 kFLOP to train on it once' "$TUTTI" check dueling.yaml --set algorithm.double=true

# frames of a replay in the memory of a device
expect 0 '# its frames 20 MB more in the memory of learner.device cuda, if it is a card with twice that free (replay.memory)' \
    "$TUTTI" check dueling.yaml --set learner.device=cuda
expect 0 '# its frames 20 MB more in the memory of learner.device cpu (replay.memory)' "$TUTTI" check dueling.yaml --set replay.memory=both
for set in learner.device=cpu replay.memory=host; do
    expect 0 '# a replay 26 MB at most, on each learner; a step draws 32 of its rows' "$TUTTI" check dueling.yaml --set "$set"
    ! grep -q 'its frames' out || fail "$set: frames on a device: $(cat out)"
done
expect 78 "replay.memory: 'device' is not one of auto, host, both" "$TUTTI" check dueling.yaml --set replay.memory=device
expect 78 "algorithm.random_shift: 4, but no encoder reads a picture (network.encoder: none)" "$TUTTI" check dueling.yaml --set algorithm.random_shift=4

# one trunk for both
for line in '# trunk 3 -> 8 relu: 32 parameters' '# actor trunk -> 1 means: 9 parameters' \
    '# critic trunk -> 1: 9 parameters' '# together 51 parameters with log_std, 204 B'; do
    expect 0 "$line" "$TUTTI" check Pendulum-v1 --set network.hidden=[8] --set network.shared=true
done
expect 78 'network.shared: there are no layers to share' "$TUTTI" check Pendulum-v1 --set network.hidden=[] \
    --set network.shared=true

# what remembers: one layer for both, in place of hidden ones; or one each, with hidden layers behind
for line in 'rnn: lstm # --set' 'hidden: [] # default with network.rnn' 'shared: true # default with network.rnn' \
    '# lstm 4 -> 128 lstm, carries 256 floats: 68,608 parameters' '# actor lstm -> 2: 258 parameters' \
    '# critic lstm -> 1: 129 parameters' '# together 68,995 parameters, 276 kB' \
    '# carried 256 floats by each env, 1.0 kB with each batch, and again with its saved state' \
    '# a row 136 kFLOP to act, 408 kFLOP to train on it once; 34 B'; do
    expect 0 "$line" "$TUTTI" check good.yaml --set network.rnn=lstm
done
for line in '# actor_gru 3 -> 8 gru, carries 8 floats: 312 parameters' '# actor actor_gru -> 8 relu -> 1 means: 81 parameters' \
    '# critic_gru 3 -> 8 gru, carries 8 floats: 312 parameters' '# critic critic_gru -> 8 relu -> 1: 81 parameters' \
    '# together 787 parameters with log_std, 3.1 kB' '# carried 16 floats by each env, 64 B'; do
    expect 0 "$line" "$TUTTI" check Pendulum-v1 --set network.rnn=gru --set network.rnn_size=8 --set network.hidden=[8] \
        --set network.shared=false --set algorithm.minibatch_size=256
done
expect 0 '# encoder 4' "$TUTTI" check good.yaml --set network.rnn=gru --set 'network.encoder=[dense 8 relu]'
expect 0 '# gru encoder -> 128 gru, carries 128 floats: 52,992 parameters' "$TUTTI" check good.yaml --set network.rnn=gru \
    --set 'network.encoder=[dense 8 relu]'
! "$TUTTI" check good.yaml | grep -q '# *carried' || fail "a policy that remembers nothing carries something"
expect 78 '--set: network.rnn_size: network.rnn is none: nothing has these units; say lstm or gru' "$TUTTI" check good.yaml \
    --set network.rnn_size=64
expect 0 'rnn_size: 64 # --set' "$TUTTI" check good.yaml --set network.rnn_size=64 --set network.rnn=none
expect 78 '--set: network.rnn_size: network: 17181638659 parameters' "$TUTTI" check good.yaml --set network.rnn=lstm --set network.rnn_size=65536
expect 78 "--set: algorithm.name: no algorithm 'RecurrentPPO'; here it is ppo with network.rnn: lstm" \
    "$TUTTI" check good.yaml --set algorithm.name=RecurrentPPO
expect 78 "--set: algorithm.name: no algorithm 'R2D2'; here it is dqn with network.rnn: lstm" \
    "$TUTTI" check good.yaml --set algorithm.name=R2D2
expect 0 '# a replay 5.2 MB at most, on each learner; a step draws 16 of its sequences of 40 rows behind 20' "$TUTTI" check cartpole-novel-dqn-lstm
"$TUTTI" check cartpole-novel-ppo-lstm | sed 's/  *# .*//' >memory.yaml
"$TUTTI" check memory.yaml | sed 's/  *# .*//' | cmp - memory.yaml || fail "a config that remembers does not read back to itself"
"$TUTTI" check good.yaml | sed 's/  *# .*//' >none.yaml # says rnn_size, and rnn: none
"$TUTTI" check none.yaml >out || fail "a resolved config without memory: $(cat out)"

# what is printed is a config that means the same
"$TUTTI" check good.yaml --set algorithm.gamma=0.985 | sed 's/  *# .*//' >once.yaml
"$TUTTI" check once.yaml | sed 's/  *# .*//' >twice.yaml
cmp once.yaml twice.yaml || fail "the resolved config does not read back to itself"

printf 'env: CartPole-v1\nlearner:\n  shard: 4\n' >typo.yaml
expect 78 "tutti check: typo.yaml:3:3: unknown key 'learner.shard'; did you mean 'learner.shards'?" \
    "$TUTTI" check typo.yaml
expect 78 "learner.shards is 4 (good.yaml:4:3): every learner needs a shard" "$TUTTI" check good.yaml --set learner.replicas=5
expect 78 "--set: algorithm.gamma: '2' is outside 0 .. 1" "$TUTTI" check good.yaml --set algorithm.gamma=2
expect 78 "--set: actor.epsilon is filled in from the algorithm: algorithm.name decides, and ppo has no option for it" \
    "$TUTTI" check good.yaml --set actor.epsilon=0.1
expect 78 "--set: env: no env 'CartPole-v9'" "$TUTTI" check good.yaml --set env=CartPole-v9
expect 78 "--set: algorithm.name: no algorithm 'pop'" "$TUTTI" check good.yaml --set algorithm.name=pop
expect 78 "--set: env: ./none.so is looked for at $(pwd -P)/none.so: No such file" "$TUTTI" check good.yaml --set env=./none.so
expect 78 "--set: env: " "$TUTTI" check good.yaml --set "env=$dir/good.yaml"
expect 66 "missing.yaml: No such file" "$TUTTI" check missing.yaml
expect 64 "not of the form KEY=VALUE" "$TUTTI" check good.yaml --set lag
expect 64 "check: --set stop.env_steps=: no value; null switches a rule off" "$TUTTI" check good.yaml --set stop.env_steps=
expect 64 "--seed: no value" "$TUTTI" check good.yaml --seed ''
expect 64 "--name: no value" "$TUTTI" run good.yaml --name ''
# what the program fills in is nobody's to be told of
expect 78 "unknown key 'tau' (here 'algorithm.tau'); it belongs to the algorithms dqn, sac and td3, and this is ppo" "$TUTTI" check good.yaml --set tau=0.1
expect 78 "unknown key 'epsilon_end' (here 'algorithm.epsilon_end'); it belongs to the algorithm dqn, and this is ppo" "$TUTTI" check good.yaml --set epsilon_end=0.1
expect 78 "--set: unknown key 'nun_envs'; did you mean 'num_envs'?" "$TUTTI" run good.yaml --set nun_envs=4
expect 78 "--set: algorithm.minibatch_size: given beside algorithm.minibatches (--set); one follows from the other: keep one" \
    "$TUTTI" check good.yaml --set algorithm.minibatches=4 --set algorithm.minibatch_size=512
expect 0 'minibatch_size: 512' "$TUTTI" check good.yaml --set algorithm.minibatch_size=512
expect 64 "--set goes with --config" "$TUTTI" coordinator --run . --set num_envs=4
expect 64 "CONFIG|ENV is missing" "$TUTTI" check

# an environment with arguments: both forms, from all places, kept in the resolved config
printf 'env:\n  id: Pendulum-v1\n  args:\n    g: 9.81\n' >args.yaml
expect 0 'g: 9.81 # args.yaml:4:5' "$TUTTI" check args.yaml
expect 0 'id: Pendulum-v1 # args.yaml:2:3' "$TUTTI" check args.yaml
expect 0 'g: 1.5 # --set' "$TUTTI" check args.yaml --set env.args.g=1.5
expect 0 'g: 1.5 # --set' "$TUTTI" check Pendulum-v1 --set 'env={args: {g: 1.5}}'
expect 0 'env: Pendulum-v1 # args.yaml:2:3' "$TUTTI" check args.yaml --set env.args.g=null
"$TUTTI" check args.yaml | sed 's/  *# .*//' >once.yaml
"$TUTTI" check once.yaml | sed 's/  *# .*//' >twice.yaml
cmp once.yaml twice.yaml || fail "a config with arguments does not read back to itself"
expect 78 "args.yaml:4:5: env.args.g: CartPole-v1 takes no arguments" "$TUTTI" check args.yaml --env CartPole-v1
expect 78 "--set: env.args.G: Pendulum-v1 has no such argument" "$TUTTI" check args.yaml --set env.args.G=1
expect 78 "--set: env.args.g: env Pendulum-v1: init of env 0 failed: g must be a number" \
    "$TUTTI" check args.yaml --set env.args.g=heavy
expect 78 "args.yaml:4:5: env.args.g: a text of 300 bytes; 255 fit" \
    sh -c 'printf "env:\n  id: Pendulum-v1\n  args:\n    g: %0300d\n" 1 >args.yaml && "$TUTTI" check args.yaml'
expect 78 "unknown key 'env.g'; 'env' holds 'id', 'args', 'stack', 'stack_pad', and for gym: 'frames', 'python', 'path', 'workers' and 'wrappers'" "$TUTTI" check Pendulum-v1 --set env.g=1
expect 0 'env.args.g: ' "$TUTTI" envs Pendulum-v1
expect 0 'observation: float32[3]: [-1, 1], [-1, 1], [-8, 8]' "$TUTTI" envs Pendulum-v1
expect 0 'action: discrete(2): a number 0 to 1' "$TUTTI" envs CartPole-v1
expect 0 'env.args' "$TUTTI" config
! "$TUTTI" config | grep -q '^\(actor\|space\)\.' || fail "'tutti config' lists what is filled in"
expect 0 'env.args.' "$TUTTI" completion --words KEY=VALUE

# what is no file, or has no end, is refused at once
mkfifo fifo
expect 74 'irectory' "$TUTTI" check ./
expect 78 '/dev/zero: more than 1 MiB; this is not a config' "$TUTTI" check /dev/zero
expect 78 'fifo: not an ordinary file' "$TUTTI" check good.yaml --set env=./fifo
expect 65 'fifo: not an ordinary file' "$TUTTI" eval fifo
expect 65 '/dev/zero: not an ordinary file' "$TUTTI" eval /dev/zero
expect 65 'fifo is not a file' "$TUTTI" collector --coordinator tcp://127.0.0.1:1 --key fifo
truncate -s 1T sparse
expect 65 'sparse: more than' "$TUTTI" eval sparse
expect 78 'sparse: more than 1 MiB' "$TUTTI" check sparse
chmod 600 sparse
expect 65 'is not a ZeroMQ certificate' "$TUTTI" collector --coordinator tcp://127.0.0.1:1 --key sparse
timeout 60 sh -c 'cat good.yaml >fifo' >writer 2>&1 & # if nobody reads it, it must not hold what this script writes to
expect 0 'shards: 4 # fifo:4:3' "$TUTTI" check fifo

# a run without an end says so, and how to end it
expect 0 "no stop rule is set (stop.env_steps, stop.return_mean, stop.wall_s): the run goes on until it is stopped, with 'tutti stop endless'" \
    "$TUTTI" run good.yaml --run-dir endless --detach
"$TUTTI" stop endless >out 2>&1 || fail "stop: $(cat out)"
rm -r endless

# how many updates that is, and whether it is any
expect 0 '# updates 9 at most: stop.env_steps is reached with batch 10, which is not trained on' \
    "$TUTTI" check good.yaml --set num_steps=64 --set stop.env_steps=10k
expect 0 '# updates as many as there are' "$TUTTI" check good.yaml
expect 0 'tutti check: nothing will be trained: stop.env_steps is 5, and the first batch has' \
    "$TUTTI" check good.yaml --set stop.env_steps=5
expect 0 '"updates":9' "$TUTTI" check good.yaml --set num_steps=64 --set stop.env_steps=10k --output json

# what all processes read is looked at by the command that starts them
for command in "check good.yaml" "run good.yaml --run-dir none" "run $TT_SOURCE_DIR/configs/k8s/dijob-cartpole.yaml --run-dir none" \
    "eval nothing" "resume nothing"; do
    TT_LOG=learner:loud expect 78 "TT_LOG: 'learner:loud' is not LEVEL or COMPONENT:LEVEL" "$TUTTI" $command
    TT_LOG_FORMAT=xml expect 78 "TT_LOG_FORMAT: 'xml' is not one of text, json" "$TUTTI" $command
    TT_CPU=mmx expect 78 'TT_CPU=mmx: unknown here; use portable, avx2 or avx512' "$TUTTI" $command
    TT_ENV_START_S=soon expect 78 "TT_ENV_START_S: 'soon' is not a whole number of seconds from 1 to 86400" "$TUTTI" $command
    TT_ENV_STEP_S=0 expect 78 "TT_ENV_STEP_S: '0' is not a whole number of seconds" "$TUTTI" $command
    TT_DEVICE=cuda:1 expect 78 "TT_DEVICE=cuda:1: it is a backend's name alone" "$TUTTI" $command
    TT_DEVICE=gpu! expect 78 'TT_DEVICE=gpu!: ' "$TUTTI" $command
    [ ! -e none ] || fail "$command made a run directory"
done
TT_LOG=learner:debug,trace,,net:warn TT_LOG_FORMAT=text TT_CPU=portable TT_ENV_START_S=86400 TT_ENV_IDLE_S= \
    expect 0 'shards: 4' "$TUTTI" check good.yaml

# what is suggested is plausible
expect 64 "no option '--sed'; did you mean '--seed'?" "$TUTTI" run good.yaml --sed 3
expect 64 "no option '--torch'" "$TUTTI" export nothing --torch x
! grep -q 'did you mean' err || fail "--torch: $(cat err)"
expect 78 "no algorithm 'trpo'; nearest in kind is 'ppo', proximal policy optimisation (on-policy; any actions); \`tutti algorithms\` lists them" \
    "$TUTTI" check good.yaml --set algorithm.name=trpo
expect 78 "--set: algorithm.name: no algorithm 'APPO'; here it is ppo with algorithm.vtrace: true and a lag above 0" "$TUTTI" check good.yaml --set algorithm.name=APPO
expect 78 "here it is called 'algorithm.vtrace_c'" "$TUTTI" check good.yaml --set algorithm.name=impala --set algorithm.c_clip_ratio=1
expect 78 "no algorithm 'DDPG'; here it is td3 with algorithm.policy_delay: 1" "$TUTTI" check good.yaml --set algorithm.name=DDPG
expect 78 "no algorithm 'tqc'; nearest in kind is 'sac', " "$TUTTI" check good.yaml --set algorithm.name=tqc
expect 66 "no algorithm 'Apex'; nearest in kind is 'dqn', " "$TUTTI" algorithms Apex
expect 66 "no algorithm 'Rainbow'; here it is dqn with atoms: 51, double, dueling, noisy, n_step: 3 and replay.prioritized" \
    "$TUTTI" algorithms Rainbow
expect 66 "no algorithm 'PPO' (did you mean 'ppo'?)" "$TUTTI" algorithms PPO

# the settings of a DIJob are its manifest's
job=$TT_SOURCE_DIR/configs/k8s/dijob-cartpole.yaml
expect 64 'a DIJob is what its manifest says' "$TUTTI" check "$job" --set num_envs=4
expect 64 'a DIJob is what its manifest says' "$TUTTI" check "$job" --seed 4
expect 0 'the DIJob can be run' "$TUTTI" check "$job"
expect 0 '{"valid":true,"complete":true}' "$TUTTI" check "$job" --output json

# and the command lines of its containers are read as the pods will
member() { # OLD NEW CODE WORDS
    sed "s/$1/$2/" "$job" >member.yaml
    expect "$3" "$4" "$TUTTI" check member.yaml
}
at=spec.coordinator.template.spec.containers[0]
member ', --seed, "1"' ', --sed, "1"' 64 "$at: no option '--sed'; did you mean '--seed'?"
member ', --seed, "1"' ', --set, num_env=3' 78 "unknown key 'num_env'; did you mean 'num_envs'?"
member ', --seed, "1"' ', --set, num_env=3' 78 "tutti check: $at: "
member 'cartpole-ppo,' 'cartpol-ppo,' 66 "$at: "
member 'args: .coordinator,' 'args: [coordinater,' 64 "$at: tutti has no command 'coordinater'; did you mean 'coordinator'?"
member 'args: .learner.' 'args: [learner, now]' 64 "spec.learner.template.spec.containers[0]: 'now' is one operand too many"
member 'cartpole-ppo,' '\/tmp\/of-a-volume.yaml,' 0 'the DIJob can be run'
member 'cartpole-ppo,' 'of-the-image.yaml,' 0 'the DIJob can be run'
member ', --seed, "1"' ', --seed, $(SEED)' 0 'the DIJob can be run'
member 'command: .\/usr\/bin\/tutti.' 'command: [tutti-no-such]' 0 \
    'the DIJob is good, but this machine lacks what stands above'
expect 0 '{"valid":true,"complete":false}' "$TUTTI" check member.yaml --output json

# from a pipe and from standard input
expect 0 'shards: 4 # <stdin>:4:3' "$TUTTI" check - <good.yaml
expect 78 "tutti check: <stdin>:3:3: unknown key 'learner.shard'" "$TUTTI" check - <typo.yaml
cat good.yaml | expect 0 'shards: 4 # <stdin>:4:3' "$TUTTI" check -
cat good.yaml | expect 0 'succeeded' "$TUTTI" run - --run-dir piped --set stop.env_steps=4096
expect 0 'shards: 4 # piped/config.yaml' "$TUTTI" check piped/config.yaml
expect 78 "<stdin>: 'env' is missing" "$TUTTI" run - --run-dir none </dev/null
[ ! -e none ] || fail 'a run directory of a config that is none'
wait

# a plug-in: found from here, kept with its absolute path; the run is named after it
plugin=$TT_BUILD_DIR/tests/collector/plugins/drift.so
if [ -f "$plugin" ]; then
    cp "$plugin" "$dir/drift.so"
    for env in ./drift.so drift.so; do
        expect 0 "env: $(pwd -P)/drift.so" "$TUTTI" check good.yaml --set env=$env
        expect 0 "name: drift # env" "$TUTTI" check good.yaml --set env=$env
    done
    expect 78 "--set: env: cannot load env: " "$TUTTI" check good.yaml --set env=./good.yaml
    # in a config: from where the config lies, whoever reads it
    mkdir -p jobs/envs
    mv drift.so jobs/envs/
    printf 'env: envs/drift.so\n' >jobs/drift.yaml
    expect 0 "env: $(pwd -P)/jobs/envs/drift.so # jobs/drift.yaml:1:1" "$TUTTI" check jobs/drift.yaml
    (cd jobs && "$TUTTI" check drift.yaml) >out
    grep -qF "env: $(pwd -P)/jobs/envs/drift.so " out || fail "from its own directory: $(cat out)"
    expect 78 "jobs/drift.yaml:2:1: env: ./gone.so is looked for at $(pwd -P)/jobs/gone.so: No such file" \
        sh -c 'printf "seed: 1\nenv: ./gone.so\n" >jobs/drift.yaml && "$TUTTI" check jobs/drift.yaml'
    expect 78 "<stdin>:1:1: env: envs/drift.so is looked for at $(pwd -P)/envs/drift.so: No such file" \
        sh -c 'echo "env: envs/drift.so" | "$TUTTI" check -'
    expect 0 'succeeded' sh -c 'echo "env: jobs/envs/drift.so" | "$TUTTI" run - --run-dir far --set stop.env_steps=2048'
    grep -qF "env: $(pwd -P)/jobs/envs/drift.so" far/config.yaml || fail 'a run keeps the absolute path'
fi

python3=$(command -v python3 || true)
if [ -n "$python3" ]; then
    "$TUTTI" check good.yaml --output json | "$python3" -c '
import json, sys
all = json.load(sys.stdin)
assert all["valid"] is True
assert all["comes_to"]["parameters"] == 9155 and all["comes_to"]["flop_act"] == 2 * (2 * (4 * 64 + 64 * 64) + 64 * 3)
assert all["comes_to"]["flop_train"] == 3 * all["comes_to"]["flop_act"] 
comes_to = all["comes_to"]
assert comes_to["observation"] == "float32[4]" and comes_to["action"] == "discrete(2)" and comes_to["mask"] is False
assert [(c["name"], c["dtype"], c["shape"], c["bytes"]) for c in comes_to["columns"]] == [
    ("obs", "float32", [4], 16), ("action", "int32", [], 4), ("reward", "float32", [], 4), ("terminated", "uint8", [], 1),
    ("truncated", "uint8", [], 1), ("log_prob", "float32", [], 4), ("value", "float32", [], 4)], comes_to
assert comes_to["row_bytes"] == 34 and comes_to["flat"] == 4 and len(comes_to["columns_hash"]) == 16
assert all["comes_to"]["batch_rows"] == all["config"]["num_envs"]["value"] * all["config"]["num_steps"]["value"]
config = all["config"]
assert config["algorithm.learning_rate"] == {"value": 0.001, "origin": "good.yaml:5:13"}, config
assert config["network.hidden"]["value"] == [64, 64]
assert config["coordinator.listen"]["value"] == ""
assert config["stop.wall_s"] == {"value": None, "origin": "default"}'
    "$TUTTI" check CartPoleNoVel-v1 --output json 2>err | "$python3" -c '
import json, sys
comes_to = json.load(sys.stdin)["comes_to"]
assert "replay_device_bytes" not in comes_to
assert comes_to["carry"] == 4 * 64 and comes_to["parameters"] == 2 * 17920 + 4290 + 4225, comes_to'
    "$TUTTI" check dueling.yaml --set replay.memory=both --output json 2>err | "$python3" -c '
import json, sys
comes_to = json.load(sys.stdin)["comes_to"]
assert (comes_to["replay_bytes"], comes_to["replay_device_bytes"]) == (26000000, 19804944), comes_to'
    { "$TUTTI" check typo.yaml --output json 2>err || true; } | "$python3" -c '
import json, sys
all = json.load(sys.stdin)
assert all == {"valid": False, "error":
    "typo.yaml:3:3: unknown key \x27learner.shard\x27; did you mean \x27learner.shards\x27?"}, all'
    "$TUTTI" check Pendulum-v1 --set env.args.g=9.81 --output json 2>err | "$python3" -c '
import json, sys
config = json.load(sys.stdin)["config"]
assert config["env"]["value"] == "Pendulum-v1" and config["env.args.g"] == {"value": "9.81", "origin": "--set"}, config'
    "$TUTTI" envs Pendulum-v1 CartPole-v1 --output json | "$python3" -c '
import json, sys
pendulum, cartpole = json.load(sys.stdin)["envs"]
assert [option["name"] for option in pendulum["args"]] == ["g"] and cartpole["args"] == [] and not cartpole["mask"]
assert pendulum["observation"] == {"text": "float32[3]", "kind": "box", "shape": [3], "dtype": "float32",
                                   "low": [-1.0, -1.0, -8.0], "high": [1.0, 1.0, 8.0]}, pendulum
assert cartpole["observation"]["low"][1] is None
assert cartpole["action"] == {"text": "discrete(2)", "kind": "discrete", "n": 2, "start": 0}, cartpole'
    for command in 'config' 'algorithms' 'version'; do
        "$TUTTI" $command --output json | "$python3" -c 'import json, sys; assert json.load(sys.stdin)'
    done
fi

expect 0 'learner.shards' "$TUTTI" config
expect 0 'algorithm.gamma' "$TUTTI" config
expect 0 'proximal policy optimisation' "$TUTTI" algorithms
expect 0 'algorithm.learning_rate' "$TUTTI" algorithms ppo
expect 66 "no algorithm 'pop'" "$TUTTI" algorithms pop
expect 66 "no algorithm 'ppo_lstm'; here it is ppo with network.rnn: lstm" "$TUTTI" algorithms ppo_lstm
expect 0 'tutti ' "$TUTTI" --version
expect 0 'usage: tutti check CONFIG|ENV [options]' "$TUTTI" help check
expect 0 'usage: tutti bench envs' "$TUTTI" help bench envs
expect 0 '.TH TUTTI 1' "$TUTTI" help --man
expect 64 "no command 'chekc'; did you mean 'check'?" "$TUTTI" help chekc
expect 64 "tutti: no command 'chekc'; did you mean 'tutti check'?" "$TUTTI" chekc
expect 64 "no benchmark 'env'; did you mean 'envs'?" "$TUTTI" bench env
expect 64 'usage: tutti COMMAND' "$TUTTI"
expect 0 'usage: tutti COMMAND' "$TUTTI" --help

# every command says its help, with its name; and whatever it takes it takes as often as one likes
often() {
    for i in 1 2 3 4 5 6 7 8 9 10; do printf -- "$1$1$1$1$1$1$1$1$1$1"; done
}
for command in $("$TUTTI" completion --words COMMAND); do
    expect 0 "usage: tutti $command" "$TUTTI" "$command" --help
    for letter in $(sed -n 's/^  -\([a-z]\), --[a-z-]*  .*/\1/p' out | grep -v h); do
        expect 0 "usage: tutti $command" "$TUTTI" "$command" "-$(often "$letter")" --help
    done
    for option in $(sed -n 's/^  .*\(--[a-z-]*\) \([A-Za-z].*\)  .*/\1/p' out); do
        value=$(sed -n "s/^  .*$option \\([a-zA-Z]*\\).*/\\1/p" out)
        expect 0 "usage: tutti $command" "$TUTTI" "$command" $(often "$option $value ") --help
    done
done

# what could not be written is not silent
if [ -w /dev/full ]; then
    got=0
    "$TUTTI" version >/dev/full 2>err || got=$?
    [ "$got" = 74 ] && grep -q 'No space left' err || fail "version >/dev/full gave $got: $(cat err)"
fi

# every config we ship is good; those of Gymnasium's environments where tools/test-venv made the Python for them
gym=$TT_SOURCE_DIR/build/venv-gym
for config in "$TT_SOURCE_DIR"/configs/*.yaml; do
    [ -f "$gym/.complete" ] || ! grep -q 'gym:' "$config" || continue
    TT_PYTHON=$gym/bin/python3 expect 0 'space:' "$TUTTI" check "$config"
done
