//! Peers that are broken, lying, silent or absent.

use std::sync::OnceLock;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::*;
use crate::bitfield::Bitfield;
use crate::metainfo::InfoHash;
use crate::testing::{State, TestPath};
use crate::wire::{BLOCK, Decoder, HANDSHAKE_BYTES, Handshake, PeerId, Request, encode};

/// What a hostile peer does.
#[derive(Clone)]
enum Rogue {
    /// Sends this instead of a handshake.
    Instead(Vec<u8>),
    /// Is in another torrent.
    OtherTorrent,
    /// Sends nothing at all.
    Mute,
    /// Sends these bytes after its handshake.
    Then(Vec<u8>),
    /// Offers everything, accepts requests, answers none.
    Stingy,
    /// Answers with this byte in place of the data.
    Liar(u8),
    /// Answers with the right data, but spoils every block that begins at this offset.
    Spoils(u32, Arc<Vec<u8>>),
    /// Sends right blocks but for the first one that is requested, which is set then.
    SpoilsFirst(Arc<OnceLock<Request>>, Arc<Vec<u8>>),
}

impl Rogue {
    /// Plays it at `host` until the test is over.
    fn play(self, host: Host, metainfo: Metainfo) {
        tokio::spawn(async move {
            while let Some(connection) = host.accept().await {
                let (rogue, metainfo) = (self.clone(), metainfo.clone());
                tokio::spawn(async move {
                    let (read, write) = connection.stream().await.unwrap();
                    // Fails when the engine closes the connection.
                    let _ = rogue.speak(read, write, metainfo).await;
                });
            }
        });
    }

    async fn speak(
        self,
        mut read: impl AsyncRead + Unpin,
        mut write: impl AsyncWrite + Unpin,
        metainfo: Metainfo,
    ) -> std::io::Result<()> {
        let handshake = Handshake {
            info_hash: match self {
                Self::OtherTorrent => InfoHash([9; 20]),
                _ => metainfo.info_hash,
            },
            peer_id: PeerId::random(),
            extended: false,
            dht: false,
            version_two: false,
        };
        match &self {
            Self::Instead(bytes) => write.write_all(bytes).await?,
            Self::Mute => {}
            _ => write.write_all(&handshake.encode()).await?,
        }
        let everything = Bitfield::full(metainfo.pieces.count());
        let mut out = Vec::new();
        match &self {
            Self::Then(bytes) => out.extend_from_slice(bytes),
            Self::Stingy | Self::Liar(_) | Self::Spoils(..) | Self::SpoilsFirst(..) => {
                let bits = Bytes::copy_from_slice(everything.as_wire());
                encode(&Message::Bitfield(bits), &mut out);
                encode(&Message::Unchoke, &mut out);
            }
            _ => {}
        }
        write.write_all(&out).await?;
        let mut theirs = [0; HANDSHAKE_BYTES];
        read.read_exact(&mut theirs).await?;
        let mut decoder = Decoder::new(metainfo.pieces.count());
        while read.read_buf(decoder.buffer(4096)).await? > 0 {
            while let Some(message) = decoder.next_message().unwrap() {
                let Message::Request(request) = message else {
                    continue;
                };
                if let Some(data) = self.answer(request, &metainfo) {
                    let mut out = Vec::new();
                    let Request { piece, begin, .. } = request;
                    encode(&Message::Piece { piece, begin, data }, &mut out);
                    write.write_all(&out).await?;
                }
            }
        }
        Ok(())
    }

    fn answer(&self, request: Request, metainfo: &Metainfo) -> Option<Bytes> {
        let length = request.length as usize;
        match self {
            Self::Liar(byte) => Some(vec![*byte; length].into()),
            Self::Spoils(begin, content) => {
                let start = request.piece as usize * metainfo.pieces.length as usize;
                let start = start + request.begin as usize;
                let mut data = content[start..start + length].to_vec();
                if request.begin == *begin {
                    data[0] ^= 1;
                }
                Some(data.into())
            }
            Self::SpoilsFirst(first, content) => {
                let first = *first.get_or_init(|| request);
                let start = request.piece as usize * metainfo.pieces.length as usize;
                let start = start + request.begin as usize;
                let mut data = content[start..start + length].to_vec();
                data[0] ^= u8::from(first == request);
                Some(data.into())
            }
            _ => None,
        }
    }
}

fn framed(id: u8, body: &[u8]) -> Vec<u8> {
    let mut out = (1 + body.len() as u32).to_be_bytes().to_vec();
    out.push(id);
    out.extend_from_slice(body);
    out
}

