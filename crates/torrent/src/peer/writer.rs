//! Messages and blocks out to a peer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::{Counts, Gone, Outgoing, Shared, Uploads};
use crate::storage::{ContentWatch, Files, StorageError, read_checked};
use crate::wire::{Message, PIECE_HEADER, Request, encode, encode_piece_header};

/// Bytes of blocks read from disk in one go, and written in one go so that QUIC can fill large
/// sends. Two such buffers are held: one being written, the next being read.
const BATCH: u32 = 256 << 10;

/// After so long without a message a keep-alive is sent: peers may drop who is silent for two
/// minutes (BEP 3).
const KEEP_ALIVE: Duration = Duration::from_secs(90);

/// Blocks read from disk, in the form they are sent.
struct Batch {
    bytes: Vec<u8>,
    payload: u64,
}

type Reading = JoinHandle<Result<Batch, StorageError>>;

/// Writes what `messages` brings and what `uploads` asks for, until one of both ends. After
/// [`Outgoing::End`] it is for the peer to close: it does so once it has read everything.
pub(super) async fn run(
    mut stream: impl AsyncWrite + Unpin,
    shared: &Shared,
    counts: &Counts,
    uploads: &Uploads,
    mut messages: mpsc::UnboundedReceiver<Outgoing>,
) -> Gone {
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
                return Gone::Closed(error.to_string());
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
                return Gone::Closed(error.to_string());
            }
            counts.uploaded.fetch_add(batch.payload, Ordering::Relaxed);
            spare = batch.bytes;
            continue;
        }
        if ending {
            if let Err(error) = stream.shutdown().await {
                return Gone::Closed(error.to_string());
            }
            while messages.recv().await.is_some() {}
            return Gone::Closed("closed here".into());
        }
        tokio::select! {
            outgoing = messages.recv() => match outgoing {
                Some(Outgoing::Messages(bytes)) => out = bytes,
                Some(Outgoing::End) => ending = true,
                None => return Gone::Closed("closed here".into()),
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

/// Starts to read the next blocks from disk, if any are asked for.
async fn read_ahead(shared: &Shared, uploads: &Uploads, spare: Vec<u8>) -> Option<Reading> {
    let requests = uploads.take(BATCH);
    if requests.is_empty() {
        return None;
    }
    // The semaphore is never closed.
    let turn = Arc::clone(&shared.readers).acquire_owned().await.ok()?;
    let files = Arc::clone(&shared.files);
    let content = shared.content.get().cloned();
    Some(tokio::task::spawn_blocking(move || {
        let batch = match content {
            Some(content) => Ok(read_watched(&files, &content, &requests, spare)),
            None => read(&files, &requests, spare),
        };
        drop(turn);
        batch
    }))
}

/// Reads from files that may have changed since they were verified: blocks that are not what they
/// should be are left out.
fn read_watched(
    files: &Files,
    content: &ContentWatch,
    requests: &[Request],
    bytes: Vec<u8>,
) -> Batch {
    if let Ok(batch) = read(files, requests, bytes)
        && content.is_current(requests)
    {
        return batch;
    }
    let mut batch = Batch {
        bytes: Vec::new(),
        payload: 0,
    };
    for (request, data) in read_checked(content, requests) {
        batch.bytes.extend(encode_piece_header(request));
        batch.bytes.extend(&data);
        batch.payload += u64::from(request.length);
    }
    batch
}

fn read(files: &Files, requests: &[Request], mut bytes: Vec<u8>) -> Result<Batch, StorageError> {
    let payload: u64 = requests.iter().map(|r| u64::from(r.length)).sum();
    // Only what is new has to be zeroed; all of it is overwritten.
    bytes.resize(payload as usize + requests.len() * PIECE_HEADER, 0);
    let mut rest = &mut bytes[..];
    for request in requests {
        let (header, after) = rest.split_at_mut(PIECE_HEADER);
        let (data, after) = after.split_at_mut(request.length as usize);
        header.copy_from_slice(&encode_piece_header(*request));
        let start = files.layout().piece_start(request.piece) + u64::from(request.begin);
        files.read_at(start, data)?;
        rest = after;
    }
    Ok(Batch { bytes, payload })
}
