#!/usr/bin/env bash
# Runs a command under mpirun with one rank on each of N hosts, which are network namespaces with
# names of their own: ranks talk by TCP alone. As root, with iproute2 and Open MPI.
#   tests/tools/on_hosts.sh N COMMAND...
set -euo pipefail
count=$1
shift
net=10.231.7
tag=interp$$
work=$(mktemp -d)

clean_up() {
  for ((i = 0; i < count; ++i)); do ip netns delete "$tag-$i" 2>/dev/null || true; done
  ip link delete "br$$" 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT

ip link add "br$$" type bridge
ip link set "br$$" up
hosts=()
for ((i = 0; i < count; ++i)); do
  ip netns add "$tag-$i"
  ip link add "v$$-$i" type veth peer name eth0 netns "$tag-$i"
  ip link set "v$$-$i" master "br$$" up
  ip -n "$tag-$i" address add "$net.$((i + 1))/24" dev eth0
  ip -n "$tag-$i" link set lo up
  ip -n "$tag-$i" link set eth0 up
  hosts+=("$net.$((i + 1)):1")
done

# What ssh would do: AGENT HOST COMMAND...
cat >"$work/agent" <<EOF
#!/usr/bin/env bash
while [[ \$1 == -* ]]; do shift; done
i=\$((\${1##*.} - 1))
shift
exec ip netns exec "$tag-\$i" unshare --uts bash -c "hostname host\$i; \$*"
EOF
chmod +x "$work/agent"

ip netns exec "$tag-0" unshare --uts bash -c 'hostname host0; exec "$@"' _ \
  mpirun --allow-run-as-root --mca plm_rsh_agent "$work/agent" \
  --mca btl tcp,self --mca pml ob1 --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 \
  --host "$(IFS=,; echo "${hosts[*]}")" -n "$count" "$@"
