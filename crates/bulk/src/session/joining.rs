//! Where the connections of a session come from.

use hawser_endhost::Path;
use hawser_manager::{PathSet, SubflowId};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::dialer::Dialer;
use crate::joined::Joined;

/// Where the connections of a session come from.
pub(super) enum Joining {
    /// This side dials them, and chooses the paths.
    Dialing(Box<Dialer>),
    /// The other side does. One for each connection that its server admits.
    Accepting(UnboundedReceiver<Joined>),
}

impl Joining {
    /// The next connection, with the order that it was dialed for. `None` if a dial led to none, or none
    /// is accepted any more.
    pub(super) async fn next(&mut self) -> Option<(Joined, Option<SubflowId>)> {
        match self {
            Self::Dialing(dialer) => {
                let dialed = dialer.next().await?;
                Some((dialed.joined, Some(dialed.subflow)))
            }
            Self::Accepting(accepted) => match accepted.recv().await {
                Some(joined) => Some((joined, None)),
                None => std::future::pending().await,
            },
        }
    }

    /// Whether this side dials.
    pub(super) fn is_dialing(&self) -> bool {
        matches!(self, Self::Dialing(_))
    }

    /// The dialer, if this side dials.
    pub(super) fn dialer(&mut self) -> Option<&mut Dialer> {
        match self {
            Self::Dialing(dialer) => Some(dialer),
            Self::Accepting(_) => None,
        }
    }

    /// The path manager, if this side dials.
    pub(super) fn paths(&mut self) -> Option<&mut PathSet<Path>> {
        self.dialer().map(Dialer::paths)
    }
}
