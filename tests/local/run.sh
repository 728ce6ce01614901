#!/bin/bash
# DIJobs on this machine: whole runs of manifests with what a POSIX machine and bash have. Every case waits for what it expects.
set -u
shopt -s lastpipe # what a pipe feeds runs in this shell
dir=$(mktemp -d /tmp/tutti-local-XXXXXX)
export XDG_STATE_HOME=$dir/state TERM=dumb
cd "$dir" || exit 1
failed=0 case=none
cleanup() { cd /; rm -rf "$dir"; }
trap cleanup EXIT

fail() { echo "FAILED: $case: $*"; failed=1; [ -e out ] && sed 's/^/    /' out; }
# run NAME EXPECTED-CODE [OPTION...]: a manifest on stdin; its run directory is NAME. `any`: the case looks at $code.
run() {
  case=$1; local want=$2; shift 2
  cat >"$case.yaml"
  timeout 90 "$TUTTI" run "$case.yaml" -d "$dir/$case" "$@" >out 2>&1
  code=$?
  [ $code = "$want" ] || [ "$want" = any ] || fail "exit code $code, not $want"
}
has() { grep -qF -- "$2" "$1" || fail "no '$2' in $1: $(head -c 2000 "$1")"; }
hasnt() { ! grep -qF -- "$2" "$1" || fail "'$2' in $1"; }
# await COMMAND...: until it succeeds, at most 30 s
await() {
  local end=$((SECONDS + 30))
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || { fail "waited in vain for: $*"; return 1; }
    read -rt 0.1 <> <(:) || true
  done
}
# gone NAME: no process of that run is there, by what all of them have in their environment
gone() { [ -z "$(grep -lsz "TT_RUN_DIR=$dir/$1\$" /proc/[0-9]*/environ)" ]; }
job() { printf 'apiVersion: diengine.opendilab.org/v1alpha1\nkind: DIJob\nmetadata: {name: %s}\nspec:\n' "$1"; }
# role NAME SCRIPT [SPEC-LINE...]: one container that runs a script of one line
role() {
  printf '  %s:\n    template:\n      spec:\n' "$1"
  local script=$2; shift 2
  for line in "$@"; do printf '        %s\n' "$line"; done
  printf '        containers:\n        - name: di-container\n          command: [/bin/bash, -c]\n          args:\n          - |\n            %s\n' "$script"
}

# ---- a pod that cannot be built: told, and not asked for again and again ------------------------------------------------
{ job unbuilt; role coordinator 'until grep -q TemplateRefused '"$dir"'/unbuilt/job.json; do sleep 0.1; done'
  printf '  aggregator: {replicas: 1}\n'; } | run unbuilt 0
has out "Warning FailedCreate: DIJob unbuilt: an aggregator is made of"
[ "$(grep -c FailedCreate out)" = 1 ] || fail "told more than once"

