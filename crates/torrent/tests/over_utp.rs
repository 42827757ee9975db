//! Downloads from IP peers over uTP (BEP 29): alone and beside TCP, encrypted, and over a network that loses,
//! repeats and reorders datagrams.

#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod content;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hawser_torrent::{
    CreateOptions, Download, DownloadOptions, EncryptionPolicy, IpTransports, Listener, Network,
    Seed, SeedOptions, Summary,
};
use tokio::net::UdpSocket;

use self::content::{Content, finish};

const HOST: &str = "127.0.0.1:0";

fn content(length: usize) -> Content {
    let options = CreateOptions {
        piece_length: Some(65536),
        ..CreateOptions::default()
    };
    Content::new(length, &options)
}

/// Seeds over these transports; returns the address.
async fn seed(
    content: &Content,
    transports: IpTransports,
    policy: EncryptionPolicy,
) -> (Seed, SocketAddr) {
    let listener = Listener::bind_over(HOST.parse().unwrap(), transports).await;
    let listener = listener.unwrap();
    let addr = listener.local_addr();
    let network = Network::ip()
        .with_listener(listener)
        .with_encryption(policy);
    let (metainfo, file) = (content.metainfo.clone(), content.file());
    let seed = Seed::start(metainfo, file, network, SeedOptions::default(), |_, _| {});
    (seed.await.unwrap(), addr)
}

fn get(content: &Content, peer: SocketAddr, network: Network) -> Download {
    let (metainfo, peers) = (content.metainfo.clone(), vec![peer.into()]);
    let options = DownloadOptions::default();
    Download::start(metainfo, content.target(), peers, network, options)
}

fn over(transports: IpTransports) -> Network {
    Network::ip().with_transports(transports)
}

