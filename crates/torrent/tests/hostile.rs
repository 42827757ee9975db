//! Hostile peers over TCP, beside honest ones. Each host has an address of the loopback network of its own.

#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod content;
mod scripted;

use std::net::SocketAddr;
use std::time::Duration;

use hawser_torrent::{
    CreateOptions, Download, DownloadOptions, Listener, Network, PeerAddr, Phase, Seed, SeedLimits,
    SeedOptions,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use self::content::{Content, PATIENCE, finish};
use self::scripted::{HANDSHAKE, greeting, message};

/// Bytes of a block.
const BLOCK: usize = 16384;

/// The kinds of messages.
const UNCHOKE: u8 = 1;
const INTERESTED: u8 = 2;
const REQUEST: u8 = 6;
const PIECE: u8 = 7;
const CANCEL: u8 = 8;

/// Time between connections of one host.
const POLL: Duration = Duration::from_millis(10);

/// The hosts.
const HONEST: [u8; 4] = [127, 0, 0, 1];
const HOSTILE: [u8; 4] = [127, 0, 0, 2];
const BYSTANDER: [u8; 4] = [127, 0, 0, 3];

/// Content in pieces of four blocks.
fn content(length: usize) -> Content {
    let options = CreateOptions {
        piece_length: Some(4 * BLOCK as u32),
        ..CreateOptions::default()
    };
    Content::new(length, &options)
}

/// Seeds at `addr`; returns the address with its port.
async fn seed(content: &Content, addr: SocketAddr) -> (Seed, SocketAddr) {
    let listener = Listener::bind(addr).await.unwrap();
    let addr = listener.local_addr();
    let network = Network::ip().with_listener(listener);
    let (metainfo, file) = (content.metainfo.clone(), content.file());
    let seed = Seed::start(metainfo, file, network, SeedOptions::default(), |_, _| {});
    (seed.await.unwrap(), addr)
}

/// Connects from a host.
async fn connect(from: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    socket.connect(to).await.unwrap()
}

/// The next message of a peer; `None` once it has closed the connection.
async fn next(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let read = async {
        let length = stream.read_u32().await.ok()?;
        let mut said = vec![0; length as usize];
        stream.read_exact(&mut said).await.ok()?;
        Some(said)
    };
    timeout(PATIENCE, read).await.expect("the peer is silent")
}

/// Begins with `first`, and reads the handshake of the other side. Whether there was one.
async fn begin(stream: &mut TcpStream, first: &[u8]) -> bool {
    let mut handshake = [0; HANDSHAKE];
    let begun = async {
        stream.write_all(first).await.is_ok() && stream.read_exact(&mut handshake).await.is_ok()
    };
    timeout(PATIENCE, begun).await.expect("no handshake came")
}

/// Whether a peer without any piece is served at `to`.
async fn is_served(content: &Content, from: [u8; 4], to: SocketAddr) -> bool {
    let mut stream = connect(from, to).await;
    let mut first = greeting(&content.metainfo)[..HANDSHAKE].to_vec();
    // A peer id of its own: a second connection of one peer is refused.
    fastrand::fill(&mut first[HANDSHAKE - 20..]);
    first.extend(message(INTERESTED, &[]));
    if !begin(&mut stream, &first).await {
        return false;
    }
    loop {
        match next(&mut stream).await {
            None => return false,
            Some(said) if said.first() == Some(&UNCHOKE) => return true,
            Some(_) => {}
        }
    }
}

/// A peer spoils one block of a piece, and leaves before the piece is complete: there is no connection to drop.
#[tokio::test(flavor = "multi_thread")]
async fn a_poisoner_that_has_left_is_found_and_banned_and_nobody_else() {
    let content = content(10 * 4 * BLOCK);
    let own = Listener::bind("0.0.0.0:0".parse().unwrap()).await.unwrap();
    let to = SocketAddr::from((HONEST, own.local_addr().port()));
    let options = DownloadOptions {
        awaits_peers: true,
        seed: Some(SeedLimits::default()),
        ..DownloadOptions::default()
    };
    // The honest seeder is there once the poisoner has left.
    let reserved = Listener::bind((HONEST, 0).into()).await.unwrap();
    let honest = reserved.local_addr();
    drop(reserved);
    let download = Download::start(
        content.metainfo.clone(),
        content.target(),
        vec![PeerAddr::Ip(honest)],
        Network::ip().with_listener(own),
        options,
    );
    let mut progress = download.progress();
    let mut poisoner = connect(HOSTILE, to).await;
    assert!(begin(&mut poisoner, &greeting(&content.metainfo)).await);
    let request = loop {
        let said = next(&mut poisoner).await.expect("closed without a request");
        if said.first() == Some(&REQUEST) {
            break said;
        }
    };
    let spoilt = [&request[1..9], &[0; BLOCK]].concat();
    poisoner.write_all(&message(PIECE, &spoilt)).await.unwrap();
    let arrived = progress.wait_for(|progress| progress.fetched_bytes >= BLOCK as u64);
    drop(timeout(PATIENCE, arrived).await.unwrap().unwrap());
    drop(poisoner);
    let (_seed, _) = seed(&content, honest).await;
    let complete = progress.wait_for(|progress| progress.phase == Phase::Seeding);
    drop(timeout(PATIENCE, complete).await.unwrap().unwrap());
    content.check();
    // The disk compares the two copies of the piece meanwhile. One refusal can have another reason.
    let refused = async {
        let mut refusals = 0;
        while refusals < 20 {
            let served = is_served(&content, HOSTILE, to).await;
            refusals = if served { 0 } else { refusals + 1 };
            // Many connections at once are refused whatever their host.
            sleep(POLL).await;
        }
    };
    let refused = timeout(PATIENCE, refused).await;
    refused.expect("the poisoner is served from another port");
    for host in [BYSTANDER, HONEST] {
        let served = async { while !is_served(&content, host, to).await {} };
        let served = timeout(PATIENCE, served).await;
        served.expect("an honest host is refused");
    }
    download.stop();
    assert!(finish(download).await.unwrap().wasted_bytes > 0);
}

/// Connections whose handshake, plain or encrypted, is never completed.
#[tokio::test(flavor = "multi_thread")]
async fn peers_that_begin_a_handshake_and_no_more_hold_nobody_up() {
    let content = content(10 * 4 * BLOCK);
    let (_seed, to) = seed(&content, (HONEST, 0).into()).await;
    let mut open = Vec::new();
    for number in 0..250 {
        let mut stream = connect(HOSTILE, to).await;
        let mut encrypted = [0; 96];
        fastrand::Rng::with_seed(number).fill(&mut encrypted);
        let first: &[u8] = match number % 2 {
            0 => &greeting(&content.metainfo)[..HANDSHAKE - 1],
            _ => &encrypted,
        };
        // Fails if it is closed for a newer one.
        let _ = stream.write_all(first).await;
        open.push(stream);
    }
    assert!(is_served(&content, BYSTANDER, to).await);
    let (peers, options) = (vec![to.into()], DownloadOptions::default());
    let (metainfo, target) = (content.metainfo.clone(), content.target());
    let download = Download::start(metainfo, target, peers, Network::ip(), options);
    finish(download).await.unwrap();
    content.check();
}

/// KiB of this process that are in memory.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.unwrap().split_whitespace().next();
    number.unwrap().parse().unwrap()
}