# ---- the replicas API, as a coordinator uses it --------------------------------------------------------------------
ask=$(tr '\n' ' ' <<'END'
ask() { local at=${KUBERNETES_SERVER_URL#http://}; exec 3<>/dev/tcp/${at%:*}/${at#*:};
  printf '%s %s HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s' "$1" "$2" ${#3} "$3" >&3; cat <&3; echo; exec 3>&-; };
me() { printf '{"namespace":"default","coordinator":"%s",%s}' $KUBERNETES_POD_NAME "$1"; };
R=/v1alpha1/replicas;
END
)
calls=$(tr '\n' ' ' <<'END'
ask POST $R "$(me '"collectors":{"replicas":2},"learners":{"replicas":1,"gpus":"0"}')";
ask GET "$R?namespace=default&coordinator=$KUBERNETES_POD_NAME";
ask DELETE $R "$(me '"collectors":{"replicas":1}')";
ask GET "$R?namespace=default&coordinator=nope"; ask PATCH $R ""; ask GET "$R?foo=1";
ask GET /v2alpha1/job/default.api/replicas;
ask POST $R "$(me '"learners":{"replicas":1,"gpus":2}')"
END
)
replace=$(tr '\n' ' ' <<'END'
ask POST $R "$(me '"collectors":{"replicas":1}')" >a; url=$(grep -o '127[0-9.]*:[0-9]*' a); at=${url%:*};
ask POST $R/failed "$(me "\"collectors\":[\"${at%.*}\"]")"
END
)
serve='echo on $COLLECTOR_PORT$LEARNER_PORT $WORLD_SIZE; trap "exit 0" TERM; while :; do sleep 0.05; done'
{ job api
  role coordinator "$ask $calls; until grep -qs ' 2' $dir/api/logs/ddp-learner-*.log; do sleep 0.05; done"
  role collector "$serve"
  role learner "$serve"
} | run api 0
log=api/logs/coordinator.log
has $log '"message":"successfully create replicas"'
has $log 'successfully delete replicas'
has $log 'pod: default/nope not exists in cache'
has $log 'HTTP/1.1 404'
has $log 'HTTP/1.1 501'
has $log 'request param foo is not supported'
ls api/logs/aggregator-*.log >/dev/null || fail "no aggregator for two GPUs"
cat api/logs/ddp-learner-*.log >ddp # the aggregator cannot start here, and its learner may have begun anew with the next
has ddp ' 2'
[ "$(ls api/logs/collector-*.log | wc -l)" = 2 ] || fail "not two collectors"
has out 'api-coordinator'
has out 'DIJob api succeeded because coordinator succeeded'
has api/job.json '"phase": "Succeeded"'

# ---- two aggregators and their learners go together; an aggregator reports a learner of its own --------------------------
pair=$(tr '\n' ' ' <<'END'
ask POST $R "$(me '"learners":{"replicas":2,"gpus":2}')";
until [ "$(ask GET "$R?namespace=default&coordinator=$KUBERNETES_POD_NAME" "" | grep -o aggregator- | wc -l)" = 2 ]; do sleep 0.05; done;
ask DELETE $R "$(me '"learners":{"replicas":2}')";
until ! ask GET "$R?namespace=default&coordinator=$KUBERNETES_POD_NAME" "" | grep -q aggregator-; do sleep 0.05; done
END
)
{ job pair
  role coordinator "$ask $pair"
  role collector "$serve"
  role learner "$serve"
  role aggregator 'trap "exit 0" TERM; while :; do sleep 0.05; done'
} | run pair 0
has pair/logs/coordinator.log 'successfully delete replicas'
[ "$(ls pair/logs/ddp-learner-*.log | wc -l)" = 2 ] || fail "not two groups of learners"
report=$(tr '\n' ' ' <<'END'
mine() { ask GET "$R?namespace=default&aggregator=$KUBERNETES_POD_NAME" "" | grep -o 'ding-ddp-learner-[a-z0-9]*' | sort -u; };
until [ "$(mine)" ]; do sleep 0.05; done; first=$(mine);
ask POST $R/failed "$(me "\"learners\":[\"$first\"]")";
ask POST $R/failed "$(me '"learners":["ding-coordinator"]')"; trap "exit 0" TERM; while :; do sleep 0.05; done
END
)
{ job ding
  role coordinator "$ask ask POST \$R \"\$(me '\"learners\":{\"replicas\":1,\"gpus\":2}')\"; \
    until [ \$(grep -ls ' 2\$' $dir/ding/logs/ddp-learner-*.log | wc -l) = 2 ] && \
      grep -qs 'is no learner' $dir/ding/logs/aggregator-*.log; do sleep 0.05; done"
  role collector "$serve"
  role learner "$serve"
  role aggregator "$ask $report"
} | run ding 0
has "$(ls ding/logs/aggregator-*.log)" 'successfully recreate replicas'
has "$(ls ding/logs/aggregator-*.log)" 'pod ding-coordinator is no learner of ding-aggregator-'

# ---- the same without mount namespaces: addresses instead of names ---------------------------------------------------
{ job plain
  role coordinator "$ask $replace"
  role collector "$serve"
} | run plain 0 --no-namespaces --no-limits
has plain/logs/coordinator.log 'successfully recreate replicas'
[ "$(ls plain/logs/collector-*.log | wc -l)" = 2 ] || fail "the failed collector was not made anew"
rm -f a

# ---- a coordinator that fails, init containers, a sidecar that never ends, volumes -------------------------------------
run fails any <<'END'
apiVersion: diengine.opendilab.org/v1alpha1
kind: DIJob
metadata: {name: fails, namespace: rl}
spec:
  cleanPodPolicy: All
  priorityClassName: high
  volumes: [{name: v, emptyDir: {}}, {name: settings, configMap: {name: settings}}]
  coordinator:
    template:
      spec:
        nodeSelector: {disk: ssd}
        initContainers:
        - {name: one, command: [sh, -c, 'echo one >> /tutti-test-volume/steps'], volumeMounts: [{name: v, mountPath: /tutti-test-volume}]}
        - {name: two, command: [sh, -c, 'echo two >> /tutti-test-volume/steps'], volumeMounts: [{name: v, mountPath: /tutti-test-volume}]}
        containers:
        - {name: shell, image: busybox, command: [sleep, '1000']}
        - name: di-container
          image: no/such:image
          env: [{name: WHO, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
          command: [/bin/sh, -c]
          args:
          - |
            cat >program <<'HERE'
            echo $(WHO) $$WHO
            HERE
            sh program; cat /tutti-test-volume/steps; cat /tutti-test-settings/a; exit 3
          workingDir: /tutti-test-volume
          volumeMounts: [{name: v, mountPath: /tutti-test-volume}, {name: settings, mountPath: /tutti-test-settings}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a: "from the map"}
END
has out 'without meaning on this machine: priorityClassName, nodeSelector, image'
has out 'DIJob fails failed because coordinator failed'
if ! grep -q 'no mount namespaces' out; then
  [ $code = 3 ] || fail "exit code $code, not 3"
  has fails/logs/coordinator.log 'fails-coordinator fails-coordinator'
  has fails/logs/coordinator.log 'from the map'
  [ "$(grep -c -e one -e two fails/logs/coordinator.log)" = 2 ] || fail "init containers"
  [ ! -e /tutti-test-volume ] || fail "something was left on the machine"
fi
gone fails || fail "a process was left behind"

# ---- restarts: a collector that fails is started again in its pod, a coordinator with Never is not ----------------------
{ job again
  role coordinator 'until [ -e ../../done ]; do sleep 0.05; done'
  role collector 'echo x >>../../count; if [ $(wc -l <../../count) -ge 3 ]; then touch ../../done; fi; exit 1'
} | sed "s#\.\./\.\./#$dir/#g; s/^  collector:/&\n    replicas: 1/" | run again 0
[ "$(wc -l <count)" -ge 3 ] || fail "not started again"
has out CrashLoopBackOff
has out 'container di-container ended with exit code 1'

# ---- what the machine lacks is said before the start, and why it failed after it --------------------------------------------
{ job lacks; role coordinator 'echo begun; tutti-no-such-program --now' '  restartPolicy: Never' | sed 's/          restartPolicy/        restartPolicy/'; } | run lacks 127
has out 'not on this machine: tutti-no-such-program (wanted by coordinator)'
grep -q 'container di-container ended with exit code 127: .*tutti-no-such-program: command not found' out || fail "no last line"
has lacks/pods.json 'tutti-no-such-program: command not found'

# a line with the remedy at its end, too long for a condition: beginning and end are told
{ job long; role coordinator 'printf "no such level: %01500d; run: get-levels\n" 0; exit 7' 'restartPolicy: Never'; } | run long 7
grep -q 'ended with exit code 7 (Error): no such level: 00*.* \.\.\. 00*; run: get-levels' out || grep -q 'no such level: 00* \.\.\. 00*; run: get-levels' out || fail "the line is cut"

# ---- tasks: ranks, names of the others, restarts of the job ----------------------------------------------------------------
run tasks 0 <<'END'
apiVersion: diengine.opendilab.org/v2alpha1
kind: DIJob
metadata: {name: tasks}
spec:
  backoffLimit: 3
  tasks:
  - type: learner
    template: {spec: {containers: [{name: di-container, command: [/bin/sh, -c, 'echo rank $DI_RANK of $DI_NODES; echo $DI_LEARNER_NODES; sleep 0.3']}]}}
  - type: none
    name: my-task
    replicas: 2
    template: {spec: {containers: [{name: di-container, command: [/bin/sh, -c, 'echo rank $DI_RANK at $DI_MY_TASK_NODES; sleep 0.3']}]}}
END
has tasks/logs/my-task-1.log 'rank 2'
[ "$(grep -o , tasks/logs/learner-0.log | wc -l)" = 2 ] || fail "DI_NODES: $(cat tasks/logs/learner-0.log)"
has tasks/job.json '"phase": "Succeeded"'

# ---- scale, status, logs, stop -------------------------------------------------------------------------------------------------
case=live
{ job live
  role coordinator 'trap "echo asked; exit 0" TERM; echo ready; while :; do sleep 0.05; done'
  role collector "$serve"
  printf '    maxReplicas: 4\n'
} >live.yaml
"$TUTTI" run --detach live.yaml -d "$dir/live" --name live >out 2>&1 || fail "could not begin"
"$TUTTI" ps >out; has out live
await grep -q ready live/logs/coordinator.log # its trap is set
counted() { "$TUTTI" status live | grep -qE "collector +$1 of $1"; }
"$TUTTI" scale live collector=3 >out 2>&1 || fail "scale"
await counted 3
"$TUTTI" scale live collector=1 >out 2>&1 || fail "scale down"
await counted 1
"$TUTTI" scale live collector=5 >out 2>&1 && fail "scaled beyond maxReplicas"
has out 'spec.collector.replicas: expected at most maxReplicas'
"$TUTTI" scale live learner=1 >out 2>&1 && fail "scaled a role that the job has not"
has out 'the job has no spec.learner'
"$TUTTI" scale live collector=2 learner=1 >out 2>&1 && fail "scaled one role of two"
"$TUTTI" status live >out
grep -qE 'collector +1 of 1' out || fail "one role of a refused scale was changed: $(cat out)"
said() { "$TUTTI" logs live collector | grep -q 'on '; }
await said
"$TUTTI" stop live >out 2>&1 || fail "stop"
"$TUTTI" status live >out; has out stopped
"$TUTTI" logs live live-coordinator >out; has out asked
has live/summary.json '"status": "stopped"'

# ---- killed: nothing stays behind --------------------------------------------------------------------------------------------------
case=killed
sed 's/name: live/name: killed/' live.yaml >killed.yaml
"$TUTTI" run killed.yaml -d "$dir/killed" >out 2>&1 &
guard=$!
await grep -q 'killed-coordinator .*Running' out
kill -9 $guard
await gone killed

# ---- Ctrl-C ---------------------------------------------------------------------------------------------------------------------------
case=asked
sed 's/name: live/name: asked/' live.yaml >asked.yaml
"$TUTTI" run asked.yaml -d "$dir/asked" >out 2>&1 &
guard=$!
await grep -q 'asked-coordinator .*Running' out
await grep -q ready asked/logs/coordinator.log # its trap is set
kill -INT $guard
wait $guard
code=$?
[ $code = 130 ] || fail "exit code $code, not 130"
has asked/logs/coordinator.log asked

# ---- memory, where a control group may be had -----------------------------------------------------------------------------------------
run memory 137 <<'END'
apiVersion: diengine.opendilab.org/v1alpha1
kind: DIJob
metadata: {name: memory}
spec:
  cleanPodPolicy: None
  coordinator:
    template:
      spec:
        containers:
        - name: di-container
          command: [/bin/bash, -c, 'if [ -z "$(grep tutti-run- /proc/self/cgroup)" ]; then kill -9 $$$$; fi; x=$(head -c 200000000 /dev/zero | tr "\0" x); echo survived']
          resources: {limits: {memory: 24Mi, cpu: 2}}
END
hasnt memory/logs/coordinator.log survived
grep -q 'limits are not held' out || { has memory/pods.json OOMKilled; has out 'killed by SIGKILL: out of memory, it had come to its limit'; }

# ---- mistakes ------------------------------------------------------------------------------------------------------------------------
{ job wrong; role coordinator true | sed 's/command:/comand: x\n          env: [{name: A, value: 1}]\n          command:/'; } | run wrong 78
has out "wrong.yaml:10: spec.coordinator.template.spec.containers[0].comand: Container has no field 'comand'; did you mean 'command'?"
sed -i 's/comand: x/image: x/' wrong.yaml
"$TUTTI" run wrong.yaml >out 2>&1 && fail "run lets it through"
has out 'wrong.yaml:11: spec.coordinator.template.spec.containers[0].env[0].value: expected text: put it in quotes'
"$TUTTI" check wrong.yaml >out 2>&1 && fail "check lets it through"
has out 'wrong.yaml:11:'
"$TUTTI" check api.yaml >out 2>&1 || fail "check refuses it"
"$TUTTI" resume live >out 2>&1 && fail "a DIJob was resumed"
has out "was a DIJob: its manifest begins another one"
# refused NAME CODE WORDS ARGS [CONTAINER-LINE]: what a pod of ours would be told ends the command before there is a run, and `check` says the same
refused() {
  { job "$1"; printf '  engine: tutti\n  coordinator: {template: {spec: {containers: [{name: di-container, args: [%s]%s}]}}}\n' "$4" "${5:-}"; } | run "$1" "$2"
  has out "spec.coordinator.template.spec.containers[0]: "
  has out "$3"
  [ ! -e "$1" ] || fail "a run directory is left"
  sed 's/^tutti run:/tutti check:/' out >by-run
  "$TUTTI" check "$1.yaml" >out 2>&1
  code=$?
  [ $code = "$2" ] || fail "check gives $code, not $2"
  cmp -s by-run out || fail "run said: $(cat by-run)"
}
refused no-config 66 "no file 'cartpole-pp'" 'coordinator, --config, cartpole-pp'
refused no-key 78 "unknown key 'clip_range'" 'coordinator, --config, cartpole-ppo, --set, clip_range=0.1'
refused no-command 64 "tutti has no command 'cordinator'" cordinator
refused no-option 64 "no option '--confg'" 'coordinator, --confg, cartpole-ppo'
refused no-python 78 '/no/python, and there is no such program' 'coordinator, --config, qbert-dqn, --set, env.python=/no/python' ', env: [{name: WHO, value: me}]'
# more than there is work for is no error: a cluster's coordinator has it in its log alone
sed 's/^    replicas: 2/    replicas: 20/' "$TT_SOURCE_DIR/configs/k8s/dijob-cartpole.yaml" >spare.yaml
case=spare
"$TUTTI" check spare.yaml >out 2>&1 || fail "check refuses spares"
has out 'spec.learner.replicas is 20, but learner.shards is '
has out ' will do nothing until others leave'
has out 'spec.collector.replicas is 20, but num_envs is 16: 4 will do nothing until others leave'
has out 'the DIJob can be run'
"$TUTTI" check "$TT_SOURCE_DIR/configs/k8s/dijob-cartpole.yaml" >out 2>&1
hasnt out 'will do nothing'
# what a container brings along may be another Python: only the pod knows whether that one has it
{ job brings; printf '  engine: tutti\n  coordinator: {template: {spec: {containers: [{name: di-container, args: [coordinator, --config, qbert-dqn], env: [{name: TT_PYTHON, value: /no/python}]}]}}}\n'; } >brings.yaml
"$TUTTI" check brings.yaml >out 2>&1 || fail "refused for this machine's Python"
{ job missing; role coordinator true; } | sed 's#/bin/bash#/no/such/program#' | run missing 128
has out "cannot start '/no/such/program'"
{ job broken; echo '  engine: tutti'; role coordinator true; } | sed 's#/bin/bash#/no/such/program#' | run broken 128
has out "failed: broken-coordinator: cannot start '/no/such/program'"

# ---- every sample, and every public TFJob, is a job, of which it is said what is missing here, or is refused by its kind ------------------------------------------------
case=samples
find "$TT_SOURCE_DIR/k8s/samples" "$TT_SOURCE_DIR/configs/k8s" "$TT_SOURCE_DIR/tests/k8s/upstream/tfjob" -name '*.yaml' | sort >all
[ "$(wc -l <all)" -ge 41 ] || fail "no samples: $(cat all)"
while read -r sample; do
  want=78
  grep -qE '^kind: (DIJob|TFJob)$' "$sample" && want=0
  case $sample in */configs/k8s/dijob-qbert.yaml) continue ;; esac # needs a Python with Gymnasium and its games
  "$TUTTI" check "$sample" >out 2>&1
  code=$?
  [ $code = $want ] || fail "check ${sample#"$TT_SOURCE_DIR"/} gives $code, not $want"
  grep -qE '^(the (DI|TF)Job (can be run|is good, but)|tutti check: .*(means nothing on this machine|no DIJob or TFJob in it|accelerators:))' out || fail "no word of $sample"
done <all

# ---- what a batch job has: a deadline ends it, with its own exit code and whatever is kept; the rest is said and passed over ----------
for policy in Running None; do
  { job late; printf '  activeDeadlineSeconds: 1\n  cleanPodPolicy: %s\n' $policy
    role coordinator "$serve"
    role collector "$serve"
    printf '    replicas: 1\n'
  } | run late-$policy 75
  has out 'failed: DIJob late was active longer than its deadline of 1 s'
  has out 'Warning DeadlineExceeded'
  has late-$policy/job.json '"reason": "DeadlineExceeded"'
done
{ job rests; printf '  suspend: true\n  ttlSecondsAfterFinished: 0\n'; role coordinator true; } | run rests 0
has out 'suspend has no effect on this machine: the job runs'
has out "ttlSecondsAfterFinished has no effect on this machine: the run's files stay till 'tutti rm'"
has rests/job.json '"phase": "Succeeded"'

# ---- a role that can only fail: backoffLimit ends the job, with the last line of its log; so does a container that is started again -----------
for policy in Never Always; do
  { job crash; printf '  backoffLimit: 1\n'
    role coordinator "$serve"
    role collector 'echo no such level; exit 5' "restartPolicy: $policy"
    printf '    replicas: 1\n'
  } | run crash-$policy 1
  has out 'failed: DIJob crash failed because collector failed '
  has out ' times in a row and backoffLimit is 1; the last, pod crash-collector-' # 2; a restart in place may be over before it is seen
  has out 'ended with exit code 5'
  has out ': no such level'
  has crash-$policy/job.json '"reason": "BackoffLimitExceeded"'
done

# ---- our own training job, as it is for a cluster -----------------------------------------------------------------------------------
# ours NAME [OPTION...]: the bundled job as it stands, with the same end for all
short='s/cartpole-ppo,/cartpole-ppo, --set, stop.return_mean=null, --set, stop.env_steps=4096,/'
ours() {
  sed "$short" "$TT_SOURCE_DIR/configs/k8s/dijob-cartpole.yaml" | run "$1" 0 "${@:2}"
  has "$1/logs/coordinator.log" weights_sha256
  has out 'succeeded because coordinator succeeded'
  "$TUTTI" eval "$1" --episodes 2 >out 2>&1 || fail "eval finds no checkpoint"
  has out 'episodes'
}
ours ours
ours ours-plain --no-namespaces
exit $failed
