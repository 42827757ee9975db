//! A connection to one peer that is asked for the info dictionary.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hawser_address::PeerAddr;
use hawser_magnet::{ConnectionId, MetadataMessage};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::close::CloseCode;
use crate::dht::DhtContacts;
use crate::failed::why;
use crate::merkle::Hash;
use crate::metainfo::InfoHash;
use crate::transport::{Connection, Stream, Transport};
use crate::wire::{
    Decoder, EXTENDED_HANDSHAKE, ExtendedHandshake, HANDSHAKE_BYTES, Handshake, HashRequest,
    Message, UT_METADATA, WireError, encode,
};

/// Longest time for connecting and the handshake together, over each path.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Most paths to a SCION peer that are tried, the shortest first.
const MAX_PATHS: usize = 4;

/// Longest time without a message from the peer. BitTorrent programs send something every two minutes.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(150);

/// Longest wait for the answer to a request before the next one is sent. Of two requests that arrive
/// together rTorrent 0.9.8 answers the first, and reads nothing more from the connection.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes read at a time.
const READ: usize = 32 << 10;

/// What happens at a connection.
pub(super) struct Event {
    pub id: ConnectionId,
    pub what: What,
}

pub(super) enum What {
    /// The peer is connected and has an info dictionary of this length in bytes.
    Has(u64),
    /// The peer sent a `ut_metadata` message.
    Message(Bytes),
    /// The peer sent hashes (BEP 52).
    Hashes(HashRequest, Vec<Hash>),
    /// The peer does not send hashes that were requested.
    Rejected(HashRequest),
    /// It has ended, or could not be opened. Dialing the peer again is useless if `is_final`.
    Gone { why: String, is_final: bool },
}

/// What is requested of a peer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ask {
    /// A piece of the info dictionary.
    Metadata(u32),
    /// Hashes of version 2.
    Hashes(HashRequest),
}

/// Why a connection ended.
struct Failure {
    why: String,
    is_final: bool,
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self {
            why,
            is_final: false,
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        why(&error).into()
    }
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Self {
        Self {
            why: format!("dropped: {error}"),
            is_final: true,
        }
    }
}

/// How this side names the torrent.
#[derive(Debug, Clone)]
pub(super) struct Greeting {
    pub ours: Handshake,
    /// The info-hashes that name it.
    pub info_hashes: Arc<[InfoHash]>,
}

/// Connects to a peer and passes on its messages, and requests to it, until either ends.
pub(super) async fn talk<T: Transport>(
    transport: T,
    peer: PeerAddr,
    greeting: Greeting,
    id: ConnectionId,
    events: mpsc::Sender<Event>,
    asked: mpsc::Receiver<Ask>,
) {
    let Err(Failure { why, is_final }) =
        converse(&transport, peer, greeting, id, &events, asked).await;
    let what = What::Gone { why, is_final };
    // Fails once the owner has ended.
    let _ = events.send(Event { id, what }).await;
}

async fn converse<T: Transport>(
    transport: &T,
    peer: PeerAddr,
    greeting: Greeting,
    id: ConnectionId,
    events: &mpsc::Sender<Event>,
    asked: mpsc::Receiver<Ask>,
) -> Result<std::convert::Infallible, Failure> {
    transport.lookup(peer).await?;
    let offers = transport.offers(peer);
    let paths = offers.borrow().clone();
    let mut paths: Vec<_> = paths.iter().collect();
    paths.sort_by_key(|path| path.as_ref().hops());
    let mut failure = Failure::from(String::from("no path to it is known"));
    for path in paths.into_iter().take(MAX_PATHS) {
        if let Err(why) = transport.fits(peer, path) {
            failure = why.into();
            continue;
        }
        let established = establish(transport, peer, path.clone(), &greeting);
        match tokio::time::timeout(HANDSHAKE_TIMEOUT, established).await {
            // The connection is closed when this is over.
            Ok(Ok((_connection, stream))) => {
                let dht = transport.dht().map(|dht| (dht, peer));
                return pass_on(stream, id, events, asked, dht).await;
            }
            Ok(Err(error)) if error.is_final => return Err(error),
            Ok(Err(error)) => failure = error,
            Err(_) => {
                failure = format!("no answer within {} s", HANDSHAKE_TIMEOUT.as_secs()).into()
            }
        }
    }
    Err(failure)
}

/// Closes a connection when the task is done with it, or is cancelled.
struct Closing(Arc<dyn Connection>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0
            .close(CloseCode::Plain, "the metadata is not needed any more");
    }
}

