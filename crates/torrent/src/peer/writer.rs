//! Writing messages and blocks to a peer.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hawser_store::{Files, StoreError, Watch};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::gone::Gone;
use super::shared::Shared;
use super::traffic::{Outgoing, Traffic, Uploads};
use crate::failed::why;
use crate::metainfo::Metainfo;
use crate::pieces::Pieces;
use crate::transport::Output;
use crate::wire::{Message, PIECE_HEADER, Request, encode, encode_piece_header};

/// Bytes of blocks read from disk at once, and written at once so that QUIC can fill large sends.
/// Two such buffers are held: one being written, the next being read.
const BATCH: u32 = 256 << 10;

/// Silence after which a keep-alive is sent: peers may close a connection that is silent for two
/// minutes (BEP 3).
const KEEP_ALIVE: Duration = Duration::from_secs(90);

/// Blocks read from disk, in the form they are sent.
struct Batch {
    bytes: BytesMut,
    /// The length of each block.
    lengths: Vec<u32>,
}

/// The buffers of batches sent, in order. A stream may hold each until the peer has received it,
/// and then it is used again: fresh memory would cost a page fault for every page.
#[derive(Default)]
struct Sent(VecDeque<Bytes>);

impl Sent {
    /// A buffer for the next batch.
    fn buffer(&mut self) -> BytesMut {
        match self.0.pop_front().map(Bytes::try_into_mut) {
            Some(Ok(free)) => free,
            // The others were sent after it.
            Some(Err(held)) => {
                self.0.push_front(held);
                BytesMut::new()
            }
            None => BytesMut::new(),
        }
    }

    /// Forgets all: nothing is to be sent for now.
    fn clear(&mut self) {
        self.0.clear();
    }
}

type Reading = JoinHandle<Result<Batch, StoreError>>;

/// Writes `messages` and the blocks requested in `traffic`, until the stream fails or the sender of
/// `messages` is dropped. After [`Outgoing::End`] it ends the stream, and the peer closes the
/// connection once it has read everything. `key` is that of the peer.
pub(super) async fn run(
    mut stream: Box<dyn Output>,
    shared: &Shared,
    traffic: &Traffic,
    key: [u8; 32],
    mut messages: mpsc::UnboundedReceiver<Outgoing>,
) -> Gone {
    let uploads = &traffic.uploads;
    // What is written next, and how many of its bytes are counted as unsent.
    let (mut out, mut counted) = (Vec::new(), 0);
    let mut reading = None;
    // The wait for a turn, where the rate is limited.
    let (limit, mut turn) = (&shared.rates.up, None);
    let mut sent = Sent::default();
    let mut ending = false;
    loop {
        while let Ok(outgoing) = messages.try_recv() {
            match outgoing {
                Outgoing::Messages(bytes, unsent) => {
                    out.extend_from_slice(&bytes);
                    counted += unsent;
                }
                Outgoing::End => ending = true,
            }
        }
        if reading.is_none() && turn.is_none() {
            match limit.is_limited() {
                false => reading = read_ahead(shared, uploads, &mut sent).await,
                true if uploads.has_some() => turn = Some(Box::pin(limit.acquire(key))),
                true => {}
            }
        }
        // Short messages overtake blocks: the peer may be waiting for them.
        if !out.is_empty() {
            let messages = Bytes::from(std::mem::take(&mut out));
            if let Err(error) = send(&mut *stream, messages).await {
                return Gone::closed(why(&error));
            }
            traffic
                .unsent
                .fetch_sub(std::mem::take(&mut counted), Ordering::Relaxed);
            continue;
        }
        if let Some(ready) = reading.take() {
            let batch = match ready.await {
                Ok(Ok(batch)) => batch,
                Ok(Err(error)) => return Gone::Disk(error.to_string()),
                Err(error) => return Gone::Disk(error.to_string()),
            };
            if !limit.is_limited() {
                reading = read_ahead(shared, uploads, &mut sent).await;
            }
            let bytes = batch.bytes.freeze();
            let written =
                write_blocks(&mut *stream, &bytes, &batch.lengths, &traffic.uploaded).await;
            if let Err(error) = written {
                return Gone::closed(why(&error));
            }
            sent.0.push_back(bytes);
            if let Err(error) = stream.flush().await {
                return Gone::closed(why(&error));
            }
            continue;
        }
        if ending {
            if let Err(error) = stream.shutdown().await {
                return Gone::closed(why(&error));
            }
            while messages.recv().await.is_some() {}
            return Gone::closed("closed here");
        }
        sent.clear();
        tokio::select! {
            outgoing = messages.recv() => match outgoing {
                Some(Outgoing::Messages(bytes, unsent)) => (out, counted) = (bytes, unsent),
                Some(Outgoing::End) => ending = true,
                None => return Gone::closed("closed here"),
            },
            permit = async {
                match &mut turn {
                    Some(turn) => Some(turn.await),
                    None => None,
                }
            }, if turn.is_some() => {
                turn = None;
                let requests = uploads.take(limit.quota(BATCH));
                if let Some(permit) = permit {
                    permit.spend(requests.iter().map(|it| u64::from(it.length)).sum());
                }
                reading = read_blocks(shared, requests, &mut sent).await;
            }
            () = uploads.more(), if turn.is_none() => {}
            () = tokio::time::sleep(KEEP_ALIVE) => encode(&Message::KeepAlive, &mut out),
        }
    }
}

