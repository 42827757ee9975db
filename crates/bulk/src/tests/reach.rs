//! Transfers between two hosts of this process: who may transfer, for how long, and how often it is
//! tried.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hawser_endhost::ScionAddr;
use hawser_keys::{Allowed, Code, Identity, Known, PeerKey, ServerKeyError, Trust};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::content::Source;
use crate::data::Command;
use crate::protocol::{Choices, ErrorCode, Wants};
use crate::toy::{ToyNet, own_ip};
use crate::{
    Algorithm, Clients, Destination, Limit, Node, PathOptions, Request, ServerEvent, ServerOptions,
    Sockets, Summary, TransferError, TransferEvent, TransferOptions, serve, transfer,
};

/// Longest wait for anything, also on a machine that is very busy.
const PATIENCE: Duration = Duration::from_secs(300);

/// Bytes of content that take long at [`SLOW`], so that a session is surely running.
pub(super) const LARGE: u64 = 64 << 20;
/// Bytes of content that arrive at once.
pub(super) const SMALL: u64 = 1000;
/// A rate in bit/s.
const SLOW: u64 = 8_000_000;

/// Two hosts in a network, and a folder for files.
pub(super) struct Bed {
    net: ToyNet,
    folder: tempfile::TempDir,
    /// The host of its address, so that tests do not meet.
    host: u8,
    client: Identity,
}

/// A server at work.
pub(super) struct Server {
    node: Node,
    events: UnboundedReceiver<ServerEvent>,
    serving: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Server {
    pub(super) fn address(&self) -> ScionAddr {
        self.node.local_addr()
    }

    /// Waits for an event that `wanted` takes.
    pub(super) async fn event<T>(&mut self, mut wanted: impl FnMut(ServerEvent) -> Option<T>) -> T {
        let mut before = Vec::new();
        loop {
            let event = timeout(PATIENCE, self.events.recv()).await;
            let Ok(Some(event)) = event else {
                panic!("{event:?} after {before:?}");
            };
            before.push(format!("{event:?}"));
            if let Some(found) = wanted(event) {
                return found;
            }
        }
    }

    pub(super) async fn ended(&mut self) -> Result<Summary, TransferError> {
        self.event(|event| match event {
            ServerEvent::Ended(_, result) => Some(result),
            _ => None,
        })
        .await
    }
}

/// A transfer at work.
pub(super) struct Sending {
    events: UnboundedReceiver<TransferEvent>,
    pub(super) task: JoinHandle<Result<Summary, TransferError>>,
}

impl Sending {
    /// Waits until content was delivered.
    pub(super) async fn delivers(&mut self) {
        self.event(|event| match event {
            TransferEvent::Progress(now, ..) => (now.verified > 0).then_some(()),
            _ => None,
        })
        .await;
    }

    async fn waits(&mut self) -> String {
        self.event(|event| match event {
            TransferEvent::Waiting { reason, .. } => Some(reason),
            _ => None,
        })
        .await
    }

    /// Waits for an event that `wanted` takes.
    async fn event<T>(&mut self, mut wanted: impl FnMut(TransferEvent) -> Option<T>) -> T {
        let mut last = None;
        loop {
            let event = timeout(PATIENCE, self.events.recv()).await;
            let Ok(Some(event)) = event else {
                panic!("{event:?} after {last:?}");
            };
            last = Some(format!("{event:?}"));
            if let Some(found) = wanted(event) {
                return found;
            }
        }
    }
}

impl Bed {
    pub(super) async fn new(host: u8) -> Self {
        Self::with_links(host, 1).await
    }

    /// With as many paths between the hosts.
    pub(super) async fn with_links(host: u8, links: u16) -> Self {
        Self {
            net: ToyNet::with_links(links).await,
            folder: tempfile::tempdir().unwrap(),
            host,
            client: Identity::generate().unwrap(),
        }
    }

    fn listen(&self, port: u16) -> Option<SocketAddr> {
        Some(SocketAddr::new(own_ip(self.host), port))
    }

    /// The addresses of the client, beside those of the server.
    fn sockets(&self, ip: u8) -> Sockets {
        Sockets {
            listen: Some(SocketAddr::new(own_ip(ip), 0)),
            ..Sockets::default()
        }
    }

    /// The server's host, which serves nothing yet.
    pub(super) async fn server(&self) -> Node {
        let host = self.net.b.endhost().await;
        let identity = Identity::generate().unwrap();
        Node::bind(host, &self.sockets(self.host), identity).unwrap()
    }