/// Connects over a path and exchanges the handshakes.
async fn establish<T: Transport>(
    transport: &T,
    peer: PeerAddr,
    path: T::Path,
    greeting: &Greeting,
) -> Result<(Closing, Stream), Failure> {
    let closing = Closing(transport.dial(peer, path).await?);
    let connection = &closing.0;
    let ours = greeting.ours;
    connection.set_torrents(Arc::clone(&greeting.info_hashes));
    let (mut read, mut write) = connection.stream().await?;
    let mut introduction = Vec::new();
    let extended = ExtendedHandshake {
        client: Some(concat!("hawser/", env!("CARGO_PKG_VERSION")).into()),
        ut_metadata: Some(UT_METADATA),
        ..ExtendedHandshake::default()
    };
    let message = Message::Extended {
        id: EXTENDED_HANDSHAKE,
        payload: extended.encode().into(),
    };
    encode(&message, &mut introduction);
    write.write_all(&ours.encode()).await?;
    // Every program that speaks BitTorrent over SCION understands extended messages; some others drop
    // peers that send more than a handshake before they have answered.
    let is_scion = peer.scion().is_some();
    if is_scion {
        write.write_all(&introduction).await?;
    }
    let mut theirs = [0; HANDSHAKE_BYTES];
    read.read_exact(&mut theirs).await?;
    let theirs = Handshake::decode(&theirs, &greeting.info_hashes)?;
    if theirs.peer_id == ours.peer_id {
        return Err(Failure {
            why: "this is our own address".into(),
            is_final: true,
        });
    }
    if !theirs.extended {
        return Err(Failure {
            why: "it does not pass on metadata (BEP 10)".into(),
            is_final: true,
        });
    }
    connection.set_known();
    let mut rest = match is_scion {
        true => Vec::new(),
        false => introduction,
    };
    let dht = transport.dht().filter(|_| theirs.dht);
    if let Some(port) = dht.and_then(|dht| dht.port(peer)) {
        encode(&Message::Port(port), &mut rest);
    }
    write.write_all(&rest).await?;
    Ok((closing, (read, write)))
}

/// Passes on messages of the peer, and requests to it; to the DHT, if there is one, the node of the peer.
async fn pass_on(
    (mut read, mut write): Stream,
    id: ConnectionId,
    events: &mpsc::Sender<Event>,
    mut asked: mpsc::Receiver<Ask>,
    mut dht: Option<(&DhtContacts, PeerAddr)>,
) -> Result<std::convert::Infallible, Failure> {
    let ended = || Failure::from(String::from("the fetch has ended"));
    let mut decoder = Decoder::of_unknown();
    // The id under which the peer takes messages.
    let mut theirs = None;
    // Until when an answer to the last request is awaited before the next request is sent.
    let mut awaited: Option<Instant> = None;
    loop {
        let overdue = async {
            match awaited {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = overdue => {
                awaited = None;
                continue;
            }
            ask = asked.recv(), if awaited.is_none() => {
                let ask = ask.ok_or_else(ended)?;
                let Some(id) = theirs else { continue };
                awaited = Some(Instant::now() + ANSWER_TIMEOUT);
                let message = match ask {
                    Ask::Metadata(piece) => {
                        let payload = MetadataMessage::Request { piece }.encode().into();
                        Message::Extended { id, payload }
                    }
                    Ask::Hashes(request) => Message::HashRequest(request),
                };
                let mut out = Vec::new();
                encode(&message, &mut out);
                write.write_all(&out).await?;
                continue;
            }
            read = tokio::time::timeout(SILENCE_TIMEOUT, read.read_buf(decoder.buffer(READ))) => {
                match read {
                    Ok(Ok(0)) => return Err(String::from("the peer ended the connection").into()),
                    Ok(read) => read?,
                    Err(_) => return Err(String::from("it sends nothing").into()),
                }
            }
        };
        while let Some(message) = decoder.next_message()? {
            let hashes = match message {
                Message::Hashes(request, hashes) => Ok(What::Hashes(request, hashes)),
                Message::HashReject(request) => Ok(What::Rejected(request)),
                other => Err(other),
            };
            let message = match hashes {
                Ok(what) => {
                    awaited = None;
                    events.send(Event { id, what }).await.map_err(|_| ended())?;
                    continue;
                }
                Err(other) => other,
            };
            let (kind, payload) = match message {
                Message::Extended { id, payload } => (id, payload),
                Message::Port(port) => {
                    // Only the first counts.
                    if let Some((dht, peer)) = dht.take() {
                        dht.name(peer, port);
                    }
                    continue;
                }
                _ => continue,
            };
            let what = match kind {
                EXTENDED_HANDSHAKE => {
                    let handshake = ExtendedHandshake::decode(&payload)?;
                    theirs = handshake.ut_metadata;
                    match handshake.metadata_size.filter(|_| theirs.is_some()) {
                        Some(size) => What::Has(size.into()),
                        None => return Err(String::from("it has no metadata").into()),
                    }
                }
                UT_METADATA => {
                    awaited = None;
                    What::Message(payload)
                }
                _ => continue,
            };
            events.send(Event { id, what }).await.map_err(|_| ended())?;
        }
    }
}
