//! What happens to the paths of a connection.

use std::collections::VecDeque;
use std::fmt;

use hawser_path::Fingerprint;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::session::Session;

/// Something that happened to one path of a [`Connection`](crate::Connection).
///
/// Prints as `1f3a0c22 lost: the path is down at …`.
///
/// ```no_run
/// # async fn example(connection: hawser::Connection) {
/// let mut events = connection.events();
/// while let Some(event) = events.next().await {
///     println!("{event}");
/// }
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathEvent {
    /// The path. A side that was connected to, and does not know the path, has a name for it that is no
    /// other path's.
    pub path: Fingerprint,
    /// What happened.
    pub change: PathChange,
    /// Why, for programs.
    pub reason: PathReason,
    /// Why, for people, in one line.
    pub text: String,
}

/// What happened to a path.
///
/// ```
/// assert_eq!(hawser::PathChange::Added.to_string(), "added");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PathChange {
    /// The connection uses it from now on.
    Added,
    /// Nothing is sent over it until it is [`Resumed`](Self::Resumed); what was under way over it goes
    /// over the others.
    Held,
    /// It is used again.
    Resumed,
    /// It could not be connected; it is tried again after a pause.
    Failed,
    /// It was in use and works no longer; it is tried again after a pause.
    Lost,
    /// It was in use and was given up by choice, for others or because it is not allowed any more.
    Removed,
}

/// Why something happened to a path.
///
/// ```
/// # fn example(event: hawser::PathEvent) {
/// if event.reason == hawser::PathReason::Policy {
///     println!("the policy does not allow {}", event.path.short());
/// }
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PathReason {
    /// It was chosen, by the path manager or the [`PathSelector`](crate::PathSelector).
    Chosen,
    /// The peer uses it.
    Peer,
    /// The [`Policy`](crate::Policy) does not allow it.
    Policy,
    /// The [`PathSelector`](crate::PathSelector) leaves it out.
    Selector,
    /// Other paths take its place.
    Replaced,
    /// The network does not offer it any more.
    NotOffered,
    /// Nothing arrives over it.
    Silent,
    /// Something arrives over it again.
    Recovered,
    /// A router or a host reports that nothing gets through, or nothing can leave this host.
    Down,
    /// No answer came.
    NoAnswer,
    /// The peer shows a key that is not trusted.
    ServerKey,
    /// The peer refuses it.
    Refused,
    /// The peer closed it, or an error of the protocol did.
    Closed,
}

impl fmt::Display for PathChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Added => "added",
            Self::Held => "held",
            Self::Resumed => "resumed",
            Self::Failed => "failed",
            Self::Lost => "lost",
            Self::Removed => "removed",
        })
    }
}

impl fmt::Display for PathEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.path.short(), self.change, self.text)
    }
}

impl PathEvent {
    pub(crate) fn new(
        path: Fingerprint,
        change: PathChange,
        reason: PathReason,
        text: impl Into<String>,
    ) -> Self {
        let text = text.into();
        Self {
            path,
            change,
            reason,
            text,
        }
    }
}

/// The [`PathEvent`]s of a [`Connection`](crate::Connection), in order. The first ones are about the
/// paths that it uses when this is made: each is [`Added`](PathChange::Added).
///
/// Up to 256 events wait to be read; then the oldest are dropped, and [`missed`](Self::missed) counts
/// them. It does not keep the connection open.
///
/// ```no_run
/// # async fn example(connection: hawser::Connection) {
/// let mut events = connection.events();
/// tokio::spawn(async move {
///     while let Some(event) = events.next().await {
///         eprintln!("{event}");
///     }
/// });
/// # }
/// ```
#[derive(Debug)]
pub struct PathEvents {
    session: Session,
    /// About the paths that there were.
    first: VecDeque<PathEvent>,
    later: Receiver<PathEvent>,
    missed: u64,
}

impl PathEvents {
    pub(crate) fn new(
        session: Session,
        first: VecDeque<PathEvent>,
        later: Receiver<PathEvent>,
    ) -> Self {
        Self {
            session,
            first,
            later,
            missed: 0,
        }
    }

    /// The next event; `None` once the connection has ended. Cancel safe.
    ///
    /// ```no_run
    /// # async fn example(mut events: hawser::PathEvents) {
    /// let event = events.next().await;
    /// # }
    /// ```
    pub async fn next(&mut self) -> Option<PathEvent> {
        if let Some(event) = self.first.pop_front() {
            return Some(event);
        }
        loop {
            let received = tokio::select! {
                biased;
                received = self.later.recv() => received,
                _ = self.session.ended() => self.later.try_recv().map_err(|error| match error {
                    TryRecvError::Lagged(count) => RecvError::Lagged(count),
                    TryRecvError::Empty | TryRecvError::Closed => RecvError::Closed,
                }),
            };
            match received {
                Ok(event) => return Some(event),
                Err(RecvError::Lagged(count)) => self.missed += count,
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// How many events were dropped so far because they were not read in time.
    ///
    /// ```no_run
    /// # fn example(events: hawser::PathEvents) {
    /// assert_eq!(events.missed(), 0);
    /// # }
    /// ```
    pub fn missed(&self) -> u64 {
        self.missed
    }
}
