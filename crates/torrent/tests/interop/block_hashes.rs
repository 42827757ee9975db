//! Hashes of single blocks of version 2 (BEP 52), asked of libtorrent.

use hawser_torrent::Version;
use hawser_wire::{Decoder, HANDSHAKE_BYTES, Handshake, HashRequest, Message, PeerId, encode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::HOST;
use crate::clients::{
    Client, Kind, Manner, PATIENCE, Shared, inside, several_files_of, version_two,
};

#[test]
fn libtorrent_answers_requests_for_hashes_of_blocks() {
    inside(Kind::Libtorrent, "block_hashes::of_libtorrent", HOST);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by the test above, in its namespace"]
async fn of_libtorrent() {
    for shared in [several_files_of(Version::Two), version_two()] {
        answers(&shared).await;
    }
}

async fn answers(shared: &Shared) {
    let torrent = shared.torrent_without_tracker();
    let dir = shared.seeded_from();
    let client = Client::start(Kind::Libtorrent, torrent, &dir, HOST, Manner::default());
    client.until_seeding().await;
    client
        .until(|| client.log().contains("torrent_checked"))
        .await;
    let layers = shared.metainfo.layers().unwrap();
    let count = shared.metainfo.pieces.count();
    let asked = (0..count).filter_map(|piece| layers.block_requests(piece));
    let asked =
        asked.flat_map(|(requests, expected)| requests.into_iter().map(move |it| (it, expected)));
    let asked: Vec<_> = asked.step_by(20).collect();
    assert!(asked.len() > 10);
    let mut stream = TcpStream::connect(client.addr).await.unwrap();
    let handshake = Handshake {
        info_hash: shared.metainfo.info_hash,
        peer_id: PeerId::random(),
        extended: false,
        dht: false,
        version_two: true,
    };
    let mut out = handshake.encode().to_vec();
    for (request, _) in &asked {
        encode(&Message::HashRequest(*request), &mut out);
    }
    stream.write_all(&out).await.unwrap();
    let mut theirs = [0; HANDSHAKE_BYTES];
    stream.read_exact(&mut theirs).await.unwrap();
    Handshake::decode(&theirs, &[handshake.info_hash]).unwrap();
    let mut decoder = Decoder::new(count);
    let mut left = asked.clone();
    while !left.is_empty() {
        let reading = stream.read_buf(decoder.buffer(16384));
        let read = tokio::time::timeout(PATIENCE, reading).await;
        let read = read.unwrap_or_else(|_| panic!("it is silent:\n{}", client.log()));
        assert!(read.unwrap() > 0, "it hung up:\n{}", client.log());
        while let Some(message) = decoder.next_message().unwrap() {
            match message {
                Message::Hashes(named, hashes) => take(&mut left, named, &hashes),
                Message::HashReject(named) => panic!("it rejects {named:?}:\n{}", client.log()),
                _ => {}
            }
        }
    }
}

/// Checks an answer.
fn take(left: &mut Vec<(HashRequest, [u8; 32])>, named: HashRequest, hashes: &[[u8; 32]]) {
    let place = left.iter().position(|(request, _)| *request == named);
    let (_, expected) = left.swap_remove(place.expect("it was asked for"));
    assert_eq!(named.range.root(hashes), Some(expected));
}
