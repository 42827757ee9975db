//! From the device for captured packets to sessions.

use std::collections::HashMap;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use hawser_tun::{Queue, READ_BUFFER};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::node::Node;
use crate::address::Block;
use crate::ended::Watcher;
use crate::packets::{Problem, Received, TCP, error, reset};
use crate::plane::lane::{LaneTable, SealedLane};
use crate::plane::packets::{Relay, Rule, ToPrograms};

/// Packets that are read before lanes are flushed.
const PACKETS_PER_ROUND: usize = 32;
/// Most packets that wait for a session with the host behind their destination.
const MAX_WAITING: usize = 16;
/// Most destinations that are remembered.
const DESTINATIONS: usize = 4096;
/// How long packets to a host that cannot be reached are refused, before another attempt.
const REFUSE_TIME: Duration = Duration::from_secs(1);

/// Which packets come from the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Captured {
    /// Packets of all programs to what is mapped.
    Mapped,
    /// Packets of other programs than those whose connections are captured: they are refused, as if the
    /// device was not there.
    Others,
    /// All packets of programs that have no other connection: what is not mapped is relayed over IP.
    All,
}

/// Asks for the session with the host behind a destination: `None` if it is not mapped.
pub(crate) struct Find {
    pub destination: IpAddr,
    pub answer: oneshot::Sender<Option<Result<Block, String>>>,
}

/// What is known of a destination.
enum Known {
    /// Packets wait for the answer.
    Asked(Vec<Vec<u8>>),
    Host(Block),
    Unmapped,
    Refused(Instant),
}

/// The thread that reads programs' packets. Dropping this ends it.
pub(crate) struct Capture(Arc<Wake>);

/// Decides where packets go.
struct Router {
    node: Node,
    queue: Arc<Queue>,
    captured: Captured,
    /// For what is not mapped.
    relay: Arc<Relay>,
    known: HashMap<IpAddr, Known>,
    /// One request and one answer for each destination in `known`.
    find: mpsc::UnboundedSender<Find>,
    found: mpsc::UnboundedSender<Found>,
    /// Lanes to be flushed.
    touched: Vec<Arc<SealedLane>>,
    wake: Arc<Wake>,
}

/// Wakes the thread.
struct Wake {
    /// Readable once there is something to do.
    event: OwnedFd,
    stops: AtomicBool,
    has_new_map: AtomicBool,
}

impl Wake {
    fn wake(&self) {
        // It fails only when it was written to very often.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }
}

/// The answer to [`Find`].
type Found = (IpAddr, Option<Result<Block, String>>);

impl Capture {
    /// Starts the thread. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn start(
        node: Node,
        queue: Arc<Queue>,
        captured: Captured,
        find: mpsc::UnboundedSender<Find>,
        watcher: Watcher,
    ) -> io::Result<Self> {
        let wake = Arc::new(Wake {
            event: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            stops: AtomicBool::new(false),
            has_new_map: AtomicBool::new(false),
        });
        // One for each question, of which there is one at a time for each destination.
        let (found, answers) = mpsc::unbounded_channel();
        let relay = Relay::new(Rule::Any, Box::new(ToPrograms(Arc::clone(&queue))));
        let router = Router {
            node,
            queue,
            captured,
            relay,
            known: HashMap::new(),
            find,
            found,
            touched: Vec::new(),
            wake: Arc::clone(&wake),
        };
        let runtime = Handle::current();
        thread::Builder::new()
            .name("shim-packets".into())
            .spawn(move || {
                let _runtime = runtime.enter();
                watcher.run("read captured packets", || router.work(answers));
            })?;
        Ok(Self(wake))
    }

    /// Has the thread look anew where packets go.
    pub(crate) fn on_new_map(&self) {
        self.0.has_new_map.store(true, Ordering::Release);
        self.0.wake();
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.0.stops.store(true, Ordering::Release);
        self.0.wake();
    }
}

