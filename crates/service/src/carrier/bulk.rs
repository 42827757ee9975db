//! Jobs done by bulk transfer.

use std::num::NonZeroU16;
use std::pin::{Pin, pin};
use std::sync::Arc;

use hawser_bulk::content::{ScanOptions, Source, scan_shared_as};
use hawser_bulk::{
    Node, Progress, Request, Sockets, TransferError, TransferEvent, TransferOptions, transfer,
};
use thiserror::Error;
use tokio::sync::OnceCell;
use tokio::sync::mpsc::unbounded_channel;

use super::failure::{self, failed};
use super::{Attempt, Carrier, Task};
use crate::host::{Host, HostError};
use crate::job::{FailureKind, JobProgress};
use crate::queue::Outcome;

/// Does jobs by bulk transfer. Each has sockets and a thread of its own, unless a port for content is
/// named.
#[derive(Clone)]
pub struct BulkCarrier {
    host: Arc<Host>,
    /// The port from which all jobs send content.
    data_port: Option<NonZeroU16>,
    /// The sockets of all jobs, if there is such a port.
    shared: Arc<OnceCell<Node>>,
    options: TransferOptions,
}

/// Why the sockets of a job cannot be had.
#[derive(Debug, Error)]
pub(crate) enum SocketsError {
    /// This host is in no network, or has no key.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A socket cannot be bound.
    #[error(transparent)]
    Bind(#[from] TransferError),
}

impl BulkCarrier {
    /// A carrier on this host. With `data_port` all jobs send content from that.
    #[must_use]
    pub fn new(host: Arc<Host>, data_port: Option<NonZeroU16>, options: TransferOptions) -> Self {
        Self {
            host,
            data_port,
            shared: Arc::default(),
            options,
        }
    }

    /// Binds the sockets of all jobs, if there is a port for their content.
    pub(crate) async fn bind(&self) -> Result<(), SocketsError> {
        match self.data_port {
            Some(_) => self.node().await.map(drop),
            None => Ok(()),
        }
    }

    /// The sockets of a job.
    async fn node(&self) -> Result<Node, SocketsError> {
        let sockets = Sockets {
            data_port: self.data_port.map(NonZeroU16::get),
            ..Sockets::default()
        };
        let bind = async || {
            let (endhost, identity) = self.host.open().await?;
            Ok(Node::bind(endhost, &sockets, identity)?)
        };
        match self.data_port {
            Some(_) => self.shared.get_or_try_init(bind).await.cloned(),
            None => bind().await,
        }
    }

    async fn attempt(self, task: Task) -> Attempt {
        let Task {
            source,
            server,
            folder,
            name,
            limit,
            progress,
            mut stop,
        } = task;
        let scanning = tokio::task::spawn_blocking(move || {
            let options = ScanOptions::default();
            scan_shared_as(&source.root, &source.relative, name.as_ref(), options).map(Source::open)
        });
        let scanned = tokio::select! {
            scanned = scanning => scanned,
            _ = &mut stop => return Attempt::Interrupted,
        };
        let content = match scanned {
            Ok(Ok(content)) => Arc::new(content),
            Ok(Err(error)) => return Attempt::Ended(failure::of(&error.into())),
            Err(error) => {
                return Attempt::Ended(Outcome::Permanent(failed(FailureKind::Other, error)));
            }
        };
        let is_shared = self.data_port.is_some();
        let node = match self.node().await {
            Ok(node) => node,
            Err(SocketsError::Bind(error)) => return Attempt::Ended(failure::of(&error)),
            // It may be joined, or mended, until the next attempt.
            Err(SocketsError::Host(error)) => {
                let kind = match &error {
                    HostError::Network(_) => FailureKind::NoPaths,
                    _ => FailureKind::Other,
                };
                return Attempt::Ended(Outcome::Transient(failed(kind, error)));
            }
        };
        // Taken at once.
        let (events, mut received) = unbounded_channel();
        let request = Request::Send {
            content,
            name: folder,
        };
        let options = TransferOptions {
            limit,
            ..self.options
        };
        let ended = {
            let mut transfer = pin!(transfer(&node, server, request, options, events));
            loop {
                tokio::select! {
                    ended = &mut transfer => break Some(ended),
                    Some(event) = received.recv() => {
                        if let TransferEvent::Progress(now, ..) = event {
                            progress.send_replace(now.into());
                        }
                    }
                    _ = &mut stop => break None,
                }
            }
        };
        if !is_shared {
            node.close().await;
        }
        match ended {
            None => Attempt::Interrupted,
            Some(Ok(summary)) => {
                progress.send_replace(summary.progress.into());
                Attempt::Ended(failure::of_files(&summary.failed))
            }
            Some(Err(error)) => Attempt::Ended(failure::of(&error)),
        }
    }
}

impl Carrier for BulkCarrier {
    fn carry(&self, task: Task) -> Pin<Box<dyn Future<Output = Attempt> + Send>> {
        Box::pin(self.clone().attempt(task))
    }
}

impl From<Progress> for JobProgress {
    fn from(progress: Progress) -> Self {
        Self {
            bytes: progress.total,
            verified_bytes: progress.verified,
            existing_bytes: progress.existing,
            files: progress.files,
        }
    }
}