/// Hundreds of thousands of requests, of which some are taken back, from peers that read no answer. There is
/// room for one more peer.
#[tokio::test(flavor = "multi_thread")]
async fn floods_of_requests_hold_nobody_up_and_take_little_memory() {
    const PEERS: u64 = 7;
    const REQUESTS: usize = 500_000;
    let content = content(10 * 4 * BLOCK);
    let (_seed, to) = seed(&content, (HONEST, 0).into()).await;
    let before = resident();
    let floods = (0..PEERS).map(|number| {
        let metainfo = content.metainfo.clone();
        tokio::spawn(async move {
            let mut stream = connect(HOSTILE, to).await;
            let mut random = fastrand::Rng::with_seed(number);
            let mut first = greeting(&metainfo)[..HANDSHAKE].to_vec();
            random.fill(&mut first[HANDSHAKE - 20..]);
            first.extend(message(INTERESTED, &[]));
            if !begin(&mut stream, &first).await {
                return stream;
            }
            for _ in 0..REQUESTS / 100 {
                let mut said = Vec::new();
                for _ in 0..100 {
                    let (piece, begin) = (random.u32(..10), random.u32(..3 * BLOCK as u32));
                    let request = [piece, begin, BLOCK as u32];
                    let id = if random.u8(..8) > 0 { REQUEST } else { CANCEL };
                    said.extend(message(id, &request.map(u32::to_be_bytes).concat()));
                }
                if stream.write_all(&said).await.is_err() {
                    return stream;
                }
            }
            stream
        })
    });
    let floods: Vec<_> = floods.collect();
    let (peers, options) = (vec![to.into()], DownloadOptions::default());
    let (metainfo, target) = (content.metainfo.clone(), content.target());
    let download = Download::start(metainfo, target, peers, Network::ip(), options);
    timeout(PATIENCE, finish(download)).await.unwrap().unwrap();
    content.check();
    let mut open = Vec::new();
    for flood in floods {
        open.push(timeout(PATIENCE, flood).await.unwrap().unwrap());
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 << 10, "{grown} KiB more");
}