fn fetched(summary: &Summary, peer: SocketAddr) -> u64 {
    let paths = summary.paths.iter();
    let of_peer = paths.filter(|path| path.peer == peer.into());
    of_peer.map(|path| path.bytes).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_fetched_over_utp_alone() {
    for policy in [EncryptionPolicy::Disable, EncryptionPolicy::Require] {
        let content = content(3_000_000);
        let (seed, peer) = seed(&content, IpTransports::UTP, policy).await;
        let network = over(IpTransports::UTP).with_encryption(policy);
        let summary = finish(get(&content, peer, network)).await.unwrap();
        content.check();
        assert!(fetched(&summary, peer) >= 3_000_000);
        seed.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_without_tcp_is_reached_over_utp_and_one_without_utp_over_tcp() {
    for transports in [IpTransports::UTP, IpTransports::TCP, IpTransports::BOTH] {
        let content = content(1_000_000);
        let (_seed, peer) = seed(&content, transports, EncryptionPolicy::Prefer).await;
        let network = over(IpTransports::BOTH);
        finish(get(&content, peer, network)).await.unwrap();
        content.check();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_is_that_of_tcp_and_of_utp() {
    let free = HOST.parse().unwrap();
    let both = Listener::bind_over(free, IpTransports::BOTH).await.unwrap();
    let at = both.local_addr();
    assert!(UdpSocket::bind(at).await.is_err());
    let error = Listener::bind_over(at, IpTransports::UTP)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("--transport tcp"), "{error}");
    drop(both);
}

#[tokio::test(flavor = "multi_thread")]
async fn transports_and_encryption_change_while_it_runs() {
    let listener = Listener::bind(HOST.parse().unwrap()).await.unwrap();
    let peer = listener.local_addr();
    let network = Network::ip().with_listener(listener);
    let source = content(300_000);
    let (metainfo, file) = (source.metainfo.clone(), source.file());
    let options = SeedOptions::default();
    let seed = Seed::start(metainfo, file, network.clone(), options, |_, _| {});
    let seed = seed.await.unwrap();
    let get = async |transports, policy, give_up_after| {
        let target = tempfile::tempdir().unwrap();
        let network = over(transports).with_encryption(policy);
        let options = DownloadOptions {
            give_up_after,
            ..DownloadOptions::default()
        };
        let (metainfo, peers) = (source.metainfo.clone(), vec![peer.into()]);
        let folder = target.path().to_owned();
        finish(Download::start(metainfo, folder, peers, network, options)).await
    };
    let works = async |transports, policy| {
        let fetched = get(transports, policy, content::PATIENCE).await;
        fetched.unwrap_or_else(|error| panic!("{transports} {policy}: {error}"));
    };
    let fails = async |transports, policy| {
        let fetched = get(transports, policy, Duration::from_secs(1)).await;
        assert!(fetched.is_err(), "{transports} {policy}");
    };
    let (tcp, utp) = (IpTransports::TCP, IpTransports::UTP);
    let (plain, encrypted) = (EncryptionPolicy::Disable, EncryptionPolicy::Require);
    works(tcp, plain).await;
    fails(utp, plain).await;
    network.set_transports(utp).unwrap();
    works(utp, plain).await;
    fails(tcp, plain).await;
    network.set_transports(IpTransports::BOTH).unwrap();
    works(utp, plain).await;
    works(tcp, plain).await;
    network.set_transports(tcp).unwrap();
    works(tcp, plain).await;
    fails(utp, plain).await;
    network.set_encryption(encrypted);
    works(tcp, encrypted).await;
    fails(tcp, plain).await;
    network.set_encryption(plain);
    works(tcp, plain).await;
    fails(tcp, encrypted).await;
    // Another program has the port of UDP: nothing changes.
    let listener = Listener::bind(HOST.parse().unwrap()).await.unwrap();
    let _taken = UdpSocket::bind(listener.local_addr()).await.unwrap();
    let network = Network::ip().with_listener(listener);
    let error = network.set_transports(utp).unwrap_err().to_string();
    assert!(error.contains("--transport tcp"), "{error}");
    seed.stop().await.unwrap();
}

/// How many datagrams of a hundred are lost, repeated and held back.
#[derive(Clone, Copy)]
struct Faults {
    lost: u64,
    repeated: u64,
    held: u64,
}

/// A relay between a download and a seeder that treats datagrams badly.
struct Relay {
    addr: SocketAddr,
    lost: Arc<AtomicU64>,
    tasks: tokio::task::JoinSet<()>,
}

impl Relay {
    async fn start(seeder: SocketAddr, faults: Faults) -> Self {
        let front = Arc::new(UdpSocket::bind(HOST).await.unwrap());
        let back = Arc::new(UdpSocket::bind(HOST).await.unwrap());
        back.connect(seeder).await.unwrap();
        let addr = front.local_addr().unwrap();
        let lost = Arc::new(AtomicU64::new(0));
        let mut tasks = tokio::task::JoinSet::new();
        // The download has one socket: its address is known with its first datagram.
        let (known, client) = tokio::sync::watch::channel(None);
        let (from, to, count) = (Arc::clone(&front), Arc::clone(&back), Arc::clone(&lost));
        tasks.spawn(async move {
            let mut relay = Faulty::new(faults, 1, count);
            let mut buffer = vec![0; 2048];
            loop {
                let (length, source) = from.recv_from(&mut buffer).await.unwrap();
                known.send_replace(Some(source));
                for datagram in relay.pass(&buffer[..length]) {
                    // What cannot be sent is lost.
                    let _ = to.send(&datagram).await;
                }
            }
        });
        let count = Arc::clone(&lost);
        tasks.spawn(async move {
            let mut relay = Faulty::new(faults, 2, count);
            let mut buffer = vec![0; 2048];
            loop {
                let Ok(length) = back.recv(&mut buffer).await else {
                    continue;
                };
                let Some(client) = *client.borrow() else {
                    continue;
                };
                for datagram in relay.pass(&buffer[..length]) {
                    let _ = front.send_to(&datagram, client).await;
                }
            }
        });
        Self { addr, lost, tasks }
    }
}

/// One direction of the relay.
struct Faulty {
    faults: Faults,
    rng: fastrand::Rng,
    lost: Arc<AtomicU64>,
    /// A datagram that the next one overtakes.
    held: Option<Vec<u8>>,
}

impl Faulty {
    fn new(faults: Faults, seed: u64, lost: Arc<AtomicU64>) -> Self {
        Self {
            faults,
            rng: fastrand::Rng::with_seed(seed),
            lost,
            held: None,
        }
    }

    /// What arrives at the other end when a datagram was sent.
    fn pass(&mut self, datagram: &[u8]) -> Vec<Vec<u8>> {
        let mut passed = Vec::new();
        let chance = self.rng.u64(0..100);
        let Faults {
            lost,
            repeated,
            held,
        } = self.faults;
        if chance < lost {
            self.lost.fetch_add(1, Ordering::Relaxed);
        } else if chance < lost + repeated {
            passed.extend([datagram.to_vec(), datagram.to_vec()]);
        } else if chance < lost + repeated + held && self.held.is_none() {
            self.held = Some(datagram.to_vec());
            return passed;
        } else {
            passed.push(datagram.to_vec());
        }
        passed.extend(self.held.take());
        passed
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn datagrams_that_are_lost_repeated_and_reordered_do_no_harm() {
    let content = content(2_000_000);
    let (_seed, peer) = seed(&content, IpTransports::UTP, EncryptionPolicy::Prefer).await;
    let faults = Faults {
        lost: 2,
        repeated: 5,
        held: 5,
    };
    let mut relay = Relay::start(peer, faults).await;
    let download = get(&content, relay.addr, over(IpTransports::UTP));
    let summary = finish(download).await.unwrap();
    content.check();
    assert!(relay.lost.load(Ordering::Relaxed) > 0);
    // Nothing of it came twice to the torrent, but for what its end requests twice.
    assert!(summary.wasted_bytes < 500_000, "{}", summary.wasted_bytes);
    relay.tasks.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_answers_nothing_over_utp_is_given_up() {
    let content = content(100_000);
    let silent = UdpSocket::bind(HOST).await.unwrap();
    let peer = silent.local_addr().unwrap();
    let (metainfo, peers) = (content.metainfo.clone(), vec![peer.into()]);
    let options = DownloadOptions {
        give_up_after: Duration::from_secs(8),
        ..DownloadOptions::default()
    };
    let network = over(IpTransports::BOTH);
    let download = Download::start(metainfo, content.target(), peers, network, options);
    let error = finish(download).await.unwrap_err().to_string();
    assert!(
        error.contains("refused") && error.contains("over uTP"),
        "{error}"
    );
}
