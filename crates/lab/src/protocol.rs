//! What commands ask of a lab's supervisor.
//!
//! Over the Unix stream socket `lab.sock`, one JSON value a line each way. To [`Request::Enter`]
//! the namespaces come along as file descriptors (`SCM_RIGHTS` of unix(7)), which needs no `/proc`
//! and cannot hit the wrong process.

use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use hawser_limit::{Counters as LimitCounters, LinkLimit};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde::{Deserialize, Serialize};

use crate::dir::Service;

/// Longest line either way, in bytes: the counters of thousands of links.
const MAX_LINE: usize = 4 << 20;
/// Namespaces sent along with one reply: network and user.
const MAX_FDS: usize = 2;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// The namespaces of the AS at that place in the network.
    Enter { owner: usize },
    /// The limits of all links, with counters.
    Limits,
    /// Another limit on both ends of the link at that place in the network, and its devices up or
    /// down.
    SetLink {
        link: usize,
        limit: Option<Limit>,
        up: bool,
    },
    /// How the services have fared that have ended at least once.
    Services,
    /// End a service of the AS at that place in the network, and start it again. Answered once it
    /// is ready.
    Restart { owner: usize, service: Service },
    /// End all processes of the lab, then the supervisor itself.
    Stop,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The network namespace comes along, and the user namespace if the lab has one of its own.
    Entered,
    /// For each link, in the network's order, what is at its two ends.
    Limits(Vec<[Option<LimitState>; 2]>),
    Services(Vec<History>),
    Done,
    Error {
        message: String,
    },
}

/// A limit as it travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limit {
    /// In bit/s.
    pub rate: u64,
    pub queue_us: u64,
}

impl From<Limit> for LinkLimit {
    fn from(limit: Limit) -> Self {
        Self {
            rate: limit.rate,
            queue: Duration::from_micros(limit.queue_us),
        }
    }
}

/// What the kernel says of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitState {
    /// The limit in bit/s of Ethernet frames.
    pub rate: u64,
    /// Bytes of frames sent.
    pub bytes: u64,
    /// Frames sent; one of segmentation offload counts as one.
    pub packets: u64,
    /// Frames dropped at a full queue.
    pub drops: u64,
    /// Bytes of frames waiting.
    pub backlog: u64,
}

impl LimitState {
    pub(crate) fn new(limit: LinkLimit, counters: LimitCounters) -> Self {
        Self {
            rate: limit.rate,
            bytes: counters.bytes,
            packets: counters.packets,
            drops: counters.drops.into(),
            backlog: counters.backlog.into(),
        }
    }
}

/// How a service has fared that has ended by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct History {
    pub owner: usize,
    pub service: Service,
    /// How it ended last: `exit status: 1`, `signal: 9 (SIGKILL)`.
    pub ended: String,
    /// How often it was started again.
    pub restarts: u32,
    /// Time until it is started again; None while it runs.
    pub restart_in: Option<Duration>,
}

/// The supervisor cannot be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SupervisorError {
    /// It is not there.
    #[error(
        "the lab's supervisor does not answer ({0}): bring the lab up again with `hawser lab up`, or clear up with `hawser lab down --name NAME`"
    )]
    Gone(io::Error),
    /// It could not do it.
    #[error("{0}")]
    Refused(String),
    /// It said something else than was asked.
    #[error("the lab's supervisor gave a wrong answer: is it of another version of hawser?")]
    Confused,
}

/// Asks the supervisor at `socket`, and waits for its reply up to `patience`.
pub(crate) fn call(
    socket: &Path,
    request: &Request,
    patience: Duration,
) -> Result<(Reply, Vec<OwnedFd>), SupervisorError> {
    let ask = || -> io::Result<_> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        send(&mut stream, request, &[])?;
        receive(&stream)
    };
    match ask().map_err(SupervisorError::Gone)? {
        (Reply::Error { message }, _) => Err(SupervisorError::Refused(message)),
        reply => Ok(reply),
    }
}

/// Sends one line, file descriptors along with its beginning.
pub(crate) fn send<T: Serialize>(
    stream: &mut UnixStream,
    message: &T,
    fds: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut along = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !along.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::other(
            "too many file descriptors for one message",
        ));
    }
    let parts = [IoSlice::new(&line)];
    let sent = rustix::io::retry_on_intr(|| {
        rustix::net::sendmsg(&*stream, &parts, &mut along, SendFlags::NOSIGNAL)
    })?;
    stream.write_all(&line[sent..])
}

/// Receives one line, and the file descriptors that came along.
pub(crate) fn receive<T: for<'de> Deserialize<'de>>(
    stream: &UnixStream,
) -> io::Result<(T, Vec<OwnedFd>)> {
    let mut line = Vec::new();
    let mut fds = Vec::new();
    let mut chunk = [0; 4096];
    while line.last() != Some(&b'\n') {
        if line.len() > MAX_LINE {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "line too long"));
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut along = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut chunk)];
        let got =
            match rustix::net::recvmsg(stream, &mut parts, &mut along, RecvFlags::CMSG_CLOEXEC) {
                Err(Errno::INTR) => continue,
                other => other?.bytes,
            };
        if got == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for message in along.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                fds.extend(received);
            }
        }
        line.extend_from_slice(&chunk[..got]);
    }
    Ok((serde_json::from_slice(&line)?, fds))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsFd;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn descriptors_travel_with_the_reply() {
        let (mut here, there) = UnixStream::pair().unwrap();
        let (read, write) = rustix::pipe::pipe().unwrap();
        send(&mut here, &Reply::Entered, &[write.as_fd()]).unwrap();
        drop(write);
        let (reply, fds): (Reply, _) = receive(&there).unwrap();
        assert!(matches!(reply, Reply::Entered));
        assert_eq!(fds.len(), 1);
        rustix::io::write(&fds[0], b"x").unwrap();
        drop(fds);
        let mut bytes = Vec::new();
        std::fs::File::from(read).read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, b"x");
    }

    #[test]
    fn long_replies_arrive_whole() {
        let (mut here, there) = UnixStream::pair().unwrap();
        let message = "x".repeat(1 << 20);
        let expected = message.clone();
        let sender = std::thread::spawn(move || {
            send(&mut here, &Reply::Error { message }, &[]).unwrap();
        });
        let (reply, fds): (Reply, _) = receive(&there).unwrap();
        sender.join().unwrap();
        assert!(fds.is_empty());
        assert!(matches!(reply, Reply::Error { message } if message == expected));
    }

    #[test]
    fn half_a_line_is_refused() {
        let (mut here, there) = UnixStream::pair().unwrap();
        here.write_all(b"{\"Done\"").unwrap();
        drop(here);
        let error = receive::<Reply>(&there).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(mut bytes in prop::collection::vec(any::<u8>(), 0..512)) {
            let (mut here, there) = UnixStream::pair().unwrap();
            bytes.push(b'\n');
            here.write_all(&bytes).unwrap();
            drop(here);
            let _ = receive::<Request>(&there);
        }
    }
}