/// A download from the hostile peer at host 2, and a good one at host 1.
struct Beside {
    net: Net,
    stage: Stage,
    good: TestPath,
    _seed: Seed,
    download: Download,
}

impl Beside {
    async fn new(rogue: Rogue, state: State) -> Self {
        let net = Net::default();
        let stage = Stage::one_file(1_500_000, 65536);
        let seed = stage.seed(&net.host(1)).await;
        let good = net.path(1, mbit(16.0, 2));
        net.set(&good, state);
        net.path(2, FAST);
        net.path(2, FAST);
        rogue.play(net.host(2), stage.metainfo.clone());
        let download = stage.download(&net.host(0), &[2, 1]);
        Self {
            net,
            stage,
            good,
            _seed: seed,
            download,
        }
    }

    /// Waits for the end. Returns what the download says of the hostile peer, too.
    async fn finish(self) -> (Stage, Result<Summary, DownloadError>, String) {
        let progress = self.download.progress();
        let result = finish(self.download).await;
        let said = said_of_the_rogue(&progress.borrow());
        (self.stage, result, said)
    }
}

/// Why the hostile peer is left out, or was.
fn said_of_the_rogue(progress: &Progress) -> String {
    let banned = progress.idle_peers.iter();
    let banned = banned.map(|(peer, reason)| (peer, reason));
    let paths = progress.paths.iter();
    let errors = paths.filter_map(|path| Some((&path.peer, path.last_error.as_ref()?)));
    let of_rogue = banned.chain(errors).filter(|(peer, _)| **peer == addr(2));
    let said: Vec<&str> = of_rogue.map(|(_, reason)| reason.as_str()).collect();
    said.join("; ")
}

/// Downloads from the hostile peer, and a good one that leaves it time to act.
async fn beside_a_good_one(rogue: Rogue) -> (Stage, Result<Summary, DownloadError>, String) {
    Beside::new(rogue, State::Up).await.finish().await
}

/// Nothing comes from the good peer before the hostile one was dropped.
async fn is_dropped_with(rogue: Rogue, reason: &str) {
    let beside = Beside::new(rogue, State::Down).await;
    let mut progress = beside.download.progress();
    let dropped = progress.wait_for(|progress| said_of_the_rogue(progress).contains(reason));
    let dropped = tokio::time::timeout(LONG, dropped).await.is_ok();
    let said = said_of_the_rogue(&beside.download.progress().borrow());
    assert!(dropped, "{said:?} does not tell {reason:?}");
    beside.net.set(&beside.good, State::Up);
    let (stage, result, _) = beside.finish().await;
    result.unwrap();
    stage.check();
}

/// Longest wait for an event that must come.
const LONG: Duration = Duration::from_secs(300);

