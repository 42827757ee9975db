//! Writing messages and blocks to a peer.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hawser_store::{Files, StoreError, Watch};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::gone::Gone;
use super::shared::Shared;
use super::traffic::{Outgoing, Traffic, Uploads};
use crate::metainfo::Metainfo;
use crate::pieces::Pieces;
use crate::wire::{Message, PIECE_HEADER, Request, encode, encode_piece_header};

/// Bytes of blocks read from disk at once, and written at once so that QUIC can fill large sends.
/// Two such buffers are held: one being written, the next being read.
const BATCH: u32 = 256 << 10;

/// Silence after which a keep-alive is sent: peers may close a connection that is silent for two
/// minutes (BEP 3).
const KEEP_ALIVE: Duration = Duration::from_secs(90);

/// Blocks read from disk, in the form they are sent.
struct Batch {
    bytes: Vec<u8>,
    payload: u64,
}

type Reading = JoinHandle<Result<Batch, StoreError>>;

/// Writes `messages` and the blocks requested in `traffic`, until the stream fails or the sender of
/// `messages` is dropped. After [`Outgoing::End`] it ends the stream, and the peer closes the
/// connection once it has read everything.
pub(super) async fn run(
    mut stream: impl AsyncWrite + Unpin,
    shared: &Shared,
    traffic: &Traffic,
    mut messages: mpsc::UnboundedReceiver<Outgoing>,
) -> Gone {
    let uploads = &traffic.uploads;
    let mut out = Vec::new();
    let mut reading = None;
    let mut spare = Vec::new();
    let mut ending = false;
    loop {
        while let Ok(outgoing) = messages.try_recv() {
            match outgoing {
                Outgoing::Messages(bytes) => out.extend_from_slice(&bytes),
                Outgoing::End => ending = true,
            }
        }
        if reading.is_none() {
            reading = read_ahead(shared, uploads, std::mem::take(&mut spare)).await;
        }
        // Short messages overtake blocks: the peer may be waiting for them.
        if !out.is_empty() {
            if let Err(error) = send(&mut stream, &out).await {
                return Gone::closed(error.to_string());
            }
            out.clear();
            continue;
        }
        if let Some(ready) = reading.take() {
            let batch = match ready.await {
                Ok(Ok(batch)) => batch,
                Ok(Err(error)) => return Gone::Disk(error.to_string()),
                Err(error) => return Gone::Disk(error.to_string()),
            };
            reading = read_ahead(shared, uploads, std::mem::take(&mut spare)).await;
            if let Err(error) = send(&mut stream, &batch.bytes).await {
                return Gone::closed(error.to_string());
            }
            traffic.uploaded.fetch_add(batch.payload, Ordering::Relaxed);
            spare = batch.bytes;
            continue;
        }
        if ending {
            if let Err(error) = stream.shutdown().await {
                return Gone::closed(error.to_string());
            }
            while messages.recv().await.is_some() {}
            return Gone::closed("closed here");
        }
        tokio::select! {
            outgoing = messages.recv() => match outgoing {
                Some(Outgoing::Messages(bytes)) => out = bytes,
                Some(Outgoing::End) => ending = true,
                None => return Gone::closed("closed here"),
            },
            () = uploads.more() => {}
            () = tokio::time::sleep(KEEP_ALIVE) => encode(&Message::KeepAlive, &mut out),
        }
    }
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> std::io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

/// Starts to read the next blocks from disk, if any are requested.
async fn read_ahead(shared: &Shared, uploads: &Uploads, spare: Vec<u8>) -> Option<Reading> {
    let requests = uploads.take(BATCH);
    if requests.is_empty() {
        return None;
    }
    let turn = shared.account.read().await;
    let (files, pieces) = (Arc::clone(&shared.files), shared.pieces);
    let content = shared.content.get().cloned();
    Some(tokio::task::spawn_blocking(move || {
        let batch = match content {
            Some(content) => Ok(read_watched(&files, &content, pieces, &requests, spare)),
            None => read(&files, pieces, &requests, spare),
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
    bytes: Vec<u8>,
) -> Batch {
    let ranges: Vec<Range<u64>> = requests.iter().map(|r| range(pieces, r)).collect();
    if let Ok(batch) = read(files, pieces, requests, bytes)
        && content.is_current(&ranges)
    {
        return batch;
    }
    let mut batch = Batch {
        bytes: Vec::new(),
        payload: 0,
    };
    let mut data = Vec::new();
    for request in requests {
        data.resize(request.length as usize, 0);
        if content.read(range(pieces, request).start, &mut data) {
            batch.bytes.extend(encode_piece_header(*request));
            batch.bytes.extend(&data);
            batch.payload += u64::from(request.length);
        }
    }
    batch
}

/// The bytes of a request within the torrent's content.
fn range(pieces: Pieces, request: &Request) -> Range<u64> {
    let start = pieces.start(request.piece) + u64::from(request.begin);
    start..start + u64::from(request.length)
}

fn read(
    files: &Files,
    pieces: Pieces,
    requests: &[Request],
    mut bytes: Vec<u8>,
) -> Result<Batch, StoreError> {
    let payload: u64 = requests.iter().map(|r| u64::from(r.length)).sum();
    // Only bytes added by `resize` are zeroed; all are overwritten below.
    bytes.resize(payload as usize + requests.len() * PIECE_HEADER, 0);
    let mut rest = &mut bytes[..];
    for request in requests {
        let (header, after) = rest.split_at_mut(PIECE_HEADER);
        let (data, after) = after.split_at_mut(request.length as usize);
        header.copy_from_slice(&encode_piece_header(*request));
        files.read_at(range(pieces, request).start, data)?;
        rest = after;
    }
    Ok(Batch { bytes, payload })
}