    async fn serve(&self, clients: Clients, code: Option<Code>) -> Server {
        let node = self.server().await;
        let options = ServerOptions {
            clients,
            code,
            receive: Some(Destination::Discard),
            share: None,
            take: Choices::NONE,
            sessions: 4,
            algorithm: Algorithm::default(),
            limit: None,
        };
        let (events, received) = unbounded_channel();
        let serving = node.clone();
        let serving = tokio::spawn(async move { serve(&serving, options, events).await });
        Server {
            node,
            events: received,
            serving,
        }
    }

    /// A server for whoever knows `code`.
    pub(super) async fn offer(&self, code: &Code) -> Server {
        self.serve(Clients::allowed(Allowed::new([])), Some(code.clone()))
            .await
    }

    pub(super) async fn node(&self) -> Node {
        self.node_of(self.client.clone()).await
    }

    pub(super) async fn node_of(&self, identity: Identity) -> Node {
        let host = self.net.a.endhost().await;
        Node::bind(host, &self.sockets(self.host + 1), identity).unwrap()
    }

    /// Sends `bytes` slowly.
    pub(super) fn send(&self, node: &Node, to: ScionAddr, bytes: u64, server: Trust) -> Sending {
        self.send_content(node, to, Source::zeros(bytes).unwrap(), server)
    }

