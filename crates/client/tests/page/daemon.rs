//! A daemon on loopback, and a seeder that a tracker names.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use hawser_client::http::{Daemon, Listener};
use hawser_client::{
    Announcement, Bounds, Client, Dates, Engine, Origin, Outcome, PeerAddresses, Record, SeedLimit,
    Settings, StateFolder, Totals, parse_hash,
};
use hawser_discovery::{Client as TrackerClient, ClientOptions, PeerFinder};
use hawser_http::Token;
use hawser_torrent::{
    CreateOptions, Listener as Peers, Metainfo, Network, Seed, SeedOptions, create,
};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinHandle};
use tokio_util::sync::CancellationToken;

/// A daemon that runs.
pub struct Running {
    pub address: SocketAddr,
    pub token: String,
    pub client: Client,
    pub dir: TempDir,
    stop: CancellationToken,
    task: JoinHandle<()>,
    serving: AbortHandle,
}

impl Running {
    /// With these torrents.
    pub async fn start(records: Vec<Record>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (state, _, _) = StateFolder::open(&dir.path().join("state")).unwrap();
        let trackers = TrackerClient::new(ClientOptions::default()).unwrap();
        let finder = PeerFinder::default().with_trackers(trackers);
        let engine = Engine::new(Network::ip(), finder);
        let stop = CancellationToken::new();
        let downloads = dir.path().join("downloads");
        let bounds = Bounds::default();
        let (client, task) =
            Client::start(engine, state, records, bounds, &downloads, stop.clone());
        let token = Token::random().unwrap();
        let addresses = PeerAddresses::default();
        let daemon = Daemon::new(client.clone(), addresses, &token, stop.clone()).unwrap();
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap())
            .await
            .unwrap();
        let address = listener.local_addr().unwrap();
        Self {
            address,
            token: token.reveal().to_owned(),
            client,
            dir,
            stop,
            task,
            serving: tokio::spawn(listener.serve(daemon)).abort_handle(),
        }
    }

    pub fn downloads(&self) -> PathBuf {
        self.dir.path().join("downloads")
    }

    pub async fn end(self) {
        self.stop.cancel();
        self.serving.abort();
        self.task.await.unwrap();
    }
}

/// The info-hash of one of [`stopped`].
pub fn hash(number: usize) -> String {
    format!("{number:040x}")
}

/// So many torrents that do not run.
pub fn stopped(count: usize) -> Vec<Record> {
    let record = |number: usize| Record {
        info_hash: parse_hash(&hash(number)).unwrap(),
        name: format!("torrent {number}"),
        origin: Origin::Magnet(format!("magnet:?xt=urn:btih:{}", hash(number))),
        size: Some(1_000_000 * (number as u64 % 977 + 1)),
        folder: "/nowhere".into(),
        started: false,
        outcome: None,
        labels: Vec::new(),
        settings: Settings::default(),
        rank: number as u64,
        peers: Vec::new(),
        dates: Dates {
            added: 1_790_000_000,
            ..Dates::default()
        },
        totals: Totals::default(),
        pending: None,
        rechecks: false,
        announcement: Announcement::None,
    };
    (0..count).map(record).collect()
}

/// Torrents of many kinds, as a picture of the list has them: each with the share that is verified and what
/// became of it.
pub fn scene() -> Vec<Record> {
    let seeded = Some(Outcome::Finished(SeedLimit::Ratio));
    let failed = || {
        Some(Outcome::Failed(
            "cannot write /data: No space left on device".to_owned(),
        ))
    };
    let all: [(&str, u64, f64, Option<Outcome>); 8] = [
        ("climate-model-2026-run-17", 812_000, 1.0, seeded.clone()),
        ("debian-13.2.0-amd64-DVD-1.iso", 3_980, 1.0, seeded),
        ("genome-assembly-v4", 96_400, 0.62, None),
        ("lecture-recordings-autumn", 41_200, 0.18, None),
        ("openstreetmap-planet-261116", 87_900, 0.4, failed()),
        ("satellite-tiles-alps", 250_300, 1.0, None),
        ("telescope-night-0412", 1_204_000, 0.93, None),
        ("weather-reanalysis-era6", 5_310_000, 0.07, None),
    ];
    let mut records = stopped(all.len());
    for (record, (name, megabytes, share, outcome)) in records.iter_mut().zip(all) {
        name.clone_into(&mut record.name);
        record.size = Some(megabytes * 1_000_000);
        record.started = outcome.is_some() || record.rank % 3 == 0;
        record.totals.verified = (megabytes as f64 * share * 1e6) as u64;
        record.dates.completed = (share == 1.0).then_some(1_790_100_000);
        record.outcome = outcome;
    }
    records
}

/// A torrent of a folder, its seeder, and the tracker that names it.
pub struct Seeder {
    pub metainfo: Vec<u8>,
    tracker: AbortHandle,
    _seed: Seed,
}

impl Drop for Seeder {
    fn drop(&mut self) {
        self.tracker.abort();
    }
}

impl Seeder {
    pub async fn start(dir: &Path, name: &str, files: &[(&str, usize)]) -> Self {
        let folder = dir.join("seeded").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        for (name, length) in files {
            let content: Vec<u8> = (0..*length).map(|at| (at / 1000) as u8).collect();
            std::fs::write(folder.join(name), content).unwrap();
        }
        let peers = Peers::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let peer = peers.local_addr();
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let tracker = format!("http://{}/announce", socket.local_addr().unwrap());
        let options = CreateOptions {
            piece_length: Some(16 << 10),
            trackers: vec![vec![tracker]],
            ..CreateOptions::default()
        };
        let tracker = tokio::spawn(track(socket, peer)).abort_handle();
        let metainfo = create(&folder, &options, |_, _| {}).unwrap();
        let parsed = Metainfo::parse(&metainfo).unwrap();
        let network = Network::ip().with_listener(peers);
        let seed = Seed::start(parsed, folder, network, SeedOptions::default(), |_, _| {});
        Self {
            metainfo,
            tracker,
            _seed: seed.await.unwrap(),
        }
    }
}

/// A tracker that answers each request with one peer (BEP 23).
async fn track(socket: TcpListener, peer: SocketAddr) {
    let SocketAddr::V4(peer) = peer else {
        unreachable!("it is on loopback");
    };
    let mut body = b"d8:completei1e10:incompletei0e8:intervali1800e5:peers6:".to_vec();
    body.extend(peer.ip().octets());
    body.extend(peer.port().to_be_bytes());
    body.push(b'e');
    loop {
        let (mut stream, _) = socket.accept().await.unwrap();
        let body = body.clone();
        tokio::spawn(async move {
            let mut request = Vec::new();
            let mut byte = [0];
            while !request.ends_with(b"\r\n\r\n") {
                if stream.read(&mut byte).await.unwrap_or(0) == 0 {
                    return;
                }
                request.push(byte[0]);
            }
            let head = format!(
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(head.as_bytes()).await;
            let _ = stream.write_all(&body).await;
        });
    }
}
