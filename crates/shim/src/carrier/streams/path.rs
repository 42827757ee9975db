//! Carries frames over a path: on a stream of the QUIC connection beside a lane.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hawser_quic::{Connection, RecvStream, SendStream, StreamError};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use super::inline::{self, Load};
use super::instance::Instance;
use super::shared::{ReceiveError, SharedStreams, Stream};
use crate::plane::lane::{LaneEvent, SealedLane};
use hawser_streams::{Decoder, Estimate, Frame, Losses, PathKey, Side, Violation};

/// Bytes read at once.
const CHUNK: usize = 256 << 10;
/// Interval at which estimates are taken, and it is looked whether packets arrive.
const TICK: Duration = Duration::from_millis(20);

/// Why frames are no longer carried over a path.
#[derive(Debug, Error)]
enum PathError {
    #[error(transparent)]
    Stream(StreamError),
    #[error("the other side ended the frames of the path")]
    End,
    #[error(transparent)]
    Receive(#[from] ReceiveError),
}

impl From<StreamError> for PathError {
    fn from(error: StreamError) -> Self {
        match error {
            // Frames of streams that have ended are not delivered any more.
            StreamError::Reset => Self::End,
            error => Self::Stream(error),
        }
    }
}

impl From<Violation> for PathError {
    fn from(violation: Violation) -> Self {
        Self::Receive(violation.into())
    }
}

/// The streams that the peer opens, as of its latest process.
#[derive(Default)]
pub(crate) struct Accepted(Mutex<Option<Arc<Instance>>>);

impl Accepted {
    /// The streams that a Hello names; `None` if this side does not have them any more. Streams that
    /// are opened in new ones go to what `opened` makes.
    fn find(
        &self,
        number: u64,
        known: bool,
        opened: impl FnOnce() -> mpsc::UnboundedSender<Stream>,
    ) -> Option<Arc<Instance>> {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(instance) = &*current
            && instance.number == number
        {
            return Some(Arc::clone(instance));
        }
        if known {
            return None;
        }
        if let Some(former) = current.take() {
            former.end();
        }
        let instance = Arc::new(Instance::new(Side::Accepts, number, opened()));
        *current = Some(Arc::clone(&instance));
        Some(instance)
    }

    /// The streams, if there are any.
    pub(crate) fn current(&self) -> Option<Arc<Instance>> {
        let current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        current.clone()
    }

    /// Ends all streams, as the peer has gone.
    pub(crate) fn leave(&self) {
        if let Some(instance) = self.current() {
            instance.leave();
        }
    }
}

/// What carries frames over a path.
struct PathTask {
    lane: Arc<SealedLane>,
    connection: Connection,
    send: SendStream,
    receive: RecvStream,
    decoder: Decoder,
}

/// Carries the frames of the streams that this side opens, over the path of `lane`.
pub(crate) async fn open_path(
    instance: Arc<Instance>,
    lane: Arc<SealedLane>,
    connection: Connection,
) {
    let work = async {
        let (send, receive) = connection.open_bi().await?;
        let mut task = PathTask {
            lane: Arc::clone(&lane),
            connection,
            send,
            receive,
            decoder: Decoder::default(),
        };
        let known = instance.is_answered();
        let hello = Frame::Hello {
            instance: instance.number,
            known,
            path: lane.key.0,
        };
        task.send.write_chunk(hello.encode()).await?;
        if known {
            // The other side may have been started again.
            let name = task.read_answer(&instance).await?;
            return task.run(&instance, Some(name)).await;
        }
        task.run(&instance, None).await
    };
    let result = tokio::select! {
        result = work => result,
        () = lane.closed() => Ok(()),
        () = instance.ended() => Ok(()),
    };
    end(&instance, &lane, result);
}

/// Accepts what the other side sends over the path of `lane`, and carries the frames of its streams.
pub(crate) async fn accept_path(
    accepted: Arc<Accepted>,
    lane: Arc<SealedLane>,
    connection: Connection,
    opened: impl Fn() -> mpsc::UnboundedSender<Stream> + Clone + Send + 'static,
) {
    let accept = async {
        while let Ok((send, receive)) = connection.accept_bi().await {
            let mut task = PathTask {
                lane: Arc::clone(&lane),
                connection: connection.clone(),
                send,
                receive,
                decoder: Decoder::default(),
            };
            let (accepted, opened) = (Arc::clone(&accepted), opened.clone());
            let lane = Arc::clone(&lane);
            tokio::spawn(async move {
                let begin = async {
                    let hello = read_hello(&mut task.receive, &mut task.decoder).await?;
                    let (number, known, name) = hello;
                    let instance = accepted.find(number, known, opened);
                    let hello = Frame::Hello {
                        instance: number,
                        known: instance.is_some(),
                        path: task.lane.key.0,
                    };
                    task.send.write_chunk(hello.encode()).await?;
                    Ok::<_, PathError>(instance.map(|instance| (instance, name)))
                };
                let begun = tokio::select! {
                    begun = begin => begun,
                    () = lane.closed() => return,
                };
                let (instance, name) = match begun {
                    Ok(Some(begun)) => begun,
                    Ok(None) => return task.leave().await,
                    Err(error) => return report(&lane, error),
                };
                let result = tokio::select! {
                    result = task.run(&instance, Some(name)) => result,
                    () = lane.closed() => Ok(()),
                    () = instance.ended() => Ok(()),
                };
                end(&instance, &lane, result);
            });
        }
    };
    tokio::select! {
        () = accept => {}
        () = lane.closed() => {}
    }
}

/// Gives what the path has not delivered to others.
fn end(instance: &Instance, lane: &SealedLane, result: Result<(), PathError>) {
    instance.streams.remove_path(lane.key.0);
    match result {
        Ok(()) => {}
        Err(PathError::Receive(ReceiveError::Unknown)) => {
            lane.report(LaneEvent::StreamsLost(instance.number));
        }
        Err(error) => {
            if matches!(error, PathError::Receive(_)) {
                instance.end();
            }
            report(lane, error);
        }
    }
}

fn report(lane: &SealedLane, error: PathError) {
    match error {
        // The other side has other streams now, over the same lane.
        PathError::End => {}
        error => lane.report(LaneEvent::Failed(error.to_string())),
    }
}

impl PathTask {
    /// Reads whether the other side has the streams, and what it calls the path.
    async fn read_answer(&mut self, instance: &Instance) -> Result<u64, PathError> {
        read_answer(&mut self.receive, &mut self.decoder, instance).await
    }

