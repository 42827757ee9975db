//! The emulator of an AS: the process that gives plain IP the delay, jitter and loss of the links.
//!
//! A lab diverts what a link's device is to send to another pair of devices ([`crate::build`]),
//! except SCION's underlay, for which the border routers emulate the link. The emulator receives it
//! there with a packet socket, and sends it over the link's device when it is due, before the
//! device's limit. For IP it is not there: it is no hop, and changes no packet.
//!
//! A process of its own, so that plain IP does not depend on a border router. While it does not run,
//! plain IP is lost, rather than passed without delay.

mod frame;
mod link;
mod live;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use hawser_kernel::memory;
use hawser_kernel::packet_socket::{Frames, Sender};
use hawser_kernel::rpc::{self, Acceptor};
use hawser_topology::{AsDir, LinkState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::net::netdevice;

use self::link::Link;
pub use self::live::PlainIp;
pub(crate) use self::live::{Reply, Request, call};
use crate::plan::{MARK, device, held_device};

/// Size of the send buffer in bytes, in which packets count until the link's limit has passed them:
/// more than the queue of the limit holds.
const BUFFER: usize = 64 << 20;

/// Longest wait for a request, during which packets wait too.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(100);

/// Runs the emulator of the AS in `dir` in the calling thread's network namespace, until the process
/// is ended.
///
/// The program that [`Options::program`] names must call this when run as `internal emulator DIR`.
///
/// # Errors
/// When the files of the AS cannot be read, its devices are missing, or a socket fails.
///
/// [`Options::program`]: crate::Options::program
pub fn emulate(dir: &AsDir) -> io::Result<Infallible> {
    // Packets are due to the microsecond.
    rustix::thread::set_current_timer_slack(Some(NonZeroU64::MIN))?;
    let mut element = Element {
        links: BTreeMap::new(),
        sender: Sender::open(MARK, BUFFER)?,
        frames: Frames::default(),
    };
    for (id, state) in dir.links().map_err(io::Error::other)? {
        element.set_link(id, &state)?;
    }
    let (listener, _file) = rpc::listen(&dir.emulator_socket())?;
    let mut acceptor = Acceptor::new(listener);
    loop {
        element.wait(&acceptor)?;
        element.carry()?;
        match acceptor.accept(Instant::now()) {
            Ok(Some(stream)) => {
                if let Err(error) = element.converse(&stream) {
                    tracing::debug!("the connection of a command broke: {error}");
                }
            }
            Ok(None) => {}
            Err(error) => tracing::warn!("a command cannot be accepted: {error}"),
        }
    }
}

struct Element {
    /// The links that have, or once had, delay, jitter or loss.
    links: BTreeMap<u16, Link>,
    sender: Sender,
    frames: Frames,
}

impl Element {
    fn set_link(&mut self, id: u16, state: &LinkState) -> io::Result<()> {
        if let Some(link) = self.links.get_mut(&id) {
            link.set(state);
            return Ok(());
        }
        if !state.shape.is_emulated() {
            return Ok(());
        }
        let index = netdevice::name_to_index(&self.sender, &device(id))?;
        let link = Link::open(&held_device(id), index, state, fastrand::u64(..))?;
        self.links.insert(id, link);
        Ok(())
    }

    /// Waits until packets arrive or are due, or a command connects.
    fn wait(&self, acceptor: &Acceptor) -> io::Result<()> {
        let now = Instant::now();
        let listener = acceptor.to_poll(now);
        let listener = listener.map(|listener| PollFd::new(listener, PollFlags::IN));
        let mut fds: Vec<PollFd<'_>> = listener.into_iter().collect();
        let links = self.links.values();
        fds.extend(
            links.map(|link| PollFd::from_borrowed_fd(link.receiver().as_fd(), PollFlags::IN)),
        );
        let due = self.links.values().filter_map(Link::next_due);
        let due = due.chain(acceptor.next_due(now)).min();
        let timeout = due.map(|due| {
            let left = due.saturating_duration_since(Instant::now());
            Timespec::try_from(left).unwrap_or_default()
        });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Receives what has arrived, and sends what is due.
    fn carry(&mut self) -> io::Result<()> {
        let mut drained = false;
        for link in self.links.values_mut() {
            link.receive(&mut self.frames, &self.sender)?;
            link.send_due(Instant::now(), &self.sender);
            drained |= link.take_drained();
        }
        if drained {
            memory::release();
        }
        Ok(())
    }

    fn converse(&mut self, stream: &UnixStream) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
        stream.set_write_timeout(Some(REQUEST_TIMEOUT))?;
        let (request, _) = rpc::receive(stream)?;
        let reply = self.answer(request);
        let refused = |error: io::Error| Reply::Error {
            message: error.to_string(),
        };
        rpc::send(stream, &reply.unwrap_or_else(refused), &[])
    }

    fn answer(&mut self, request: Request) -> io::Result<Reply> {
        Ok(match request {
            Request::SetLink { id, state } => {
                self.set_link(id, &state)?;
                Reply::Done
            }
            Request::RemoveLink { id } => {
                self.links.remove(&id);
                Reply::Done
            }
            Request::Counters => {
                let links = self.links.iter_mut();
                let counters = links.map(|(id, link)| Ok((*id, link.counters()?)));
                Reply::Counters(counters.collect::<io::Result<_>>()?)
            }
        })
    }
}
