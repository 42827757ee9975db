//! ICMP errors about packets that did not reach the first router, because no program listens at its
//! port or its host is unreachable. The kernel keeps them in a queue of the socket (ip(7),
//! `IP_RECVERR`).

use std::io;
use std::net::UdpSocket as StdSocket;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hawser_kernel::error_queue;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

use crate::endhost::Endhost;

/// Time between attempts to send when the runtime does not report room in the socket's buffer.
const RETRY_SEND: Duration = Duration::from_millis(1);

/// Errors of receiving in a row after which a socket is given up.
const MAX_FAILURES: u32 = 16;

/// A UDP socket.
#[derive(Debug)]
pub(super) struct Io {
    pub(super) socket: StdSocket,
    host: Endhost,
    /// Made when a task waits for the socket: the runtime wakes for every packet that comes or has
    /// gone, which a thread that waits by itself need not pay for.
    registered: OnceLock<Registered>,
}

/// A socket that the runtime watches, and the task that reads its errors.
#[derive(Debug)]
pub(super) struct Registered {
    pub(super) socket: Arc<UdpSocket>,
    /// Whether there was an error. The runtime takes an error for the end of writing, and
    /// afterwards always reports room to send.
    erred: Arc<AtomicBool>,
    _watcher: JoinSet<()>,
}

impl Io {
    /// The non-blocking socket `socket` of `host`.
    pub(super) fn new(socket: StdSocket, host: Endhost) -> Self {
        let registered = OnceLock::new();
        Self {
            socket,
            host,
            registered,
        }
    }

    /// The socket as the runtime watches it.
    pub(super) fn registered(&self) -> io::Result<&Registered> {
        if let Some(registered) = self.registered.get() {
            return Ok(registered);
        }
        let socket = Arc::new(UdpSocket::from_std(self.socket.try_clone()?)?);
        let erred = Arc::new(AtomicBool::new(false));
        let watcher = watch(Arc::clone(&socket), Arc::clone(&erred), self.host.clone());
        Ok(self.registered.get_or_init(|| Registered {
            socket,
            erred,
            _watcher: JoinSet::from_iter([watcher]),
        }))
    }

    /// Tries to send by `attempt`.
    pub(super) fn try_send(&self, attempt: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        match self.registered.get() {
            Some(registered) => registered.socket.try_io(Interest::WRITABLE, attempt),
            None => attempt(),
        }
    }

    /// Waits until there is room to send again.
    pub(super) async fn writable(&self) -> io::Result<()> {
        let registered = self.registered()?;
        if registered.erred.load(Ordering::Relaxed) {
            tokio::time::sleep(RETRY_SEND).await;
            return Ok(());
        }
        registered.socket.writable().await
    }

    /// Reads all errors the kernel keeps; returns whether there was one.
    pub(super) fn read_errors(&self) -> bool {
        read_errors(&self.socket, &self.host)
    }

    /// Whether receiving can continue after `error`, which a receive call has returned. `failures` counts
    /// such errors in a row. The kernel reports each error once.
    #[cold]
    pub(super) fn outlives(&self, error: &io::Error, failures: &mut u32) -> bool {
        // An error of a packet that was sent does not concern receiving.
        if self.read_errors() {
            return true;
        }
        *failures += 1;
        // The kernel takes away the port of a socket that is destroyed (`ss --kill`) if the kernel has
        // chosen it: then nothing arrives any more.
        let port = self.socket.local_addr().map(|address| address.port());
        let goes_on = *failures < MAX_FAILURES && port.is_ok_and(|port| port != 0);
        if goes_on {
            tracing::warn!(%error, "receiving goes on after an error");
        }
        goes_on
    }

    /// Blocks until something has arrived, there is room to send (if that is `wanted`), one of
    /// `others` can be read, or `timeout` is over.
    pub(super) fn wait<'a>(
        &self,
        others: impl IntoIterator<Item = BorrowedFd<'a>>,
        wanted: bool,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        let mut events = PollFlags::IN;
        events.set(PollFlags::OUT, wanted);
        let others = others.into_iter();
        let others = others.map(|other| PollFd::from_borrowed_fd(other, PollFlags::IN));
        let mut entries = vec![PollFd::new(&self.socket, events)];
        entries.extend(others);
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match poll(&mut entries, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        if entries[0].revents().contains(PollFlags::ERR) {
            self.read_errors();
        }
        Ok(())
    }
}

async fn watch(socket: Arc<UdpSocket>, erred: Arc<AtomicBool>, host: Endhost) {
    while socket.ready(Interest::ERROR).await.is_ok() {
        erred.store(true, Ordering::Relaxed);
        read_errors(&*socket, &host);
        // All are read: wait for more.
        let _ = socket.try_io(Interest::ERROR, || {
            Err::<(), _>(io::ErrorKind::WouldBlock.into())
        });
    }
}

/// Reads all errors that the kernel keeps. Returns whether there was one: then the last call on the
/// socket may have failed because of it.
#[cold]
fn read_errors(socket: impl AsFd, host: &Endhost) -> bool {
    let mut any = false;
    loop {
        match error_queue::next(socket.as_fd()) {
            Ok(Some((to, error))) => {
                any = true;
                if is_unreachable(&error) {
                    host.report_router(to, &error);
                }
            }
            // An error of the system itself: the call that caused it has returned it.
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return any,
            Err(error) => {
                tracing::debug!(%error, "reading the errors of a socket");
                return any;
            }
        }
    }
}

/// Whether `error` reports a missing host or program.
fn is_unreachable(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::CONNREFUSED | Errno::HOSTUNREACH | Errno::NETUNREACH | Errno::HOSTDOWN)
    )
}
