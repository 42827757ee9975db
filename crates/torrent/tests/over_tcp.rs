//! Downloads from IP peers, over plain TCP on this host.

#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod content;
#[path = "over_tcp/encryption.rs"]
mod encryption;
#[path = "over_tcp/found.rs"]
mod found;
#[path = "over_tcp/messages.rs"]
mod messages;
mod scripted;

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hawser_torrent::{
    CreateOptions, Download, DownloadError, DownloadOptions, Listener, Metainfo, Network, PeerAddr,
    Phase, RateLimits, Seed, SeedEnd, SeedLimits, SeedOptions, create,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use self::content::{Content, PATIENCE, finish, finish_within};
use self::scripted::{HANDSHAKE, Manner, Scripted, greeting, message};

const PIECE: u32 = 65536;

/// Content in pieces that are small compared to `length`.
fn content(length: usize) -> Content {
    let options = CreateOptions {
        piece_length: Some(PIECE),
        ..CreateOptions::default()
    };
    Content::new(length, &options)
}

impl Content {
    /// Seeds at `addr`; returns the address with its port.
    async fn seed(&self, addr: &str) -> (Seed, PeerAddr) {
        let listener = Listener::bind(addr.parse().unwrap()).await.unwrap();
        let addr = listener.local_addr();
        let (metainfo, file) = (self.metainfo.clone(), self.file());
        let network = Network::ip().with_listener(listener);
        let seed = Seed::start(metainfo, file, network, SeedOptions::default(), |_, _| {});
        (seed.await.unwrap(), addr.into())
    }

    fn get(&self, peers: &[PeerAddr]) -> Download {
        let options = DownloadOptions::default();
        self.get_with(peers, Network::ip(), options)
    }

    fn get_with(&self, peers: &[PeerAddr], network: Network, options: DownloadOptions) -> Download {
        let (metainfo, peers) = (self.metainfo.clone(), peers.to_vec());
        Download::start(metainfo, self.target(), peers, network, options)
    }

    /// The first bytes of a peer that has every piece and unchokes.
    fn greeting(&self) -> Vec<u8> {
        greeting(&self.metainfo)
    }
}

/// Answers every request with zeros.
async fn lie(mut stream: TcpStream, greeting: Vec<u8>) -> std::io::Result<()> {
    stream.write_all(&greeting).await?;
    let mut handshake = [0; HANDSHAKE];
    stream.read_exact(&mut handshake).await?;
    loop {
        let length = stream.read_u32().await?;
        let mut said = vec![0; length as usize];
        stream.read_exact(&mut said).await?;
        if said.first() == Some(&6) {
            let length = u32::from_be_bytes(said[9..].try_into().unwrap());
            let mut body = said[1..9].to_vec();
            body.resize(8 + length as usize, 0);
            stream.write_all(&message(7, &body)).await?;
        }
    }
}

/// A hostile peer that runs `conduct` on each connection.
async fn rogue<F>(conduct: impl Fn(TcpStream) -> F + Send + 'static) -> PeerAddr
where
    F: Future<Output = std::io::Result<()>> + Send + 'static,
{
    let addr = rogue_at("127.0.0.1:0", conduct).await;
    addr.into()
}

/// The same at an address, which is returned with its port.
async fn rogue_at<F>(addr: &str, conduct: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = std::io::Result<()>> + Send + 'static,
{
    let listener = TcpListener::bind(addr).await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            // Fails when the engine closes the connection.
            tokio::spawn(conduct(stream));
        }
    });
    addr
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_crosses_by_ipv4_and_ipv6() {
    for host in ["127.0.0.1:0", "[::1]:0"] {
        let content = content(20_000_000);
        let (seed, addr) = content.seed(host).await;
        let mut progress = seed.progress();
        let summary = finish(content.get(&[addr])).await.unwrap();
        content.check();
        assert_eq!(summary.fetched_bytes, 20_000_000);
        let carried: Vec<_> = summary.paths.iter().map(|p| (p.peer, p.hops)).collect();
        assert_eq!(carried, [(addr, 0)]);
        let uploaded = progress.wait_for(|p| p.uploaded_bytes >= 20_000_000);
        let uploaded = tokio::time::timeout(PATIENCE, uploaded).await;
        assert_eq!(uploaded.unwrap().unwrap().connections, 1);
        seed.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_seeders_share_the_work() {
    let content = content(20_000_000);
    let (_one, first) = content.seed("127.0.0.1:0").await;
    let (_two, second) = content.seed("127.0.0.1:0").await;
    let summary = finish(content.get(&[first, second])).await.unwrap();
    content.check();
    let carried: u64 = summary.paths.iter().map(|path| path.bytes).sum();
    assert_eq!(carried, 20_000_000 + summary.wasted_bytes);
    assert_eq!(summary.paths.len(), 2, "{summary:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_continues_when_its_seeder_is_back() {
    let content = content(3_000_000);
    // The seeder sends one right piece, then leaves.
    let (greeting, file) = (content.greeting(), std::fs::read(content.file()).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let seeder = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(&greeting).await.unwrap();
        let mut handshake = [0; HANDSHAKE];
        stream.read_exact(&mut handshake).await.unwrap();
        let mut left = 4 * PIECE as usize;
        while left > 0 {
            let length = stream.read_u32().await.unwrap();
            let mut said = vec![0; length as usize];
            stream.read_exact(&mut said).await.unwrap();
            if said.first() != Some(&6) {
                continue;
            }
            let number = |at: usize| u32::from_be_bytes(said[at..at + 4].try_into().unwrap());
            let (start, length) = (number(1) * PIECE + number(5), number(9) as usize);
            let data = &file[start as usize..][..length];
            let body = [&said[1..9], data].concat();
            stream.write_all(&message(7, &body)).await.unwrap();
            left = left.saturating_sub(length);
        }
    });
    let download = content.get(&[addr.into()]);
    let mut progress = download.progress();
    let some = progress.wait_for(|p| p.verified_bytes > 0);
    drop(tokio::time::timeout(PATIENCE, some).await.unwrap().unwrap());
    seeder.await.unwrap();
    let (_seed, _) = content.seed(&addr.to_string()).await;
    let summary = finish(download).await.unwrap();
    content.check();
    assert_eq!((summary.fetched_bytes, summary.paths.len()), (3_000_000, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_and_lies_hold_nothing_up() {
    let content = content(5_000_000);
    let (_seed, honest) = content.seed("127.0.0.1:0").await;
    let greeting = content.greeting();
    let liar = rogue(move |stream| lie(stream, greeting.clone())).await;
    let greeting = content.greeting();
    let babbler = rogue(move |mut stream| {
        let babble = [greeting.clone(), vec![0xff; 1 << 20]].concat();
        async move { stream.write_all(&babble).await }
    })
    .await;
    let mute = rogue(|mut stream| async move {
        let mut sink = Vec::new();
        stream.read_to_end(&mut sink).await.map(drop)
    })
    .await;
    let absent = "127.0.0.1:1".parse().unwrap();
    let summary = finish(content.get(&[liar, babbler, mute, absent, honest])).await;
    content.check();
    let from: Vec<_> = summary.unwrap().paths.iter().map(|p| p.peer).collect();
    assert!(from.contains(&honest), "{from:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_the_rate_holds_over_tcp() {
    let content = content(1_500_000);
    let (_seed, addr) = content.seed("127.0.0.1:0").await;
    let limits = RateLimits {
        upload: None,
        download: Some(1_000_000),
    };
    let options = DownloadOptions {
        limits,
        ..DownloadOptions::default()
    };
    let download = content.get_with(&[addr], Network::ip(), options);
    let summary = finish_within(1_000_000, download).await;
    content.check();
    // Nothing was lost while it was not read.
    assert_eq!(summary.wasted_bytes, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn liars_and_absent_peers_are_named() {
    let content = content(500_000);
    let greeting = content.greeting();
    let liar = rogue(move |stream| lie(stream, greeting.clone())).await;
    let error = finish(content.get(&[liar])).await.unwrap_err().to_string();
    assert!(
        error.contains(&liar.to_string()) && error.contains("wrong data"),
        "{error}"
    );
    let absent: PeerAddr = "127.0.0.1:1".parse().unwrap();
    let options = DownloadOptions {
        give_up_after: Duration::from_millis(500),
        ..DownloadOptions::default()
    };
    let error = finish(content.get_with(&[absent], Network::ip(), options)).await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("127.0.0.1:1 (connection refused)"),
        "{error}"
    );
}

/// A listener, and the address at which IP peers on this host reach it.
async fn listener(addr: &str) -> (Listener, PeerAddr) {
    let listener = Listener::bind(addr.parse().unwrap()).await.unwrap();
    let host = match listener.local_addr().ip().is_unspecified() {
        true => [127, 0, 0, 1].into(),
        false => listener.local_addr().ip(),
    };
    let addr = SocketAddr::new(host, listener.local_addr().port());
    (listener, addr.into())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_blocks_arrive_when_seeding_ends() {
    // The last address is an IPv6 socket that also accepts IPv4.
    for host in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
        let content = content(3_000_000);
        let (listener, addr) = listener(host).await;
        let seeding = Download::start(
            content.metainfo.clone(),
            content.complete(),
            vec!["127.0.0.1:1".parse().unwrap()],
            Network::ip().with_listener(listener),
            DownloadOptions {
                seed: Some(SeedLimits {
                    ratio: Some(1.0),
                    ..SeedLimits::default()
                }),
                ..DownloadOptions::default()
            },
        );
        finish(content.get(&[addr])).await.unwrap();
        content.check();
        let summary = finish(seeding).await.unwrap();
        assert_eq!(summary.seeded.unwrap().end, SeedEnd::Ratio, "{host}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_serves_peers_that_connect_to_it() {
    let content = content(3_000_000);
    let (seed, first) = content.seed("127.0.0.1:0").await;
    let (listener, second) = listener("127.0.0.1:0").await;
    let middle = Download::start(
        content.metainfo.clone(),
        content.dir.path().join("middle"),
        vec![first],
        Network::ip().with_listener(listener),
        DownloadOptions {
            seed: Some(SeedLimits::default()),
            ..DownloadOptions::default()
        },
    );
    let mut progress = middle.progress();
    let seeding = progress.wait_for(|progress| progress.phase == Phase::Seeding);
    let seeding = tokio::time::timeout(PATIENCE, seeding).await.unwrap();
    drop(seeding.unwrap());
    seed.stop().await.unwrap();
    let summary = finish(content.get(&[second])).await.unwrap();
    content.check();
    assert_eq!(summary.paths.len(), 1);
    middle.stop();
    let summary = finish(middle).await.unwrap();
    assert_eq!(summary.seeded.unwrap().end, SeedEnd::Stopped);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_with_wrong_data_does_not_come_back_from_another_port() {
    let content = content(500_000);
    let listener = Listener::bind("0.0.0.0:0".parse().unwrap()).await.unwrap();
    let port = listener.local_addr().port();
    let network = Network::ip().with_listener(listener);
    // The only peer given does not listen until wrong data was sent.
    let later = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let there = later.local_addr().unwrap();
    drop(later);
    let download = content.get_with(&[there.into()], network, DownloadOptions::default());
    let connect = || TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port)));
    let first = lie(connect().await.unwrap(), content.greeting());
    assert!(
        tokio::time::timeout(PATIENCE, first)
            .await
            .unwrap()
            .is_err()
    );
    // The peer is refused before any block is requested from it.
    let mut again = connect().await.unwrap();
    again.write_all(&content.greeting()).await.unwrap();
    let mut said = Vec::new();
    let ended = again.read_to_end(&mut said);
    let _ = tokio::time::timeout(PATIENCE, ended).await.unwrap();
    let request = [0, 0, 0, 13, 6];
    let asked = said.windows(request.len()).any(|bytes| bytes == request);
    assert!(!asked);
    let (_seed, _) = content.seed(&there.to_string()).await;
    assert!(finish(download).await.unwrap().wasted_bytes > 0);
    content.check();
}

/// Answers every request, except the first one for a block that begins at `forgotten`.
async fn answer_all_but(
    mut stream: TcpStream,
    greeting: Vec<u8>,
    file: &[u8],
    forgotten: &Mutex<Option<u32>>,
) -> std::io::Result<()> {
    stream.write_all(&greeting).await?;
    let mut handshake = [0; HANDSHAKE];
    stream.read_exact(&mut handshake).await?;
    loop {
        let length = stream.read_u32().await?;
        let mut said = vec![0; length as usize];
        stream.read_exact(&mut said).await?;
        if said.first() != Some(&6) {
            continue;
        }
        let number = |at: usize| u32::from_be_bytes(said[at..at + 4].try_into().unwrap());
        let (start, length) = (number(1) * PIECE + number(5), number(9) as usize);
        if forgotten
            .lock()
            .unwrap()
            .take_if(|at| *at == start)
            .is_some()
        {
            continue;
        }
        let body = [&said[1..9], &file[start as usize..][..length]].concat();
        stream.write_all(&message(7, &body)).await?;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_block_is_requested_again_over_the_same_connection() {
    // The only block, after which nothing else arrives, and one block among others.
    for (length, forgotten) in [(16384, 0), (5_000_000, 10 * PIECE)] {
        let content = content(length);
        let greeting = content.greeting();
        let file = Arc::new(std::fs::read(content.file()).unwrap());
        let forgotten = Arc::new(Mutex::new(Some(forgotten)));
        let (busy, turned_away) = (Arc::new(()), Arc::new(AtomicUsize::new(0)));
        let (left, counted) = (forgotten.clone(), turned_away.clone());
        // Like Transmission, it accepts one connection from a host at a time.
        let peer = rogue(move |stream| {
            let (greeting, file, left) = (greeting.clone(), file.clone(), left.clone());
            let is_busy = Arc::strong_count(&busy) > 1;
            let (turn, counted) = (busy.clone(), counted.clone());
            async move {
                if is_busy {
                    counted.fetch_add(1, Ordering::Relaxed);
                    return Ok(());
                }
                let ended = answer_all_but(stream, greeting, &file, &left).await;
                drop(turn);
                ended
            }
        })
        .await;
        let summary = finish(content.get(&[peer])).await.unwrap();
        content.check();
        assert_eq!(summary.fetched_bytes, length as u64);
        assert_eq!(*forgotten.lock().unwrap(), None);
        assert_eq!(turned_away.load(Ordering::Relaxed), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seeder_of_another_torrent_is_named_in_the_error() {
    let [content, other] = [100_000, 100_001].map(content);
    let (_seed, addr) = other.seed("127.0.0.1:0").await;
    let error = finish(content.get(&[addr])).await.unwrap_err();
    assert!(matches!(error, DownloadError::AllDropped { .. }), "{error}");
    let error = error.to_string();
    assert!(
        error.contains(&addr.to_string()) && error.contains("another torrent"),
        "{error}"
    );
    assert!(!content.target().exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn scion_peers_without_a_scion_network_are_refused() {
    let content = content(100_000);
    let peer = "1-ff00:0:110,127.0.0.1:31000".parse().unwrap();
    let error = finish(content.get(&[peer])).await.unwrap_err();
    assert!(matches!(error, DownloadError::NoPath { .. }), "{error}");
    assert!(error.to_string().contains("only IP peers"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_in_use_is_named() {
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    let addr = listener.local_addr();
    let error = Listener::bind(addr).await.unwrap_err().to_string();
    assert!(
        error.contains(&addr.to_string()) && error.contains("another port"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_recognizes_its_own_address() {
    for host in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
        let content = content(500_000);
        let (own, addr) = listener(host).await;
        let network = Network::ip().with_listener(own);
        let download = content.get_with(&[addr], network, DownloadOptions::default());
        let error = finish(download).await.unwrap_err();
        assert!(matches!(error, DownloadError::AllDropped(_)), "{error}");
        let error = error.to_string();
        let reason = format!("{addr} (this is our own address)");
        assert!(error.contains(&reason), "{error}");
    }
    // Other peers are not affected.
    let content = content(500_000);
    let (_seed, honest) = content.seed("127.0.0.1:0").await;
    let (own, addr) = listener("127.0.0.1:0").await;
    let network = Network::ip().with_listener(own);
    let download = content.get_with(&[addr, honest], network, DownloadOptions::default());
    let from = finish(download).await.unwrap().paths;
    assert!(from.iter().all(|path| path.peer == honest), "{from:?}");
    content.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_without_known_peers_is_served_by_those_that_connect() {
    let content = content(500_000);
    let (own, addr) = listener("127.0.0.1:0").await;
    let options = DownloadOptions {
        awaits_peers: true,
        ..DownloadOptions::default()
    };
    let download = content.get_with(&[], Network::ip().with_listener(own), options);
    let _seeding = Download::start(
        content.metainfo.clone(),
        content.complete(),
        vec![addr],
        Network::ip(),
        DownloadOptions {
            seed: Some(SeedLimits::default()),
            ..DownloadOptions::default()
        },
    );
    assert_eq!(finish(download).await.unwrap().fetched_bytes, 500_000);
    content.check();
    // Nobody can connect, and nobody is known.
    let error = finish(content.get(&[])).await.unwrap_err();
    assert!(matches!(error, DownloadError::NoPeers), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_not_text_are_seeded_and_downloaded_under_safe_ones() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join(OsStr::from_bytes(b"set\n\xff"));
    std::fs::create_dir(&set).unwrap();
    let names = [&b"line\nfeed"[..], b"caf\xe9", b"back\\slash", b"plain"];
    for name in names {
        std::fs::write(
            set.join(OsStr::from_bytes(name)),
            [name, &[7; 9000]].concat(),
        )
        .unwrap();
    }
    let torrent = create(&set, &CreateOptions::default(), |_, _| {}).unwrap();
    let metainfo = Metainfo::parse(&torrent).unwrap();
    // The content itself, then the folder that it is in; then the same of what was downloaded.
    let got = dir.path().join("got");
    for from in [
        set.clone(),
        dir.path().to_owned(),
        got.join("set__"),
        got.clone(),
    ] {
        let (own, addr) = listener("127.0.0.1:0").await;
        let network = Network::ip().with_listener(own);
        let options = SeedOptions::default();
        let seed = Seed::start(metainfo.clone(), from.clone(), network, options, |_, _| {});
        let _seed = seed
            .await
            .unwrap_or_else(|error| panic!("{}: {error}", from.display()));
        let to = match from.starts_with(&got) {
            true => dir.path().join("again"),
            false => got.clone(),
        };
        let (peers, options) = (vec![addr], DownloadOptions::default());
        let download = Download::start(metainfo.clone(), to.clone(), peers, Network::ip(), options);
        finish(download).await.unwrap();
        for (safe, name) in ["line_feed", "caf_", "backslash", "plain"]
            .iter()
            .zip(names)
        {
            let original = std::fs::read(set.join(OsStr::from_bytes(name))).unwrap();
            assert!(
                std::fs::read(to.join("set__").join(safe)).unwrap() == original,
                "{safe}"
            );
        }
        std::fs::remove_dir_all(dir.path().join("again")).ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn late_repeated_and_reordered_answers_are_no_offence() {
    let of = Manner::ALL.map(async |manner| {
        let content = content(5_000_000);
        let file = std::fs::read(content.file()).unwrap();
        let seeder = Scripted::new(manner, &content.metainfo, file);
        let connections = Arc::clone(&seeder.connections);
        let peer = rogue(move |mut stream| {
            let seeder = seeder.clone();
            async move {
                let (read, write) = stream.split();
                seeder.serve(read, write).await
            }
        });
        let download = content.get(&[peer.await]);
        let progress = download.progress();
        let ended = finish(download).await;
        ended.unwrap_or_else(|error| panic!("{manner:?}: {error}"));
        content.check();
        let idle = progress.borrow().idle_peers.clone();
        assert!(idle.is_empty(), "{manner:?}: {idle:?}");
        assert_eq!(connections.load(Ordering::SeqCst), 1, "{manner:?}");
    });
    for one in of.map(tokio::spawn) {
        one.await.unwrap();
    }
}
