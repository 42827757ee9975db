# A host whose gateway is another network namespace, in which miniupnpd maps ports; then runs "$@" at the host.
# usage: network.sh FOLDER MINIUPNPD yes|no COMMAND...   (whether the gateway knows NAT-PMP)
set -e
folder=$1 daemon=$2 natpmp=$3
shift 3
ip link set lo up
unshare --net sleep 100000 &
gateway=$!
trap 'kill $gateway $server 2> "$folder/ignored"' EXIT
at_gateway="nsenter --net=/proc/$gateway/ns/net"
# The namespace is there once it is another one than this.
while [ "$(readlink /proc/$gateway/ns/net)" = "$(readlink /proc/$$/ns/net)" ]; do sleep 0.1; done
ip link add lan type veth peer name lan0
ip link set lan0 netns $gateway
ip addr add 10.9.0.2/24 dev lan
ip link set lan up
ip route add default via 10.9.0.1
$at_gateway sh -e <<'AT'
ip link set lo up
ip link add wan type veth peer name wan0
ip addr add 198.51.100.7/24 dev wan
ip link set wan up
ip addr add 10.9.0.1/24 dev lan0
ip link set lan0 up
nft add table inet filter
for chain in forward:filter:forward:0 prerouting:nat:prerouting:-100 postrouting:nat:postrouting:100; do
    IFS=:; set -- $chain; unset IFS
    nft "add chain inet filter $1 { type $2 hook $3 priority $4 ; }"
done
for chain in miniupnpd prerouting_miniupnpd postrouting_miniupnpd; do nft add chain inet filter $chain; done
AT
# An address that is not reserved: the gateway refuses to map ports otherwise.
cat > "$folder/conf" <<CONF
ext_ifname=wan
ext_ip=93.184.216.34
listening_ip=lan0
enable_natpmp=$natpmp
enable_upnp=yes
secure_mode=yes
uuid=00000000-0000-0000-0000-000000000001
upnp_forward_chain=miniupnpd
upnp_nat_chain=prerouting_miniupnpd
upnp_nat_postrouting_chain=postrouting_miniupnpd
upnp_table_name=filter
upnp_nat_table_name=filter
allow 1024-65535 10.9.0.0/24 1024-65535
deny 0-65535 0.0.0.0/0 0-65535
CONF
$at_gateway "$daemon" -d -f "$folder/conf" -P "$folder/pid" > "$folder/log" 2>&1 &
server=$!
# It listens for searches.
until $at_gateway grep -q ':076C ' /proc/net/udp; do
    kill -0 $server || { cat "$folder/log" >&2; exit 1; }
    sleep 0.1
done
echo "$at_gateway" > "$folder/at_gateway"
GATEWAY_FOLDER=$folder "$@"
