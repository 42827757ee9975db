//! ICMP errors about packets that did not reach the first router: no program listens at its port, or
//! its host is unreachable. The kernel keeps them in a queue of the socket (ip(7), `IP_RECVERR`).

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket as StdSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use crate::endhost::Endhost;

/// Errors from the network: `SO_EE_ORIGIN_ICMP` and `SO_EE_ORIGIN_ICMP6` (linux/errqueue.h).
const ICMP: [u8; 2] = [2, 3];
/// Bytes kept of the packet that had the error; they are not used.
const QUOTE: usize = 64;
/// How long to wait for room in the socket's buffer when the runtime cannot tell.
const RETRY_SEND: Duration = Duration::from_millis(1);

/// A UDP socket, and the task that reads its errors.
#[derive(Debug)]
pub(super) struct Io {
    socket: Arc<UdpSocket>,
    /// Whether there ever was an error. The runtime takes one for the end of writing, and from then
    /// on always reports room to send.
    erred: Arc<AtomicBool>,
    watcher: JoinHandle<()>,
}

/// Has the kernel keep errors.
pub(super) fn enable(socket: &StdSocket, ipv4: bool) -> nix::Result<()> {
    if ipv4 {
        setsockopt(socket, sockopt::Ipv4RecvErr, &true)
    } else {
        setsockopt(socket, sockopt::Ipv6RecvErr, &true)
    }
}

impl Io {
    /// Reads the errors of `socket`, which is one of `host`.
    pub(super) fn new(socket: StdSocket, host: Endhost) -> io::Result<Self> {
        let socket = Arc::new(UdpSocket::from_std(socket)?);
        let erred = Arc::new(AtomicBool::new(false));
        let watcher = tokio::spawn(watch(Arc::clone(&socket), Arc::clone(&erred), host));
        Ok(Self {
            socket,
            erred,
            watcher,
        })
    }

    pub(super) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Waits until there is room to send again.
    pub(super) async fn writable(&self) -> io::Result<()> {
        if self.erred.load(Ordering::Relaxed) {
            tokio::time::sleep(RETRY_SEND).await;
            return Ok(());
        }
        self.socket.writable().await
    }

    /// Reads all errors the kernel keeps. Returns whether there was one: then the last call on the
    /// socket may have failed because of it.
    #[cold]
    pub(super) fn read_errors(&self, host: &Endhost) -> bool {
        read_errors(&self.socket, host)
    }
}

impl Drop for Io {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

async fn watch(socket: Arc<UdpSocket>, erred: Arc<AtomicBool>, host: Endhost) {
    while socket.ready(Interest::ERROR).await.is_ok() {
        erred.store(true, Ordering::Relaxed);
        read_errors(&socket, &host);
        // All are read: wait for more.
        let _ = socket.try_io(Interest::ERROR, || {
            Err::<(), _>(io::ErrorKind::WouldBlock.into())
        });
    }
}

fn read_errors(socket: &UdpSocket, host: &Endhost) -> bool {
    let mut any = false;
    loop {
        match next(socket) {
            Ok(Some((to, error))) => {
                any = true;
                if is_unreachable(error) {
                    host.report_router(to, error);
                }
            }
            // The system's own: the call that caused it has returned it.
            Ok(None) => {}
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => return any,
            Err(error) => {
                tracing::debug!(%error, "reading the errors of a socket");
                return any;
            }
        }
    }
}

/// Whether packets to a missing host or program end with `error`.
fn is_unreachable(error: Errno) -> bool {
    matches!(
        error,
        Errno::ECONNREFUSED | Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::EHOSTDOWN
    )
}

/// The next error, if it came from the network: the packet's destination, and the error.
fn next(socket: &UdpSocket) -> nix::Result<Option<(SocketAddr, Errno)>> {
    let mut quote = [0; QUOTE];
    let mut quote = [IoSliceMut::new(&mut quote)];
    let mut control = nix::cmsg_space!([u8; 256]);
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let message =
        recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut quote, Some(&mut control), flags)?;
    let to = message.address.as_ref().and_then(|to| {
        let v4 = to.as_sockaddr_in().map(|to| SocketAddr::V4((*to).into()));
        v4.or_else(|| to.as_sockaddr_in6().map(|to| SocketAddr::V6((*to).into())))
    });
    let what = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::Ipv4RecvErr(what, _) => Some(what),
        ControlMessageOwned::Ipv6RecvErr(what, _) => Some(what),
        _ => None,
    });
    Ok(match (to, what) {
        (Some(to), Some(what)) if ICMP.contains(&what.ee_origin) => {
            Some((to, Errno::from_raw(what.ee_errno as i32)))
        }
        _ => None,
    })
}
