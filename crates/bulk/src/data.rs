//! Datagrams at work: one thread that sends and receives the content of all sessions of a host.
//!
//! Sessions run as tasks and tell the thread what to do by [`Command`]s; it answers with
//! [`DataEvent`]s. Ranges to send are read by a [`Reader`] beforehand, and ranges that have arrived
//! are handed to a [`Verifier`]. Only content that is sent before its range is loaded is read from
//! its file by the thread.
//!
//! From [`Data::start`] on, each turn of the thread carries out commands, takes packets in, sends
//! what pacing, windows, limits and credit allow, and measures ten times a second. Then it naps
//! while packets flow; otherwise it waits for packets, a command or its next deadline. It ends when
//! [`Data`] is dropped. After an error of its socket or a panic, it first reports
//! [`DataEvent::Ended`] to all sessions.
//!
//! A session is known here from [`Command::Send`] or [`Command::Receive`] until [`Command::End`],
//! whether or not anybody takes its events. A subflow that the peer dialed has no lane until its
//! first packet opens. Ranges in memory are bounded by the [`Gate`] of a source and the credit of a
//! sink. The queue of commands has no bound: a source gives one for each range when its sink is
//! ready, all others are few for each subflow and each range in memory.
//!
//! The thread owns its state and has no lock. While it takes the packets of one receive in, it has
//! the table of the lanes locked, and takes no other lock of this crate. Those of gates and limits
//! it takes one at a time.
//!
//! [`Reader`]: crate::reader::Reader
//! [`Verifier`]: crate::verify::Verifier

mod coupled;
mod incoming;
mod outgoing;
mod subflow;
mod worker;

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use std::{fmt, io, thread};

use hawser_endhost::lanes::{Lane, Lanes};
use hawser_endhost::socket::{Socket, XdpUse};
use hawser_endhost::{Headers, HeadersError, Path, ScionAddr};
use hawser_seal::{Cipher, SECRET};
use rustix::event::{EventfdFlags, eventfd};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use crate::algorithm::Start;
use crate::content::{Source, SourceError};
use crate::gate::{Gate, Loaded};
use crate::limit::Limit;
use crate::protocol::FORMAT;
use crate::queues::Queues;

pub(crate) use self::incoming::SLACK;

/// A session, as this host numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SessionKey(pub u64);

/// The id of a session on the wire.
pub(crate) use crate::protocol::SessionId;
/// A subflow, as this host numbers them.
pub(crate) use crate::protocol::SubflowKey;

/// What was measured of each subflow, and when.
pub(crate) type Measurements = (Vec<(SubflowKey, Measured)>, Instant);

/// The thread that works the data socket. Dropping it ends the thread.
pub(crate) struct Data {
    lanes: Lanes,
    commands: Sender<Command>,
    waker: Arc<Waker>,
}

