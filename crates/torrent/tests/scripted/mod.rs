//! A scripted seeder that breaks no rule but answers late, repeatedly, out of order or not at all.
//! It works over any stream.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use hawser_torrent::Metainfo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::Instant;

/// Bytes of a handshake.
pub const HANDSHAKE: usize = 68;

/// Requests answered at once before a seeder shows its manner.
const WARM_UP: usize = 20;

/// How a seeder answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// It pauses once, as a stopped process does: it answers nothing until some block was requested
    /// this often, and then everything that was requested, also what was cancelled meanwhile.
    Pauses { until_requested: usize },
    /// It answers every request, also one that was cancelled meanwhile, this much later.
    Late(Duration),
    /// It answers every request twice.
    Twice,
    /// It answers no request.
    Never,
    /// It sends a block that nobody requested before each answer.
    Unrequested,
    /// It answers the requests of one read in reverse order.
    Reversed,
    /// It chokes once, answers the waiting requests all the same, and unchokes.
    AfterChoke,
    /// It never answers this many requests that were waiting when it chose to forget.
    Forgets(usize),
}

impl Manner {
    /// All manners that end soon without another seeder.
    pub const ALL: [Self; 7] = [
        Self::Pauses { until_requested: 2 },
        Self::Pauses { until_requested: 4 },
        Self::Twice,
        Self::Unrequested,
        Self::Reversed,
        Self::AfterChoke,
        Self::Forgets(10),
    ];
}

/// A request: piece, begin, length.
type Request = [u32; 3];

/// A seeder with a complete copy.
#[derive(Clone)]
pub struct Scripted {
    manner: Manner,
    metainfo: Metainfo,
    content: Arc<Vec<u8>>,
    /// Connections so far.
    pub connections: Arc<AtomicUsize>,
    /// Requests received.
    pub requested: Arc<AtomicUsize>,
    /// Bytes of blocks sent.
    pub sent_bytes: Arc<AtomicU64>,
}

impl Scripted {
    pub fn new(manner: Manner, metainfo: &Metainfo, content: Vec<u8>) -> Self {
        Self {
            manner,
            metainfo: metainfo.clone(),
            content: Arc::new(content),
            connections: Arc::default(),
            requested: Arc::default(),
            sent_bytes: Arc::default(),
        }
    }

    /// Serves one connection until the other end closes it.
    pub async fn serve(
        &self,
        mut read: impl AsyncRead + Unpin,
        mut write: impl AsyncWrite + Unpin,
    ) -> io::Result<()> {
        self.connections.fetch_add(1, Ordering::SeqCst);
        write.write_all(&greeting(&self.metainfo)).await?;
        let mut handshake = [0; HANDSHAKE];
        read.read_exact(&mut handshake).await?;
        let (mut waiting, mut late) = (VecDeque::new(), VecDeque::new());
        let (mut buffer, mut answered, mut showed) = (Vec::new(), 0, false);
        loop {
            tokio::select! {
                read = read.read_buf(&mut buffer) => if read? == 0 { return Ok(()) },
                () = first_due(&late) => {}
            }
            let before = waiting.len();
            take_requests(&mut buffer, &mut waiting);
            let new = waiting.len() - before;
            self.requested.fetch_add(new, Ordering::SeqCst);
            if let Manner::Late(time) = self.manner {
                let now = Instant::now();
                late.extend(waiting.drain(..).map(|request| (now + time, request)));
                let due = late.partition_point(|(due, _)| *due <= now);
                waiting.extend(late.drain(..due).map(|(_, request)| request));
            }
            let pauses = matches!(self.manner, Manner::Pauses { until_requested }
                if !showed && answered >= WARM_UP && most_requested(&waiting) < until_requested);
            if pauses {
                continue;
            }
            let shows = !showed && answered >= WARM_UP;
            showed |= shows;
            let requests: Vec<Request> = waiting.drain(..).collect();
            let mut out = Vec::new();
            match self.manner {
                Manner::Twice => requests.iter().for_each(|request| {
                    out.extend(self.answer(*request));
                    out.extend(self.answer(*request));
                }),
                Manner::Never => {}
                Manner::Unrequested => requests.iter().for_each(|request| {
                    let last = self.metainfo.pieces.count() - 1;
                    out.extend(self.answer([last, 0, 1]));
                    out.extend(self.answer(*request));
                }),
                Manner::Reversed => requests.iter().rev().for_each(|request| {
                    out.extend(self.answer(*request));
                }),
                Manner::AfterChoke if shows => {
                    out.extend(message(0, &[]));
                    requests.iter().for_each(|it| out.extend(self.answer(*it)));
                    out.extend(message(1, &[]));
                }
                Manner::Forgets(number) if shows => {
                    let rest = requests.iter().skip(number);
                    rest.for_each(|it| out.extend(self.answer(*it)));
                }
                _ => requests.iter().for_each(|it| out.extend(self.answer(*it))),
            }
            answered += requests.len();
            write.write_all(&out).await?;
        }
    }

    fn answer(&self, [piece, begin, length]: Request) -> Vec<u8> {
        let start = u64::from(piece) * u64::from(self.metainfo.pieces.length) + u64::from(begin);
        let data = &self.content[start as usize..][..length as usize];
        self.sent_bytes.fetch_add(length.into(), Ordering::SeqCst);
        let head = [piece.to_be_bytes(), begin.to_be_bytes()].concat();
        message(7, &[&head, data].concat())
    }
}

/// Waits until the first answer is due; for ever if none is to be sent.
async fn first_due(late: &VecDeque<(Instant, Request)>) {
    match late.front() {
        Some((due, _)) => tokio::time::sleep_until(*due).await,
        None => std::future::pending().await,
    }
}

/// How often the block among them that was requested most often was requested.
fn most_requested(requests: &VecDeque<Request>) -> usize {
    let mut counts = HashMap::new();
    for request in requests {
        *counts.entry(*request).or_default() += 1;
    }
    counts.into_values().max().unwrap_or(0)
}

/// Takes complete messages out of `buffer`, and appends the requests among them to `requests`.
fn take_requests(buffer: &mut Vec<u8>, requests: &mut VecDeque<Request>) {
    let number = |bytes: &[u8], at: usize| {
        let bytes: [u8; 4] = bytes[at..at + 4].try_into().unwrap();
        u32::from_be_bytes(bytes)
    };
    let mut at = 0;
    while buffer.len() >= at + 4 {
        let end = at + 4 + number(buffer, at) as usize;
        if buffer.len() < end {
            break;
        }
        if buffer[at + 4..end].first() == Some(&6) {
            requests.push_back([5, 9, 13].map(|place| number(buffer, at + place)));
        }
        at = end;
    }
    buffer.drain(..at);
}

/// The first bytes of a peer that has every piece and unchokes.
pub fn greeting(metainfo: &Metainfo) -> Vec<u8> {
    let mut out = b"\x13BitTorrent protocol\0\0\0\0\0\0\0\0".to_vec();
    out.extend(metainfo.info_hash.0);
    out.extend(b"-XX0000-............");
    let mut bits = vec![0u8; metainfo.pieces.count().div_ceil(8) as usize];
    for piece in 0..metainfo.pieces.count() as usize {
        bits[piece / 8] |= 0x80 >> (piece % 8);
    }
    out.extend(message(5, &bits));
    out.extend(message(1, &[]));
    out
}

/// An encoded message.
pub fn message(id: u8, body: &[u8]) -> Vec<u8> {
    let mut out = (1 + body.len() as u32).to_be_bytes().to_vec();
    out.push(id);
    out.extend(body);
    out
}
