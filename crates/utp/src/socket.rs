//! A UDP socket for uTP, and what its task and its streams share.

use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Instant;

use fastrand::Rng;
use hawser_kernel::socket::{allow_fragments, set_receive_buffer, set_send_buffer};
use noq_udp::UdpSocketState;
use tokio::sync::Notify;

use crate::config::Config;
use crate::driver::Driver;
use crate::endpoint::{Endpoint, Event, Handle};
use crate::stream::UtpStream;

/// Bytes of the kernel's buffers, as far as it allows: what several windows bring before the task runs.
const SOCKET_BUFFER: usize = 4 << 20;

/// A UDP socket for uTP: accepts connections, and opens them. When it is dropped, its streams end at once.
#[derive(Debug)]
pub struct UtpSocket {
    shared: Arc<Shared>,
    local: SocketAddr,
}

/// What the task of a socket and its streams share.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<SharedState>,
    /// Wakes the task: there is something to send, or an earlier time to wake at.
    pub changed: Notify,
    /// Wakes those that accept.
    incoming: Notify,
}

#[derive(Debug)]
pub(crate) struct SharedState {
    pub endpoint: Endpoint,
    /// The tasks that wait for a stream; entries end with their streams.
    wakers: HashMap<Handle, Wakers>,
    /// When the task wakes by itself.
    pub wakes_at: Option<Instant>,
    /// The socket was dropped, or has failed.
    pub has_ended: bool,
}

/// The tasks that wait for a stream.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    pub read: Option<Waker>,
    pub write: Option<Waker>,
}

/// The time, as tokio has it.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

impl Shared {
    pub fn lock(&self) -> MutexGuard<'_, SharedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the users for whom something has changed, and the task if it has something to do. For the end of a
    /// use of the state.
    pub fn settle(&self, state: MutexGuard<'_, SharedState>) {
        let is_earlier = match (state.endpoint.next_due(), state.wakes_at) {
            (Some(due), Some(wakes_at)) => due < wakes_at,
            (due, None) => due.is_some(),
            (None, _) => false,
        };
        let has_work = is_earlier || state.endpoint.wants_to_transmit();
        self.wake_users(state);
        if has_work {
            self.changed.notify_one();
        }
    }

    /// Wakes the users for whom something has changed. The task itself has no use for [`Self::settle`]: while the
    /// kernel has no room, it would wake itself without an end.
    pub fn wake_users(&self, mut state: MutexGuard<'_, SharedState>) {
        let mut woken = Vec::new();
        let mut is_incoming = false;
        while let Some(event) = state.endpoint.poll() {
            let wakers = &mut state.wakers;
            let waker = match event {
                Event::Incoming => {
                    is_incoming = true;
                    None
                }
                Event::Readable(handle) => wakers.get_mut(&handle).and_then(|it| it.read.take()),
                Event::Writable(handle) => wakers.get_mut(&handle).and_then(|it| it.write.take()),
            };
            woken.extend(waker);
        }
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        if is_incoming {
            self.incoming.notify_one();
        }
    }

    /// Ends all streams.
    pub fn end(&self) {
        let mut state = self.lock();
        state.has_ended = true;
        state.endpoint.abort(now());
        self.settle(state);
        self.changed.notify_one();
        self.incoming.notify_waiters();
    }
}

impl SharedState {
    /// The tasks that wait for a stream.
    pub fn wakers(&mut self, handle: Handle) -> &mut Wakers {
        self.wakers.entry(handle).or_default()
    }

    /// Closes a stream, and wakes those that wait for it.
    pub fn close(&mut self, handle: Handle) {
        self.endpoint.close(handle, now());
        let wakers = self.wakers.remove(&handle).unwrap_or_default();
        let waiting = wakers.read.into_iter().chain(wakers.write);
        waiting.for_each(Waker::wake);
    }
}

impl UtpSocket {
    /// Opens a socket at `addr`; port 0 means any free port. Must be called inside a tokio runtime, which runs
    /// the task of the socket.
    ///
    /// # Errors
    /// If the address is in use, does not belong to this host, or is not permitted.
    pub fn bind(addr: SocketAddr, config: Config) -> io::Result<Self> {
        let socket = std::net::UdpSocket::bind(addr)?;
        socket.set_nonblocking(true)?;
        set_receive_buffer(&socket, SOCKET_BUFFER)?;
        set_send_buffer(&socket, SOCKET_BUFFER)?;
        let offload = UdpSocketState::new((&socket).into())?;
        allow_fragments(&socket, addr.ip())?;
        if addr.is_ipv6() {
            // For IPv4 peers, if the system gives those to sockets of IPv6. Where it does not, there are none.
            let _ = allow_fragments(&socket, IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        }
        let local = socket.local_addr()?;
        let socket = tokio::net::UdpSocket::from_std(socket)?;
        let state = SharedState {
            endpoint: Endpoint::new(config, Rng::new(), now()),
            wakers: HashMap::new(),
            wakes_at: None,
            has_ended: false,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Notify::new(),
            incoming: Notify::new(),
        });
        tokio::spawn(Driver::new(Arc::clone(&shared), socket, offload).run());
        Ok(Self { shared, local })
    }

    /// The address of the socket.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Accepts the next connection of a peer. A call that is given up takes none.
    ///
    /// # Errors
    /// If the socket has failed.
    pub async fn accept(&self) -> io::Result<UtpStream> {
        loop {
            let incoming = self.shared.incoming.notified();
            {
                let mut state = self.shared.lock();
                if let Some((handle, peer)) = state.endpoint.accept() {
                    drop(state);
                    // Others that accept may have slept through the event of another connection.
                    self.shared.incoming.notify_one();
                    return Ok(UtpStream::new(&self.shared, handle, peer));
                }
                if state.has_ended {
                    return Err(io::ErrorKind::NotConnected.into());
                }
            }
            incoming.await;
        }
    }

    /// Connects to a peer. A call that is given up closes the connection. It takes 15 s at most.
    ///
    /// # Errors
    /// If there are too many connections, the peer refuses, or it does not answer.
    pub async fn connect(&self, peer: SocketAddr) -> io::Result<UtpStream> {
        let handle = {
            let mut state = self.shared.lock();
            if state.has_ended {
                return Err(io::ErrorKind::NotConnected.into());
            }
            let handle = state.endpoint.connect(peer, now());
            let handle = handle.map_err(io::Error::other)?;
            self.shared.settle(state);
            handle
        };
        let stream = UtpStream::new(&self.shared, handle, peer);
        poll_fn(|cx| {
            let mut state = self.shared.lock();
            if let Some(reason) = state.endpoint.closed(handle) {
                return Poll::Ready(Err(crate::stream::error(reason)));
            }
            if state.endpoint.is_connected(handle) {
                return Poll::Ready(Ok(()));
            }
            state.wakers(handle).write = Some(cx.waker().clone());
            Poll::Pending
        })
        .await?;
        Ok(stream)
    }
}

impl Drop for UtpSocket {
    fn drop(&mut self) {
        self.shared.end();
    }
}
