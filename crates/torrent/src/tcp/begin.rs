//! The beginning of a TCP connection: plain, or encrypted (MSE).

use std::io;

use fastrand::Rng;
use hawser_mse::{
    Crypto, Established, HandshakeError, Initiator, Policy, Responder, SkeyHash, Sniffed, Wire,
    sniff,
};
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::attempts::Attempt;
use super::encrypted::{EncryptedRead, EncryptedWrite};
use super::half::{Awaited, Half, Resumed};
use crate::failed::why;
use crate::metainfo::InfoHash;
use crate::transport::Stream;

/// Bytes read at a time. What follows the handshake is passed on.
const CHUNK: usize = 1024;

/// Why a connection came to nothing.
#[derive(Debug, Error)]
pub(super) enum BeginError {
    /// The connection failed.
    #[error("{}", why(.0))]
    Io(#[from] io::Error),
    /// The peer closed it.
    #[error("the peer ended the connection")]
    Ended,
    /// The encrypted handshake failed.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// The policy does not allow what the peer wants.
    #[error("only encrypted connections are accepted")]
    Plain,
}

/// The stream of a connection that was dialed.
pub(super) async fn dialed(
    half: Half,
    attempt: Attempt,
    info_hash: InfoHash,
) -> Result<Stream, BeginError> {
    match attempt.wire {
        Wire::Plain if attempt.has_other() => {
            let write = Box::new(half.clone());
            Ok((Box::new(Awaited::new(half, attempt)) as _, write as _))
        }
        Wire::Plain => Ok(plain(half, Vec::new())),
        Wire::Encrypted => {
            let stream = initiate(half, info_hash, attempt.policy()).await?;
            attempt.answered();
            Ok(stream)
        }
    }
}

/// The stream of a connection that a peer opened.
pub(super) async fn accepted(
    mut half: Half,
    policy: Policy,
    torrents: &[InfoHash],
) -> Result<Stream, BeginError> {
    if !policy.accepts(Wire::Encrypted) {
        return Ok(plain(half, Vec::new()));
    }
    let mut first = [0; Sniffed::BYTES];
    let mut filled = 0;
    loop {
        match half.read(&mut first[filled..]).await? {
            0 => return Err(BeginError::Ended),
            read => filled += read,
        }
        match sniff(&first[..filled]) {
            Sniffed::NeedMore => {}
            Sniffed::Plain if policy.accepts(Wire::Plain) => {
                return Ok(plain(half, first.to_vec()));
            }
            Sniffed::Plain => return Err(BeginError::Plain),
            Sniffed::Encrypted => {
                return respond(half, &first[..filled], torrents, policy).await;
            }
        }
    }
}

/// The handshake of the side that dials.
async fn initiate(
    mut half: Half,
    info_hash: InfoHash,
    policy: Policy,
) -> Result<Stream, BeginError> {
    let random = &mut Rng::new();
    let mut handshake = Initiator::new(info_hash.0, policy.provide(), Vec::new(), random)?;
    let mut chunk = [0; CHUNK];
    loop {
        half.write_all(&handshake.take_output()).await?;
        let read = match half.read(&mut chunk).await? {
            0 => return Err(BeginError::Ended),
            read => read,
        };
        let received = handshake.receive(&chunk[..read])?;
        if let Some(established) = received.established {
            return Ok(stream(half, established, &chunk[received.used..read]));
        }
    }
}

/// The handshake of the side that accepts, which has received `first`.
async fn respond(
    mut half: Half,
    first: &[u8],
    torrents: &[InfoHash],
    policy: Policy,
) -> Result<Stream, BeginError> {
    let mut handshake = Responder::new(policy, &mut Rng::new());
    let mut chunk = [0; CHUNK];
    chunk[..first.len()].copy_from_slice(first);
    let mut read = first.len();
    loop {
        let find = |shown: SkeyHash| shown.find(torrents.iter().map(|torrent| &torrent.0));
        let received = handshake.receive(&chunk[..read], find)?;
        half.write_all(&handshake.take_output()).await?;
        if let Some(established) = received.established {
            return Ok(stream(half, established, &chunk[received.used..read]));
        }
        read = match half.read(&mut chunk).await? {
            0 => return Err(BeginError::Ended),
            read => read,
        };
    }
}

/// The stream after an encrypted handshake; `rest` was received after its end.
fn stream(half: Half, established: Established, rest: &[u8]) -> Stream {
    let mut early = established.initial;
    let begin = early.len();
    early.extend_from_slice(rest);
    match established.crypto {
        Crypto::Plain => plain(half, early),
        Crypto::Rc4(mut ciphers) => {
            ciphers.read.apply(&mut early[begin..]);
            let read = EncryptedRead {
                inner: half.clone(),
                cipher: ciphers.read,
            };
            let write = EncryptedWrite::new(half, ciphers.write);
            (Box::new(Resumed::new(early, read)), Box::new(write))
        }
    }
}

/// A stream that is not encrypted, of which `early` was received.
fn plain(half: Half, early: Vec<u8>) -> Stream {
    let write = Box::new(half.clone());
    match early.is_empty() {
        true => (Box::new(half), write),
        false => (Box::new(Resumed::new(early, half)), write),
    }
}
