//! Jobs done by bulk transfer.

use std::pin::{Pin, pin};
use std::sync::Arc;

use hawser_bulk::content::{ScanOptions, Source, scan_shared_as};
use hawser_bulk::{
    Node, Progress, Request, Sockets, TransferError, TransferEvent, TransferOptions, transfer,
};
use hawser_endhost::Endhost;
use hawser_keys::Identity;
use tokio::sync::mpsc::unbounded_channel;

use super::failure::{self, failed};
use super::{Attempt, Carrier, Task};
use crate::job::{FailureKind, JobProgress};
use crate::queue::Outcome;

/// Does jobs by bulk transfer. Each has sockets and a thread of its own, unless a port for content is
/// named.
#[derive(Clone)]
pub struct BulkCarrier {
    /// The sockets of all jobs.
    node: Option<Node>,
    host: Endhost,
    identity: Identity,
    options: TransferOptions,
}

impl BulkCarrier {
    /// A carrier on this host, which shows the key `identity`.
    #[must_use]
    pub const fn new(host: Endhost, identity: Identity, options: TransferOptions) -> Self {
        Self {
            node: None,
            host,
            identity,
            options,
        }
    }

    /// Has all jobs send content from `port`.
    ///
    /// # Errors
    /// When a socket cannot be bound.
    pub fn with_data_port(mut self, port: u16) -> Result<Self, TransferError> {
        let sockets = Sockets {
            data_port: Some(port),
            ..Sockets::default()
        };
        let (host, identity) = (self.host.clone(), self.identity.clone());
        self.node = Some(Node::bind(host, &sockets, identity)?);
        Ok(self)
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
        let is_shared = self.node.is_some();
        let node = match self.node {
            Some(node) => Ok(node),
            None => Node::bind(self.host, &Sockets::default(), self.identity),
        };
        let node = match node {
            Ok(node) => node,
            Err(error) => return Attempt::Ended(failure::of(&error)),
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
