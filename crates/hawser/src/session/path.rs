//! The tasks of a path: frames and messages between a session and a QUIC connection.

use std::pin::pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hawser_endhost::patience::wait;
use hawser_manager::SubflowId;
use hawser_quic::{CloseReason, Connection as Quic, RecvStream, SendStream, StreamError};
use hawser_streams::{Decoder, Estimate, Losses, PathKey};
use tokio::sync::mpsc::Sender;
use tokio::time::MissedTickBehavior;

use super::health::{Change, Health};
use super::{End, FrameFault, Session};
use crate::event::{PathChange, PathEvent, PathReason};
use crate::wire::code;

/// Bytes read at once.
const CHUNK: usize = 256 << 10;
/// Interval at which estimates are taken, and it is looked whether anything arrives.
const TICK: Duration = Duration::from_millis(20);
/// Longest wait for a greeting or its answer, without the time in which this process did not run.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);

/// A path whose greeting was accepted.
pub(crate) struct Greeted {
    pub key: PathKey,
    /// What the peer calls it.
    pub name: u64,
    pub quic: Quic,
    pub send: SendStream,
    pub receive: RecvStream,
    /// What came behind the greeting.
    pub rest: Bytes,
}

/// Reads the first `N` bytes of a stream. Returns what came with them, too.
pub(crate) async fn read_first<const N: usize>(
    receive: &mut RecvStream,
) -> Result<([u8; N], Bytes), String> {
    let read = async {
        let mut first = Vec::new();
        while first.len() < N {
            let chunk = receive.read_chunk(CHUNK).await;
            let chunk = chunk.map_err(|error| error.to_string())?;
            first.extend(chunk.ok_or("the peer ended the greeting")?);
        }
        Ok::<_, String>(first)
    };
    let first = wait(GREETING_TIMEOUT, read).await;
    let first = Bytes::from(first.ok_or("the peer does not greet")??);
    let mut bytes = [0; N];
    bytes.copy_from_slice(&first[..N]);
    Ok((bytes, first.slice(N..)))
}

/// Why a path has ended.
#[derive(Debug)]
pub(crate) struct PathEnd {
    pub change: PathChange,
    pub reason: PathReason,
    pub text: String,
}

/// What a path task says to the one that owns the path manager.
pub(crate) enum PathNews {
    Silent(SubflowId),
    Recovered(SubflowId),
}

/// Why frames are no longer carried over a path.
enum Fault {
    Quic(CloseReason),
    /// The peer gave the stream of frames up.
    Stream,
    Frame(FrameFault),
}

impl From<StreamError> for Fault {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::Closed(reason) => Self::Quic(reason),
            _ => Self::Stream,
        }
    }
}

impl From<FrameFault> for Fault {
    fn from(fault: FrameFault) -> Self {
        Self::Frame(fault)
    }
}

/// Uses a path for a session from now on. The returned future carries the session over it until the path
/// or the session ends, and closes the path. Reports to `news` if the path is a subflow of a path manager
/// here. Returns why the path has ended; `None` if the session has.
pub(crate) fn run(
    session: Session,
    path: Greeted,
    subflow: Option<SubflowId>,
    news: Option<Sender<PathNews>>,
) -> impl Future<Output = Option<PathEnd>> + Send + 'static {
    // At once: the path manager may close others for it.
    let is_added = session.add_path(path.key, &path.quic, subflow);
    async move {
        if !is_added {
            path.quic.close(code::PATH, "too many paths");
            return None;
        }
        run_added(&session, path, subflow, news.as_ref()).await
    }
}

async fn run_added(
    session: &Session,
    path: Greeted,
    subflow: Option<SubflowId>,
    news: Option<&Sender<PathNews>>,
) -> Option<PathEnd> {
    let (key, quic) = (path.key, path.quic.clone());
    // It is dropped after the connection is closed: its streams would be reset before.
    let mut carrying = pin!(carry(session, path));
    let fault = tokio::select! {
        fault = &mut carrying => Some(fault),
        () = watch(session, key, &quic, subflow, news) => None,
        _ = session.ended() => None,
    };
    let end = fault.and_then(|fault| conclude(session, fault));
    if let Some(end) = session.end_reason() {
        quic.close(end.code(), &end.to_string());
        session.remove_path(key, "");
        return None;
    }
    let end = end?;
    quic.close(code::PATH, &end.text);
    session.remove_path(key, &end.text);
    Some(end)
}

