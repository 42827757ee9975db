//! MPTCP sockets.
//!
//! read(2) and write(2) with large buffers serve them best: Linux 6.18 has no MSG_ZEROCOPY for MPTCP
//! sockets; sendfile(2) and splice(2) to one are slower than write(2), and splice(2) from one is not
//! faster than read(2).

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use hawser_kernel::socket;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, ipproto, socket_with, sockopt};

/// Options of a socket, for all its subflows, present and later.
///
/// Linux 6.18 has no `TCP_USER_TIMEOUT`, `SO_ZEROCOPY`, `SO_MAX_PACING_RATE`, `TCP_QUICKACK` or
/// `TCP_SYNCNT` for MPTCP sockets, and no options of single subflows: a congestion control is that of
/// all subflows of a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SocketOptions {
    no_delay: bool,
    keepalive: Option<Keepalive>,
    send_buffer: Option<usize>,
    receive_buffer: Option<usize>,
    congestion: Option<String>,
    mark: Option<u32>,
}

/// When TCP probes an idle subflow, and gives it up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    /// Idle time before the first probe, in whole seconds.
    pub idle: Duration,
    /// Time between two probes, in whole seconds.
    pub interval: Duration,
    /// Probes without answer before the subflow is closed.
    pub count: u32,
}

impl SocketOptions {
    /// Sends small segments at once (`TCP_NODELAY`).
    #[must_use]
    pub fn with_no_delay(mut self) -> Self {
        self.no_delay = true;
        self
    }

    /// Probes idle subflows.
    #[must_use]
    pub fn with_keepalive(mut self, keepalive: Keepalive) -> Self {
        self.keepalive = Some(keepalive);
        self
    }

    /// A fixed send buffer in bytes, which the kernel doubles for its own needs. Default: it grows
    /// up to `net.ipv4.tcp_wmem`.
    #[must_use]
    pub fn with_send_buffer(mut self, bytes: usize) -> Self {
        self.send_buffer = Some(bytes);
        self
    }

    /// A fixed receive buffer in bytes, like [`Self::with_send_buffer`] (`net.ipv4.tcp_rmem`).
    #[must_use]
    pub fn with_receive_buffer(mut self, bytes: usize) -> Self {
        self.receive_buffer = Some(bytes);
        self
    }

    /// The congestion control of each subflow. `CAP_NET_ADMIN` allows all that are loaded.
    #[must_use]
    pub fn with_congestion(mut self, name: &str) -> Self {
        self.congestion = Some(name.to_owned());
        self
    }

    /// The mark of packets (`SO_MARK`). Needs `CAP_NET_ADMIN`.
    #[must_use]
    pub fn with_mark(mut self, mark: u32) -> Self {
        self.mark = Some(mark);
        self
    }

    /// Sets the options of a socket, also of an accepted one.
    ///
    /// # Errors
    /// When the kernel refuses one, which the error names.
    pub fn apply(&self, socket: impl AsFd) -> io::Result<()> {
        let socket = socket.as_fd();
        if self.no_delay {
            named("TCP_NODELAY", sockopt::set_tcp_nodelay(socket, true))?;
        }
        if let Some(keepalive) = &self.keepalive {
            named("SO_KEEPALIVE", sockopt::set_socket_keepalive(socket, true))?;
            let idle = sockopt::set_tcp_keepidle(socket, keepalive.idle);
            named("TCP_KEEPIDLE", idle)?;
            let interval = sockopt::set_tcp_keepintvl(socket, keepalive.interval);
            named("TCP_KEEPINTVL", interval)?;
            let count = sockopt::set_tcp_keepcnt(socket, keepalive.count);
            named("TCP_KEEPCNT", count)?;
        }
        if let Some(bytes) = self.send_buffer {
            socket::set_send_buffer(socket, bytes)?;
        }
        if let Some(bytes) = self.receive_buffer {
            socket::set_receive_buffer(socket, bytes)?;
        }
        if let Some(name) = &self.congestion {
            let what = format!("TCP_CONGESTION to {name}");
            named(&what, sockopt::set_tcp_congestion(socket, name))?;
        }
        if let Some(mark) = self.mark {
            let set = socket::set_option(socket, libc::SOL_SOCKET, libc::SO_MARK, mark as i32);
            set.map_err(|error| naming("SO_MARK", error))?;
        }
        Ok(())
    }
}

fn named(option: &str, result: Result<(), Errno>) -> io::Result<()> {
    result.map_err(|error| naming(option, error.into()))
}

fn naming(option: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot set {option}: {error}"))
}

/// A non-blocking listening socket in the network namespace of the calling thread, with up to
/// `backlog` connections waiting for accept(2). It accepts plain TCP as well:
/// [`Info`](crate::Info) tells. Accepted sockets inherit the options.
///
/// Further subflows of its connections arrive at the same address and port, without accept(2), as
/// long as this socket is open: to another address or port, or after it was closed, they are
/// refused (`ECONNREFUSED`). The kernel accepts them only while [`Events`](crate::Events) exist.
///
/// # Errors
/// When the address is in use or not an address of the namespace, or the kernel has no MPTCP
/// ([`check`](crate::check) says why).
pub fn listen(address: SocketAddr, backlog: i32, options: &SocketOptions) -> io::Result<OwnedFd> {
    let socket = open(address)?;
    // A restarted process may listen again although connections of the one before linger.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    options.apply(&socket)?;
    bind(&socket, &address)?;
    rustix::net::listen(&socket, backlog)?;
    Ok(socket)
}

/// A non-blocking socket in the network namespace of the calling thread that connects from `local`
/// (port 0: the kernel chooses one) to `remote`. It becomes writable when connected, or when that
/// failed (`SO_ERROR`).
///
/// # Errors
/// When `local` is not an address of the namespace, there is no route, or the kernel has no MPTCP
/// ([`check`](crate::check) says why).
pub fn connect(
    local: SocketAddr,
    remote: SocketAddr,
    options: &SocketOptions,
) -> io::Result<OwnedFd> {
    let socket = open(remote)?;
    options.apply(&socket)?;
    if local.port() == 0 {
        // Chooses the port when connecting: then one that is in use towards another remote will do.
        let option = libc::IP_BIND_ADDRESS_NO_PORT;
        socket::set_option(&socket, libc::IPPROTO_IP, option, 1)?;
    }
    bind(&socket, &local)?;
    match rustix::net::connect(&socket, &remote) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

fn open(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(
        family,
        SocketType::STREAM,
        flags,
        Some(ipproto::MPTCP),
    )?)
}
