//! Fetching one run of a web seed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use hawser_http_client::{HttpClient, HttpError, HttpUrl, Response};
use tokio::time::timeout;

use super::places::{Places, Segment};
use super::seed::Failure;
use crate::pieces::Pieces;
use crate::wire::Request;

/// Longest wait for the head of a response, connecting and redirects included.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// Longest wait for the next bytes of a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(20);

/// Most bytes in front of those that are wanted that are received in vain, from a server that knows no ranges.
const MAX_SKIPPED: u64 = 256 << 20;

/// Blocks of a run, and from where.
pub(crate) struct Fetch {
    pub client: HttpClient,
    pub places: Arc<Places>,
    pub pieces: Pieces,
    pub requests: Vec<Request>,
    /// How many of the requests are still to be answered: those at the end may be taken back.
    pub left: Arc<AtomicUsize>,
}

/// Takes the blocks of a run as they arrive.
pub(crate) trait Parts {
    /// Takes a block; returns whether more are wanted. Nothing is read meanwhile.
    fn take(&mut self, request: Request, data: Bytes) -> impl Future<Output = bool> + Send;
}

/// Fetches the blocks of a run, and gives each to `parts`. Returns once all are there, or no more are wanted.
///
/// # Errors
/// Why that was not to be had.
pub(crate) async fn fetch(fetch: Fetch, parts: &mut impl Parts) -> Result<(), Failure> {
    let mut requests = fetch.requests.as_slice();
    while !requests.is_empty() {
        let (span, rest) = requests.split_at(span(fetch.pieces, requests));
        requests = rest;
        if !of_span(&fetch, span, parts).await? {
            return Ok(());
        }
    }
    Ok(())
}

/// How many of the first requests are for adjacent bytes.
fn span(pieces: Pieces, requests: &[Request]) -> usize {
    let ends = requests
        .iter()
        .map(|it| start(pieces, it) + u64::from(it.length));
    let gaps = ends.zip(requests.iter().skip(1));
    let adjacent = gaps.take_while(|(end, next)| start(pieces, next) == *end);
    adjacent.count() + 1
}

/// Where a block begins in the bytes of the torrent.
fn start(pieces: Pieces, request: &Request) -> u64 {
    pieces.start(request.piece) + u64::from(request.begin)
}

/// Fetches adjacent blocks. Returns whether more are wanted.
async fn of_span(fetch: &Fetch, span: &[Request], parts: &mut impl Parts) -> Result<bool, Failure> {
    let (Some(first), Some(last)) = (span.first(), span.last()) else {
        return Ok(true);
    };
    let end = start(fetch.pieces, last) + u64::from(last.length);
    let bytes = start(fetch.pieces, first)..end;
    let mut waiting = span.iter();
    let mut next = waiting.next();
    let mut buffer = BytesMut::new();
    for segment in fetch.places.segments(bytes) {
        let (mut body, mut missing) = match segment {
            Segment::Zeros(zeros) => (None, zeros),
            Segment::File { ref bytes, .. } => {
                if fetch.left.load(Ordering::Relaxed) == 0 {
                    return Ok(false);
                }
                let body = Body::open(&fetch.client, &segment).await?;
                (Some(body), bytes.end - bytes.start)
            }
        };
        while missing > 0 {
            let Some(request) = next else {
                return Ok(true);
            };
            let length = request.length as usize;
            if buffer.len() < length {
                let most = missing.min((length - buffer.len()) as u64);
                match &mut body {
                    None => {
                        // At most a block.
                        buffer.resize(buffer.len() + most as usize, 0);
                        missing -= most;
                    }
                    Some(body) => {
                        let chunk = body.chunk(missing).await?;
                        missing -= chunk.len() as u64;
                        buffer.extend_from_slice(&chunk);
                    }
                }
            }
            while let Some(request) = next
                && buffer.len() >= request.length as usize
            {
                let is_left = |left: usize| left.checked_sub(1);
                let left = &fetch.left;
                if left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_left)
                    .is_err()
                {
                    return Ok(false);
                }
                let data = buffer.split_to(request.length as usize).freeze();
                if !parts.take(*request, data).await {
                    return Ok(false);
                }
                next = waiting.next();
            }
        }
    }
    match next {
        None => Ok(true),
        Some(_) => Err(Failure::Failed("it has not all of the range".to_owned())),
    }
}

