//! A service from its configuration.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hawser_bootstrap::JoinError;
use hawser_bulk::protocol::{Choices, Wants};
use hawser_bulk::{
    Clients, Destination, FolderError, Limit, Node, PathOptions, ServerEvent, ServerOptions,
    Sockets, TransferError, TransferOptions, check_shared, serve,
};
use hawser_endhost::{Bootstrap, BootstrapError, Endhost};
use hawser_http::{READY, STOPPING, TlsError, notify};
use hawser_kernel::bind::Refused;
use hawser_keys::{KeyFile, KeyFileError, KeysFileError, Known, NoFolder, Trust};
use thiserror::Error;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::carrier::BulkCarrier;
use crate::config::{Config, HttpsConfig, ReceiveConfig};
use crate::event::{Addresses, ServiceEvent};
use crate::follow::{Follower, follow};
use crate::http::Listener;
use crate::log::{JobLog, JobLogError};
use crate::queue::Queue;
use crate::service::{Receive, Service};

/// Why a service cannot run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The jobs cannot be read.
    #[error(transparent)]
    Log(#[from] JobLogError),
    /// The host's key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// The keys of others cannot be used.
    #[error(transparent)]
    Keys(#[from] KeysFileError),
    /// There is no folder for keys.
    #[error(transparent)]
    NoFolder(#[from] NoFolder),
    /// This host is in no network.
    #[error(transparent)]
    Network(#[from] BootstrapError),
    /// What the bootstrap server has cannot be fetched or kept.
    #[error("network.bootstrap: {0}")]
    Bootstrap(#[from] JoinError),
    /// The files for TLS cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A socket for the API cannot be bound.
    #[error("cannot listen at {address}: {}", Refused::tcp(*.address, source))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// A folder for transfers from others cannot be used.
    #[error("receive: {0}")]
    Folder(#[from] FolderError),
    /// The socket for transfers from others cannot be bound.
    #[error(transparent)]
    Receive(#[from] TransferError),
    /// A part of the service has ended by itself.
    #[error("the service does not work without {0}, which has ended by itself: start it again")]
    Ended(String),
}

/// The folder with `topology.json`, if one is used: the one that is named, or the one with what the
/// bootstrap server has now.
async fn config_dir(
    config: &Config,
    events: &UnboundedSender<ServiceEvent>,
) -> Result<Option<PathBuf>, JoinError> {
    let Some(server) = &config.network.bootstrap else {
        return Ok(config.network.config_dir.clone());
    };
    let joined = hawser_bootstrap::join(server, &config.state.join("bootstrap")).await?;
    for id in joined.trusted {
        let trouble = format!(
            "{id} of {server} is trusted from now on, and nothing proves it: compare it with one \
             that you have ({})",
            joined.folder.join("certs").display()
        );
        // Without a receiver nobody wants to know.
        let _ = events.send(ServiceEvent::Trouble(trouble));
    }
    Ok(Some(joined.folder))
}

/// Runs the service of a configuration until `stop` is ready; what happens goes to `events`.
/// Transfers that run then go on when the service runs again.
///
/// # Errors
/// [`RunError`] when it cannot start, or a part of it has ended.
pub async fn run(
    config: &Config,
    events: UnboundedSender<ServiceEvent>,
    stop: impl Future,
) -> Result<(), RunError> {
    let (log, loaded) = JobLog::open(&config.state)?;
    if loaded.cut > 0 {
        let trouble = format!(
            "the last {} bytes of the jobs in {} are of a line that was not finished, and are cut off",
            loaded.cut,
            config.state.display()
        );
        // Without a receiver nobody wants to know.
        let _ = events.send(ServiceEvent::Trouble(trouble));
    }
    let queue = Queue::new(config.limits(), loaded.jobs, loaded.next);
    let identity = match &config.key {
        Some(path) => KeyFile::at(path),
        None => KeyFile::of_user()?,
    };
    let identity = identity.open()?;
    let tls = config.https.as_ref().map(HttpsConfig::tls).transpose()?;
    let known = known(config)?;
    let options = options(config, known.clone());
    let receive_folder = config.receive.as_ref().map(receive_folder).transpose()?;
    let host = Endhost::bootstrap(&Bootstrap {
        daemon: config.network.sciond.clone(),
        config_dir: config_dir(config, &events).await?,
        local: config.network.local,
    })
    .await?;
    let mut addresses = Addresses {
        key: Some(identity.key()),
        ..Addresses::default()
    };
    let mut listeners = Vec::new();
    if let Some(http) = &config.http {
        let address = http.listen;
        let listener = Listener::http(address, http.anonymous.is_some()).await;
        let listener = listener.map_err(|source| RunError::Listen { address, source })?;
        addresses.http = listener.local_addr().ok();
        listeners.push(listener);
    }
    if let (Some(https), Some(tls)) = (&config.https, tls) {
        let address = https.listen;
        let listener = Listener::https(address, tls).await;
        let listener = listener.map_err(|source| RunError::Listen { address, source })?;
        addresses.https = listener.local_addr().ok();
        listeners.push(listener);
    }
    let mut receiving = None;
    let mut clients = None;
    if let (Some(receive), Some(folder)) = (&config.receive, receive_folder) {
        let allowed = Clients::allowed(receive.allowed()?);
        let sockets = Sockets {
            listen: receive.listen,
            data_port: receive.data_port.map(NonZeroU16::get),
            xdp: None,
        };
        let node = Node::bind(host.clone(), &sockets, identity.clone())?;
        addresses.receive = Some(node.local_addr());
        let options = server_options(receive, folder, allowed.clone(), config);
        receiving = Some((node, options));
        clients = Some(allowed);
    }
    let mut carrier = BulkCarrier::new(host, identity, options);
    if let Some(port) = config.transfers.data_port {
        carrier = carrier.with_data_port(port.get())?;
    }
    let carrier = Arc::new(carrier);
    let receive = addresses.receive.zip(config.receive.as_ref());
    let receive = receive.map(|(address, receive)| Receive {
        address,
        folder: receive.folder.clone(),
    });
    let service = Service::new(config, (queue, log), carrier, receive, events.clone());
    let report = |event| {
        // The caller may have dropped its end: then nothing is reported.
        let _ = events.send(event);
    };

    let mut parts = Parts::default();
    for listener in listeners {
        parts.spawn("its API", listener.serve(service.clone()));
    }
    let node = receiving.map(|(node, options)| {
        let (service, node_there) = (service.clone(), node.clone());
        let receiving = receive_from_others(node_there, options, service, events.clone());
        parts.spawn("receiving from other hosts", receiving);
        node
    });
    let following = follow(Follower::new(config), service.clone(), known, clients);
    parts.spawn("its configuration", following);
    report(ServiceEvent::Ready(addresses));
    let manager = |state| {
        if let Err(error) = notify(state) {
            report(ServiceEvent::Trouble(format!(
                "cannot notify systemd: {error}"
            )));
        }
    };
    manager(READY);
    let mut ended = None;
    let stop = async {
        tokio::select! {
            _ = stop => {}
            part = parts.next_end() => ended = Some(part),
        }
    };
    service.run(stop).await;
    manager(STOPPING);
    if let Some(node) = node {
        node.close().await;
    }
    parts.0.shutdown().await;
    match ended {
        None => Ok(()),
        Some(part) => Err(RunError::Ended(part)),
    }
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

/// The keys of servers.
fn known(config: &Config) -> Result<Known, NoFolder> {
    let known = match &config.transfers.known_hosts {
        Some(path) => path.clone(),
        None => hawser_keys::folder()?.join(Known::FILE),
    };
    Ok(Known::new(known).with_keys(config.transfers.server_keys.iter().copied()))
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

/// Checks the folders of what is received before anybody can send.
fn receive_folder(receive: &ReceiveConfig) -> Result<Destination, FolderError> {
    let folder = Destination::Folder {
        root: receive.folder.clone(),
        name: PathBuf::new(),
    };
    folder.check()?;
    receive.share.as_deref().map(check_shared).transpose()?;
    Ok(folder)
}

fn server_options(
    receive: &ReceiveConfig,
    folder: Destination,
    clients: Clients,
    config: &Config,
) -> ServerOptions {
    ServerOptions {
        clients,
        code: None,
        receive: Some(folder),
        share: receive.share.clone(),
        take: Choices::NONE,
        sessions: receive.sessions,
        algorithm: config.transfers.congestion,
        limit: receive.rate.map(|rate| Limit::new(rate, None)),
    }
}

/// Takes what other hosts send.
async fn receive_from_others(
    node: Node,
    options: ServerOptions,
    service: Service,
    events: UnboundedSender<ServiceEvent>,
) {
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
    tokio::join!(serve(&node, options, happens), reporting);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_of_a_part_is_noticed() {
        let mut parts = Parts::default();
        parts.spawn("what lasts", std::future::pending());
        let waiting = tokio::time::timeout(Duration::from_millis(50), parts.next_end());
        assert!(waiting.await.is_err());
        parts.spawn("what ends", std::future::ready(()));
        assert_eq!(parts.next_end().await, "what ends");
        parts.spawn("what panics", async { panic!("as the test wants") });
        let text = parts.next_end().await;
        assert!(text.contains("panicked"), "{text}");
    }
}
