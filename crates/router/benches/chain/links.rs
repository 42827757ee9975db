//! Two network namespaces with a veth pair between them.

use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;
use std::process::Command;

use hawser_kernel::namespace::NetNs;
use hawser_kernel::offload;

use crate::common::net::Net;

/// Name of the link's device at both ends.
const DEVICE: &str = "if1";

/// The namespaces of both ASes, which end when this is dropped.
pub struct Links([NetNs; 2]);

/// Whether the programs `ip` and `tc` exist.
pub fn has_iproute() -> bool {
    let exists = |program| Command::new(program).arg("-V").output().is_ok();
    exists("ip") && exists("tc")
}

impl Links {
    /// Namespaces with the addresses of `net`. Devices carry batches `whole`, or else
    /// have no segmentation and receive offloads.
    pub fn new(net: &Net, whole: bool) -> Self {
        let links = Self([1, 2].map(|_| NetNs::create().unwrap()));
        let far = links.0[1].as_fd().as_raw_fd();
        let far = format!("/proc/{}/fd/{far}", std::process::id());
        let veth = format!("link add {DEVICE} type veth peer name {DEVICE} netns {far}");
        ip(&links.0[0], &veth);
        for (number, namespace) in (1..).zip(&links.0) {
            let end = net.link_end(number).ip();
            ip(namespace, &format!("addr add {end}/24 dev {DEVICE}"));
            for device in ["lo", DEVICE] {
                ip(namespace, &format!("link set {device} up"));
                if !whole {
                    namespace.run(|| offload::disable(device)).unwrap().unwrap();
                }
            }
        }
        links
    }

    /// Makes the far end of the link drop all packets, as they are for another Ethernet address, and
    /// returns the statistics of its devices, for [`received`].
    pub fn drop_at_far_end(&self, net: &Net) -> File {
        let end = net.link_end(2).ip();
        let other = "lladdr 02:00:00:00:00:01 nud permanent";
        ip(
            &self.0[0],
            &format!("neigh replace {end} dev {DEVICE} {other}"),
        );
        let open = || File::open("/proc/thread-self/net/dev");
        self.0[1].run(open).unwrap().unwrap()
    }

    /// Makes the kernel deliver each batch that the host at `source` in the first AS sends to its router
    /// `copies` times. The copies share their bytes, so that they cost next to nothing.
    pub fn multiply(&self, source: SocketAddr, copies: usize) {
        let namespace = &self.0[0];
        // Copies carry no route of the sender, and loopback addresses are not looked up otherwise.
        let allow = || std::fs::write("/proc/sys/net/ipv4/conf/lo/route_localnet", "1");
        namespace.run(allow).unwrap().unwrap();
        run(namespace, "tc", "qdisc add dev lo clsact");
        let port = source.port();
        let mut filter =
            format!("filter add dev lo egress protocol ip u32 match ip sport {port} 0xffff");
        for _ in 1..copies {
            filter.push_str(" action mirred ingress mirror dev lo");
        }
        run(namespace, "tc", &filter);
    }

    /// The namespace of AS `number`.
    pub fn namespace(&self, number: u8) -> &NetNs {
        &self.0[usize::from(number) - 1]
    }
}

/// The number of packets that a link's device has received (proc(5), `/proc/net/dev`).
pub fn received(devices: &File) -> u64 {
    let mut text = [0; 1 << 12];
    let length = devices.read_at(&mut text, 0).unwrap();
    let text = std::str::from_utf8(&text[..length]).unwrap();
    let mut lines = text.lines().map(str::trim_start);
    let values = lines.find_map(|line| line.strip_prefix(DEVICE)?.strip_prefix(':'));
    let packets = values.unwrap().split_whitespace().nth(1);
    packets.unwrap().parse().unwrap()
}

fn ip(namespace: &NetNs, command: &str) {
    run(namespace, "ip", command);
}

fn run(namespace: &NetNs, program: &str, arguments: &str) {
    let run = || Command::new(program).args(arguments.split(' ')).status();
    let status = namespace.run(run).unwrap().unwrap();
    assert!(status.success(), "{program} {arguments}");
}