    /// Waits until the other side has received the answer.
    async fn leave(mut self) {
        if self.send.finish().is_ok() {
            let _ = self.send.delivered().await;
        }
    }

    /// Carries frames until the path fails. `name` is what the other side calls the path; without it,
    /// its Hello comes first.
    async fn run(self, instance: &Arc<Instance>, name: Option<u64>) -> Result<(), PathError> {
        let Self {
            lane,
            connection,
            send,
            receive,
            decoder,
        } = self;
        instance.streams.add_path(lane.key.0);
        let streams = instance.streams.clone();
        let load = Load::default();
        let sender = send_frames(streams, Arc::clone(&lane), send, load.clone());
        let sender = inline::run(load, sender);
        let load = Load::default();
        let receiver = Receiver {
            instance: Arc::clone(instance),
            path: lane.key.0,
            receive,
            decoder,
            load: load.clone(),
        };
        let receiver = inline::run(load, receiver.run(name));
        tokio::select! {
            result = sender => result,
            result = receiver => result,
            () = watch(instance, &lane, &connection) => Ok(()),
        }
    }
}

/// Sends frames over the path of `lane`, as the streams say.
async fn send_frames(
    streams: SharedStreams,
    lane: Arc<SealedLane>,
    mut send: SendStream,
    load: Load,
) -> Result<(), PathError> {
    loop {
        let bytes = streams.transmit(lane.key.0).await;
        load.note(bytes.len());
        lane.liveness.sent(lane.now());
        send.write_chunk(bytes).await?;
    }
}

/// Receives the frames of a path.
struct Receiver {
    instance: Arc<Instance>,
    path: PathKey,
    receive: RecvStream,
    decoder: Decoder,
    load: Load,
}

impl Receiver {
    async fn run(mut self, name: Option<u64>) -> Result<(), PathError> {
        let name = match name {
            Some(name) => name,
            None => read_answer(&mut self.receive, &mut self.decoder, &self.instance).await?,
        };
        let streams = &self.instance.streams;
        streams.set_name(self.path, name);
        loop {
            streams.receive(self.path, &mut self.decoder)?;
            let chunk = self.receive.read_chunk(CHUNK).await?;
            let chunk = chunk.ok_or(PathError::End)?;
            self.load.note(chunk.len());
            self.decoder.push(chunk);
        }
    }
}

/// Keeps the estimates of a path, and looks for what is late on it. Notes what QUIC receives: it shows
/// that the path delivers.
async fn watch(instance: &Instance, lane: &SealedLane, connection: &Connection) {
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut received, mut losses) = (0, Losses::default());
    loop {
        tick.tick().await;
        let stats = connection.stats();
        let has_received =
            std::mem::replace(&mut received, stats.bytes_received) != stats.bytes_received;
        if has_received {
            lane.liveness.received(lane.now());
        }
        if has_received || instance.streams.are_under_way() {
            let estimate = Estimate {
                rtt: stats.rtt,
                window: stats.cwnd,
                loss: losses.update(stats.packets_sent, stats.lost),
            };
            instance.streams.set_estimate(lane.key.0, estimate);
        }
    }
}

/// Reads the first frame: which streams, whether they are known, and the path's name.
async fn read_hello(
    receive: &mut RecvStream,
    decoder: &mut Decoder,
) -> Result<(u64, bool, u64), PathError> {
    loop {
        match decoder.pop().map_err(ReceiveError::from)? {
            Some(Frame::Hello {
                instance,
                known,
                path,
            }) => return Ok((instance, known, path)),
            Some(_) => return Err(Violation::Order.into()),
            None => {}
        }
        let chunk = receive.read_chunk(CHUNK).await?;
        decoder.push(chunk.ok_or(PathError::End)?);
    }
}

async fn read_answer(
    receive: &mut RecvStream,
    decoder: &mut Decoder,
    instance: &Instance,
) -> Result<u64, PathError> {
    match read_hello(receive, decoder).await? {
        (number, true, name) if number == instance.number => {
            instance.set_answered();
            Ok(name)
        }
        (number, false, _) if number == instance.number => Err(ReceiveError::Unknown.into()),
        _ => Err(Violation::Order.into()),
    }
}
