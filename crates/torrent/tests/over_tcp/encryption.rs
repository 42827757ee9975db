//! Encrypted connections (MSE): which policies meet how, and what others see of it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hawser_torrent::{
    DownloadError, DownloadOptions, EncryptionPolicy, Listener, Network, PeerAddr, PeerSource,
    Seed, SeedOptions, Summary,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::content::{Content, PATIENCE, finish};
use super::{content, rogue};

/// The beginning of a plain handshake.
const PLAIN: &[u8] = b"\x13BitTorrent protocol";

/// What somebody on the way sees: of each connection in order, the bytes in both directions.
type Seen = Arc<Mutex<Vec<[Vec<u8>; 2]>>>;

/// Passes bytes on, and keeps them.
async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    keep: impl Fn(&[u8]),
) {
    let mut chunk = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from.read(&mut chunk).await {
        keep(&chunk[..read]);
        if to.write_all(&chunk[..read]).await.is_err() {
            return;
        }
    }
    // Fails if the other side has closed it.
    let _ = to.shutdown().await;
}

/// A host on the way to `peer`: its address, and what it sees.
async fn on_the_way(peer: SocketAddr) -> (PeerAddr, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let seen = Seen::default();
    let shared = Arc::clone(&seen);
    tokio::spawn(async move {
        loop {
            let (ours, _) = listener.accept().await.unwrap();
            let theirs = TcpStream::connect(peer).await.unwrap();
            let number = {
                let mut seen = shared.lock().unwrap();
                seen.push([Vec::new(), Vec::new()]);
                seen.len() - 1
            };
            let (a, b) = (ours.into_split(), theirs.into_split());
            for (from, to, direction) in [(a.0, b.1, 0), (b.0, a.1, 1)] {
                let seen = Arc::clone(&shared);
                tokio::spawn(pass(from, to, move |bytes: &[u8]| {
                    seen.lock().unwrap()[number][direction].extend_from_slice(bytes);
                }));
            }
        }
    });
    (addr.into(), seen)
}

impl Content {
    /// Seeds with this policy, or the one that is usual; returns the address.
    async fn seed_with(&self, policy: Option<EncryptionPolicy>) -> (Seed, SocketAddr) {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).await;
        let listener = listener.unwrap();
        let addr = listener.local_addr();
        let network = network(policy).with_listener(listener);
        let (metainfo, file, options) =
            (self.metainfo.clone(), self.file(), SeedOptions::default());
        let seed = Seed::start(metainfo, file, network, options, |_, _| {});
        (seed.await.unwrap(), addr)
    }
}

fn network(policy: Option<EncryptionPolicy>) -> Network {
    match policy {
        Some(policy) => Network::ip().with_encryption(policy),
        None => Network::ip(),
    }
}

