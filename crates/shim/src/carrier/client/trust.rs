//! Whether this host still trusts the key of the other one.

use hawser_endhost::ScionAddr;
use hawser_keys::{PeerKey, Revocations};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::spawn_blocking;

use super::dial::{Dialed, SessionError};
use crate::carrier::node::Node;

/// Has the session with `peer` end once its `key` is no longer known here. Ends with the session.
pub(super) async fn watch(
    node: Node,
    peer: ScionAddr,
    key: PeerKey,
    results: UnboundedSender<Dialed>,
) {
    let Some(known) = node.known().cloned() else {
        return;
    };
    let mut revocations = Revocations::default();
    while !results.is_closed() {
        tokio::time::sleep(Revocations::<PeerKey>::INTERVAL).await;
        let known = known.clone();
        let still = spawn_blocking(move || known.still_knows(peer, key)).await;
        // A panic was reported.
        let is_known = still.unwrap_or(false);
        if !revocations.look([key], |_| is_known).is_empty() {
            // The session may have ended.
            let _ = results.send(Dialed::Fatal(SessionError::Distrusted { peer, key }));
            return;
        }
    }
}
