//! A relay for packets: sends their datagrams and echo requests from sockets of its own, and returns
//! the answers as packets.

mod socket;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};
use std::{cell::RefCell, io};

use rustix::io::Errno;
use tokio::net::UdpSocket;
use tokio::task::AbortHandle;

use crate::lock::lock;
use crate::packets::{
    Datagram, Echo, Ends, Fragments, Problem, Received, UDP, error, icmp_protocol, write,
};
use crate::served::{Served, find, is_own};

/// How long a flow without packets is kept: at least two minutes for UDP (RFC 4787, 4.3), one for ICMP
/// (RFC 5508, 3.2).
const FLOW_TIMEOUT: Duration = Duration::from_secs(180);
/// Most flows; beyond them the one that was used longest ago ends.
const FLOWS: usize = 1024;
/// Answers that are taken before they are sent.
const ANSWERS_PER_ROUND: usize = 16;

thread_local! {
    /// Any datagram fits; belongs to a thread, so that a flow at rest needs none.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; 64 << 10]);
}

/// Where packets may go.
pub(crate) enum Rule {
    /// To what this host serves.
    Served(Arc<Served>),
    /// Anywhere.
    Any,
}

/// Where answers go.
pub(crate) trait Replies: Send + Sync {
    /// Bytes of the largest packet.
    fn largest(&self) -> usize;
    /// Sends packets.
    fn send(&self, packets: &[Vec<u8>]);
    /// Counts a packet that could not be sent to where it goes.
    fn on_unsent(&self);
}

/// The relay of one session. Its flows end with it.
pub(crate) struct Relay {
    rule: Rule,
    replies: Box<dyn Replies>,
    flows: Mutex<HashMap<Name, Flow>>,
    fragments: Mutex<Fragments>,
    began: Instant,
    /// Numbers packets, for their fragments.
    next_id: AtomicU32,
}

/// What tells flows apart. For echo requests the port of the source is their number, and that of the
/// destination is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Name {
    kind: FlowProtocol,
    source: SocketAddr,
    destination: SocketAddr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum FlowProtocol {
    Udp,
    Echo,
}

/// A socket, and the task that waits for answers.
struct Flow {
    socket: Arc<UdpSocket>,
    /// Milliseconds since the relay began.
    used: Arc<AtomicU64>,
    task: AbortHandle,
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Name {
    fn ends(&self) -> Ends {
        Ends {
            source: self.source.ip(),
            destination: self.destination.ip(),
        }
    }

    /// The packet's payload for bytes that the socket received, and its protocol.
    fn answer(&self, bytes: &[u8]) -> Option<(u8, Vec<u8>)> {
        let ends = self.ends().reversed();
        match self.kind {
            FlowProtocol::Udp => {
                let datagram = Datagram {
                    source: self.destination.port(),
                    destination: self.source.port(),
                    payload: bytes,
                };
                Some((UDP, datagram.encode(ends)?))
            }
            FlowProtocol::Echo => {
                // The kernel has checked it, by addresses of its own, and given it another number.
                let reply = Echo {
                    is_request: false,
                    id: self.source.port(),
                    rest: bytes.get(6..)?,
                };
                Some((icmp_protocol(ends), reply.encode(ends)))
            }
        }
    }

    /// A packet as those of the flow are, for an error about them.
    fn sample(&self) -> Option<Vec<u8>> {
        let datagram = Datagram {
            source: self.source.port(),
            destination: self.destination.port(),
            payload: &[],
        };
        let mut sample = None;
        let payload = datagram.encode(self.ends())?;
        write(self.ends(), UDP, &payload, usize::MAX, 0, |packet| {
            sample = Some(packet.to_vec());
        });
        sample
    }
}

impl Relay {
    pub(crate) fn new(rule: Rule, replies: Box<dyn Replies>) -> Arc<Self> {
        Arc::new(Self {
            rule,
            replies,
            flows: Mutex::default(),
            fragments: Mutex::default(),
            began: Instant::now(),
            next_id: AtomicU32::new(fastrand::u32(..)),
        })
    }

