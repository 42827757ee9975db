//! A service from its configuration.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use hawser_bulk::protocol::{Choices, Wants};
use hawser_bulk::{
    Destination, Limit, Node, PathOptions, ServerEvent, ServerOptions, TransferError,
    TransferOptions, serve,
};
use hawser_endhost::{Bootstrap, BootstrapError, Endhost};
use hawser_http::TlsError;
use hawser_keys::{Allowed, KeyFile, KeyFileError, KeysFileError, Known, NoFolder, Trust};
use thiserror::Error;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::carrier::BulkCarrier;
use crate::config::{Config, HttpsConfig, ReceiveConfig};
use crate::event::{Addresses, ServiceEvent};
use crate::http::Listener;
use crate::log::{JobLog, JobLogError};
use crate::notify::{self, notify};
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
    /// The files for TLS cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A socket for the API cannot be bound.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The socket for transfers from others cannot be bound.
    #[error(transparent)]
    Receive(#[from] TransferError),
}

/// Runs the service of a configuration until `stop` is ready; what happens goes to `events`.
/// Transfers that run then go on when the service runs again.
///
/// # Errors
/// [`RunError`] when it cannot start.
pub async fn run(
    config: &Config,
    events: UnboundedSender<ServiceEvent>,
    stop: impl Future,
) -> Result<(), RunError> {
    let (log, loaded) = JobLog::open(&config.state)?;
    let queue = Queue::new(config.limits(), loaded.jobs, loaded.next);
    let identity = match &config.key {
        Some(path) => KeyFile::at(path),
        None => KeyFile::of_user()?,
    };
    let identity = identity.open()?;
    let tls = config.https.as_ref().map(HttpsConfig::tls).transpose()?;
    let options = options(config)?;
    let host = Endhost::bootstrap(&Bootstrap {
        daemon: config.network.sciond.clone(),
        config_dir: config.network.config_dir.clone(),
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
        let listener = Listener::http(address, http.anonymous.as_deref()).await;
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
    if let Some(receive) = &config.receive {
        let allowed = allowed(receive)?;
        let node = Node::bind(host.clone(), receive.listen, identity.clone())?;
        addresses.receive = Some(node.local_addr());
        let options = server_options(receive, allowed, config, events.clone());
        receiving = Some((node, options));
    }
    let carrier = Arc::new(BulkCarrier::new(host, identity, options));
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

    let mut tasks = JoinSet::new();
    for listener in listeners {
        tasks.spawn(listener.serve(service.clone()));
    }
    let node = receiving.map(|(node, options)| {
        let (service, node_there) = (service.clone(), node.clone());
        tasks.spawn(receive_from_others(
            node_there,
            options,
            service,
            events.clone(),
        ));
        node
    });
    report(ServiceEvent::Ready(addresses));
    let manager = |state| {
        if let Err(error) = notify(state) {
            report(ServiceEvent::Trouble(format!(
                "cannot notify systemd: {error}"
            )));
        }
    };
    manager(notify::READY);
    service.run(stop).await;
    manager(notify::STOPPING);
    if let Some(node) = node {
        node.close().await;
    }
    tasks.shutdown().await;
    Ok(())
}

fn options(config: &Config) -> Result<TransferOptions, RunError> {
    let transfers = &config.transfers;
    let known = match &transfers.known_hosts {
        Some(path) => path.clone(),
        None => hawser_keys::folder()?.join(Known::FILE),
    };
    let known = Known::new(known).with_keys(transfers.server_keys.iter().copied());
    Ok(TransferOptions {
        paths: PathOptions {
            subflows: transfers.paths,
            ..PathOptions::default()
        },
        algorithm: transfers.congestion,
        server: Trust::Known(known),
        // Each transfer has that of its user.
        limit: None,
        wants: Wants::default(),
    })
}

fn allowed(receive: &ReceiveConfig) -> Result<Allowed, KeysFileError> {
    let allowed = Allowed::new(receive.allow.iter().copied());
    match &receive.allowed_keys {
        Some(path) => allowed.with_file(path),
        None => Ok(allowed),
    }
}

fn server_options(
    receive: &ReceiveConfig,
    allowed: Allowed,
    config: &Config,
    events: UnboundedSender<ServiceEvent>,
) -> ServerOptions {
    ServerOptions {
        allows: Arc::new(move |key| match allowed.allows(key) {
            Ok(allows) => allows,
            Err(error) => {
                let _ = events.send(ServiceEvent::Trouble(error.to_string()));
                false
            }
        }),
        code: None,
        receive: Some(Destination::Folder {
            root: receive.folder.clone(),
            name: std::path::PathBuf::new(),
        }),
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
    let (happens, mut happened) = unbounded_channel();
    let reporting = async {
        while let Some(event) = happened.recv().await {
            if let ServerEvent::Ended(_, Ok(summary)) = &event {
                let progress = summary.progress;
                service
                    .counters()
                    .received(progress.verified.saturating_sub(progress.existing));
            }
            if !matches!(event, ServerEvent::Session(..)) {
                let _ = events.send(ServiceEvent::Receive(Box::new(event)));
            }
        }
    };
    tokio::join!(serve(&node, options, happens), reporting);
}