async fn send(stream: &mut dyn Output, bytes: Bytes) -> std::io::Result<()> {
    write(stream, bytes).await?;
    stream.flush().await
}

/// Hands bytes to the stream.
async fn write(stream: &mut dyn Output, mut bytes: Bytes) -> std::io::Result<()> {
    while !bytes.is_empty() {
        poll_fn(|cx| stream.poll_send(cx, &mut bytes)).await?;
    }
    Ok(())
}

/// Hands a batch with blocks of these lengths to the stream, and counts their bytes.
async fn write_blocks(
    stream: &mut dyn Output,
    bytes: &Bytes,
    lengths: &[u32],
    uploaded: &AtomicU64,
) -> std::io::Result<()> {
    let (mut rest, mut counted) = (bytes.clone(), 0);
    while !rest.is_empty() {
        poll_fn(|cx| stream.poll_send(cx, &mut rest)).await?;
        // At once: a peer that now has everything may end the connection, and this task with it.
        let sent = payload(lengths, bytes.len() - rest.len());
        uploaded.fetch_add(sent - counted, Ordering::Relaxed);
        counted = sent;
    }
    Ok(())
}

/// How many of the first `sent` bytes of a batch are of blocks, which have these lengths.
fn payload(lengths: &[u32], sent: usize) -> u64 {
    let mut rest = sent as u64;
    let of_block = |length: &u32| {
        rest = rest.saturating_sub(PIECE_HEADER as u64);
        let bytes = rest.min(u64::from(*length));
        rest -= bytes;
        bytes
    };
    lengths.iter().map(of_block).sum()
}

/// Starts to read the next blocks from disk, if any are requested.
async fn read_ahead(shared: &Shared, uploads: &Uploads, sent: &mut Sent) -> Option<Reading> {
    read_blocks(shared, uploads.take(BATCH), sent).await
}

/// Starts to read these blocks from disk, if there are any.
async fn read_blocks(shared: &Shared, requests: Vec<Request>, sent: &mut Sent) -> Option<Reading> {
    if requests.is_empty() {
        return None;
    }
    let turn = shared.account.read().await;
    let (files, pieces) = (Arc::clone(&shared.files), shared.pieces);
    let (content, buffer) = (shared.content.get().cloned(), sent.buffer());
    Some(tokio::task::spawn_blocking(move || {
        let batch = match content {
            Some(content) => Ok(read_watched(&files, &content, pieces, &requests, buffer)),
            None => read(&files, pieces, &requests, buffer),
        };
        drop(turn);
        batch
    }))
}

