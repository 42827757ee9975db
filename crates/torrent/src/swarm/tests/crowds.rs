//! Hostile peers in large numbers: what is kept of them is bounded, and an honest peer is served meanwhile.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::PeerSource;
use crate::testing::TestPath;
use crate::transport::Stream;
use crate::wire::{
    AddrKind, BLOCK, Exchange, HANDSHAKE_BYTES, Handshake, Message, PeerId, Request, encode,
};

/// Longest wait for an event that must come.
const LONG: Duration = Duration::from_secs(300);

fn handshake(metainfo: &Metainfo, extended: bool) -> Vec<u8> {
    let handshake = Handshake {
        info_hash: metainfo.info_hash,
        peer_id: PeerId::random(),
        extended,
        dht: false,
        version_two: false,
    };
    handshake.encode().to_vec()
}

/// Opens a connection to host 1 and sends these bytes.
async fn open(from: &Host, path: &TestPath, bytes: &[u8]) -> (Arc<dyn Connection>, Stream) {
    let connection = from.dial(addr(1), path.clone()).await.unwrap();
    let (read, mut write) = connection.stream().await.unwrap();
    // Fails if the connection was closed for a newer one.
    let _ = write.write_all(bytes).await;
    (connection, (read, write))
}

/// Downloads from host 1, which accepts the first connection.
async fn is_served(net: &Net, stage: &Stage) {
    let path = net.between(0, 101, 1, FAST, None);
    let dialed = || {
        let dials = net.dials().into_iter();
        dials.filter(|(_, of)| *of == path.fingerprint()).count()
    };
    let download = stage.download(&net.host(0), &[1]);
    tokio::time::timeout(LONG, download.wait())
        .await
        .expect("the honest peer is not served")
        .unwrap();
    stage.check();
    assert_eq!(dialed(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_that_begin_a_handshake_and_no_more_keep_nobody_out() {
    let net = Net::default();
    let stage = Stage::one_file(500_000, 65536);
    let seed = stage.seed(&net.host(1)).await;
    let (rogue, path) = (net.host(2), net.between(2, 201, 1, FAST, None));
    let mut half_open = Vec::new();
    for _ in 0..1500 {
        half_open.push(open(&rogue, &path, b"\x13Bit").await);
    }
    is_served(&net, &stage).await;
    drop(half_open);
    seed.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_that_connect_and_do_nothing_keep_nobody_out() {
    let net = Net::default();
    let stage = Stage::one_file(500_000, 65536);
    let seed = stage.seed(&net.host(1)).await;
    let (rogue, path) = (net.host(2), net.between(2, 201, 1, FAST, None));
    let mut idle = Vec::new();
    for _ in 0..MAX_ACCEPTED + 50 {
        let opened = open(&rogue, &path, &handshake(&stage.metainfo, false)).await;
        idle.push(opened);
        // The seeder has taken it once it answers.
        let (_, (read, _)) = idle.last_mut().unwrap();
        let mut theirs = [0; HANDSHAKE_BYTES];
        let answered = tokio::time::timeout(LONG, read.read_exact(&mut theirs)).await;
        answered.expect("no answer").unwrap();
    }
    let mut progress = seed.progress();
    let full = progress.wait_for(|progress| progress.peers.len() >= MAX_ACCEPTED);
    let full = tokio::time::timeout(LONG, full).await;
    let peers = full.expect("not all are connected").unwrap().peers.len();
    assert!(peers <= MAX_ACCEPTED + 1, "{peers}");
    is_served(&net, &stage).await;
    drop(idle);
    seed.stop().await.unwrap();
}

/// What a peer sends without end, after its handshake.
fn floods(metainfo: &Metainfo) -> [Vec<Message>; 4] {
    let request = |piece| Request {
        piece,
        begin: 0,
        length: BLOCK,
    };
    let extended = |id, payload: &[u8]| Message::Extended {
        id,
        payload: payload.to_vec().into(),
    };
    let pieces = 0..metainfo.pieces.count();
    let cancelled = pieces.clone().flat_map(|piece| {
        // Each is taken back, and others were never sent.
        let (wanted, never) = (
            request(piece),
            Request {
                begin: BLOCK,
                ..request(piece)
            },
        );
        [
            Message::Request(wanted),
            Message::Cancel(wanted),
            Message::Cancel(never),
        ]
    });
    let turns = [Message::NotInterested, Message::Interested];
    let metadata = pieces.map(|piece| {
        let ask = format!("d8:msg_typei0e5:piecei{piece}ee");
        extended(crate::wire::UT_METADATA, ask.as_bytes())
    });
    let handshake = extended(0, b"d1:md11:ut_metadatai3e6:ut_pexi1eee");
    [
        cancelled.collect(),
        turns.into(),
        metadata.collect(),
        vec![handshake],
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn floods_of_messages_hold_nobody_up() {
    let net = Net::default();
    let stage = Stage::one_file(500_000, 65536);
    let seed = stage.seed(&net.host(1)).await;
    let mut rogues = tokio::task::JoinSet::new();
    for (host, messages) in (2..).zip(floods(&stage.metainfo)) {
        let (rogue, path) = (net.host(host), net.between(host, 200 + host, 1, FAST, None));
        let mut begin = handshake(&stage.metainfo, true);
        encode(&Message::Interested, &mut begin);
        let mut flood = Vec::new();
        messages
            .iter()
            .for_each(|message| encode(message, &mut flood));
        let flood = flood.repeat(65536 / flood.len() + 1);
        rogues.spawn(async move {
            let (_connection, (mut read, mut write)) = open(&rogue, &path, &begin).await;
            let write = async {
                // Fails when the seeder closes the connection.
                while write.write_all(&flood).await.is_ok() {
                    tokio::task::yield_now().await;
                }
            };
            let read = async {
                let mut buffer = vec![0; 65536];
                while read.read(&mut buffer).await.is_ok_and(|length| length > 0) {}
            };
            tokio::join!(write, read);
        });
    }
    is_served(&net, &stage).await;
    rogues.shutdown().await;
    let stopped = tokio::time::timeout(LONG, seed.stop()).await;
    stopped.expect("the seeder does not end").unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_addresses_leaves_room_for_peers_of_others() {
    let net = Net::default();
    let stage = Stage::one_file(1_500_000, 65536);
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, mbit(16.0, 2));
    net.path(2, FAST);
    let rogue = net.host(2);
    // 5,000 peers that nobody reaches.
    let mut flood = handshake(&stage.metainfo, true);
    for message in 0..100 {
        let exchange = Exchange {
            added: (0..50).map(|n| addr(1000 + message * 50 + n)).collect(),
            dropped: Vec::new(),
        };
        let payload = exchange.encode(AddrKind::Scion).into();
        let id = crate::wire::SCION_PEX;
        encode(&Message::Extended { id, payload }, &mut flood);
    }
    tokio::spawn(async move {
        while let Some(connection) = rogue.accept().await {
            let (mut read, mut write) = connection.stream().await.unwrap();
            let flood = flood.clone();
            tokio::spawn(async move {
                // Ends when the engine closes the connection.
                let _ = write.write_all(&flood).await;
                let _ = read.read_to_end(&mut Vec::new()).await;
                drop(connection);
            });
        }
    });
    let options = DownloadOptions {
        finds_peers: true,
        exchanges_peers: true,
        ..DownloadOptions::default()
    };
    let download = stage.download_with(&net.host(0), &[2], options);
    let found = download.found_peers();
    let mut progress = download.progress();
    let flooded = progress.wait_for(|progress| progress.idle_peers.len() > 30);
    let flooded = tokio::time::timeout(LONG, flooded).await;
    drop(flooded.expect("the addresses are not taken").unwrap());
    assert!(found.add(vec![addr(1)], PeerSource::Tracker).await);
    let followed = tokio::spawn(async move {
        let mut most = 0;
        while progress.changed().await.is_ok() {
            let progress = progress.borrow_and_update();
            most = most.max(progress.idle_peers.len() + progress.paths.len());
        }
        most
    });
    tokio::time::timeout(LONG, download.wait())
        .await
        .expect("the flood holds the download up")
        .unwrap();
    stage.check();
    // Those dialed at a time, and the listed one.
    let most = followed.await.unwrap();
    assert!(most <= 62, "{most} peers at a time");
}
