#!/bin/sh
# Two hosts, made of two network namespaces: who holds the job's key joins over tcp, nobody else does.
[ "$(id -u)" = 0 ] && command -v ip >/dev/null || { echo "skipped: needs root and ip"; exit 77; }
peer=$TT_BUILD_DIR/tests/net/net_peer
a=tt-a-$$ b=tt-b-$$ dir=$(mktemp -d)
cleanup() {
    [ -n "$server" ] && kill "$server" 2>/dev/null && wait "$server" 2>/dev/null
    ip netns del "$a" 2>/dev/null
    ip netns del "$b" 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT
ip netns add "$a" 2>/dev/null && ip netns add "$b" 2>/dev/null &&
    ip link add name v0 netns "$a" type veth peer name v0 netns "$b" 2>/dev/null || {
    echo "skipped: no network namespaces here"
    exit 77
}
set -e
ip -n "$a" address add 10.99.0.1/24 dev v0
ip -n "$b" address add 10.99.0.2/24 dev v0
for host in "$a" "$b"; do
    ip -n "$host" link set lo up
    ip -n "$host" link set v0 up
done
"$peer" key "$dir/job.key"
"$peer" key "$dir/other.key"

echo "without a key nothing is bound to an address that others can reach"
ip netns exec "$a" "$peer" serve - 10.99.0.1 2>"$dir/said" && exit 1
grep "needs the job's key" "$dir/said"

mkfifo "$dir/endpoint"
ip netns exec "$a" "$peer" serve "$dir/job.key" 10.99.0.1 >"$dir/endpoint" &
server=$!
read -r endpoint <"$dir/endpoint"
echo "served at $endpoint"

echo "another key stays outside"
ip netns exec "$b" "$peer" join "$dir/other.key" "$endpoint" 2000 2>"$dir/said" && exit 1
grep TIMEOUT "$dir/said"
echo "no key stays outside"
ip netns exec "$b" "$peer" join - "$endpoint" 2000 2>"$dir/said" && exit 1
grep DENIED "$dir/said"
echo "the job's key joins"
[ "$(ip netns exec "$b" "$peer" join "$dir/job.key" "$endpoint" 30000)" = "joined as 7" ]
wait "$server"
server=
