//! What carries the packets of links between a lab and another machine.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use hawser_kernel::namespace::NetNsId;
use hawser_topology::IsdAsn;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;

use crate::Lab;

/// Largest UDP payload.
const MAX_PAYLOAD: usize = 65535;
/// Packets of a link that are carried in one direction before the other one is looked at.
const TURN: usize = 256;
/// Time between two looks whether the lab still has the AS.
const CHECK: Duration = Duration::from_secs(1);

/// The other machine, as its packets show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Peer {
    /// The only address that packets are taken from; `None` for any.
    allowed: Option<IpAddr>,
    /// Where the last packet that was taken came from, and packets are sent to.
    known: Option<SocketAddr>,
}

impl Peer {
    /// Whether a packet from `from` is taken; packets for the machine go there from then on, as its address
    /// may change, and so may the port that a translator of addresses gives it.
    fn admit(&mut self, from: SocketAddr) -> bool {
        let is_allowed = self.allowed.is_none_or(|ip| ip == from.ip().to_canonical());
        if is_allowed {
            self.known = Some(from);
        }
        is_allowed
    }
}

/// What a relay has carried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Relayed {
    /// Packets to the other machine.
    pub sent: u64,
    /// Packets from it.
    pub received: u64,
    /// Packets that were not carried: none is there to be sent to, it is another one, or the system refuses
    /// them.
    pub dropped: u64,
}

/// The reason why [`Relay::run`] returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RelayEnd {
    /// The caller stopped it.
    Stopped,
    /// The lab has ended, or no longer has the AS.
    Gone,
}

/// A link of an invited AS, between its namespace and the other machine.
#[derive(Debug)]
pub(super) struct Carried {
    /// Its interface at the invited AS.
    interface: u16,
    /// At the end of the link in the lab, connected to the other end.
    inner: UdpSocket,
    /// At the address that the other machine sends to.
    outer: UdpSocket,
    peer: Peer,
}

impl Carried {
    /// A link whose sockets are `inner` in the lab and `outer` on this machine. Packets are taken from
    /// `allowed`, or if that is `None` from any address.
    pub fn new(
        interface: u16,
        [inner, outer]: [UdpSocket; 2],
        allowed: Option<IpAddr>,
    ) -> io::Result<Self> {
        inner.set_nonblocking(true)?;
        outer.set_nonblocking(true)?;
        Ok(Self {
            interface,
            inner,
            outer,
            peer: Peer {
                allowed,
                known: None,
            },
        })
    }

    /// From the other machine to the lab.
    fn inward(&mut self, buffer: &mut [u8], relayed: &mut Relayed) {
        for _ in 0..TURN {
            let (length, from) = match self.outer.recv_from(buffer) {
                Ok(received) => received,
                Err(error) if is_over(&error) => return,
                Err(_) => continue,
            };
            let sent = self.peer.admit(from) && self.inner.send(&buffer[..length]).is_ok();
            match sent {
                true => relayed.received += 1,
                false => relayed.dropped += 1,
            }
        }
    }

    /// From the lab to the other machine.
    fn outward(&mut self, buffer: &mut [u8], relayed: &mut Relayed) {
        for _ in 0..TURN {
            let length = match self.inner.recv(buffer) {
                Ok(length) => length,
                Err(error) if is_over(&error) => return,
                // A router that is not there: what comes next may be a packet.
                Err(_) => continue,
            };
            let sent = self.peer.known.is_some_and(|peer| {
                let sent = self.outer.send_to(&buffer[..length], peer);
                sent.is_ok()
            });
            match sent {
                true => relayed.sent += 1,
                false => relayed.dropped += 1,
            }
        }
    }
}

/// Carries the packets of the links of an invited AS.
#[derive(Debug)]
pub struct Relay {
    lab: Lab,
    isd_as: IsdAsn,
    /// The namespace of the AS, of which this would be the last trace.
    namespace: Option<NetNsId>,
    links: Vec<Carried>,
    relayed: Relayed,
}

impl Relay {
    pub(super) fn new(lab: Lab, isd_as: IsdAsn, links: Vec<Carried>) -> Self {
        let mut relay = Self {
            lab,
            isd_as,
            namespace: None,
            links,
            relayed: Relayed::default(),
        };
        relay.namespace = relay.current();
        relay
    }

    /// Where the other machine sends to, by interfaces of the invited AS.
    ///
    /// # Errors
    /// When the system does not say it.
    pub fn local_addrs(&self) -> io::Result<BTreeMap<u16, SocketAddr>> {
        let links = self.links.iter();
        links
            .map(|link| Ok((link.interface, link.outer.local_addr()?)))
            .collect()
    }

    /// What was carried.
    pub fn relayed(&self) -> Relayed {
        self.relayed
    }

    /// Carries packets until `stop` is readable or closed, or the lab no longer has the AS, which is looked
    /// at once a second. Calls `joined` for each link over which the other machine is heard for the first
    /// time, with the interface of the invited AS.
    ///
    /// # Errors
    /// When the system does not let it wait for packets.
    pub fn run(
        &mut self,
        stop: BorrowedFd<'_>,
        mut joined: impl FnMut(u16, SocketAddr),
    ) -> io::Result<RelayEnd> {
        let mut buffer = vec![0; MAX_PAYLOAD];
        let mut check = Instant::now() + CHECK;
        loop {
            let left = check.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).unwrap_or_default();
            let sockets =
                (self.links.iter()).flat_map(|link| [link.inner.as_fd(), link.outer.as_fd()]);
            let fds = [stop].into_iter().chain(sockets);
            let mut fds: Vec<_> = fds
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
                .collect();
            match poll(&mut fds, Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if !fds[0].revents().is_empty() {
                return Ok(RelayEnd::Stopped);
            }
            for link in &mut self.links {
                let was_known = link.peer.known.is_some();
                link.inward(&mut buffer, &mut self.relayed);
                link.outward(&mut buffer, &mut self.relayed);
                if let (false, Some(peer)) = (was_known, link.peer.known) {
                    joined(link.interface, peer);
                }
            }
            if Instant::now() >= check {
                if self.namespace.is_none() || self.current() != self.namespace {
                    return Ok(RelayEnd::Gone);
                }
                check = Instant::now() + CHECK;
            }
        }
    }

    /// The namespace that the lab has for the AS now.
    fn current(&self) -> Option<NetNsId> {
        let state = self.lab.dir.read_state().ok()?;
        let at = state.find(self.isd_as)?;
        state.ases[at].net_ns.filter(|_| state.is_running())
    }
}

/// Whether no more packets are there.
fn is_over(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_peer() -> impl Strategy<Value = SocketAddr> {
        (0..4u8, 1..4u16).prop_map(|(ip, port)| SocketAddr::from(([192, 0, 2, ip], port)))
    }

    proptest! {
        #[test]
        fn packets_go_where_the_last_one_that_was_taken_came_from(
            allowed in prop::option::of(0..4u8),
            packets in prop::collection::vec(any_peer(), 0..20),
        ) {
            let allowed = allowed.map(|ip| IpAddr::from([192, 0, 2, ip]));
            let mut peer = Peer { allowed, known: None };
            let mut last = None;
            for from in packets {
                let is_admitted = peer.admit(from);
                prop_assert_eq!(is_admitted, allowed.is_none_or(|ip| ip == from.ip()));
                if is_admitted {
                    last = Some(from);
                }
                prop_assert_eq!(peer.known, last);
            }
        }
    }
}
