//! The router's side of [`live`](crate::live): a socket in the router's own poll loop.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use hawser_kernel::rpc::{self, Acceptor, Lines, SocketFile};

use crate::io::entry;
use crate::live::{Reply, Request};

/// Maximum number of callers at once; more callers wait.
const MAX_CALLERS: usize = 8;

/// The listening socket and its callers.
pub(crate) struct Server {
    acceptor: Acceptor,
    _file: SocketFile,
    callers: Vec<Caller>,
}

struct Caller {
    stream: UnixStream,
    incoming: Lines,
    outgoing: Vec<u8>,
    gone: bool,
}

impl Server {
    /// Listens at `path`. Replaces a socket that a killed router has left behind.
    pub fn listen(path: &Path) -> std::io::Result<Self> {
        let (listener, file) = rpc::listen(path)?;
        Ok(Self {
            acceptor: Acceptor::new(listener),
            _file: file,
            callers: Vec::new(),
        })
    }

    /// The descriptors to wait for at `now`. A caller that does not read its reply is not read from.
    pub fn descriptors(&self, now: Instant) -> impl Iterator<Item = libc::pollfd> {
        let listener = (self.acceptor.to_poll(now))
            .filter(|_| self.callers.len() < MAX_CALLERS)
            .map(|listener| entry(listener.as_raw_fd(), libc::POLLIN));
        let callers = self.callers.iter().map(|caller| {
            let events = match caller.outgoing.is_empty() {
                true => libc::POLLIN,
                false => libc::POLLOUT,
            };
            entry(caller.stream.as_raw_fd(), events)
        });
        listener.into_iter().chain(callers)
    }

    /// The longest that may be waited at `now`, though nothing is ready.
    pub fn next_due(&self, now: Instant) -> Option<Instant> {
        self.acceptor.next_due(now)
    }

    /// Accepts callers, reads and answers requests, and writes replies, as far as possible without
    /// blocking.
    pub fn serve(&mut self, now: Instant, mut answer: impl FnMut(Request) -> Reply) {
        while self.callers.len() < MAX_CALLERS {
            let stream = match self.acceptor.accept(now) {
                Ok(Some(stream)) => stream,
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a request on the control socket");
                    break;
                }
            };
            if stream.set_nonblocking(true).is_ok() {
                self.callers.push(Caller {
                    stream,
                    incoming: Lines::default(),
                    outgoing: Vec::new(),
                    gone: false,
                });
            }
        }
        for caller in &mut self.callers {
            caller.write();
            caller.read(&mut answer);
            caller.write();
        }
        self.callers
            .retain(|caller| !caller.gone || !caller.outgoing.is_empty());
    }
}

impl Caller {
    /// Reads and answers requests until one has a reply, or nothing more has arrived.
    fn read(&mut self, answer: &mut impl FnMut(Request) -> Reply) {
        let mut piece = [0; 4096];
        while !self.gone && self.outgoing.is_empty() {
            match self.stream.read(&mut piece) {
                Ok(0) => self.gone = true,
                Ok(length) => {
                    self.incoming.push(&piece[..length]);
                    if let Err(error) = self.answer(answer) {
                        tracing::debug!(%error, "closing a connection of the router's socket");
                        self.gone = true;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.gone = true,
            }
        }
    }

    fn answer(&mut self, answer: &mut impl FnMut(Request) -> Reply) -> std::io::Result<()> {
        while let Some(line) = self.incoming.next()? {
            let refuse = |message| Reply::Error { message };
            self.outgoing
                .append(&mut rpc::answer(&line, &mut *answer, refuse)?);
        }
        Ok(())
    }

    fn write(&mut self) {
        while !self.outgoing.is_empty() {
            match self.stream.write(&self.outgoing) {
                Ok(length) => drop(self.outgoing.drain(..length)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.gone = true;
                    self.outgoing.clear();
                }
            }
        }
    }
}
