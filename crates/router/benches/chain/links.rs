//! Two network namespaces with a veth pair between them.

use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;

use hawser_kernel::namespace::NetNs;
use hawser_kernel::offload;

use crate::common::net::Net;

/// Name of the link's device at both ends.
const DEVICE: &str = "if1";

/// The namespaces of both ASes, which end when this is dropped.
pub struct Links([NetNs; 2]);

/// Whether the program `ip` exists.
pub fn has_ip() -> bool {
    Command::new("ip").arg("-V").output().is_ok()
}

impl Links {
    /// Namespaces with the addresses of `net`. Devices carry batches whole, or else no segmentation
    /// and receive offloads.
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

    /// The namespace of AS `number`.
    pub fn namespace(&self, number: u8) -> &NetNs {
        &self.0[usize::from(number) - 1]
    }
}

fn ip(namespace: &NetNs, command: &str) {
    let run = || Command::new("ip").args(command.split(' ')).status();
    let status = namespace.run(run).unwrap().unwrap();
    assert!(status.success(), "ip {command}");
}
