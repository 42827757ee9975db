//! ICMP errors about packets that did not reach the first router, because no program listens at its
//! port or its host is unreachable. The kernel keeps them in a queue of the socket (ip(7),
//! `IP_RECVERR`).

use std::io;
use std::net::UdpSocket as StdSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hawser_kernel::error_queue;
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

use crate::endhost::Endhost;

/// Time between attempts to send when the runtime does not report room in the socket's buffer.
const RETRY_SEND: Duration = Duration::from_millis(1);

/// A UDP socket, and the task that reads its errors.
#[derive(Debug)]
pub(super) struct Io {
    pub(super) socket: Arc<UdpSocket>,
    /// Whether there was an error. The runtime takes an error for the end of writing, and
    /// afterwards always reports room to send.
    erred: Arc<AtomicBool>,
    _watcher: JoinSet<()>,
}

impl Io {
    /// Reads the errors of `socket`, a socket of `host`.
    pub(super) fn new(socket: StdSocket, host: Endhost) -> io::Result<Self> {
        let socket = Arc::new(UdpSocket::from_std(socket)?);
        let erred = Arc::new(AtomicBool::new(false));
        let watcher = watch(Arc::clone(&socket), Arc::clone(&erred), host);
        Ok(Self {
            socket,
            erred,
            _watcher: JoinSet::from_iter([watcher]),
        })
    }

    /// Waits until there is room to send again.
    pub(super) async fn writable(&self) -> io::Result<()> {
        if self.erred.load(Ordering::Relaxed) {
            tokio::time::sleep(RETRY_SEND).await;
            return Ok(());
        }
        self.socket.writable().await
    }
}

async fn watch(socket: Arc<UdpSocket>, erred: Arc<AtomicBool>, host: Endhost) {
    while socket.ready(Interest::ERROR).await.is_ok() {
        erred.store(true, Ordering::Relaxed);
        read_errors(&socket, &host);
        // All errors are read: wait for more.
        let _ = socket.try_io(Interest::ERROR, || {
            Err::<(), _>(io::ErrorKind::WouldBlock.into())
        });
    }
}

/// Reads all errors that the kernel keeps. Returns whether there was one: then the last call on the
/// socket may have failed because of it.
#[cold]
pub(super) fn read_errors(socket: &UdpSocket, host: &Endhost) -> bool {
    let mut any = false;
    loop {
        match error_queue::next(socket) {
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
