//! The router's side of [`live`](crate::live): a socket in the router's own poll loop.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use crate::io::Interest;
use crate::live::{Reply, Request};

/// Callers at once; more wait.
const MAX_CALLERS: usize = 8;
/// Longest request, in bytes.
const MAX_REQUEST: usize = 1 << 16;

/// The listening socket and its callers.
pub(crate) struct Server {
    listener: UnixListener,
    path: PathBuf,
    callers: Vec<Caller>,
}

struct Caller {
    stream: UnixStream,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    gone: bool,
}

impl Server {
    /// Listens at `path`. A socket that nobody listens at any more is replaced.
    pub fn listen(path: &Path) -> std::io::Result<Self> {
        if let Err(error) = UnixStream::connect(path) {
            if error.kind() == ErrorKind::ConnectionRefused {
                std::fs::remove_file(path)?;
            }
        } else {
            return Err(ErrorKind::AddrInUse.into());
        }
        let listener = UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            callers: Vec::new(),
        })
    }

    /// What to wait for. A caller who does not take a reply is not read on.
    pub fn descriptors(&self) -> impl Iterator<Item = (RawFd, Interest)> {
        let listener =
            (self.callers.len() < MAX_CALLERS).then(|| (self.listener.as_raw_fd(), Interest::Read));
        let callers = self.callers.iter().map(|caller| {
            let interest = if caller.outgoing.is_empty() {
                Interest::Read
            } else {
                Interest::Write
            };
            (caller.stream.as_raw_fd(), interest)
        });
        listener.into_iter().chain(callers)
    }

    /// Accepts, reads, answers, writes: whatever is possible now.
    pub fn serve(&mut self, mut answer: impl FnMut(Request) -> Reply) {
        while self.callers.len() < MAX_CALLERS {
            let Ok((stream, _)) = self.listener.accept() else {
                break;
            };
            if stream.set_nonblocking(true).is_ok() {
                self.callers.push(Caller {
                    stream,
                    incoming: Vec::new(),
                    outgoing: Vec::new(),
                    gone: false,
                });
            }
        }
        for caller in &mut self.callers {
            caller.write();
            if caller.outgoing.is_empty() {
                caller.read();
                caller.answer(&mut answer);
                caller.write();
            }
        }
        self.callers
            .retain(|caller| !caller.gone || !caller.outgoing.is_empty());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone with its folder, which is as good.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Caller {
    fn read(&mut self) {
        let mut piece = [0; 4096];
        while !self.gone && self.incoming.len() <= MAX_REQUEST {
            match self.stream.read(&mut piece) {
                Ok(0) => self.gone = true,
                Ok(length) => self.incoming.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.gone = true,
            }
        }
    }

    fn answer(&mut self, answer: &mut impl FnMut(Request) -> Reply) {
        while let Some(end) = self.incoming.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.incoming.drain(..=end).collect();
            let reply = match serde_json::from_slice(&line) {
                Ok(request) => answer(request),
                Err(error) => Reply::Error {
                    message: format!("not a request: {error}"),
                },
            };
            match serde_json::to_vec(&reply) {
                Ok(mut line) => {
                    self.outgoing.append(&mut line);
                    self.outgoing.push(b'\n');
                }
                Err(error) => {
                    tracing::error!(%error, "cannot write a reply");
                    self.gone = true;
                }
            }
        }
        if self.incoming.len() > MAX_REQUEST {
            self.gone = true;
        }
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
