//! The events of a connection's paths, as they are read.

use std::collections::VecDeque;

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::event::PathEvent;
use crate::session::Session;

/// The [`PathEvent`]s of a [`Connection`](crate::Connection), in order. The first ones are about the
/// paths that it uses when this is made: each is [`Added`](crate::PathChange::Added).
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
