//! What happens to the paths of a connection.

use std::fmt;

use hawser_path::Fingerprint;

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
