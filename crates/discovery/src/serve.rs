//! A tracker: its sockets, and its state on disk.

mod error;
mod http;
mod shared;
mod state;
#[cfg(test)]
mod tests;
mod udp;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use fastrand::Rng;
use hawser_tracker::{Counters, SwarmOptions, Swarms};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::net::{TcpListener, UdpSocket};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use self::error::ServeError;
use self::shared::Shared;
use self::state::State;
use crate::datagrams::{Datagrams, bind_udp};

/// What a tracker is.
#[derive(Default)]
pub struct ServeOptions {
    /// Where it is asked over HTTP. One of IPv6 is for IPv6 alone.
    pub http: Vec<SocketAddr>,
    /// Where it is asked over UDP. One of IPv6 is for IPv6 alone.
    pub udp: Vec<SocketAddr>,
    /// A socket in a SCION network, where it is asked, too.
    pub scion: Option<Arc<dyn Datagrams>>,
    /// What it holds and gives.
    pub swarms: SwarmOptions,
    /// The file that has the swarms while it does not run; its folder must exist.
    pub state: Option<PathBuf>,
}

impl fmt::Debug for ServeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServeOptions")
            .field("http", &self.http)
            .field("udp", &self.udp)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// Says what a tracker counts, while it runs.
#[derive(Clone)]
pub struct Monitor(Shared);

impl Monitor {
    /// What has happened, and what there is.
    pub fn counters(&self) -> Counters {
        self.0.lock().counters()
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Monitor").field(&self.counters()).finish()
    }
}

/// A tracker with its sockets bound.
pub struct Server {
    http: Vec<TcpListener>,
    udp: Vec<Arc<UdpSocket>>,
    scion: Option<Arc<dyn Datagrams>>,
    swarms: Shared,
    state: Option<State>,
}

impl Server {
    /// Binds the sockets, and reads the swarms. A file that is damaged is put aside, and there are no
    /// swarms. To be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`ServeError`] if a socket cannot be bound, or the file not be read.
    pub fn bind(options: ServeOptions) -> Result<Self, ServeError> {
        let mut secret = [0; 32];
        let filled = SystemRandom::new().fill(&mut secret);
        filled.map_err(|_| ServeError::Random)?;
        let bound = |network, addr: &SocketAddr, error| ServeError::Bind {
            addr: *addr,
            network,
            error,
        };
        let listen =
            |addr: &SocketAddr| http::listen(*addr).map_err(|error| bound("http", addr, error));
        let udp = |addr: &SocketAddr| match bind_udp(*addr) {
            Ok(socket) => Ok(Arc::new(socket)),
            Err(error) => Err(bound("udp", addr, error)),
        };
        let http = options.http.iter().map(listen).collect::<Result<_, _>>()?;
        let udp = options.udp.iter().map(udp).collect::<Result<_, _>>()?;
        let state = options.state.map(|path| State::new(path, &options.swarms));
        let now = Instant::now().into_std();
        let mut swarms = Swarms::new(options.swarms, &secret, Rng::new(), now);
        if let Some(state) = &state {
            state.read(&mut swarms, now)?;
        }
        Ok(Self {
            http,
            udp,
            scion: options.scion,
            swarms: Shared::new(swarms),
            state,
        })
    }

    /// The addresses for HTTP, with their ports.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn http_addrs(&self) -> io::Result<Vec<SocketAddr>> {
        self.http.iter().map(TcpListener::local_addr).collect()
    }

    /// The addresses for UDP, with their ports.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn udp_addrs(&self) -> io::Result<Vec<SocketAddr>> {
        self.udp.iter().map(|socket| socket.local_addr()).collect()
    }

    /// What it counts, also while it runs.
    pub fn monitor(&self) -> Monitor {
        Monitor(self.swarms.clone())
    }

    /// Answers requests until `stop` is cancelled. The swarms are written every minute, and at the end.
    ///
    /// # Errors
    /// [`ServeError::Write`] if the swarms cannot be written at the end; before that it is logged, and
    /// tried again a minute later.
    pub async fn run(self, stop: &CancellationToken) -> Result<(), ServeError> {
        let mut tasks = JoinSet::new();
        for listener in self.http {
            tasks.spawn(http::serve(listener, self.swarms.clone()));
        }
        let sockets = self
            .udp
            .into_iter()
            .map(|socket| -> Arc<dyn Datagrams> { socket });
        for socket in sockets.chain(self.scion) {
            tasks.spawn(udp::serve(socket, self.swarms.clone()));
        }
        let kept = state::keep(self.state.as_ref(), &self.swarms);
        tokio::select! {
            () = stop.cancelled() => {}
            () = kept => {}
        }
        tasks.shutdown().await;
        match &self.state {
            Some(state) => state.write(&self.swarms).await,
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("http", &self.http)
            .field("udp", &self.udp)
            .finish_non_exhaustive()
    }
}