/// The bytes of a range of a file, as they arrive.
struct Body {
    response: Response,
    /// Bytes in front of the range that are still to arrive.
    skipped: u64,
}

impl Body {
    /// Asks for a range of a file.
    async fn open(client: &HttpClient, segment: &Segment) -> Result<Self, Failure> {
        let Segment::File {
            url,
            bytes,
            length,
            of_torrent,
        } = segment
        else {
            return Err(Failure::Failed("padding is not asked for".to_owned()));
        };
        let asked = timeout(RESPONSE_TIMEOUT, client.get(url, Some(bytes.clone()))).await;
        let silent = || format!("{url}: no answer within {} s", RESPONSE_TIMEOUT.as_secs());
        let response = asked.map_err(|_| Failure::Failed(silent()))?;
        let response = response.map_err(failed)?;
        let missing = |why: String| Failure::Missing {
            file: of_torrent.clone(),
            why: format!("{url}: {why}"),
        };
        let mut skipped = 0;
        match response.status() {
            206 => {
                let range = response.content_range();
                let range =
                    range.ok_or_else(|| odd(url, "it does not say which bytes it sends"))?;
                if range.total.is_some_and(|total| total != *length) {
                    return Err(missing(another(range.total, *length)));
                }
                if range.first != bytes.start {
                    return Err(odd(url, "it sends other bytes than were asked for"));
                }
            }
            200 => {
                if response.content_length().is_some_and(|it| it != *length) {
                    return Err(missing(another(response.content_length(), *length)));
                }
                if bytes.start > MAX_SKIPPED {
                    return Err(odd(url, "the server sends whole files only, no ranges"));
                }
                skipped = bytes.start;
            }
            404 | 410 => return Err(missing(format!("HTTP status {}", response.status()))),
            status @ (429 | 503) => {
                return Err(Failure::Busy {
                    retry_after: response.retry_after().map(Duration::from_secs),
                    why: format!("{url}: HTTP status {status}, it is busy"),
                });
            }
            status => return Err(odd(url, &format!("HTTP status {status}"))),
        }
        response.check_encoding().map_err(failed)?;
        Ok(Self { response, skipped })
    }

    /// The next bytes, some and at most `most`.
    async fn chunk(&mut self, most: u64) -> Result<Bytes, Failure> {
        loop {
            let read = timeout(BODY_TIMEOUT, self.response.chunk()).await;
            let host = self.response.host();
            let silent = || format!("{host} sent nothing for {} s", BODY_TIMEOUT.as_secs());
            let read = read.map_err(|_| Failure::Failed(silent()))?;
            let early = || Failure::Failed(format!("{host} ended before all was there"));
            let mut chunk = read.map_err(failed)?.ok_or_else(early)?;
            let skipped = self.skipped.min(chunk.len() as u64);
            self.skipped -= skipped;
            chunk.advance(skipped as usize);
            if !chunk.is_empty() {
                // A server that sends more than was asked for sends it in vain.
                chunk.truncate(usize::try_from(most).unwrap_or(usize::MAX));
                return Ok(chunk);
            }
        }
    }
}

fn failed(error: HttpError) -> Failure {
    Failure::Failed(error.to_string())
}

fn odd(url: &HttpUrl, why: &str) -> Failure {
    Failure::Failed(format!("{url}: {why}"))
}

/// The text about a file of another length.
fn another(has: Option<u64>, length: u64) -> String {
    let has = has.unwrap_or_default();
    format!("it is another file, of {has} bytes in place of {length}")
}