/// What the end of a path means for its session.
fn conclude(session: &Session, fault: Fault) -> Option<PathEnd> {
    let reason = match fault {
        Fault::Stream => {
            session.end(End::Offence("it ended the frames of a path".into()));
            return None;
        }
        Fault::Frame(fault) => {
            session.end(End::Offence(fault.to_string()));
            return None;
        }
        Fault::Quic(reason) => reason,
    };
    if let CloseReason::Peer { code, reason } = &reason {
        let end = match u32::try_from(*code) {
            Ok(code::COMPLETE) => Some(End::Peer { complete: true }),
            Ok(code::CLOSED) => Some(End::Peer { complete: false }),
            Ok(code::DROPPED) => Some(End::PeerDropped),
            Ok(code::OFFENCE) => Some(End::Refused(reason.clone())),
            _ => None,
        };
        if let Some(end) = end {
            session.end(end);
            return None;
        }
    }
    Some(path_end(&reason))
}

/// Why a QUIC connection has ended, as users see it.
pub(crate) fn path_end(reason: &CloseReason) -> PathEnd {
    let text = reason.to_string();
    let (change, reason) = match reason {
        CloseReason::TimedOut(_) => (PathChange::Lost, PathReason::Silent),
        CloseReason::Lane(_) => (PathChange::Lost, PathReason::Down),
        CloseReason::Peer { code, .. } if *code == u64::from(code::PATH) => {
            (PathChange::Removed, PathReason::Peer)
        }
        _ => (PathChange::Lost, PathReason::Closed),
    };
    PathEnd {
        change,
        reason,
        text,
    }
}

/// Carries frames both ways, and messages to users, until one of them fails.
async fn carry(session: &Session, path: Greeted) -> Fault {
    let Greeted {
        key,
        name,
        quic,
        mut send,
        mut receive,
        rest,
    } = path;
    session.set_name(key, name);
    let sender = async {
        loop {
            let bytes = session.transmit(key).await;
            if let Err(error) = send.write_chunk(bytes).await {
                return Fault::from(error);
            }
        }
    };
    let receiver = async {
        let mut decoder = Decoder::default();
        decoder.push(rest);
        loop {
            if let Err(fault) = session.receive(key, &mut decoder) {
                return fault.into();
            }
            match receive.read_chunk(CHUNK).await {
                Ok(Some(chunk)) => decoder.push(chunk),
                Ok(None) => return Fault::Stream,
                Err(error) => return error.into(),
            }
        }
    };
    let messages = async {
        loop {
            match quic.read_datagram().await {
                Ok(message) => session.push_message(message),
                Err(reason) => return Fault::Quic(reason),
            }
        }
    };
    tokio::select! {
        fault = sender => fault,
        fault = receiver => fault,
        fault = messages => fault,
    }
}

/// Keeps the estimates of a path, and looks whether anything arrives over it.
async fn watch(
    session: &Session,
    key: PathKey,
    quic: &Quic,
    subflow: Option<SubflowId>,
    news: Option<&Sender<PathNews>>,
) {
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut health, mut losses) = (Health::new(Instant::now()), Losses::default());
    let mut received = 0;
    loop {
        tick.tick().await;
        let stats = quic.stats();
        let change = health.observe(stats.bytes_received, stats.rtt, Instant::now());
        if let Some(change) = change {
            let is_silent = change == Change::Silent;
            session.set_silent(key, is_silent);
            let (change, reason, text) = match is_silent {
                true => (
                    PathChange::Held,
                    PathReason::Silent,
                    "nothing arrives over it",
                ),
                false => (
                    PathChange::Resumed,
                    PathReason::Recovered,
                    "it delivers again",
                ),
            };
            session.report(PathEvent::new(quic.fingerprint(), change, reason, text));
            if let (Some(subflow), Some(news)) = (subflow, news) {
                let one = match is_silent {
                    true => PathNews::Silent(subflow),
                    false => PathNews::Recovered(subflow),
                };
                // Without a receiver the session has ended.
                let _ = news.send(one).await;
            }
        }
        let has_received =
            std::mem::replace(&mut received, stats.bytes_received) != stats.bytes_received;
        if has_received || session.are_under_way() {
            let estimate = Estimate {
                rtt: stats.rtt,
                window: stats.cwnd,
                loss: losses.update(stats.packets_sent, stats.lost),
            };
            session.set_estimate(key, estimate);
        }
    }
}
