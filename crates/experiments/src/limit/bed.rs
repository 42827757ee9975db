//! Two network namespaces that a pair of devices joins: the attachment point, where limits are set,
//! and its user.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use hawser_kernel::interface::LOOPBACK;
use hawser_kernel::namespace::{NetNs, become_root_of_own, is_privileged};
use hawser_kernel::netlink::Netlink;
use hawser_kernel::veth::VethEnd;

use super::names::{IpVersion, Way};
use crate::error::{During, ExperimentError};
use crate::shape::Bed;
use crate::thread::on_thread;

/// The device of the attachment point, on which limits are set.
pub const DEVICE: &str = "point";
/// The device of the user.
const USER: &str = "user";
/// The user's addresses: each is the far end of a link.
pub const USED: u8 = 4;
const MTU: u32 = 1500;
const ENTERING: &str = "entering a network namespace";
/// Seconds for which a namespace keeps the fragments of an IPv6 datagram.
const FRAGMENTS_TIMEOUT: &str = "/proc/sys/net/ipv6/ip6frag_time";
/// Hardware addresses of the attachment point and the user.
const MAC: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

/// The two namespaces, in which jobs run.
pub struct LimitBed(Arc<Namespaces>);

/// The two namespaces, which end with this.
pub struct Namespaces {
    /// The attachment point.
    pub point: NetNs,
    /// Its user.
    pub user: NetNs,
}

/// The attachment point's address.
pub fn near(ip: IpVersion) -> IpAddr {
    match ip {
        IpVersion::V4 => Ipv4Addr::new(10, 7, 0, 1).into(),
        IpVersion::V6 => Ipv6Addr::new(0xfd07, 0, 0, 0, 0, 0, 0, 1).into(),
    }
}

/// The user's address with a number below [`USED`].
pub fn far(ip: IpVersion, number: u8) -> IpAddr {
    match ip {
        IpVersion::V4 => Ipv4Addr::new(10, 7, 1, number).into(),
        IpVersion::V6 => Ipv6Addr::new(0xfd07, 0, 0, 0, 0, 0, 1, number.into()).into(),
    }
}

/// The addresses from and to which packets go.
pub fn ends(ip: IpVersion, way: Way, number: u8) -> (IpAddr, IpAddr) {
    match way {
        Way::Egress => (near(ip), far(ip, number)),
        Way::Ingress => (far(ip, number), near(ip)),
    }
}

impl LimitBed {
    /// Makes the namespaces, in a user namespace without root.
    pub fn make() -> Result<Self, ExperimentError> {
        if !is_privileged() {
            become_root_of_own().during(
                "user namespaces are not allowed here: run as root, or allow them (sysctl \
                 user.max_user_namespaces above 0)",
            )?;
        }
        Namespaces::make().map(|both| Self(Arc::new(both)))
    }

    /// Runs a job inside the attachment point.
    pub async fn inside<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Namespaces) -> Result<T, ExperimentError> + Send + 'static,
    ) -> Result<T, ExperimentError> {
        let both = Arc::clone(&self.0);
        on_thread(move || both.point.run(|| job(&both)).during(ENTERING)?).await
    }
}

impl Bed for LimitBed {
    async fn take_down(self) -> Result<(), ExperimentError> {
        Ok(())
    }
}

impl Namespaces {
    fn make() -> Result<Self, ExperimentError> {
        let make = || NetNs::create().during("making a network namespace");
        let (point, user) = (make()?, make()?);
        let both = Self { point, user };
        let joined = both.point.run(|| both.join());
        joined.during(ENTERING)??;
        let versions = [IpVersion::V4, IpVersion::V6];
        let here = versions.map(near).to_vec();
        let all = |ip| (0..USED).map(move |number| far(ip, number));
        let there: Vec<IpAddr> = versions.into_iter().flat_map(all).collect();
        let sides = [
            (&both.point, DEVICE, &here, &there, MAC[1]),
            (&both.user, USER, &there, &here, MAC[0]),
        ];
        for (namespace, device, own, others, mac) in sides {
            let done = namespace.run(|| configure(device, own, others, mac));
            done.during(ENTERING)??;
        }
        Ok(both)
    }

    /// The namespaces that send and receive.
    pub fn sides(&self, way: Way) -> (&NetNs, &NetNs) {
        match way {
            Way::Egress => (&self.point, &self.user),
            Way::Ingress => (&self.user, &self.point),
        }
    }

    fn join(&self) -> Result<(), ExperimentError> {
        let end = |device, mac| VethEnd {
            device,
            index: 0,
            mac,
        };
        let (near, far) = (end(DEVICE, MAC[0]), end(USER, MAC[1]));
        let step = "making a pair of devices";
        let mut netlink = Netlink::open().during(step)?;
        let made = netlink.add_veth(&near, &far, &self.user, MTU);
        made.during(step)
    }
}

fn configure(
    device: &str,
    own: &[IpAddr],
    others: &[IpAddr],
    mac: [u8; 6],
) -> Result<(), ExperimentError> {
    let step = || format!("setting up the device {device}");
    let mut netlink = Netlink::open().during(step())?;
    netlink.set_up(LOOPBACK, true).during(step())?;
    let found = netlink.interface(device).during(step())?;
    let index = found.ok_or("it is gone").during(step())?.index;
    netlink.set_up(index, true).during(step())?;
    for address in own {
        let prefix = if address.is_ipv4() { 16 } else { 64 };
        netlink
            .add_address(index, *address, prefix)
            .during(step())?;
    }
    // By default the kernel gives fragments up after a minute, and says so to their sender over the link:
    // in the middle of another measurement.
    fs::write(FRAGMENTS_TIMEOUT, "1").during(step())?;
    // Where packets wait, or are dropped, neighbours would not be found again.
    for address in others {
        let added = netlink.add_neighbour(index, *address, mac);
        added.during(step())?;
    }
    Ok(())
}
