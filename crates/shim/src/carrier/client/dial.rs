//! Connecting to the other host.

use std::time::Duration;

use hawser_endhost::{Path, ScionAddr};
use hawser_keys::{PeerKey, ServerKeyError};
use thiserror::Error;

use crate::carrier::control::Control;
use crate::carrier::node::Node;

/// Why a session cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum SessionError {
    #[error("no path to {peer} works: {reason}")]
    NoPath { peer: ScionAddr, reason: String },
    #[error("{peer} does not answer within {} s: {reason}", .after.as_secs())]
    Silent {
        peer: ScionAddr,
        after: Duration,
        reason: String,
    },
    #[error(transparent)]
    Key(#[from] ServerKeyError),
    #[error(
        "{peer} shows the key {key}, another one than over other paths: somebody may be in between"
    )]
    OtherKey { peer: ScionAddr, key: PeerKey },
    #[error("{peer} refuses: {text}")]
    Refused { peer: ScionAddr, text: String },
    #[error("{peer} breaks the protocol: it sends a message at the wrong time")]
    Protocol { peer: ScionAddr },
}

/// Connects to `peer` over `path`. The inner error is the path's, the outer one the peer's.
pub(super) async fn dial(
    node: &Node,
    peer: ScionAddr,
    path: Path,
    expected: Option<PeerKey>,
) -> Result<Result<Control, String>, SessionError> {
    let connection = match node.scion().quic.connect(peer, path).await {
        Ok(connection) => connection,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let key = connection.peer_key();
    node.check(peer, key)?;
    if expected.is_some_and(|expected| expected != key) {
        return Err(SessionError::OtherKey { peer, key });
    }
    let control = Control::open(connection).await;
    Ok(control.map_err(|error| error.to_string()))
}
