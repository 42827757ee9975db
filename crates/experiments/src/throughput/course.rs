//! Where bytes move.

use std::fmt;

use hawser_topology::{IsdAsn, Network, Underlay};
use serde::Serialize;

use crate::error::ExperimentError;
use crate::experiment::isd_as;

/// Links between the first two ASes: as many disjoint paths.
const LINKS: u8 = 8;
/// The number of the first AS, 1-ff00:0:110.
const FIRST_AS: u8 = 110;

/// Where bytes move: from a host to another one, over some border routers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Course {
    /// The border routers between the hosts: 0 between two hosts of one AS, otherwise at least 2,
    /// since each AS has one at its border.
    pub routers: u8,
    /// The largest IP packet on all links and inside the ASes, in bytes.
    pub mtu: u16,
    /// Whether packets of many segments cross the network whole.
    pub offload: bool,
}

impl Course {
    /// Numbers of routers that are measured, and MTUs.
    pub const ROUTERS: [u8; 3] = [0, 2, 4];
    /// MTUs that are measured: of Ethernet, and of jumbo frames.
    pub const MTUS: [u16; 2] = [1500, 9000];

    /// The courses that show most in a few minutes: each differs from the first in one respect.
    pub const TELLING: [Self; 5] = [
        Self::new(2, 1500, true),
        Self::new(0, 1500, true),
        Self::new(4, 1500, true),
        Self::new(2, 9000, true),
        Self::new(2, 1500, false),
    ];

    /// A course.
    pub const fn new(routers: u8, mtu: u16, offload: bool) -> Self {
        Self {
            routers,
            mtu,
            offload,
        }
    }

    /// The number of paths between its hosts.
    pub fn paths(&self) -> u8 {
        match self.routers {
            0 => 1,
            _ => LINKS,
        }
    }

    /// The ASes of the sender and of the receiver.
    pub(crate) fn ends(&self) -> Result<(IsdAsn, IsdAsn), ExperimentError> {
        let last = FIRST_AS + self.routers.saturating_sub(1);
        Ok((isd_as(&name(FIRST_AS))?, isd_as(&name(last))?))
    }

    /// A chain of core ASes with one router each, without limits; eight links join the first two.
    pub(crate) fn network(&self) -> Result<Network, ExperimentError> {
        let mtu = self.mtu - Underlay::Ipv4.headers();
        let mut text = String::from("ASes:\n");
        // With a router, hosts find their own address.
        let count = self.routers.max(2);
        for number in FIRST_AS..FIRST_AS + count {
            text += &format!("  \"{}\": {{core: true, mtu: {mtu}}}\n", name(number));
        }
        text += "links:\n";
        let link = |a: String, b: String| {
            format!("  - {{a: \"{a}\", b: \"{b}\", linkAtoB: CORE, mtu: {mtu}}}\n")
        };
        for id in 1..=LINKS {
            let [a, b] = [FIRST_AS, FIRST_AS + 1].map(|number| format!("{}#{id}", name(number)));
            text += &link(a, b);
        }
        for number in FIRST_AS + 1..FIRST_AS + count - 1 {
            let far = format!("{}#1", name(number + 1));
            text += &link(format!("{}#{}", name(number), LINKS + 1), far);
        }
        // The second AS has the interfaces 1 to 8 towards the first.
        Network::parse(&text).map_err(ExperimentError::step)
    }

    /// Bytes of payload in the largest UDP datagram over IPv4.
    pub(crate) fn udp_payload(&self) -> u16 {
        self.mtu - Underlay::Ipv4.headers()
    }
}

fn name(number: u8) -> String {
    format!("1-ff00:0:{number}")
}

impl fmt::Display for Course {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let routers = match self.routers {
            0 => "no router".to_owned(),
            count => format!("{count} routers"),
        };
        let offload = match self.offload {
            true => "on",
            false => "off",
        };
        write!(f, "{routers}, MTU {}, offloads {offload}", self.mtu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_have_the_routers_and_the_mtu() {
        for course in Course::TELLING {
            let network = course.network().unwrap();
            let (from, to) = course.ends().unwrap();
            let between = |isd_as| {
                let at = network.ases.iter().position(|as_| as_.isd_as == isd_as);
                at.unwrap() as u8
            };
            let routers = match from == to {
                true => 0,
                false => between(to) - between(from) + 1,
            };
            assert_eq!(routers, course.routers, "{course}");
            let mtus = network.links.iter().map(|link| link.mtu);
            let mtus = mtus.chain(network.ases.iter().map(|as_| as_.mtu));
            for mtu in mtus {
                assert_eq!(mtu + 28, course.mtu);
            }
        }
    }

    #[test]
    fn courses_are_named_by_what_they_have() {
        let name = Course::new(0, 9000, false).to_string();
        assert_eq!(name, "no router, MTU 9000, offloads off");
    }
}
