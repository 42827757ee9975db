//! Servers for tests.

use std::io;
use std::sync::Arc;

use hawser_address::PeerAddr;
use hawser_tracker::SwarmOptions;
use hawser_tracker::message::{AnnounceRequest, Event};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::datagrams::{BoxFuture, Datagrams};
use crate::serve::{Monitor, ServeError, ServeOptions, Server};

/// A tracker on loopback.
pub(crate) struct Local {
    /// Announce URLs over HTTP and UDP, of IPv4 and IPv6.
    pub http: Vec<String>,
    pub udp: Vec<String>,
    pub monitor: Monitor,
    pub task: JoinHandle<Result<(), ServeError>>,
    pub stop: DropGuard,
}

impl Local {
    pub fn new(options: ServeOptions) -> Self {
        let loopback = || {
            let addrs = ["127.0.0.1:0", "[::1]:0"];
            addrs.map(|addr| addr.parse().expect("an address")).to_vec()
        };
        let server = Server::bind(ServeOptions {
            http: loopback(),
            udp: loopback(),
            ..options
        });
        let server = server.expect("a tracker");
        let urls = |scheme: &str, addrs: Vec<std::net::SocketAddr>| {
            addrs
                .iter()
                .map(|addr| format!("{scheme}://{addr}/announce"))
                .collect()
        };
        let http = urls("http", server.http_addrs().expect("addresses"));
        let udp = urls("udp", server.udp_addrs().expect("addresses"));
        let monitor = server.monitor();
        let stop = CancellationToken::new();
        let guard = stop.clone().drop_guard();
        let task = tokio::spawn(async move { server.run(&stop).await });
        Self {
            http,
            udp,
            monitor,
            task,
            stop: guard,
        }
    }
}

impl Default for Local {
    fn default() -> Self {
        Self::new(ServeOptions {
            swarms: SwarmOptions::default(),
            ..ServeOptions::default()
        })
    }
}

/// A leecher's announce.
pub(crate) fn request(port: u16) -> AnnounceRequest {
    AnnounceRequest {
        info_hash: [1; 20],
        peer_id: [2; 20],
        port,
        uploaded: 0,
        downloaded: 0,
        left: 1,
        event: Event::Started,
        num_want: None,
        key: 5,
        scion: None,
        tracker_id: None,
    }
}

/// A server that answers each connection with the next of these bytes, the last one again and again, after
/// it has read a request's head. Returns its port.
pub(crate) async fn scripted(answers: Vec<Vec<u8>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        let mut answers = answers.into_iter().peekable();
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = match answers.next() {
                Some(answer) => answer,
                None => return,
            };
            if answers.peek().is_none() {
                answers = vec![answer.clone(), answer.clone()].into_iter().peekable();
                answers.next();
            }
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read_u8().await {
                    Ok(byte) => head.push(byte),
                    Err(_) => break,
                }
            }
            let _ = stream.write_all(&answer).await;
            let _ = stream.shutdown().await;
        }
    });
    port
}

/// A response over HTTP.
pub(crate) fn response(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{headers}\r\n");
    [head.as_bytes(), body].concat()
}

type Packet = (PeerAddr, Vec<u8>);

/// One end of a wire between two hosts.
pub(crate) struct Wire {
    addr: PeerAddr,
    sender: mpsc::Sender<Packet>,
    receiver: Mutex<mpsc::Receiver<Packet>>,
}

/// A wire between hosts at these addresses.
pub(crate) fn wire(first: PeerAddr, second: PeerAddr) -> (Arc<Wire>, Arc<Wire>) {
    let (to_first, at_first) = mpsc::channel(10);
    let (to_second, at_second) = mpsc::channel(10);
    let end = |addr, sender, receiver| {
        let receiver = Mutex::new(receiver);
        Arc::new(Wire {
            addr,
            sender,
            receiver,
        })
    };
    (
        end(first, to_second, at_first),
        end(second, to_first, at_second),
    )
}

impl Datagrams for Wire {
    fn send<'a>(&'a self, _to: PeerAddr, payload: &'a [u8]) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            let sent = self.sender.send((self.addr, payload.to_vec())).await;
            sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
        })
    }

    fn receive(&self) -> BoxFuture<'_, io::Result<Packet>> {
        Box::pin(async move {
            let packet = self.receiver.lock().await.recv().await;
            packet.ok_or_else(|| io::ErrorKind::BrokenPipe.into())
        })
    }
}
