//! A daemon from its parts: sockets and files in, a service until it is stopped.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use hawser_http::{READY, STOPPING, notify};
use hawser_kernel::bind::Refused;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::addresses::PeerAddresses;
use crate::client::Client;
use crate::engine::Engine;
use crate::http::{Daemon, Listener};
use crate::record::Record;
use crate::remote::{RemoteError, own_token, publish, withdraw};
use crate::settings::{QueueChanges, RateChanges};
use crate::state::{Damaged, StateError, StateFolder};
use crate::torrents::Bounds;
use crate::watch_folder;

/// The parts of a daemon, for a message.
const API: &str = "its API";
const TORRENTS: &str = "its torrents";

/// Why a daemon cannot run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The torrents cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// The token cannot be used.
    #[error(transparent)]
    Token(#[from] RemoteError),
    /// The socket of the API cannot be bound.
    #[error("cannot listen at {address}: {}", Refused::tcp(*.address, source))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The system has no random numbers.
    #[error("{0}")]
    Random(&'static str),
    /// The address of the API cannot be published.
    #[error("cannot write the address of the API to {folder}: {source}")]
    Publish {
        /// The folder of the state.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The folder to be watched cannot be read.
    #[error("cannot watch {folder}: {source}: make the folder, or name another one with --watch")]
    Watch {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The program for completed torrents cannot be run.
    #[error("cannot run {program}: {source}: name a program that can be run with --on-complete")]
    OnComplete {
        /// The program.
        program: PathBuf,
        /// Why it cannot.
        source: io::Error,
    },
    /// A part of the daemon has ended by itself.
    #[error("the daemon does not work without {0}, which has ended by itself: start it again")]
    Ended(&'static str),
}

/// What a daemon is to do.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder of its state.
    pub state: PathBuf,
    /// Where its API listens.
    pub listen: SocketAddr,
    /// The folder of downloads, an absolute path.
    pub download_dir: PathBuf,
    /// The folder from which torrents are added, an absolute path; `None` for none.
    pub watch: Option<PathBuf>,
    /// How many torrents are verified at once. The limits of all torrents in it are those of the state, not
    /// these.
    pub bounds: Bounds,
    /// What changes of how many torrents run at once, and of when seeding ends, which the state has.
    pub queue: QueueChanges,
    /// What changes of the limits of the rates of all torrents, which the state has.
    pub rates: RateChanges,
}

/// A daemon whose files are read and whose API is bound, before it runs.
pub struct Prepared {
    options: Options,
    state: StateFolder,
    records: Vec<Record>,
    token: hawser_http::Token,
    listener: Listener,
    address: SocketAddr,
}

impl Prepared {
    /// Reads the files of a daemon and binds its API. Also returns the damaged files, which were set aside.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn open(mut options: Options) -> Result<(Self, Vec<Damaged>), RunError> {
        if let Some(folder) = &options.watch {
            let read = std::fs::read_dir(folder);
            read.map_err(|source| RunError::Watch {
                folder: folder.clone(),
                source,
            })?;
        }
        let (state, records, mut damaged) = StateFolder::open(&options.state)?;
        let (mut limits, wrong) = state.limits()?;
        damaged.extend(wrong);
        options.rates.apply(&mut limits.rates);
        options.queue.apply(&mut limits.queue);
        options.bounds.all = limits;
        let token = own_token(&options.state)?;
        let address = options.listen;
        let failed = |source| RunError::Listen { address, source };
        let listener = Listener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let prepared = Self {
            options,
            state,
            records,
            token,
            listener,
            address,
        };
        Ok((prepared, damaged))
    }

    /// The address of the API.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many torrents there are.
    pub fn torrents(&self) -> usize {
        self.records.len()
    }

    /// Runs the torrents and serves the API until `stop` is ready or a request ends it; then ends all
    /// torrents and saves them. `ready` is called when requests are answered.
    ///
    /// # Errors
    /// [`RunError`] when it cannot begin, or a part of it has ended.
    pub async fn run(
        self,
        engine: Engine,
        peers: PeerAddresses,
        stop: impl Future,
        ready: impl FnOnce(),
    ) -> Result<(), RunError> {
        let (ends, asked) = (CancellationToken::new(), CancellationToken::new());
        let Options {
            state: folder,
            download_dir,
            watch,
            bounds,
            ..
        } = self.options;
        let (client, mut torrents) = Client::start(
            engine,
            self.state,
            self.records,
            bounds,
            &download_dir,
            ends.clone(),
        );
        if let Some(folder) = watch {
            // It ends with the torrents.
            tokio::spawn(watch_folder::watch(folder, client.clone(), ends.clone()));
        }
        let daemon = Daemon::new(client, peers, &self.token, asked.clone());
        let daemon = daemon.map_err(RunError::Random)?;
        let published = publish(&folder, self.address);
        published.map_err(|source| RunError::Publish {
            folder: folder.clone(),
            source,
        })?;
        let serving = self.listener.serve(daemon);
        tokio::pin!(serving);
        ready();
        tell(READY);
        let ended = tokio::select! {
            _ = stop => None,
            () = asked.cancelled() => None,
            () = &mut serving => Some(API),
            _ = &mut torrents => Some(TORRENTS),
        };
        tell(STOPPING);
        ends.cancel();
        match ended {
            // Requests are answered meanwhile, also the one that ends the daemon.
            None => tokio::select! {
                _ = &mut torrents => {}
                () = &mut serving => drop(torrents.await),
            },
            Some(API) => drop(torrents.await),
            Some(_) => {}
        }
        remove(&folder);
        match ended {
            None => Ok(()),
            Some(part) => Err(RunError::Ended(part)),
        }
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