/// What a session wants of the thread.
pub(crate) enum Command {
    /// Begins to send the content of a session, once it is known, within a limit if there is one.
    Send {
        session: SessionKey,
        credit: u64,
        gate: Arc<Gate>,
        limit: Option<Limit>,
        events: UnboundedSender<DataEvent>,
    },
    /// Sets the content to send.
    Offer(SessionKey, Arc<Source>),
    /// Sets the limit that the sink asks for, besides the one above.
    SinkLimit(SessionKey, Option<Limit>),
    /// Begins to receive the content of a session, of which the sink takes `credit` bytes before
    /// anything is written.
    Receive {
        session: SessionKey,
        credit: u64,
        /// Kept at the bytes that the session may hold.
        promised: Arc<AtomicU64>,
        events: UnboundedSender<DataEvent>,
    },
    /// Sets how much of the content is taken before anything is written, in bytes.
    Window(SessionKey, u64),
    /// Sets the size of the content that is received, and where complete ranges go.
    Content(SessionKey, u64, Queues),
    /// Adds a subflow.
    Add(SessionKey, SubflowKey, Box<NewSubflow>),
    /// Ends a subflow; what is in flight over it is sent over others.
    Remove(SessionKey, SubflowKey),
    /// Sends nothing new over a subflow, or does so again.
    Hold(SessionKey, SubflowKey, bool),
    /// Sends nothing new over a subflow, until what is in flight over it is acknowledged, or for some
    /// time; answered by [`DataEvent::Drained`]. A sink acknowledges for that time what still arrives.
    Drain(SessionKey, SubflowKey),
    /// Sets the time between acknowledgements of a subflow.
    AckInterval(SessionKey, SubflowKey, Duration),
    /// These ranges are to be sent.
    Want(SessionKey, Range<u64>),
    /// A range is not to be sent any more; answered by [`DataEvent::Unwanted`].
    Unwant(SessionKey, u64),
    /// A range was read.
    Loaded(SessionKey, Loaded),
    /// The sink has verified these ranges.
    Confirmed(SessionKey, u64, u64),
    /// A range was written: its buffer is free, and its bytes raise the credit.
    Written(SessionKey, Vec<u8>, u64),
    /// A range arrived and did not match: it is received again.
    Again(SessionKey, u64, Vec<u8>),
    /// Measures the subflows of a session now. The answer is dropped if the session has ended.
    Measure(SessionKey, oneshot::Sender<Measurements>),
    /// Ends a session.
    End(SessionKey),
    /// Ends the thread.
    Stop,
    #[cfg(test)]
    Panic,
    /// Asks how many sessions there are.
    #[cfg(test)]
    Count(oneshot::Sender<usize>),
}

/// A subflow that is added to a session.
pub(crate) struct NewSubflow {
    pub keys: Keys,
    /// The peer's address for datagrams.
    pub remote: ScionAddr,
    /// The lane of a subflow that this side dialed; the other side learns it from packets.
    pub lane: Option<Lane>,
    /// Bytes of the largest datagram that the path is announced to take, if this side dialed; 0 if it
    /// is unknown.
    pub datagram: usize,
    /// The round trip, if it was measured before.
    pub rtt: Option<Duration>,
    pub start: Start,
}

/// What the thread reports to a session.
#[derive(Debug)]
pub(crate) enum DataEvent {
    /// A packet arrived on a subflow for the first time: the path works in both directions.
    Up(SubflowKey),
    /// Nothing is acknowledged on a subflow any more.
    Stalled(SubflowKey),
    /// Something is acknowledged on it again.
    Recovered(SubflowKey),
    /// Nothing is waited for any more over a subflow that drains.
    Drained(SubflowKey),
    /// A subflow cannot be used.
    Failed(SubflowKey, String),
    /// The time that the peer is to leave between acknowledgements of a subflow.
    AckInterval(SubflowKey, Duration),
    /// Measurements, taken ten times a second, and when they were taken.
    Measured(Vec<(SubflowKey, Measured)>, Instant),
    /// Whether a range could be left out that is not to be sent any more.
    Unwanted(u64, bool),
    /// The content cannot be read.
    Unreadable(SourceError),
    /// The peer breaks the protocol.
    Broken(String),
    /// The thread has ended; nothing more is sent or received.
    Ended(String),
}

/// Measurements of a subflow.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Measured {
    /// Bytes of the content delivered: acknowledged at the source, arrived at the sink.
    pub delivered: u64,
    /// Bytes of packets sent and received, from the SCION/UDP payload on.
    pub sent: u64,
    pub received: u64,
    /// Packets sent, and those of them that count as lost; 0 at the sink.
    pub packets: u64,
    pub lost: u64,
    /// Packets received and dropped: forged, received before, or too old.
    pub rejected: u64,
    /// The smoothed round-trip time; `None` at the sink, or before the first acknowledgement.
    pub rtt: Option<Duration>,
    /// The pacing rate, in bytes per second; 0 at the sink.
    pub rate: f64,
    /// Whether there was something to send all the time, or to receive.
    pub usable: bool,
}

