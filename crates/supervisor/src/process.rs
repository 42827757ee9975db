//! The child process of a service.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::Signal;

use crate::handle::Handle;
use crate::lines::{Lines, Rest};

/// Most reads of what a process has written until its end: more than a pipe holds. What the process
/// has started may still write, without end.
const MAX_LAST_READS: usize = 16;

/// A child whose end and whose lines on standard error are events of an epoll instance.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    handle: Handle,
    lines: Option<Lines>,
    /// The Unix socket that it listens on when it is ready.
    socket: Option<PathBuf>,
}

impl Process {
    /// Watches a child. If that fails, the child is killed.
    pub fn watch(
        mut child: Child,
        socket: Option<PathBuf>,
        epoll: &OwnedFd,
        events: EventData,
    ) -> io::Result<Self> {
        let watched = (|| {
            // The child was not reaped, so the number is still its own even if it has ended.
            let handle = Handle::open(child.id().cast_signed())?;
            let handle = handle.ok_or(io::ErrorKind::NotFound)?;
            epoll::add(epoll, &handle, events, EventFlags::IN)?;
            let pipe = child.stderr.take().map(OwnedFd::from);
            let lines = pipe.map(Lines::new).transpose()?;
            if let Some(lines) = &lines {
                epoll::add(epoll, lines, events, EventFlags::IN)?;
            }
            io::Result::Ok((handle, lines))
        })();
        match watched {
            Ok((handle, lines)) => Ok(Self {
                child,
                handle,
                lines,
                socket,
            }),
            Err(error) => {
                // It may have ended already.
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        self.handle.signal(signal)
    }

    /// Passes its lines on that have come. Returns whether there is more to read.
    pub fn read_lines(&mut self, epoll: &OwnedFd, pass_on: impl FnMut(String)) -> bool {
        let Some(lines) = &mut self.lines else {
            return false;
        };
        let rest = lines.read(pass_on);
        if rest == Rest::Closed {
            // A closed pipe stays readable: it would wake the supervisor all the time.
            unwatch(epoll, lines);
        }
        rest == Rest::Unread
    }

    /// Reaps it, if it has ended.
    pub fn reap(&mut self) -> Option<io::Result<ExitStatus>> {
        self.child.try_wait().transpose()
    }

    /// Passes its lines on that have come until its end. Returns the last one.
    pub fn finish(mut self, epoll: &OwnedFd, mut pass_on: impl FnMut(String)) -> Option<String> {
        // A process that forks while these are open inherits them, so that closing alone does not
        // end the events.
        unwatch(epoll, &self.handle);
        let mut lines = self.lines.take()?;
        unwatch(epoll, &lines);
        (0..MAX_LAST_READS).find(|_| lines.read(&mut pass_on) != Rest::Unread);
        lines.end(pass_on);
        lines.last()
    }

    /// Whether it is ready: it listens on its socket, or has none.
    pub fn is_ready(&self) -> bool {
        self.socket.as_deref().is_none_or(listens)
    }
}

/// Ends the events of a file descriptor.
fn unwatch(epoll: &OwnedFd, fd: impl AsFd) {
    // It may have none any more.
    let _ = epoll::delete(epoll, fd);
}

/// Whether a process listens on a Unix socket. Does not wait until it accepts a connection.
pub fn listens(path: &Path) -> bool {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let connect = || {
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&socket, &SocketAddrUnix::new(path)?)
    };
    // AGAIN: it has not accepted the connections before this one.
    matches!(connect(), Ok(()) | Err(Errno::AGAIN))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_listener_is_found_also_when_it_accepts_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        assert!(!listens(&path));
        let listener = UnixListener::bind(&path).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        assert!((0..4).all(|_| listens(&path)));
        drop(listener);
        // A process that another test starts has it until it runs its program.
        let deadline = Instant::now() + Duration::from_secs(300);
        while listens(&path) {
            assert!(Instant::now() < deadline, "it is found after its end");
            std::thread::yield_now();
        }
    }
}