    /// Sends content slowly.
    pub(super) fn send_content(
        &self,
        node: &Node,
        to: ScionAddr,
        content: Source,
        server: Trust,
    ) -> Sending {
        let options = TransferOptions {
            paths: PathOptions::default(),
            policy: None,
            algorithm: Algorithm::default(),
            server,
            limit: Some(Limit::new(SLOW, None)),
            wait: Duration::ZERO,
            retry: Duration::from_secs(300),
            wants: Wants::default(),
        };
        let request = Request::Send {
            content: Arc::new(content),
            name: String::new(),
        };
        let (events, received) = unbounded_channel();
        let node = node.clone();
        Sending {
            events: received,
            task: tokio::spawn(async move { transfer(&node, to, request, options, events).await }),
        }
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Writes a file that only its owner can write, in place, as editors do.
fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, PermissionsExt::from_mode(0o644)).unwrap();
}

pub(super) fn is_refused(result: &Result<Summary, TransferError>, text: &str) -> bool {
    matches!(
        result,
        Err(TransferError::Peer { code: ErrorCode::KEY, text: said }) if said.contains(text)
    )
}

#[tokio::test]
async fn a_key_that_is_no_longer_allowed_loses_its_session_and_no_other_does() {
    let bed = Bed::new(10).await;
    let file = bed.file("allowed_keys");
    let (mine, other) = (bed.client.key(), Identity::generate().unwrap());
    write(&file, &format!("{mine}\n{}\n", other.key()));
    let allowed = Allowed::new([]).with_file(&file).unwrap();
    let mut server = bed.serve(Clients::allowed(allowed), None).await;
    let nodes = [bed.node().await, bed.node_of(other.clone()).await];
    let mut sending = nodes
        .each_ref()
        .map(|node| bed.send(node, server.address(), LARGE, Trust::Any));
    for one in &mut sending {
        one.delivers().await;
    }
    // A wrong line beside it does not keep the key from being revoked.
    write(&file, &format!("wrong\n{}\n", other.key()));
    let ended = server.ended().await;
    assert!(matches!(ended, Err(TransferError::Revoked)), "{ended:?}");
    let [mine, mut other] = sending;
    let result = mine.task.await.unwrap();
    assert!(is_refused(&result, "no longer allowed"), "{result:?}");
    // Events from now on.
    while other.events.try_recv().is_ok() {}
    other.delivers().await;
    assert!(!other.task.is_finished());
    other.task.abort();
}

/// Waits until the data thread has no session, far longer than that takes.
async fn has_no_session(node: &Node) {
    for _ in 0..30_000 {
        let (answer, count) = oneshot::channel();
        node.data().commands().give(Command::Count(answer));
        if count.await.unwrap() == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the data thread still has a session");
}

#[tokio::test]
async fn sessions_that_are_dropped_leave_nothing_at_the_data_thread() {
    let bed = Bed::new(30).await;
    let server = bed.serve(Clients::any(), None).await;
    let node = bed.node().await;
    let mut sending = bed.send(&node, server.address(), LARGE, Trust::Any);
    sending.delivers().await;
    sending.task.abort();
    has_no_session(&node).await;
    // Those of a server as well.
    let mut sending = bed.send(&node, server.address(), LARGE, Trust::Any);
    sending.delivers().await;
    server.serving.abort();
    has_no_session(&server.node).await;
    sending.task.abort();
}

#[tokio::test]
async fn those_allowed_can_be_changed_while_a_server_runs() {
    let bed = Bed::new(12).await;
    let clients = Clients::allowed(Allowed::new([bed.client.key()]));
    let mut server = bed.serve(clients.clone(), None).await;
    let node = bed.node().await;
    let mut sending = bed.send(&node, server.address(), LARGE, Trust::Any);
    sending.delivers().await;
    clients.set(Allowed::new([PeerKey([7; 32])]));
    let ended = server.ended().await;
    assert!(matches!(ended, Err(TransferError::Revoked)), "{ended:?}");
    let result = sending.task.await.unwrap();
    assert!(is_refused(&result, "no longer allowed"), "{result:?}");
}

#[tokio::test]
async fn a_server_that_is_no_longer_known_loses_its_session() {
    let bed = Bed::new(14).await;
    let mut server = bed.serve(Clients::any(), None).await;
    let file = bed.file("known_hosts");
    let address = server.address();
    let line = |key: PeerKey| format!("{},{} {key}\n", address.isd_as, address.host.ip());
    write(&file, &line(server.node.key()));
    let node = bed.node().await;
    let trust = Trust::Known(Known::new(&file));
    let mut sending = bed.send(&node, address, LARGE, trust);
    sending.delivers().await;
    write(&file, &line(PeerKey([7; 32])));
    let result = sending.task.await.unwrap();
    let Err(TransferError::ServerKey(ServerKeyError::Changed { .. })) = result else {
        panic!("{result:?}");
    };
    let ended = server.ended().await;
    assert!(ended.is_err(), "{ended:?}");
}

#[tokio::test]
async fn content_takes_the_given_port_or_one_that_is_in_nobodys_way() {
    let bed = Bed::new(22).await;
    let host = bed.net.b.endhost().await;
    let bind = |sockets: Sockets| {
        let identity = Identity::generate().unwrap();
        Node::bind(host.clone(), &sockets, identity)
    };
    let at = |listen| Sockets {
        listen: bed.listen(listen),
        ..Sockets::default()
    };
    // The next receiver takes the next port.
    let nodes = [31000, 31001, 31002].map(|port| bind(at(port)).unwrap());
    let ports = nodes
        .each_ref()
        .map(|node| node.data().local_addr().host.port());
    assert_eq!(ports, [32767, 32766, 32765]);
    let given = Sockets {
        data_port: Some(31500),
        ..at(31003)
    };
    let node = bind(given.clone()).unwrap();
    assert_eq!(node.data().local_addr().host.port(), 31500);
    let taken = Sockets {
        listen: bed.listen(31004),
        ..given
    };
    let error = bind(taken).err().unwrap().to_string();
    let expected = ":31500: another program has UDP port 31500: take another port";
    assert!(error.contains(expected), "{error}");
    let outside = Sockets {
        data_port: Some(5000),
        ..at(31005)
    };
    let error = bind(outside).err().unwrap().to_string();
    assert!(error.contains("port 5000 is outside the ports"), "{error}");
}

/// Takes half a minute: so long a session is kept without a connection before it counts as lost.
#[tokio::test]
async fn serving_ends_when_content_can_no_longer_be_received() {
    let bed = Bed::new(28).await;
    let mut server = bed.serve(Clients::any(), None).await;
    server.node.data().commands().give(Command::Panic);
    let ended = timeout(PATIENCE, &mut server.serving);
    ended.await.unwrap().unwrap();
    // Nobody is left waiting for an answer, here neither.
    let node = bed.node().await;
    node.data().commands().give(Command::Panic);
    let failing = async {
        while !node.has_failed() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, failing).await.expect("the node fails");
    let mut sending = bed.send(&node, server.address(), SMALL, Trust::Any);
    let ended = timeout(PATIENCE, &mut sending.task);
    let error = ended.await.unwrap().unwrap().unwrap_err();
    assert!(matches!(error, TransferError::Panicked(_)), "{error}");
}

#[tokio::test]
async fn an_outage_of_all_paths_is_waited_for() {
    let bed = Bed::new(24).await;
    let mut server = bed.serve(Clients::any(), None).await;
    let node = bed.node().await;
    let mut sending = bed.send(&node, server.address(), 8 << 20, Trust::Any);
    sending.delivers().await;
    bed.net.conduct.silent.store(true, Ordering::SeqCst);
    let reason = sending.waits().await;
    assert!(reason.contains("could not be reached for 30 s"), "{reason}");
    bed.net.conduct.silent.store(false, Ordering::SeqCst);
    let summary = sending.task.await.unwrap().unwrap();
    assert_eq!(summary.progress.verified, 8 << 20);
    while server.ended().await.is_err() {}
}
