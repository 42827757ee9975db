//! Torrents of version 2 alone, and of both versions (BEP 52).

use super::*;
use crate::Version;
use crate::merkle::{self, HashRange};
use crate::selection::{Priority, Selection};
use crate::wire::{Decoder, HANDSHAKE_BYTES, Handshake, HashRequest, PeerId, encode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PIECE: u32 = 65536;

/// Files that end within pieces and blocks, that are shorter than a piece, and that are empty.
const FILES: [(&str, usize); 6] = [
    ("set/a", 1_000_001),
    ("set/d/b", 20_000),
    ("set/d/empty", 0),
    ("set/e", 2 * PIECE as usize),
    ("set/f", 5),
    ("set/g", 3 * PIECE as usize + 16384),
];

fn of(version: Version, files: &[(&str, usize)]) -> Stage {
    let options = CreateOptions {
        piece_length: Some(PIECE),
        version,
        ..CreateOptions::default()
    };
    Stage::made(files, &options, |bytes| fastrand::Rng::new().fill(bytes))
}

/// Bytes of all files.
fn content(files: &[(&str, usize)]) -> u64 {
    files.iter().map(|(_, length)| *length as u64).sum()
}

/// Bytes that were received and are of use.
fn carried(summary: &Summary) -> u64 {
    let paths = summary.paths.iter();
    paths.map(|path| path.bytes).sum::<u64>() - summary.wasted_bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_version_two_cross_two_paths_without_their_padding() {
    let net = Net::default();
    let stage = of(Version::Two, &FILES);
    let seed = stage.seed(&net.host(1)).await;
    net.path(1, FAST);
    net.path(1, FAST);
    let summary = finish(stage.download(&net.host(0), &[1])).await.unwrap();
    stage.check();
    // A piece ends with its file.
    assert_eq!(carried(&summary), content(&FILES));
    seed.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hybrid_made_here_is_fetched() {
    let net = Net::default();
    let stage = of(Version::Hybrid, &FILES);
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, FAST);
    let summary = finish(stage.download(&net.host(0), &[1])).await.unwrap();
    stage.check();
    // Its padding is not requested.
    assert_eq!(carried(&summary), content(&FILES));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_of_version_two_is_not_fetched_again() {
    let net = Net::default();
    let stage = of(Version::Two, &FILES);
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, FAST);
    finish(stage.download(&net.host(0), &[1])).await.unwrap();
    // One byte of one piece is wrong now.
    let damaged = stage.target().join("set/a");
    let mut bytes = fs::read(&damaged).unwrap();
    bytes[1_000_000] ^= 1;
    fs::write(&damaged, bytes).unwrap();
    let summary = finish(stage.download(&net.host(0), &[1])).await.unwrap();
    stage.check();
    assert_eq!(carried(&summary), 1_000_001 % u64::from(PIECE));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_file_of_version_two_is_fetched_alone() {
    let net = Net::default();
    let stage = of(Version::Two, &FILES);
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, FAST);
    let file = stage
        .metainfo
        .files
        .iter()
        .position(|file| file.path.ends_with("e"));
    let files = Selection::none().with_file(file.unwrap(), Priority::Normal);
    let options = DownloadOptions {
        files,
        ..DownloadOptions::default()
    };
    let download = stage.download_with(&net.host(0), &[1], options);
    let summary = finish(download).await.unwrap();
    let read = |dir: &str| fs::read(stage.dir.path().join(dir).join("set/e")).unwrap();
    assert!(read("seed") == read("get"));
    assert_eq!(summary.fetched_bytes, 2 * u64::from(PIECE));
    assert!(!stage.target().join("set/a").exists());
}

/// A connection to the seeder at host 1 from host 2, after the handshake.
async fn connected(
    net: &Net,
    stage: &Stage,
) -> (impl AsyncReadExt + Unpin, impl AsyncWriteExt + Unpin) {
    let path = net.path(1, FAST);
    let connection = net.host(2).dial(addr(1), path).await.unwrap();
    let (mut read, mut write) = connection.stream().await.unwrap();
    let handshake = Handshake {
        info_hash: stage.metainfo.info_hash,
        peer_id: PeerId::random(),
        extended: false,
        dht: false,
        version_two: false,
    };
    write.write_all(&handshake.encode()).await.unwrap();
    let mut theirs = [0; HANDSHAKE_BYTES];
    read.read_exact(&mut theirs).await.unwrap();
    // Dropping the connection would close it.
    std::mem::forget(connection);
    (read, write)
}

/// The answers to hash requests among the messages of a seeder, until there are `count` of them.
async fn answers(
    read: &mut (impl AsyncReadExt + Unpin),
    pieces: u32,
    count: usize,
) -> Vec<Message> {
    let mut decoder = Decoder::new(pieces);
    let mut answers = Vec::new();
    while answers.len() < count {
        let reading = read.read_buf(decoder.buffer(16384));
        let reading = tokio::time::timeout(PATIENCE, reading).await;
        assert!(reading.expect("it is silent").unwrap() > 0, "it hung up");
        while let Some(message) = decoder.next_message().unwrap() {
            if matches!(message, Message::Hashes(..) | Message::HashReject(_)) {
                answers.push(message);
            }
        }
    }
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn hashes_are_served_with_their_proof_and_others_are_rejected() {
    let net = Net::default();
    for version in [Version::Two, Version::Hybrid] {
        let stage = of(version, &FILES);
        let _seed = stage.seed(&net.host(1)).await;
        let (mut read, mut write) = connected(&net, &stage).await;
        let missing = Metainfo::missing_layers(of(Version::Two, &FILES).metainfo.info());
        let base = missing.unwrap()[0].base;
        let layers = stage.metainfo.layers().unwrap().by_root();
        let (root, nodes) = layers[0];
        let height = base + (nodes.len() as u32).next_power_of_two().ilog2();
        let right = HashRange::proven(base, 0, 2, height);
        let mut wanted = vec![HashRequest { root, range: right }];
        for (root, range) in [
            ([9; 32], right),
            (root, HashRange { length: 3, ..right }),
            (
                root,
                HashRange {
                    length: 1 << 31,
                    ..right
                },
            ),
            (
                root,
                HashRange {
                    index: u32::MAX - 1,
                    ..right
                },
            ),
            (
                root,
                HashRange {
                    proof: u32::MAX,
                    ..right
                },
            ),
            (
                root,
                HashRange {
                    base: u32::MAX,
                    ..right
                },
            ),
        ] {
            wanted.push(HashRequest { root, range });
        }
        let mut out = Vec::new();
        wanted
            .iter()
            .for_each(|it| encode(&Message::HashRequest(*it), &mut out));
        write.write_all(&out).await.unwrap();
        let answers = answers(&mut read, stage.metainfo.pieces.count(), wanted.len()).await;
        let Message::Hashes(named, hashes) = &answers[0] else {
            panic!("{:?}", answers[0])
        };
        assert_eq!(*named, wanted[0]);
        assert_eq!(right.root(hashes), Some(root));
        let rejected = wanted[1..].iter().map(|it| Message::HashReject(*it));
        assert_eq!(answers[1..], rejected.collect::<Vec<_>>());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hashes_of_blocks_are_served_with_their_proof() {
    let net = Net::default();
    for version in [Version::Two, Version::Hybrid] {
        let stage = of(version, &FILES);
        let _seed = stage.seed(&net.host(1)).await;
        let (mut read, mut write) = connected(&net, &stage).await;
        let layers = stage.metainfo.layers().unwrap();
        let count = stage.metainfo.pieces.count();
        // Of a whole piece, for each that has several blocks; of two blocks, up to the root of the file.
        let whole: Vec<_> = (0..count)
            .filter_map(|it| layers.block_requests(it))
            .map(|(requests, expected)| (requests[0], expected))
            .collect();
        assert!(whole.len() > 16);
        let (of_two, root) = {
            let (root, nodes) = layers.by_root()[0];
            let height = 2 + (nodes.len() as u32).next_power_of_two().ilog2();
            let range = HashRange::proven(0, 2, 2, height);
            (HashRequest { root, range }, root)
        };
        // Not more than a peer gets at once.
        let wanted: Vec<_> = whole
            .iter()
            .take(15)
            .copied()
            .chain([(of_two, root)])
            .collect();
        let mut out = Vec::new();
        wanted
            .iter()
            .for_each(|(it, _)| encode(&Message::HashRequest(*it), &mut out));
        write.write_all(&out).await.unwrap();
        for answer in answers(&mut read, count, wanted.len()).await {
            let Message::Hashes(named, hashes) = &answer else {
                panic!("{answer:?}")
            };
            let expected = wanted.iter().find(|(it, _)| it == named);
            assert_eq!(named.range.root(hashes), Some(expected.unwrap().1));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_hash_requests_gets_a_bounded_number_of_hashes() {
    let net = Net::default();
    let stage = of(Version::Two, &FILES);
    let _seed = stage.seed(&net.host(1)).await;
    let (mut read, mut write) = connected(&net, &stage).await;
    let (root, nodes) = stage.metainfo.layers().unwrap().by_root()[0];
    let base = merkle::height(PIECE.into());
    let height = base + (nodes.len() as u32).next_power_of_two().ilog2();
    let range = HashRange::proven(base, 0, 2, height);
    let mut out = Vec::new();
    encode(&Message::HashRequest(HashRequest { root, range }), &mut out);
    write.write_all(&out.repeat(2000)).await.unwrap();
    let answers = answers(&mut read, stage.metainfo.pieces.count(), 2000).await;
    let served = answers
        .iter()
        .filter(|it| matches!(it, Message::Hashes(..)));
    // 16, and one for each second that it takes.
    let served = served.count();
    assert!((16..1000).contains(&served), "{served}");
    // Others are served.
    finish(stage.download(&net.host(0), &[1])).await.unwrap();
    stage.check();
}
