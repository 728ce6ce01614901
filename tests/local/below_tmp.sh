#!/bin/bash
# A volume of the bundled job lies on /tmp, and so may the program and its configs: its pods see them all the same.
set -eu
dir=$(mktemp -d /tmp/tutti-below-XXXXXX)
export XDG_STATE_HOME=$dir/state TERM=dumb
cd "$dir"
trap 'cd /; rm -rf "$dir"' EXIT

fail() { echo "FAILED: $*: $(cat out)"; exit 1; }
mkdir -p prefix/bin prefix/share/tutti
cp "$TUTTI" prefix/bin/
cp -r "$TT_SOURCE_DIR/configs" prefix/share/tutti/
sed 's/cartpole-ppo,/cartpole-ppo, --set, stop.return_mean=null, --set, stop.env_steps=4096,/' "$TT_SOURCE_DIR/configs/k8s/dijob-cartpole.yaml" >job.yaml
timeout 90 prefix/bin/tutti run job.yaml -d "$dir/run" >out 2>&1 || fail "exit code $?"
grep -q 'succeeded because coordinator succeeded' out || fail "no end"
grep -q weights_sha256 run/logs/coordinator.log || fail "no summary"
if grep -q 'no mount namespaces' out; then
  echo 'SKIP: no mount namespaces here, so no volume hides anything'
  exit 77
fi
