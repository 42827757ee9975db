//! What the system hears about packets that did not get as far as the first router: nobody listens
//! at its port, or its host is gone. The kernel keeps that in a queue (ip(7), `IP_RECVERR`).

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

/// `SO_EE_ORIGIN_ICMP` and `SO_EE_ORIGIN_ICMP6` (linux/errqueue.h): not the system's own word.
const ICMP: [u8; 2] = [2, 3];
/// The quoted packet's beginning; nobody reads it.
const QUOTE: usize = 64;
/// How long to wait for room in the socket's buffer when the runtime cannot tell.
const ROOM: Duration = Duration::from_millis(1);

/// A UDP socket, and the task that hears what becomes of its packets.
#[derive(Debug)]
pub(super) struct Io {
    socket: Arc<UdpSocket>,
    /// Whether there ever was an error. The runtime takes it for the end of writing, for good, and
    /// then always says that there is room.
    erred: Arc<AtomicBool>,
    listener: JoinHandle<()>,
}

/// Lets the kernel keep errors.
pub(super) fn keep(socket: &StdSocket, ipv4: bool) -> nix::Result<()> {
    if ipv4 {
        setsockopt(socket, sockopt::Ipv4RecvErr, &true)
    } else {
        setsockopt(socket, sockopt::Ipv6RecvErr, &true)
    }
}

impl Io {
    /// Listens to the errors of `socket`, which is one of `host`.
    pub(super) fn new(socket: UdpSocket, host: Endhost) -> Self {
        let socket = Arc::new(socket);
        let erred = Arc::new(AtomicBool::new(false));
        let listener = tokio::spawn(listen(Arc::clone(&socket), Arc::clone(&erred), host));
        Self {
            socket,
            erred,
            listener,
        }
    }

    pub(super) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Waits until there is room to send again.
    pub(super) async fn writable(&self) -> io::Result<()> {
        if self.erred.load(Ordering::Relaxed) {
            tokio::time::sleep(ROOM).await;
            return Ok(());
        }
        self.socket.writable().await
    }

    /// Takes in all errors the kernel keeps. Says whether the last call on the socket may have
    /// failed because of one of them, instead of doing what it should.
    #[cold]
    pub(super) fn hear(&self, host: &Endhost) -> bool {
        hear(&self.socket, host)
    }
}

impl Drop for Io {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

async fn listen(socket: Arc<UdpSocket>, erred: Arc<AtomicBool>, host: Endhost) {
    while socket.ready(Interest::ERROR).await.is_ok() {
        erred.store(true, Ordering::Relaxed);
        hear(&socket, &host);
        // All is heard: wait for more.
        let _ = socket.try_io(Interest::ERROR, || {
            Err::<(), _>(io::ErrorKind::WouldBlock.into())
        });
    }
}

fn hear(socket: &UdpSocket, host: &Endhost) -> bool {
    let mut heard = false;
    loop {
        match next(socket) {
            Ok(Some((to, error))) => {
                heard = true;
                if is_gone(error) {
                    host.report_router(to, error);
                }
            }
            // Of the system's own, which whoever called was told.
            Ok(None) => {}
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => return heard,
            Err(error) => {
                tracing::debug!(%error, "reading the errors of a socket");
                return heard;
            }
        }
    }
}

/// Whether that is what happens to packets to a host or program that is not there.
fn is_gone(error: Errno) -> bool {
    matches!(
        error,
        Errno::ECONNREFUSED | Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::EHOSTDOWN
    )
}

/// The next error that came from the network: where the packet was to go, and what became of it.
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
