//! Ends the session with a server whose key is no longer known.

use std::convert::Infallible;
use std::sync::Arc;

use hawser_keys::{Known, PeerKey, Revocations, Trust};
use tokio::time::MissedTickBehavior;

use crate::dialer::Target;
use crate::error::TransferError;
use crate::notice::Notice;

/// Looks whether the keys that the server has shown are still known, and has the session end
/// otherwise. Never returns.
pub(super) async fn end_revoked(target: Arc<Target>, notice: Arc<Notice>) -> Infallible {
    let Trust::Known(known) = &target.trust else {
        return std::future::pending().await;
    };
    let mut interval = tokio::time::interval(Revocations::<PeerKey>::INTERVAL);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut revocations = Revocations::default();
    loop {
        interval.tick().await;
        let (shown, known, peer) = (target.shown_keys(), known.clone(), target.peer);
        let looked = tokio::task::spawn_blocking(move || {
            let still = |key: &PeerKey| known.still_knows(peer, *key);
            revocations
                .look(shown, still)
                .is_empty()
                .then_some(revocations)
        });
        match looked.await {
            Ok(Some(looked)) => revocations = looked,
            // It cannot panic: the key is revoked.
            Ok(None) | Err(_) => {
                notice.revoke();
                return std::future::pending().await;
            }
        }
    }
}

/// Why the server is no longer trusted, if that can still be told.
pub(super) fn reason(target: &Target, known: &Known) -> TransferError {
    let mut shown = target.shown_keys().into_iter();
    let error = shown.find_map(|key| known.check(target.peer, key).err());
    error.map_or(TransferError::Revoked, TransferError::ServerKey)
}
