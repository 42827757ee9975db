//! Blocks that end in padding (BEP 47), and peers that answer only one kind of request for them.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::Version;
use crate::bitfield::Bitfield;
use crate::wire::{BLOCK, Decoder, HANDSHAKE_BYTES, Handshake, PeerId, Request, encode};

const PIECE: u32 = 65536;

/// The first file ends within the first block of its last piece, the second within a later block.
const FILES: [(&str, usize); 3] = [
    ("set/a", 2 * PIECE as usize + 5000),
    ("set/b", PIECE as usize - 100),
    ("set/c", 200_000),
];

/// What a seeder answers. It ends the connection at any other request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    /// Whole blocks, as rqbit does.
    Whole,
    /// What stands before the end of a file, as anacrolix/torrent does.
    UpToTheEnd,
}

/// A seeder of one manner.
#[derive(Clone)]
struct Strict {
    answers: Answers,
    version_two: bool,
    metainfo: Metainfo,
    /// With padding.
    content: Arc<Vec<u8>>,
    /// Connections so far.
    connections: Arc<AtomicUsize>,
}

impl Strict {
    fn new(stage: &Stage, answers: Answers, version_two: bool) -> Self {
        let mut content = Vec::new();
        for file in &stage.metainfo.files {
            let end = content.len() + file.length as usize;
            if !file.padding {
                let path = stage.dir.path().join("seed").join(&file.path);
                content.extend(fs::read(path).unwrap());
            }
            content.resize(end, 0);
        }
        Self {
            answers,
            version_two,
            metainfo: stage.metainfo.clone(),
            content: Arc::new(content),
            connections: Arc::default(),
        }
    }

    /// Whether it answers a request.
    fn answers(&self, request: Request) -> bool {
        let pieces = self.metainfo.pieces;
        match self.answers {
            Answers::Whole => request == request.whole_block(pieces.size(request.piece)),
            Answers::UpToTheEnd => {
                let start = pieces.start(request.piece) + u64::from(request.begin);
                let end = start + u64::from(request.length);
                let mut at = 0;
                self.metainfo.files.iter().all(|file| {
                    let range = at..at + file.length;
                    at = range.end;
                    !file.padding || end <= range.start || range.end <= start
                })
            }
        }
    }

    /// Accepts connections, and serves each.
    fn start(&self, host: Host) {
        let seeder = self.clone();
        tokio::spawn(async move {
            while let Some(connection) = host.accept().await {
                seeder.connections.fetch_add(1, Ordering::SeqCst);
                let seeder = seeder.clone();
                tokio::spawn(async move {
                    // Fails when the other side closes the connection.
                    let _ = seeder.serve(&*connection).await;
                });
            }
        });
    }

    async fn serve(&self, connection: &dyn Connection) -> std::io::Result<()> {
        let (mut read, mut write) = connection.stream().await.unwrap();
        let mut theirs = [0; HANDSHAKE_BYTES];
        read.read_exact(&mut theirs).await?;
        let handshake = Handshake {
            info_hash: self.metainfo.info_hash,
            peer_id: PeerId::random(),
            extended: false,
            dht: false,
            version_two: self.version_two,
        };
        // A random id begins like one of this program.
        let mut out = handshake.encode().to_vec();
        out[48..56].copy_from_slice(b"-XX0001-");
        let pieces = self.metainfo.pieces;
        let has = Bytes::copy_from_slice(Bitfield::full(pieces.count()).as_wire());
        encode(&Message::Bitfield(has), &mut out);
        encode(&Message::Unchoke, &mut out);
        write.write_all(&out).await?;
        let mut decoder = Decoder::new(pieces.count());
        while read.read_buf(decoder.buffer(4096)).await? > 0 {
            let mut out = Vec::new();
            while let Some(message) = decoder.next_message().unwrap() {
                let Message::Request(request) = message else {
                    continue;
                };
                if !self.answers(request) {
                    connection.close(CloseCode::Plain, "no such block");
                    return Ok(());
                }
                let Request {
                    piece,
                    begin,
                    length,
                } = request;
                let start = pieces.start(piece) as usize + begin as usize;
                let data = Bytes::copy_from_slice(&self.content[start..start + length as usize]);
                encode(&Message::Piece { piece, begin, data }, &mut out);
            }
            write.write_all(&out).await?;
        }
        Ok(())
    }
}

/// Fetches a torrent of both versions from such a seeder. Returns how many connections that took.
async fn connections(answers: Answers, version_two: bool) -> usize {
    let options = CreateOptions {
        piece_length: Some(PIECE),
        version: Version::Hybrid,
        ..CreateOptions::default()
    };
    let stage = Stage::made(&FILES, &options, |bytes| fastrand::Rng::new().fill(bytes));
    assert!(stage.metainfo.pieces.length > BLOCK);
    let net = Net::default();
    let seeder = Strict::new(&stage, answers, version_two);
    seeder.start(net.host(1));
    net.path(1, FAST);
    let summary = finish(stage.download(&net.host(0), &[1])).await.unwrap();
    stage.check();
    let content: usize = FILES.iter().map(|(_, length)| length).sum();
    let carried = summary.paths.iter().map(|path| path.bytes).sum::<u64>();
    assert_eq!(carried - summary.wasted_bytes, content as u64);
    seeder.connections.load(Ordering::SeqCst)
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_of_version_one_are_asked_for_whole_blocks_and_others_for_content() {
    assert_eq!(connections(Answers::Whole, false).await, 1);
    assert_eq!(connections(Answers::UpToTheEnd, true).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_ends_the_connection_at_such_a_request_is_asked_the_other_way() {
    assert_eq!(connections(Answers::UpToTheEnd, false).await, 2);
    assert_eq!(connections(Answers::Whole, true).await, 2);
}