impl Router {
    /// Works until it is stopped, or the device is gone.
    fn work(mut self, mut answers: mpsc::UnboundedReceiver<Found>) -> io::Result<()> {
        let mut buffer = vec![0; READ_BUFFER];
        let mut scratch = Vec::new();
        loop {
            match self.read(&mut buffer, &mut scratch) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.flush();
                    self.wait()?;
                }
                read => read?,
            }
            if self.wake.stops.load(Ordering::Acquire) {
                return Ok(());
            }
            if self.wake.has_new_map.swap(false, Ordering::AcqRel) {
                self.forget();
            }
            while let Ok((destination, found)) = answers.try_recv() {
                self.on_found(destination, found);
            }
            self.flush();
        }
    }

    /// Blocks until there is a packet, or something else to do.
    fn wait(&self) -> io::Result<()> {
        let mut fds = [
            PollFd::from_borrowed_fd(self.queue.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.wake.event.as_fd(), PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut count = [0; 8];
        match rustix::io::read(&self.wake.event, &mut count) {
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads some packets.
    fn read(&mut self, buffer: &mut [u8], scratch: &mut Vec<u8>) -> io::Result<()> {
        let queue = Arc::clone(&self.queue);
        for _ in 0..PACKETS_PER_ROUND {
            let packet = match queue.try_read(buffer) {
                Ok(packet) => packet,
                // Not an IP packet: nothing this host's own kernel sends.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => continue,
                Err(error) => return Err(error),
            };
            for packet in packet.datagrams(scratch) {
                self.take(packet);
            }
        }
        Ok(())
    }

    fn take(&mut self, packet: &[u8]) {
        let Some(received) = Received::parse(packet) else {
            return;
        };
        let to = received.ends.destination;
        // Such as the kernel's own search for routers.
        if to.is_multicast() || to.is_unspecified() {
            return;
        }
        if self.captured == Captured::Others {
            return self.refuse(Problem::NoRoute, packet);
        }
        if received.protocol == TCP {
            // A connection that is older than its capture.
            return self.hand_back(reset(&received));
        }
        match self.known.get_mut(&to) {
            Some(Known::Host(peer)) => {
                let peer = *peer;
                match self.node.plane().client_session(peer) {
                    Some(session) => self.send(&session, &received, packet),
                    None => self.ask(to, packet),
                }
            }
            Some(Known::Asked(waiting)) => {
                if waiting.len() < MAX_WAITING {
                    waiting.push(packet.to_vec());
                }
            }
            Some(Known::Unmapped) => match self.captured {
                Captured::All => self.relay.take(packet),
                _ => self.refuse(Problem::NoRoute, packet),
            },
            Some(Known::Refused(since)) if since.elapsed() < REFUSE_TIME => {
                self.refuse(Problem::Host, packet);
            }
            Some(Known::Refused(_)) | None => self.ask(to, packet),
        }
    }

    /// Sends a packet over the best path.
    fn send(&mut self, session: &LaneTable, received: &Received<'_>, packet: &[u8]) {
        let Some(lane) = session.best() else {
            return;
        };
        session.contacts.add(received.ends);
        let largest = lane.largest_packet();
        let is_whole = received.ends.destination.is_ipv4() && received.fragment.is_none();
        // What nobody may cut to fit has its sender learn of the limit. With IPv6 that could not be below
        // 1280 bytes (RFC 8200, 5), which larger packets do not have here.
        if is_whole && !received.may_be_cut && packet.len() > largest {
            let largest = u16::try_from(largest).unwrap_or(u16::MAX);
            return self.refuse(Problem::TooLarge(largest), packet);
        }
        lane.push_packet(packet);
        if self.touched.iter().all(|known| known.key != lane.key) {
            self.touched.push(lane);
        }
    }

    /// Asks for the session with the host behind a destination; the packet waits.
    fn ask(&mut self, destination: IpAddr, packet: &[u8]) {
        if self.known.len() >= DESTINATIONS {
            self.forget();
        }
        // All of them wait for an answer.
        if self.known.len() >= DESTINATIONS {
            return;
        }
        let waiting = Known::Asked(vec![packet.to_vec()]);
        self.known.insert(destination, waiting);
        let (answer, answered) = oneshot::channel();
        // If the carrier ends, so does this.
        let _ = self.find.send(Find {
            destination,
            answer,
        });
        let (found, wake) = (self.found.clone(), Arc::clone(&self.wake));
        tokio::spawn(async move {
            if let Ok(answer) = answered.await {
                let _ = found.send((destination, answer));
                wake.wake();
            }
        });
    }

    fn on_found(&mut self, destination: IpAddr, found: Option<Result<Block, String>>) {
        let Some(Known::Asked(waiting)) = self.known.remove(&destination) else {
            return;
        };
        let known = match found {
            None => Known::Unmapped,
            Some(Ok(peer)) => Known::Host(peer),
            Some(Err(reason)) => {
                tracing::warn!("packets to {destination} are refused: {reason}");
                Known::Refused(Instant::now())
            }
        };
        self.known.insert(destination, known);
        for packet in waiting {
            self.take(&packet);
        }
    }

    /// Forgets where packets go, as the map has changed.
    fn forget(&mut self) {
        self.known
            .retain(|_, known| matches!(known, Known::Asked(_)));
    }

    fn refuse(&self, problem: Problem, packet: &[u8]) {
        self.hand_back(error(problem, packet));
    }

    /// Hands an answer to the kernel, for the program.
    fn hand_back(&self, packet: Option<Vec<u8>>) {
        let written = packet.map(|packet| self.queue.try_write_datagram(&packet));
        if let Some(Err(error)) = written {
            tracing::debug!(%error, "the kernel does not take a packet");
        }
    }

    fn flush(&mut self) {
        self.touched.drain(..).for_each(|lane| lane.flush());
    }
}
