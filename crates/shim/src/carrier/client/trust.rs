//! Whether this host still trusts the key of the other one.

use std::future::pending;

use hawser_endhost::ScionAddr;
use hawser_keys::{PeerKey, Revocations};
use tokio::task::spawn_blocking;

use crate::carrier::node::Node;

/// Returns once the `key` of `peer` is no longer known here.
pub(super) async fn watch(node: Node, peer: ScionAddr, key: PeerKey) {
    let Some(known) = node.known().cloned() else {
        return pending().await;
    };
    let mut revocations = Revocations::default();
    loop {
        tokio::time::sleep(Revocations::<PeerKey>::INTERVAL).await;
        let known = known.clone();
        let still = spawn_blocking(move || known.still_knows(peer, key)).await;
        // A panic was reported.
        let is_known = still.unwrap_or(false);
        if !revocations.look([key], |_| is_known).is_empty() {
            return;
        }
    }
}
