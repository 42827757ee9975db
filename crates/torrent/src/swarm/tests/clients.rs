//! Scripted peers that behave like other BitTorrent programs: aria2, which sends `bitfield` again,
//! and Transmission, which drops requests beyond the queue length it announces.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::bitfield::Bitfield;
use crate::metainfo::InfoHash;
use crate::wire::{Decoder, HANDSHAKE_BYTES, Handshake, PeerId, Request, encode};

/// How a scripted seeder treats requests.
#[derive(Clone, Default)]
struct Script {
    /// Pieces in the first bitfield; all if `None`.
    first: Option<u32>,
    /// Sends a full bitfield after this many blocks.
    again_after: Option<usize>,
    /// Announces this `reqq`; like Transmission, drops requests while one fewer are queued.
    queue: Option<usize>,
    /// Requests dropped so far.
    dropped: Arc<AtomicUsize>,
    /// Never unchokes.
    chokes: bool,
    /// Serves this torrent instead.
    other: Option<InfoHash>,
}

impl Script {
    /// Plays it at `host` until the test is over.
    fn play(&self, host: Host, stage: &Stage) {
        let content = fs::read(stage.dir.path().join("seed/file.bin")).unwrap();
        let (content, metainfo) = (Arc::new(content), stage.metainfo.clone());
        let script = self.clone();
        tokio::spawn(async move {
            while let Some(connection) = host.accept().await {
                let (script, content) = (script.clone(), Arc::clone(&content));
                let metainfo = metainfo.clone();
                tokio::spawn(async move {
                    // Fails when the engine closes the connection.
                    let _ = script.serve(connection, &metainfo, &content).await;
                });
            }
        });
    }

    async fn serve(
        &self,
        connection: Arc<dyn Connection>,
        metainfo: &Metainfo,
        content: &[u8],
    ) -> std::io::Result<()> {
        let (mut read, mut write) = connection.stream().await.unwrap();
        let mut theirs = [0; HANDSHAKE_BYTES];
        read.read_exact(&mut theirs).await?;
        let handshake = Handshake {
            info_hash: self.other.unwrap_or(metainfo.info_hash),
            peer_id: PeerId::random(),
            extended: true,
            dht: false,
            version_two: false,
        };
        let pieces = metainfo.pieces.count();
        let mut has = Bitfield::empty(pieces);
        (0..self.first.unwrap_or(pieces)).for_each(|piece| {
            has.set(piece);
        });
        let bitfield = |has: &Bitfield| Message::Bitfield(Bytes::copy_from_slice(has.as_wire()));
        let ours = ExtendedHandshake {
            request_queue: self.queue.map(|queue| queue as u32),
            ..ExtendedHandshake::default()
        };
        let mut out = handshake.encode().to_vec();
        encode(&bitfield(&has), &mut out);
        let (id, payload) = (EXTENDED_HANDSHAKE, ours.encode().into());
        encode(&Message::Extended { id, payload }, &mut out);
        if !self.chokes {
            encode(&Message::Unchoke, &mut out);
        }
        write.write_all(&out).await?;
        let mut decoder = Decoder::new(pieces);
        let mut queue: VecDeque<Request> = VecDeque::new();
        let mut sent = 0;
        let mut answer = tokio::time::interval(Duration::from_micros(500));
        loop {
            tokio::select! {
                read = read.read_buf(decoder.buffer(4096)) => if read? == 0 { return Ok(()) },
                _ = answer.tick(), if !queue.is_empty() => {
                    let Some(request) = queue.pop_front() else { continue };
                    let start = u64::from(request.piece) * u64::from(metainfo.pieces.length);
                    let start = start as usize + request.begin as usize;
                    let data = &content[start..start + request.length as usize];
                    let mut out = Vec::new();
                    let Request { piece, begin, .. } = request;
                    let data = Bytes::copy_from_slice(data);
                    encode(&Message::Piece { piece, begin, data }, &mut out);
                    sent += 1;
                    if self.again_after == Some(sent) {
                        encode(&bitfield(&Bitfield::full(pieces)), &mut out);
                    }
                    write.write_all(&out).await?;
                }
            }
            while let Some(message) = decoder.next_message().unwrap() {
                match message {
                    Message::Request(request) => {
                        let full = self.queue.is_some_and(|most| queue.len() + 1 >= most);
                        if full {
                            self.dropped.fetch_add(1, Ordering::Relaxed);
                        } else {
                            queue.push_back(request);
                        }
                    }
                    Message::Cancel(request) => queue.retain(|waiting| *waiting != request),
                    _ => {}
                }
            }
        }
    }
}

/// A download of 100 blocks, one per piece, from one scripted seeder.
async fn fetched_from(script: &Script) -> (Net, Stage, Result<Summary, DownloadError>) {
    fetched_with(script, DownloadOptions::default()).await
}

async fn fetched_with(
    script: &Script,
    options: DownloadOptions,
) -> (Net, Stage, Result<Summary, DownloadError>) {
    let net = Net::default();
    let stage = Stage::one_file(100 * 16384 - 5, 16384);
    net.path(1, FAST);
    script.play(net.host(1), &stage);
    let result = finish(stage.download_with(&net.host(0), &[1], options)).await;
    (net, stage, result)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_complete_peer_that_chokes_for_ever_is_given_up() {
    let script = Script {
        chokes: true,
        ..Script::default()
    };
    // Longer than a connection takes to settle: until then a choke is no reason to wait anyway.
    let options = DownloadOptions {
        choked_patience: Duration::from_secs(1),
        ..giving_up_after(Duration::from_secs(6))
    };
    let (_net, _stage, result) = fetched_with(&script, options).await;
    let error = result.unwrap_err();
    assert!(matches!(error, DownloadError::NoProgress { .. }), "{error}");
    assert!(error.to_string().contains("it chokes this host"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bitfield_sent_again_replaces_the_first() {
    let script = Script {
        first: Some(40),
        again_after: Some(20),
        ..Script::default()
    };
    let (_net, stage, result) = fetched_from(&script).await;
    result.unwrap();
    stage.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_is_requested_than_a_peer_queues() {
    for queue in [2, 20, 60] {
        let script = Script {
            queue: Some(queue),
            ..Script::default()
        };
        let (_net, stage, result) = fetched_from(&script).await;
        result.unwrap();
        stage.check();
        assert_eq!(script.dropped.load(Ordering::Relaxed), 0, "reqq {queue}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_in_another_torrent_is_not_dialed_again() {
    let script = Script {
        other: Some(InfoHash([9; 20])),
        ..Script::default()
    };
    let (net, _stage, result) = fetched_from(&script).await;
    let error = result.unwrap_err();
    assert!(matches!(error, DownloadError::AllDropped { .. }), "{error}");
    let line = error.to_string();
    assert!(
        line.contains(&addr(1).to_string()) && line.contains("another torrent"),
        "{line}"
    );
    assert_eq!(net.dials().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seeder_of_another_torrent_is_reported() {
    let net = Net::default();
    let (stage, other) = (Stage::one_file(1000, 16384), Stage::one_file(1000, 16384));
    net.path(1, FAST);
    let _seed = other.seed(&net.host(1)).await;
    let error = finish(stage.download(&net.host(0), &[1]))
        .await
        .unwrap_err();
    assert!(matches!(error, DownloadError::AllDropped { .. }), "{error}");
    let line = error.to_string();
    assert!(line.contains("another torrent"), "{line}");
    // The error does not reveal what the seeder serves instead.
    let hash = other.metainfo.info_hash.to_string();
    assert!(!line.contains(&hash), "{line}");
    assert_eq!(net.dials().len(), 1);
}