/// Reads from files that may have changed since they were verified; leaves out blocks that are no
/// longer right.
fn read_watched(
    files: &Files,
    content: &Watch<Metainfo>,
    pieces: Pieces,
    requests: &[Request],
    buffer: BytesMut,
) -> Batch {
    let ranges: Vec<Range<u64>> = requests.iter().map(|r| range(pieces, r)).collect();
    if let Ok(batch) = read(files, pieces, requests, buffer)
        && content.is_current(&ranges)
    {
        return batch;
    }
    let mut batch = Batch {
        bytes: BytesMut::new(),
        lengths: Vec::new(),
    };
    let mut data = Vec::new();
    for request in requests {
        data.resize(request.length as usize, 0);
        if content.read(range(pieces, request).start, &mut data) {
            batch
                .bytes
                .extend_from_slice(&encode_piece_header(*request));
            batch.bytes.extend_from_slice(&data);
            batch.lengths.push(request.length);
        }
    }
    batch
}

/// The bytes of a request within the torrent's content.
fn range(pieces: Pieces, request: &Request) -> Range<u64> {
    let start = pieces.start(request.piece) + u64::from(request.begin);
    start..start + u64::from(request.length)
}

/// Reads the blocks, in one system call where they follow each other.
fn read(
    files: &Files,
    pieces: Pieces,
    requests: &[Request],
    mut bytes: BytesMut,
) -> Result<Batch, StoreError> {
    let lengths: Vec<u32> = requests.iter().map(|request| request.length).collect();
    let payload: usize = lengths.iter().map(|length| *length as usize).sum();
    // Only bytes added by `resize` are zeroed; all are overwritten below.
    bytes.resize(payload + requests.len() * PIECE_HEADER, 0);
    let mut rest = &mut bytes[..];
    let follow = |a: &Request, b: &Request| range(pieces, a).end == range(pieces, b).start;
    for run in requests.chunk_by(follow) {
        let mut parts = Vec::with_capacity(run.len());
        for request in run {
            let (header, after) = rest.split_at_mut(PIECE_HEADER);
            let (data, after) = after.split_at_mut(request.length as usize);
            header.copy_from_slice(&encode_piece_header(*request));
            parts.push(data);
            rest = after;
        }
        files.read_run(range(pieces, &run[0]).start, &mut parts)?;
    }
    Ok(Batch { bytes, lengths })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::io::{AsyncReadExt, duplex, split};

    use super::*;

    #[tokio::test]
    async fn blocks_count_when_the_connection_ends_in_the_midst_of_a_batch() {
        let block = 16 << 10;
        let batch = Bytes::from(vec![0; 4 * (PIECE_HEADER + block)]);
        for whole in [1, 3] {
            // Room for some blocks and a half.
            let room = whole * (PIECE_HEADER + block) + PIECE_HEADER + block / 2;
            let (ours, theirs) = duplex(room);
            let (_reads, mut ours) = split(ours);
            let uploaded = AtomicU64::new(0);
            let lengths = [block as u32; 4];
            let writing = write_blocks(&mut ours, &batch, &lengths, &uploaded);
            // Its task ends while it waits for room.
            assert!(
                tokio::time::timeout(Duration::from_millis(1), writing)
                    .await
                    .is_err()
            );
            let expected = (whole * block + block / 2) as u64;
            assert_eq!(uploaded.load(Ordering::Relaxed), expected);
            drop(theirs);
        }

        let (ours, mut theirs) = duplex(1 << 10);
        let (_reads, mut ours) = split(ours);
        let uploaded = AtomicU64::new(0);
        let lengths = [block as u32; 4];
        let reading = async {
            theirs.read_exact(&mut vec![0; 40_000]).await.unwrap();
            drop(theirs);
        };
        let writing = write_blocks(&mut ours, &batch, &lengths, &uploaded);
        let (written, ()) = tokio::join!(writing, reading);
        assert!(written.is_err());
        assert!(uploaded.into_inner() >= 40_000 - 3 * PIECE_HEADER as u64);
    }

    proptest! {
        #[test]
        fn each_byte_of_a_block_counts_once(lengths in prop::collection::vec(1..100u32, 0..9)) {
            let mut counts = Vec::new();
            for length in &lengths {
                counts.extend([0; PIECE_HEADER]);
                counts.extend(vec![1; *length as usize]);
            }
            for sent in 0..=counts.len() {
                prop_assert_eq!(payload(&lengths, sent), counts[..sent].iter().sum::<u64>());
            }
        }
    }
}