/// Downloads over a host on the way; returns how that ended, and what the host saw.
async fn transfer(
    dials: Option<EncryptionPolicy>,
    accepts: Option<EncryptionPolicy>,
) -> (Result<Summary, DownloadError>, Vec<[Vec<u8>; 2]>, Vec<u8>) {
    let content = content(500_000);
    let (_seed, addr) = content.seed_with(accepts).await;
    let (peer, seen) = on_the_way(addr).await;
    let options = DownloadOptions {
        give_up_after: Duration::from_secs(5),
        ..DownloadOptions::default()
    };
    let ended = finish(content.get_with(&[peer], network(dials), options)).await;
    if ended.is_ok() {
        content.check();
    }
    let file = std::fs::read(content.file()).unwrap();
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (ended, seen, file)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_that_can_meet_do() {
    use EncryptionPolicy::{Allow, Disable, Prefer, Require};

    // Whether the connection that works begins encrypted, and whether its data is.
    let plain = Some([false, false]);
    let rc4 = Some([true, true]);
    let expected = [
        (Disable, Disable, plain),
        (Disable, Allow, plain),
        (Disable, Prefer, plain),
        (Disable, Require, None),
        (Allow, Disable, plain),
        (Allow, Allow, plain),
        (Allow, Prefer, plain),
        (Allow, Require, rc4),
        (Prefer, Disable, plain),
        (Prefer, Allow, Some([true, false])),
        (Prefer, Prefer, rc4),
        (Prefer, Require, rc4),
        (Require, Disable, None),
        (Require, Allow, rc4),
        (Require, Prefer, rc4),
        (Require, Require, rc4),
    ];
    let transfers = expected.map(|(dials, accepts, expected)| {
        tokio::spawn(async move {
            let (ended, seen, file) = transfer(Some(dials), Some(accepts)).await;
            let pair = format!("{dials} to {accepts}");
            let Some([is_encrypted, hides_data]) = expected else {
                assert!(ended.is_err(), "{pair}");
                return;
            };
            ended.unwrap_or_else(|error| panic!("{pair}: {error}"));
            let [asked, answered] = seen.last().unwrap();
            assert_eq!(!asked.starts_with(PLAIN), is_encrypted, "{pair}");
            assert_eq!(!answered.starts_with(PLAIN), is_encrypted, "{pair}");
            for number in [0, 100_000, 400_000] {
                let shows = contains(answered, &file[number..number + 32]);
                assert_eq!(!shows, hides_data, "{pair}");
            }
            // With a second dial at most.
            assert!(seen.len() <= 2, "{pair}: {}", seen.len());
        })
    });
    for transfer in transfers {
        transfer.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_policy_peers_are_dialed_plainly_and_may_encrypt() {
    use EncryptionPolicy::{Prefer, Require};

    for (dials, accepts, begins_plain) in [
        (None, None, true),
        (None, Some(Prefer), true),
        (Some(Prefer), None, false),
        (Some(Require), None, false),
        (None, Some(Require), false),
    ] {
        let (ended, seen, file) = transfer(dials, accepts).await;
        ended.unwrap();
        let [asked, answered] = seen.last().unwrap();
        assert_eq!(asked.starts_with(PLAIN), begins_plain);
        assert_eq!(contains(answered, &file[..32]), begins_plain);
    }
}

/// A peer that closes each connection at the first byte, and one that never says anything.
#[tokio::test(flavor = "multi_thread")]
async fn peers_that_do_not_answer_hold_nothing_up() {
    let content = content(500_000);
    let (_seed, honest) = content.seed_with(Some(EncryptionPolicy::Require)).await;
    let closes = rogue(|mut stream| async move { stream.read_u8().await.map(drop) }).await;
    let garbles = rogue(|mut stream| async move {
        stream.write_all(&[0x47; 4096]).await?;
        stream.read_to_end(&mut Vec::new()).await.map(drop)
    })
    .await;
    for policy in [EncryptionPolicy::Prefer, EncryptionPolicy::Allow] {
        let network = Network::ip().with_encryption(policy);
        let peers = [closes, garbles, honest.into()];
        let download = content.get_with(&peers, network, DownloadOptions::default());
        finish(download).await.unwrap();
        content.check();
        std::fs::remove_dir_all(content.target()).unwrap();
    }
}

/// Bytes that are neither a plain nor an encrypted handshake.
#[tokio::test(flavor = "multi_thread")]
async fn a_seeder_closes_connections_that_begin_with_garbage() {
    let content = content(500_000);
    let (_seed, addr) = content.seed_with(None).await;
    for garbage in [
        vec![0; 96],
        vec![0x47; 1000],
        b"GET / HTTP/1.1\r\n\r\n".repeat(60),
    ] {
        let mut stream = TcpStream::connect(addr).await.unwrap();
        stream.write_all(&garbage).await.unwrap();
        let mut answer = Vec::new();
        let ended = stream.read_to_end(&mut answer);
        let ended = tokio::time::timeout(PATIENCE, ended).await;
        // It may be reset, as not all was read.
        drop(ended.expect("closed"));
        assert!(answer.len() <= 96 + 512);
    }
    finish(content.get(&[addr.into()])).await.unwrap();
    content.check();
}

/// A peer that insists on encryption: it answers plain handshakes with the key of its own handshake or
/// nothing, and keeps the connection open. Others it passes on to a seeder. Returns its address, and the
/// number of its connections.
async fn insistent(seeder: SocketAddr, key: &'static [u8]) -> (PeerAddr, Arc<AtomicUsize>) {
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    let peer = rogue(move |mut stream| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move {
            let mut first = [0; PLAIN.len()];
            stream.read_exact(&mut first).await?;
            if first == PLAIN {
                stream.write_all(key).await?;
                return stream.read_to_end(&mut Vec::new()).await.map(drop);
            }
            let mut seeder = TcpStream::connect(seeder).await?;
            seeder.write_all(&first).await?;
            let passed = tokio::io::copy_bidirectional(&mut stream, &mut seeder);
            passed.await.map(drop)
        }
    });
    (peer.await, connections)
}

/// As anacrolix/torrent does.
#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_answers_a_plain_handshake_with_a_key_is_dialed_encrypted() {
    let content = content(500_000);
    let (_seed, honest) = content.seed_with(Some(EncryptionPolicy::Require)).await;
    let (peer, connections) = insistent(honest, &[0x47; 96]).await;
    for policy in [None, Some(EncryptionPolicy::Allow)] {
        connections.store(0, Ordering::SeqCst);
        let download = content.get_with(&[peer], network(policy), DownloadOptions::default());
        finish(download).await.unwrap();
        content.check();
        assert_eq!(connections.load(Ordering::SeqCst), 2);
        std::fs::remove_dir_all(content.target()).unwrap();
    }
}

/// As rain does. The peer is found, by a tracker for example, and not given up for a minute before it is
/// dialed encrypted.
#[tokio::test(flavor = "multi_thread")]
async fn a_found_peer_that_does_not_answer_a_plain_handshake_is_dialed_encrypted() {
    let content = content(500_000);
    let (_seed, honest) = content.seed_with(Some(EncryptionPolicy::Require)).await;
    let (peer, connections) = insistent(honest, &[]).await;
    let options = DownloadOptions {
        finds_peers: true,
        give_up_after: Duration::from_secs(50),
        ..DownloadOptions::default()
    };
    let download = content.get_with(&[], network(None), options);
    let found = download.found_peers();
    assert!(found.add(vec![peer], PeerSource::Tracker).await);
    finish(download).await.unwrap();
    content.check();
    assert_eq!(connections.load(Ordering::SeqCst), 2);
}
