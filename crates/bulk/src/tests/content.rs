//! Whole transfers between two hosts in one process.

mod attributes;
mod files;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hawser_keys::{Identity, Trust};
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;

use crate::content::{ScanOptions, Source, scan};
use crate::protocol::{Choices, Wants};
use crate::toy::{ToyNet, own_ip, unix_now};
use crate::*;

/// A client, a server that runs, and their folders.
struct Bed {
    _net: ToyNet,
    client: Node,
    server: Node,
    folder: TempDir,
    /// What happens at the server.
    events: UnboundedReceiver<ServerEvent>,
    serving: JoinHandle<()>,
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Bed {
    /// A server that writes to the folder `in` and shares the folder `from`.
    async fn start() -> Self {
        let net = ToyNet::start().await;
        net.offer(u32::try_from(unix_now()).unwrap());
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("from")).unwrap();
        let bind = |host, last| {
            let identity = Identity::generate().unwrap();
            let sockets = Sockets {
                listen: Some((own_ip(last), 0).into()),
                ..Sockets::default()
            };
            Node::bind(host, &sockets, identity).unwrap()
        };
        let client = bind(net.a.endhost().await, 1);
        let server = bind(net.b.endhost().await, 2);
        let options = ServerOptions {
            clients: Clients::any(),
            code: None,
            receive: Some(Destination::Folder {
                root: folder.path().join("in"),
                name: PathBuf::new(),
            }),
            share: Some(folder.path().join("from")),
            take: Choices::NONE
                .with(Choices::OWNER, true)
                .with(Choices::GROUP, true)
                .with(Choices::ATTRIBUTES, true),
            sessions: 4,
            algorithm: Algorithm::default(),
            limit: None,
        };
        let (sender, events) = unbounded_channel();
        let node = server.clone();
        let serving = tokio::spawn(async move { serve(&node, options, sender).await });
        Self {
            _net: net,
            client,
            server,
            folder,
            events,
            serving,
        }
    }

    /// A file or folder of the source.
    fn from(&self, name: &str) -> PathBuf {
        self.folder.path().join("from").join(name)
    }

    /// What has arrived at the server.
    fn arrived(&self, name: &str) -> PathBuf {
        self.folder.path().join("in").join(name)
    }

    /// The content of what is called `name` at the source.
    fn content(&self, name: &str, options: ScanOptions) -> Arc<Source> {
        Arc::new(Source::open(scan(&[self.from(name)], options).unwrap()))
    }

    async fn transfer(&self, request: Request, wants: Wants) -> Result<Summary, TransferError> {
        let options = TransferOptions {
            paths: PathOptions::default(),
            policy: None,
            algorithm: Algorithm::default(),
            server: Trust::Any,
            limit: None,
            wait: Duration::ZERO,
            retry: Duration::ZERO,
            wants,
        };
        let (events, _) = unbounded_channel();
        transfer(
            &self.client,
            self.server.local_addr(),
            request,
            options,
            events,
        )
        .await
    }

    /// Sends content to `path` in the server's folder.
    async fn send(&self, content: &Arc<Source>, path: &str) -> Summary {
        let content = Arc::clone(content);
        let name = path.to_owned();
        let sent = self.transfer(Request::Send { content, name }, Wants::default());
        sent.await.unwrap()
    }

    /// Fetches what is called `name` at the server into the folder `out`.
    async fn fetch(&self, name: &str, wants: Wants) -> Summary {
        let destination = Destination::Folder {
            root: self.folder.path().join("out"),
            name: PathBuf::new(),
        };
        let name = name.to_owned();
        let fetched = self.transfer(Request::Fetch { name, destination }, wants);
        fetched.await.unwrap()
    }

    /// What the server reports at the end of the next session.
    async fn ended(&mut self) -> Result<Summary, TransferError> {
        loop {
            if let ServerEvent::Ended(_, ended) = self.events.recv().await.unwrap() {
                return ended;
            }
        }
    }
}

/// `length` bytes that no other seed has anywhere.
fn bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    bytes
}

fn same(one: &Path, other: &Path) -> bool {
    fs::read(one).unwrap() == fs::read(other).unwrap()
}

/// The paths of files that failed, each with whether that was at the source.
fn failed(summary: &Summary) -> Vec<(&str, bool)> {
    let mut failed: Vec<_> = (summary.failed.iter())
        .map(|one| (one.path.to_str().unwrap(), one.at_source))
        .collect();
    failed.sort_unstable();
    failed
}