#[tokio::test(flavor = "multi_thread")]
async fn garbage_instead_of_a_handshake() {
    let garbage = (0..2000u32).map(|i| (i * 7919) as u8).collect();
    is_dropped_with(Rogue::Instead(garbage), "does not speak BitTorrent").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_torrent() {
    is_dropped_with(Rogue::OtherTorrent, "another torrent").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn oversized_message() {
    let huge = [0x7f, 0xff, 0xff, 0xff, 7].to_vec();
    is_dropped_with(Rogue::Then(huge), "at most").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_message() {
    is_dropped_with(Rogue::Then(framed(77, b"?")), "unknown kind 77").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bitfield_of_the_wrong_length() {
    is_dropped_with(Rogue::Then(framed(5, &[0xff; 9])), "bitfield").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bitfield_with_spare_bits() {
    is_dropped_with(Rogue::Then(framed(5, &[0xff; 3])), "bitfield").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pieces_taken_back_again_and_again() {
    let all_then_none = [framed(5, &[0xff, 0xff, 0xfe]), framed(5, &[0; 3])].concat();
    is_dropped_with(Rogue::Then(all_then_none.repeat(9)), "took back more").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn piece_that_does_not_exist() {
    let have = framed(4, &1000u32.to_be_bytes());
    is_dropped_with(Rogue::Then(have), "named piece 1000").await;
}

/// A block of the first piece.
fn block() -> Vec<u8> {
    let mut body = vec![0; 8];
    body.extend_from_slice(&[1; BLOCK as usize]);
    framed(7, &body)
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_that_were_not_requested_are_waste_and_no_offence() {
    let blocks = block().repeat(3);
    let (stage, result, said) = beside_a_good_one(Rogue::Then(blocks)).await;
    assert!(result.unwrap().wasted_bytes >= 3 * u64::from(BLOCK));
    stage.check();
    assert_eq!(said, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_blocks_that_were_not_requested() {
    is_dropped_with(Rogue::Then(block().repeat(4200)), "flooded").await;
}

#[tokio::test]
async fn what_waits_for_a_peer_that_reads_nothing_is_bounded() {
    let net = Net::default();
    let path = net.between(0, 101, 1, FAST, None);
    let _peer = net.host(1);
    let connection = net.host(0).dial(addr(1), path).await.unwrap();
    let (messages, _outbox) = mpsc::unbounded_channel();
    let serving = Serving::new(false, false);
    let now = Instant::now();
    let id = PeerId::random();
    let conn = Conn::new(Arc::clone(&connection), None, 0, id, serving, messages, now);
    // Announcements are bounded by the number of pieces.
    conn.send((0..1_000_000).map(Message::Have));
    assert_eq!(connection.close_reason(), None);
    let mut sent = 0;
    while connection.close_reason().is_none() {
        conn.send([Message::Interested, Message::NotInterested]);
        sent += 10;
        assert!(sent < 2 << 20, "{sent} bytes wait");
    }
    assert!(sent > 1 << 20, "closed after {sent} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn block_out_of_range() {
    let mut body = [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff].to_vec();
    body.extend_from_slice(&[1; 100]);
    is_dropped_with(Rogue::Then(framed(7, &body)), "past the end").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn request_for_a_piece_never_offered() {
    let request = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0];
    // Sent at once, before anything is verified here.
    is_dropped_with(Rogue::Then(framed(6, &request)), "never offered").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_data() {
    is_dropped_with(Rogue::Liar(0xaa), "wrong data").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_wrong_block_among_right_ones_of_others() {
    only_the_spoiler_is_banned(&Stage::one_file(1_500_000, 65536)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_wrong_block_of_a_torrent_of_version_two() {
    let options = CreateOptions {
        piece_length: Some(65536),
        version: crate::Version::Two,
        ..CreateOptions::default()
    };
    let fill = |bytes: &mut [u8]| fastrand::Rng::new().fill(bytes);
    let stage = Stage::made(&[("file.bin", 1_500_000)], &options, fill);
    only_the_spoiler_is_banned(&stage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_wrong_block_of_a_piece_of_16_mib() {
    let options = CreateOptions {
        piece_length: Some(16 << 20),
        version: crate::Version::Two,
        ..CreateOptions::default()
    };
    let fill = |bytes: &mut [u8]| fastrand::Rng::new().fill(bytes);
    let stage = Stage::made(&[("file.bin", 16 << 20)], &options, fill);
    let net = Net::default();
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, mbit(40.0, 2));
    net.path(2, mbit(40.0, 2));
    let content = fs::read(stage.dir.path().join("seed/file.bin")).unwrap();
    let rogue = Rogue::SpoilsFirst(Arc::default(), Arc::new(content));
    rogue.play(net.host(2), stage.metainfo.clone());
    let download = stage.download(&net.host(0), &[2, 1]);
    let progress = download.progress();
    let summary = finish(download).await.unwrap();
    stage.check();
    // The wrong block, and those that were requested twice at the end; not the piece.
    let wasted = summary.wasted_bytes;
    assert!((u64::from(BLOCK)..4 << 20).contains(&wasted), "{wasted}");
    let last = progress.borrow().clone();
    let banned: Vec<PeerAddr> = last.idle_peers.iter().map(|(peer, _)| *peer).collect();
    assert_eq!(banned, [addr(2)], "{last:?}");
}

async fn only_the_spoiler_is_banned(stage: &Stage) {
    // Both peers share every piece; only one of four blocks of a piece is spoilt.
    let net = Net::default();
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, mbit(40.0, 2));
    net.path(2, mbit(40.0, 2));
    let content = fs::read(stage.dir.path().join("seed/file.bin")).unwrap();
    Rogue::Spoils(16384, Arc::new(content)).play(net.host(2), stage.metainfo.clone());
    let download = stage.download(&net.host(0), &[2, 1]);
    let progress = download.progress();
    let summary = finish(download).await.unwrap();
    stage.check();
    assert!(summary.wasted_bytes > 0);
    let last = progress.borrow().clone();
    let banned: Vec<PeerAddr> = last.idle_peers.iter().map(|(peer, _)| *peer).collect();
    assert_eq!(banned, [addr(2)], "{last:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn mute_and_stingy_peers_hold_nothing_up() {
    for rogue in [Rogue::Mute, Rogue::Stingy] {
        let (stage, result, _) = beside_a_good_one(rogue).await;
        result.unwrap();
        stage.check();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_from_hostile_peers_only_fails_and_names_them() {
    let net = Net::default();
    let stage = Stage::one_file(500_000, 65536);
    net.path(2, FAST);
    Rogue::Liar(1).play(net.host(2), stage.metainfo.clone());
    let error = finish(stage.download(&net.host(0), &[2]))
        .await
        .unwrap_err();
    assert!(matches!(error, DownloadError::AllDropped { .. }), "{error}");
    let line = error.to_string();
    assert!(
        line.contains(&addr(2).to_string()) && line.contains("wrong data"),
        "{line}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_lied_over_its_own_connection_is_named_with_the_reason() {
    let net = Net::default();
    let stage = Stage::one_file(500_000, 65536);
    let path = net.between(0, 101, 2, FAST, None);
    let liar = net.host(2);
    net.remove_host(2);
    let download = stage.download(&net.host(0), &[2]);
    let connection = liar.dial(addr(0), path).await.unwrap();
    let (read, write) = connection.stream().await.unwrap();
    let lied = Rogue::Liar(1).speak(read, write, stage.metainfo.clone());
    // Ends when the engine closes the connection.
    let _ = tokio::time::timeout(PATIENCE, lied).await.unwrap();
    // Only now it can be dialed.
    Rogue::Stingy.play(net.host(2), stage.metainfo.clone());
    let error = finish(download).await.unwrap_err();
    assert!(matches!(error, DownloadError::AllDropped { .. }), "{error}");
    assert!(error.to_string().contains("wrong data"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn absent_peers_hold_nothing_up_and_are_named_in_the_error() {
    let net = Net::default();
    let stage = Stage::one_file(500_000, 65536);
    let seed = stage.seed(&net.host(1)).await;
    net.path(1, FAST);
    net.path(2, FAST);
    finish(stage.download(&net.host(0), &[2, 1])).await.unwrap();
    stage.check();
    seed.stop().await.unwrap();
    fs::remove_dir_all(stage.target()).unwrap();
    net.remove_host(1);
    let options = giving_up_after(Duration::from_millis(700));
    let error = finish(stage.download_with(&net.host(0), &[2, 1], options))
        .await
        .unwrap_err();
    let DownloadError::NoPeer(_, peers) = &error else {
        panic!("{error}")
    };
    assert_eq!(peers.len(), 2);
    let text = error.to_string();
    assert!(text.starts_with("no peer could be reached for"), "{text}");
    assert!(
        peers.iter().all(|(_, why)| why == "nobody there"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_path_to_any_peer_is_reported_at_once() {
    let net = Net::default();
    let stage = Stage::one_file(500_000, 65536);
    let error = finish(stage.download(&net.host(0), &[1, 2]))
        .await
        .unwrap_err();
    assert!(matches!(error, DownloadError::NoPath { .. }), "{error}");
    assert!(
        error.to_string().contains("no path to 1-ff00:0:2"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seeder_drops_leechers_that_send_invalid_requests() {
    let net = Net::default();
    let stage = Stage::one_file(500_000, 65536);
    let seed = stage.seed(&net.host(1)).await;
    let path = net.path(1, FAST);
    let rogue = net.host(2);
    let request = |piece: u32, begin: u32, length: u32| {
        framed(6, &[piece, begin, length].map(u32::to_be_bytes).concat())
    };
    for bad in [
        request(0, 0, 0),
        request(0, 0, 1 << 20),
        request(0, u32::MAX, 16384),
        request(0, 65536 - 10, 11),
        request(u32::MAX, 0, 16384),
        request(0, 0, 16384).repeat(100_000),
    ] {
        let connection = rogue.dial(addr(1), path.clone()).await.unwrap();
        let (mut read, mut write) = connection.stream().await.unwrap();
        let handshake = Handshake {
            info_hash: stage.metainfo.info_hash,
            peer_id: PeerId::random(),
            extended: false,
            dht: false,
            version_two: false,
        };
        // The seeder may close the connection before all of it is sent.
        let _ = write
            .write_all(&[&handshake.encode()[..], &bad].concat())
            .await;
        let mut sink = Vec::new();
        let ended = tokio::time::timeout(PATIENCE, read.read_to_end(&mut sink)).await;
        assert!(ended.is_ok(), "the seeder did not hang up");
    }
    // The seeder still serves others.
    finish(stage.download(&net.host(0), &[1])).await.unwrap();
    stage.check();
    seed.stop().await.unwrap();
}