/// The keys of a subflow's datagrams.
#[derive(Clone)]
pub(crate) struct Keys {
    pub cipher: Cipher,
    /// What this side seals with, and what the peer seals with.
    pub here: [u8; SECRET],
    pub there: [u8; SECRET],
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

/// Ends the thread's wait.
#[derive(Debug)]
pub(crate) struct Waker {
    fd: OwnedFd,
    waiting: AtomicBool,
    /// Whether commands may be in the queue.
    pending: AtomicBool,
}

impl Waker {
    fn new() -> io::Result<Self> {
        Ok(Self {
            fd: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            waiting: AtomicBool::new(false),
            pending: AtomicBool::new(false),
        })
    }

    fn wake(&self) {
        if self.waiting.swap(false, Ordering::SeqCst) {
            // It fails only when it was written to very often and not read.
            let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
        }
    }
}

/// Gives commands to the thread.
#[derive(Clone)]
pub(crate) struct Commands {
    sender: Sender<Command>,
    waker: Arc<Waker>,
}

impl Commands {
    /// Gives `command` to the thread. If the thread has ended, it has reported that to every session.
    pub(crate) fn give(&self, command: Command) {
        let _ = self.sender.send(command);
        self.waker.pending.store(true, Ordering::SeqCst);
        self.waker.wake();
    }
}

impl Data {
    /// Starts the thread on `socket`. `failed` is called if it ends though it was not told to, after
    /// it has reported that to every session: no later session works. Must be called inside a tokio
    /// runtime.
    pub(crate) fn start(
        socket: Socket,
        failed: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let (lanes, receiver) = Lanes::new(socket, FORMAT);
        let (sender, commands): (_, Receiver<Command>) = channel();
        let waker = Arc::new(Waker::new()?);
        let worker = worker::Worker::new(lanes.clone(), receiver, commands, Arc::clone(&waker));
        let runtime = tokio::runtime::Handle::current();
        thread::Builder::new().name("data".into()).spawn(move || {
            let _runtime = runtime.enter();
            let mut failed = OnDrop(Some(failed));
            if worker.run() {
                failed.0 = None;
            }
        })?;
        Ok(Self {
            lanes,
            commands: sender,
            waker,
        })
    }

    /// The address of the data socket.
    pub(crate) fn local_addr(&self) -> ScionAddr {
        self.lanes.socket().local_addr()
    }

    /// How the data socket uses AF_XDP, if it does.
    pub(crate) fn xdp(&self) -> Option<XdpUse> {
        self.lanes.socket().xdp()
    }

    /// Opens a lane for datagrams.
    pub(crate) fn open(&self, remote: ScionAddr, path: Path) -> Result<Lane, HeadersError> {
        self.lanes.open(remote, path)
    }

    /// The largest datagram to `remote` over `path`, in bytes.
    pub(crate) fn largest(&self, remote: ScionAddr, path: &Path) -> Result<u16, HeadersError> {
        let headers = Headers::new(self.local_addr(), remote, path)?;
        Ok(headers.max_payload(path.mtu()))
    }

    pub(crate) fn commands(&self) -> Commands {
        Commands {
            sender: self.commands.clone(),
            waker: Arc::clone(&self.waker),
        }
    }
}

/// Calls a function when it is dropped, also in a panic.
struct OnDrop<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            call();
        }
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        self.commands().give(Command::Stop);
    }
}

/// A thread that does not run: commands wait.
#[cfg(test)]
pub(crate) struct Waiting;

#[cfg(test)]
impl Waiting {
    /// What gives commands, and those that were given.
    pub(crate) fn commands() -> (Commands, Receiver<Command>) {
        let (sender, commands) = channel();
        let waker = Arc::new(Waker::new().unwrap());
        (Commands { sender, waker }, commands)
    }
}

#[cfg(test)]
mod tests;