    /// Takes a packet. Must be called inside a tokio runtime.
    pub(crate) fn take(self: &Arc<Self>, packet: &[u8]) {
        let Some(received) = Received::parse(packet) else {
            return;
        };
        let whole;
        let payload = match received.fragment {
            None => received.payload,
            Some(_) => {
                let now = self.began.elapsed();
                let Some(complete) = lock(&self.fragments).add(&received, now) else {
                    return;
                };
                whole = complete;
                &whole
            }
        };
        let ends = received.ends;
        if received.protocol == UDP {
            if let Some(datagram) = Datagram::parse(ends, payload) {
                self.on_datagram(ends, &datagram, packet);
            }
        } else if received.protocol == icmp_protocol(ends)
            && let Some(echo) = Echo::parse(ends, payload).filter(|echo| echo.is_request)
        {
            self.on_echo(ends, &echo, packet);
        }
    }

    fn on_datagram(self: &Arc<Self>, ends: Ends, datagram: &Datagram<'_>, packet: &[u8]) {
        let name = Name {
            kind: FlowProtocol::Udp,
            source: SocketAddr::new(ends.source, datagram.source),
            destination: SocketAddr::new(ends.destination, datagram.destination),
        };
        let server = || match &self.rule {
            Rule::Any => Some(name.destination),
            Rule::Served(served) => find(served, name.destination).map(|(server, _)| server),
        };
        let socket = match self.known(&name) {
            Some(socket) => socket,
            None => match server().map(socket::udp) {
                Some(Ok(socket)) => self.add(name, socket),
                Some(Err(error)) => {
                    tracing::debug!(%error, "cannot relay to {}", name.destination);
                    self.replies.on_unsent();
                    return self.refuse(Problem::Host, packet);
                }
                None => return self.refuse(Problem::Port, packet),
            },
        };
        if let Err(error) = socket::send(&socket, datagram.payload) {
            self.on_error(error, packet, || {
                socket::mtu(&socket, name.destination.ip())
            });
        }
    }

    fn on_echo(self: &Arc<Self>, ends: Ends, echo: &Echo<'_>, packet: &[u8]) {
        match self.echoes(ends.destination) {
            Echoes::None => self.refuse(Problem::Host, packet),
            Echoes::Own => {
                let ends = ends.reversed();
                let reply = Echo {
                    is_request: false,
                    ..*echo
                };
                self.reply(ends, icmp_protocol(ends), &reply.encode(ends));
            }
            Echoes::Host => {
                let name = Name {
                    kind: FlowProtocol::Echo,
                    source: SocketAddr::new(ends.source, echo.id),
                    destination: SocketAddr::new(ends.destination, 0),
                };
                let socket = match self.known(&name) {
                    Some(socket) => socket,
                    None => match socket::ping(ends.destination) {
                        Ok(socket) => self.add(name, socket),
                        Err(error) => {
                            tracing::warn!("cannot ping {}: {error}", ends.destination);
                            return self.refuse(Problem::Host, packet);
                        }
                    },
                };
                if let Err(error) = socket::send(&socket, &echo.encode(ends)) {
                    self.on_error(error, packet, || socket::mtu(&socket, ends.destination));
                }
            }
        }
    }

    /// Where an echo request to `destination` goes.
    fn echoes(&self, destination: IpAddr) -> Echoes {
        let Rule::Served(served) = &self.rule else {
            return Echoes::Host;
        };
        let mut networks = served.networks.iter();
        let is_behind = networks.any(|network| network.contains(&destination));
        let serves = is_behind || served.all || !served.ports.is_empty();
        match serves {
            true if is_behind && !is_own(destination) => Echoes::Host,
            true => Echoes::Own,
            false => Echoes::None,
        }
    }

    /// The socket of a flow, which is used now.
    fn known(&self, name: &Name) -> Option<Arc<UdpSocket>> {
        let flows = lock(&self.flows);
        let flow = flows.get(name)?;
        flow.used.store(self.now(), Ordering::Relaxed);
        Some(Arc::clone(&flow.socket))
    }

