//! Messages that come before, after or without what calls for them.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::content::{Content, PATIENCE, finish};
use super::scripted::{HANDSHAKE, message};
use super::{answer_all_but, content, rogue};

/// Reads messages until one of kind `wanted`; returns its body.
async fn until(stream: &mut TcpStream, wanted: u8) -> Vec<u8> {
    let read = async {
        loop {
            let length = stream.read_u32().await.unwrap();
            let mut said = vec![0; length as usize];
            stream.read_exact(&mut said).await.unwrap();
            if said.first() == Some(&wanted) {
                return said.split_off(1);
            }
        }
    };
    tokio::time::timeout(PATIENCE, read).await.unwrap()
}

/// The bytes of a request for 16 KiB of the first piece.
fn request(begin: u32) -> Vec<u8> {
    message(6, &[0, begin, 16384].map(u32::to_be_bytes).concat())
}

/// A leecher's handshake.
fn handshake(content: &Content) -> Vec<u8> {
    content.greeting()[..HANDSHAKE].to_vec()
}

/// WebTorrent forgets an unchoke that comes before it is interested.
#[tokio::test(flavor = "multi_thread")]
async fn a_peer_is_unchoked_once_it_is_interested() {
    let content = content(500_000);
    let (_seed, addr) = content.seed("127.0.0.1:0").await;
    let mut stream = TcpStream::connect(addr.ip().unwrap()).await.unwrap();
    let early = [handshake(&content), request(0)].concat();
    stream.write_all(&early).await.unwrap();
    stream.read_exact(&mut [0; HANDSHAKE]).await.unwrap();
    until(&mut stream, 5).await;
    stream.write_all(&message(2, &[])).await.unwrap();
    until(&mut stream, 1).await;
    stream.write_all(&request(16384)).await.unwrap();
    // The request before it was not allowed, and is not answered.
    let block = until(&mut stream, 7).await;
    assert_eq!(block[..8], [0, 0, 0, 0, 0, 0, 0x40, 0]);
}

/// What a peer may send although nothing calls for it. In the end it is interested and unchokes.
fn uncalled_for() -> Vec<u8> {
    let cancel = message(8, &request(0)[5..]);
    let have = message(4, &[0; 4]);
    let port = message(9, &[0x1a, 0xe1]);
    let [choke, unchoke, interested, not_interested] = [0, 1, 2, 3].map(|id| message(id, &[]));
    let twice = [choke, unchoke, not_interested, cancel, interested].map(|it| it.repeat(2));
    [have, twice.concat(), port].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seeder_takes_no_offence_at_messages_that_nothing_calls_for() {
    let content = content(500_000);
    let (_seed, addr) = content.seed("127.0.0.1:0").await;
    let mut stream = TcpStream::connect(addr.ip().unwrap()).await.unwrap();
    let early = [handshake(&content), uncalled_for()].concat();
    stream.write_all(&early).await.unwrap();
    stream.read_exact(&mut [0; HANDSHAKE]).await.unwrap();
    until(&mut stream, 1).await;
    stream.write_all(&request(0)).await.unwrap();
    until(&mut stream, 7).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_takes_no_offence_at_messages_that_nothing_calls_for() {
    let content = content(500_000);
    let bitfield = content.greeting().split_off(HANDSHAKE);
    let greeting = [handshake(&content), uncalled_for(), bitfield].concat();
    let file = Arc::new(std::fs::read(content.file()).unwrap());
    let peer = rogue(move |stream| {
        let (greeting, file) = (greeting.clone(), file.clone());
        async move { answer_all_but(stream, greeting, &file, &Mutex::new(None)).await }
    })
    .await;
    finish(content.get(&[peer])).await.unwrap();
    content.check();
}

/// A leecher that requests each block twice, and one again after a cancel, gets every block over one
/// connection.
#[tokio::test(flavor = "multi_thread")]
async fn a_leecher_that_repeats_and_cancels_requests_is_served() {
    let content = content(500_000);
    let (_seed, addr) = content.seed("127.0.0.1:0").await;
    let mut stream = TcpStream::connect(addr.ip().unwrap()).await.unwrap();
    stream.write_all(&handshake(&content)).await.unwrap();
    stream.read_exact(&mut [0; HANDSHAKE]).await.unwrap();
    stream.write_all(&message(2, &[])).await.unwrap();
    until(&mut stream, 1).await;
    let blocks = [0, 16384, 32768, 49152];
    let mut wanted = std::collections::BTreeSet::new();
    for begin in blocks {
        wanted.insert(begin);
        stream.write_all(&request(begin).repeat(2)).await.unwrap();
    }
    let cancel = |begin| message(8, &request(begin)[5..]);
    stream.write_all(&cancel(32768)).await.unwrap();
    stream.write_all(&request(32768)).await.unwrap();
    let file = std::fs::read(content.file()).unwrap();
    while !wanted.is_empty() {
        let block = until(&mut stream, 7).await;
        let begin = u32::from_be_bytes(block[4..8].try_into().unwrap());
        assert_eq!(block[8..], file[begin as usize..][..16384]);
        wanted.remove(&begin);
    }
    // A cancel of what was answered, and of what was never requested, costs nothing.
    stream.write_all(&cancel(0)).await.unwrap();
    stream.write_all(&cancel(16384)).await.unwrap();
    let of_another_piece = [1, 0, 16384].map(u32::to_be_bytes).concat();
    let of_another_piece = message(6, &of_another_piece);
    stream.write_all(&of_another_piece).await.unwrap();
    while until(&mut stream, 7).await[..4] != [0, 0, 0, 1] {}
}

/// WebTorrent misses interest that comes before its bitfield is sent, and never unchokes then.
#[tokio::test(flavor = "multi_thread")]
async fn interest_in_a_peer_is_shown_once_it_has_said_what_it_has() {
    let content = content(16384);
    let bitfield = content.greeting().split_off(HANDSHAKE);
    let mut greeting = handshake(&content);
    // It understands extended messages (BEP 10): ours comes after all that needs no answer.
    greeting[25] |= 0x10;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let download = content.get(&[listener.local_addr().unwrap().into()]);
    let (mut stream, _) = listener.accept().await.unwrap();
    stream.write_all(&greeting).await.unwrap();
    stream.read_exact(&mut [0; HANDSHAKE]).await.unwrap();
    loop {
        let length = stream.read_u32().await.unwrap();
        let mut said = vec![0; length as usize];
        stream.read_exact(&mut said).await.unwrap();
        match said.first() {
            Some(20) => break,
            kind => assert_ne!(kind, Some(&2), "interested in nothing known"),
        }
    }
    stream.write_all(&bitfield).await.unwrap();
    until(&mut stream, 2).await;
    until(&mut stream, 6).await;
    let file = std::fs::read(content.file()).unwrap();
    let block = message(7, &[&[0; 8][..], &file].concat());
    stream.write_all(&block).await.unwrap();
    finish(download).await.unwrap();
    content.check();
}
