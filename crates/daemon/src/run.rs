//! A daemon from its parts: configuration, files and sockets in, a service until it is stopped.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;

use hawser_client::{
    Damaged, Engine, NetworkSettings, PeerAddresses, own_token, publish, withdraw,
};
use hawser_http::{READY, STOPPING, Token, notify};
use hawser_service::{Config, HostNetwork, ServiceEvent, Transfers};
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use crate::access::TorrentUsers;
use crate::error::DaemonError;
use crate::server::{Addresses, Server};

/// What a daemon is to do.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the API listens without TLS, in place of where the configuration says: an address of the loopback
    /// interface.
    pub listen: Option<SocketAddr>,
    /// The transfers, the users and the sockets.
    pub config: Config,
    /// The torrents, and the folder of the state.
    pub torrents: hawser_client::Options,
}

/// A daemon whose torrents are read and whose API is bound, before it runs.
pub struct Prepared {
    state: PathBuf,
    config: Config,
    torrents: hawser_client::Prepared,
    token: Token,
    server: Server,
    addresses: Addresses,
}

impl Prepared {
    /// Reads the files of a daemon and binds its API. Also returns the damaged files, which were set aside.
    ///
    /// # Errors
    /// [`DaemonError`].
    pub async fn open(options: Options) -> Result<(Self, Vec<Damaged>), DaemonError> {
        let Options {
            listen,
            config,
            torrents,
        } = options;
        let state = torrents.state.clone();
        let (torrents, damaged) = hawser_client::Prepared::open(torrents)?;
        let token = own_token(&state)?;
        let (server, addresses) = Server::bind(listen, &config).await?;
        let prepared = Self {
            state,
            config,
            torrents,
            token,
            server,
            addresses,
        };
        Ok((prepared, damaged))
    }

    /// Where the API is.
    #[must_use]
    pub const fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// How many torrents there are.
    #[must_use]
    pub fn torrents(&self) -> usize {
        self.torrents.torrents()
    }

    /// How peers are to be reached, as the options and the state say.
    #[must_use]
    pub fn network(&self) -> NetworkSettings {
        self.torrents.network()
    }

    /// Reads the transfers, whose host is in `network` or joins it when it is needed. What happens to them goes
    /// to `events`. The sockets that the configuration names for them are bound before those of torrents, which
    /// may take any port.
    ///
    /// # Errors
    /// [`DaemonError`].
    pub async fn join(
        self,
        network: HostNetwork,
        events: UnboundedSender<ServiceEvent>,
    ) -> Result<Joined, DaemonError> {
        let (state, owner) = (&self.state, self.token.hash());
        let transfers = Transfers::open(&self.config, state, owner, network, events).await?;
        let prepared = self;
        Ok(Joined {
            prepared,
            transfers,
        })
    }
}

/// A daemon with all its files read, before it runs.
pub struct Joined {
    prepared: Prepared,
    transfers: Transfers,
}

impl Joined {
    /// Runs the torrents and the transfers and serves the API until `stop` is ready or a request ends it; then
    /// ends and saves both. `ready` is called when requests are answered.
    ///
    /// # Errors
    /// [`DaemonError`] when it cannot begin, or a part of it has ended.
    pub async fn run(
        self,
        engine: Engine,
        peers: PeerAddresses,
        stop: impl Future,
        ready: impl FnOnce(),
    ) -> Result<(), DaemonError> {
        let Self {
            prepared,
            transfers,
        } = self;
        let Prepared {
            state,
            torrents,
            server,
            addresses,
            ..
        } = prepared;
        let service = transfers.service().clone();
        let callers = Arc::new(TorrentUsers(service.clone()));
        let started = torrents.start(engine, peers, callers);
        let mut torrents = started.map_err(DaemonError::Random)?;
        publish(&state, addresses.http).map_err(|source| DaemonError::Publish {
            folder: state.clone(),
            source,
        })?;
        let ends = CancellationToken::new();
        let mut serving = pin!(server.serve(torrents.daemon().clone(), service));
        let mut transferring = pin!(transfers.run(ends.cancelled()));
        let asked = torrents.asked_to_end();
        ready();
        tell(READY);
        let (mut serves, mut transfers) = (true, true);
        let ended = tokio::select! {
            _ = stop => Ok(()),
            () = asked => Ok(()),
            () = &mut serving => {
                serves = false;
                Err(DaemonError::Ended("its API"))
            }
            () = torrents.ended() => Err(DaemonError::Ended("its torrents")),
            ended = &mut transferring => {
                transfers = false;
                Err(ended.err().map_or(DaemonError::Ended("its transfers"), Into::into))
            }
        };
        tell(STOPPING);
        ends.cancel();
        let mut stopping = pin!(async {
            let transferred = async {
                match transfers {
                    true => transferring.await,
                    false => Ok(()),
                }
            };
            tokio::join!(torrents.stop(), transferred).1
        });
        // Requests are answered meanwhile, also the one that ends the daemon.
        let stopped = tokio::select! {
            stopped = &mut stopping => stopped,
            () = &mut serving, if serves => stopping.await,
        };
        remove(&state);
        ended.and(stopped.map_err(Into::into))
    }
}

/// Tells the service manager what the daemon does.
fn tell(state: &str) {
    if let Err(error) = notify(state) {
        tracing::warn!("cannot notify systemd: {error}");
    }
}

fn remove(folder: &Path) {
    if let Err(error) = withdraw(folder) {
        // The next command finds that nobody answers at the address.
        tracing::warn!(
            "cannot remove the address of the API from {}: {error}",
            folder.display()
        );
    }
}