    /// Adds a flow.
    fn add(self: &Arc<Self>, name: Name, socket: UdpSocket) -> Arc<UdpSocket> {
        let socket = Arc::new(socket);
        let used = Arc::new(AtomicU64::new(self.now()));
        let relay = Arc::downgrade(self);
        let task = tokio::spawn(wait(relay, name, Arc::clone(&socket), Arc::clone(&used)));
        let flow = Flow {
            socket: Arc::clone(&socket),
            used,
            task: task.abort_handle(),
        };
        let mut flows = lock(&self.flows);
        if flows.len() >= FLOWS {
            let last_use = |flow: &Flow| flow.used.load(Ordering::Relaxed);
            let oldest = flows.iter().min_by_key(|(_, flow)| last_use(flow));
            if let Some(oldest) = oldest.map(|(name, _)| *name) {
                flows.remove(&oldest);
            }
        }
        flows.insert(name, flow);
        socket
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Sends what `socket` has received.
    fn return_all(&self, name: &Name, socket: &UdpSocket) -> io::Result<()> {
        let mut packets = Vec::new();
        let mut result = Ok(());
        let largest = self.replies.largest();
        BUFFER.with_borrow_mut(|buffer| {
            for _ in 0..ANSWERS_PER_ROUND {
                let length = match socket::receive(socket, buffer) {
                    Ok(length) => length,
                    Err(error) => {
                        result = Err(error);
                        return;
                    }
                };
                if let Some((protocol, payload)) = name.answer(&buffer[..length]) {
                    let ends = name.ends().reversed();
                    self.cut(ends, protocol, &payload, largest, &mut packets);
                }
            }
        });
        self.replies.send(&packets);
        result
    }

    fn cut(&self, ends: Ends, protocol: u8, payload: &[u8], largest: usize, to: &mut Vec<Vec<u8>>) {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        write(ends, protocol, payload, largest, id, |packet| {
            to.push(packet.to_vec());
        });
    }

    fn reply(&self, ends: Ends, protocol: u8, payload: &[u8]) {
        let mut packets = Vec::new();
        let largest = self.replies.largest();
        self.cut(ends, protocol, payload, largest, &mut packets);
        self.replies.send(&packets);
    }

    /// Counts a packet that was not sent, or not delivered, and informs its sender where there is a
    /// message for the reason. `mtu` is the largest packet that the path behind this host takes.
    fn on_error(&self, error: Errno, packet: &[u8], mtu: impl FnOnce() -> Option<u16>) {
        if error != Errno::CONNREFUSED {
            self.replies.on_unsent();
        }
        let may_be_cut = || Received::parse(packet).is_none_or(|received| received.may_be_cut);
        let problem = match error {
            Errno::CONNREFUSED => Some(Problem::Port),
            Errno::HOSTUNREACH | Errno::HOSTDOWN => Some(Problem::Host),
            Errno::NETUNREACH | Errno::NETDOWN => Some(Problem::NoRoute),
            // The kernel cuts the next ones.
            Errno::MSGSIZE if may_be_cut() => None,
            Errno::MSGSIZE => mtu().map(Problem::TooLarge),
            // Such as a full buffer: it is lost, as on any path.
            _ => None,
        };
        if let Some(problem) = problem {
            self.refuse(problem, packet);
        }
    }

    /// Informs the sender of `packet`.
    fn refuse(&self, problem: Problem, packet: &[u8]) {
        if let Some(packet) = error(problem, packet) {
            self.replies.send(&[packet]);
        }
    }
}

/// The host that answers echo requests.
enum Echoes {
    /// Nobody.
    None,
    /// This host.
    Own,
    /// The host behind it.
    Host,
}

/// Returns answers until the flow is not used any more.
async fn wait(relay: Weak<Relay>, name: Name, socket: Arc<UdpSocket>, used: Arc<AtomicU64>) {
    loop {
        let readable = tokio::time::timeout(FLOW_TIMEOUT, socket.ready(socket::ARRIVED)).await;
        let Some(relay) = relay.upgrade() else {
            return;
        };
        let last = Duration::from_millis(used.load(Ordering::Relaxed));
        match readable {
            // Answers count as use: RFC 4787 allows that.
            Ok(Ok(_)) => used.store(relay.now(), Ordering::Relaxed),
            Err(_) if relay.began.elapsed() < last + FLOW_TIMEOUT => continue,
            _ => {
                lock(&relay.flows).remove(&name);
                return;
            }
        }
        if let Err(error) = relay.return_all(&name, &socket)
            && error.kind() != io::ErrorKind::WouldBlock
        {
            // ICMP has reported it, about an earlier packet.
            let error = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            let sample = name.sample().filter(|_| name.kind == FlowProtocol::Udp);
            relay.on_error(error, &sample.unwrap_or_default(), || None);
        }
    }
}

#[cfg(test)]
mod tests;
