//! The transfers of a daemon, from its configuration and files, until they are stopped.

use std::fs;
use std::io;
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hawser_bulk::protocol::{Choices, Wants};
use hawser_bulk::{
    Clients, Destination, FolderError, Limit, Node, PathOptions, ServerEvent, ServerOptions,
    Sockets, TransferError, TransferOptions, check_shared, serve,
};
use hawser_http::TokenHash;
use hawser_keys::{KeyFile, KeysFileError, Known, Trust};
use thiserror::Error;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::carrier::{BulkCarrier, SocketsError};
use crate::config::{Config, ReceiveConfig};
use crate::event::ServiceEvent;
use crate::follow::{Follower, follow};
use crate::host::{Host, HostError, HostNetwork};
use crate::log::{self, JobLog, JobLogError};
use crate::queue::Queue;
use crate::service::Service;

/// The folder of the jobs, in that of the state.
const FOLDER: &str = "transfers";
/// The file of the key, in the folder of the user's keys, or of the state where there is none.
const KEY: &str = "key";
/// Time between attempts to receive while this host is in no network.
const RECEIVE_RETRY: Duration = Duration::from_secs(5);

/// Why transfers cannot run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TransfersError {
    /// The jobs cannot be read.
    #[error(transparent)]
    Log(#[from] JobLogError),
    /// The jobs of `hawser serve` cannot be moved.
    #[error("cannot move {from} to {to}: {source}")]
    Move {
        /// Where they are.
        from: PathBuf,
        /// Where they belong.
        to: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The host's key cannot be used.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The keys of others cannot be used.
    #[error(transparent)]
    Keys(#[from] KeysFileError),
    /// A folder for transfers from others cannot be used.
    #[error("receive: {0}")]
    Folder(#[from] FolderError),
    /// A socket for transfers cannot be bound.
    #[error(transparent)]
    Bind(#[from] TransferError),
    /// A part of them has ended by itself.
    #[error("transfers do not work without {0}, which has ended by itself: start the daemon again")]
    Ended(String),
}

impl From<SocketsError> for TransfersError {
    fn from(error: SocketsError) -> Self {
        match error {
            SocketsError::Host(error) => Self::Host(error),
            SocketsError::Bind(error) => Self::Bind(error),
        }
    }
}

/// The transfers of a daemon, before they run.
pub struct Transfers {
    service: Service,
    host: Arc<Host>,
    receiving: Option<Receiving>,
    follower: Follower,
    known: Known,
    events: UnboundedSender<ServiceEvent>,
}

/// What is received, and the socket for it once it is bound.
struct Receiving {
    node: Option<Node>,
    sockets: Sockets,
    options: ServerOptions,
    clients: Clients,
}

impl Receiving {
    async fn bind(&mut self, host: &Host) -> Result<Node, TransfersError> {
        if let Some(node) = &self.node {
            return Ok(node.clone());
        }
        let (endhost, identity) = host.open().await?;
        let node = Node::bind(endhost, &self.sockets, identity)?;
        self.node = Some(node.clone());
        Ok(node)
    }
}

impl Transfers {
    /// The transfers of a configuration with the jobs in `state`. The user [`OWNER`](crate::OWNER) has the token
    /// `owner`. What happens goes to `events`.
    ///
    /// If this host is in `network` already, sockets that the configuration names are bound; else once it is.
    ///
    /// # Errors
    /// [`TransfersError`].
    pub async fn open(
        config: &Config,
        state: &Path,
        owner: TokenHash,
        network: HostNetwork,
        events: UnboundedSender<ServiceEvent>,
    ) -> Result<Self, TransfersError> {
        let folder = state.join(FOLDER);
        take_over(state, &folder)?;
        let (log, loaded) = JobLog::open(&folder)?;
        if loaded.cut > 0 {
            let trouble = format!(
                "the last {} bytes of the jobs in {} are of a line that was not finished, and are cut off",
                loaded.cut,
                folder.display()
            );
            // Without a receiver nobody wants to know.
            let _ = events.send(ServiceEvent::Trouble(trouble));
        }
        let queue = Queue::new(config.limits(), loaded.jobs, loaded.next);
        // The user's files, or where there is no home those of the state.
        let keys = hawser_keys::folder().unwrap_or_else(|_| state.to_owned());
        let key = config.key.clone().unwrap_or_else(|| keys.join(KEY));
        let host = Arc::new(Host::new(network, KeyFile::at(&key)));
        if config.key.is_some() || config.receive.is_some() {
            host.identity().await?;
        }
        let known = config.transfers.known_hosts.clone();
        let known = Known::new(known.unwrap_or_else(|| keys.join(Known::FILE)))
            .with_keys(config.transfers.server_keys.iter().copied());
        let receiving = config.receive.as_ref();
        let receiving = receiving.map(|receive| what_is_received(receive, config));
        let mut receiving = receiving.transpose()?;
        let carrier = BulkCarrier::new(
            Arc::clone(&host),
            config.transfers.data_port,
            options(config, known.clone()),
        );
        if host.network().is_joined() {
            carrier.bind().await?;
            if let Some(receiving) = &mut receiving {
                receiving.bind(&host).await?;
            }
        }
        let service = Service::new(
            config,
            owner,
            (queue, log),
            Arc::new(carrier),
            events.clone(),
        );
        Ok(Self {
            service,
            host,
            receiving,
            follower: Follower::new(config),
            known,
            events,
        })
    }

    /// The queue at work.
    #[must_use]
    pub const fn service(&self) -> &Service {
        &self.service
    }

    /// Runs the jobs, receives from other hosts and follows the configuration's file until `stop` is ready.
    /// Transfers that run then continue when the service runs again.
    ///
    /// # Errors
    /// [`TransfersError::Ended`] when a part has ended.
    pub async fn run(self, stop: impl Future) -> Result<(), TransfersError> {
        let Self {
            service,
            host,
            receiving,
            follower,
            known,
            events,
        } = self;
        let clients = receiving
            .as_ref()
            .map(|receiving| receiving.clients.clone());
        let mut parts = Parts::default();
        let bound = Arc::new(OnceLock::new());
        if let Some(receiving) = receiving {
            let receiving = receive(receiving, host, service.clone(), events, Arc::clone(&bound));
            parts.spawn("receiving from other hosts", receiving);
        }
        let following = follow(follower, service.clone(), known, clients);
        parts.spawn("its configuration", following);
        let mut ended = None;
        let stop = async {
            tokio::select! {
                _ = stop => {}
                part = parts.next_end() => ended = Some(part),
            }
        };
        service.run(stop).await;
        if let Some(node) = bound.get() {
            node.close().await;
        }
        parts.0.shutdown().await;
        match ended {
            None => Ok(()),
            Some(part) => Err(TransfersError::Ended(part)),
        }
    }
}

/// Moves the jobs of `hawser serve` with the same folder of state to where they belong, if there are none yet.
fn take_over(state: &Path, folder: &Path) -> Result<(), TransfersError> {
    let (from, to) = (state.join(log::FILE), folder.join(log::FILE));
    if to.exists() || !from.exists() {
        return Ok(());
    }
    let moved = fs::create_dir_all(folder).and_then(|()| fs::rename(&from, &to));
    moved.map_err(|source| TransfersError::Move { from, to, source })
}

/// The tasks of a service, which last as long as it does; each returns its name when it ends.
#[derive(Default)]
struct Parts(JoinSet<&'static str>);

impl Parts {
    fn spawn(&mut self, name: &'static str, part: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(async move {
            part.await;
            name
        });
    }

    /// Waits until one has ended, and returns which.
    async fn next_end(&mut self) -> String {
        match self.0.join_next().await {
            Some(Ok(name)) => name.to_owned(),
            Some(Err(panic)) => format!("one of its tasks ({panic})"),
            None => std::future::pending().await,
        }
    }
}

fn options(config: &Config, known: Known) -> TransferOptions {
    let transfers = &config.transfers;
    TransferOptions {
        paths: PathOptions {
            subflows: transfers.paths,
            ..PathOptions::default()
        },
        policy: None,
        algorithm: transfers.congestion,
        server: Trust::Known(known),
        // Each transfer has that of its user.
        limit: None,
        wants: Wants::default(),
        // The queue tries again, and lets others run meanwhile.
        wait: Duration::ZERO,
        retry: Duration::ZERO,
    }
}

/// What is received, after its folders and keys were checked, before anybody can send.
fn what_is_received(receive: &ReceiveConfig, config: &Config) -> Result<Receiving, TransfersError> {
    let folder = Destination::Folder {
        root: receive.folder.clone(),
        name: PathBuf::new(),
    };
    folder.check()?;
    receive.share.as_deref().map(check_shared).transpose()?;
    let clients = Clients::allowed(receive.allowed()?);
    let options = ServerOptions {
        clients: clients.clone(),
        code: None,
        receive: Some(folder),
        share: receive.share.clone(),
        take: Choices::NONE,
        sessions: receive.sessions,
        algorithm: config.transfers.congestion,
        limit: receive.rate.map(|rate| Limit::new(rate, None)),
    };
    Ok(Receiving {
        node: None,
        sockets: Sockets {
            listen: receive.listen,
            data_port: receive.data_port.map(NonZeroU16::get),
            xdp: None,
        },
        options,
        clients,
    })
}

/// Takes what other hosts send, once this host is in its network.
async fn receive(
    mut receiving: Receiving,
    host: Arc<Host>,
    service: Service,
    events: UnboundedSender<ServiceEvent>,
    bound: Arc<OnceLock<Node>>,
) {
    let mut reported = String::new();
    let node = loop {
        match receiving.bind(&host).await {
            Ok(node) => break node,
            Err(error) => {
                let error = error.to_string();
                if error != reported {
                    service.trouble(format_args!("nothing is received yet: {error}"));
                    reported = error;
                }
            }
        }
        tokio::time::sleep(RECEIVE_RETRY).await;
    };
    service.receives_at(node.local_addr(), node.key());
    let node = bound.get_or_init(|| node);
    // `serve` bounds them.
    let (happens, mut happened) = unbounded_channel();
    let reporting = async {
        while let Some(event) = happened.recv().await {
            if let ServerEvent::Ended(_, Ok(summary)) = &event {
                let progress = summary.progress;
                service
                    .counters()
                    .received(progress.verified.saturating_sub(progress.existing));
            }
            if let ServerEvent::Keys(error) = &event {
                service.trouble(error);
                continue;
            }
            if !matches!(event, ServerEvent::Session(..)) {
                let _ = events.send(ServiceEvent::Receive(Box::new(event)));
            }
        }
    };
    tokio::join!(serve(node, receiving.options, happens), reporting);
}

#[cfg(test)]
mod tests;
