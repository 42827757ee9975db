//! Which paths may be used at all, for connections of either side.

use std::sync::Arc;

use hawser_manager::denied;
use hawser_path::{Fingerprint, Metadata, Path, Reason};

use super::state::Swarm;
use crate::address::PeerAddr;
use crate::transport::{Connection, Transport};

/// The text sent with [`CloseCode::PathRefused`](crate::close::CloseCode::PathRefused): that there
/// is a policy, not what it says.
pub(super) const REFUSED: &str = "a policy at the other end does not keep this path";

impl<T: Transport> Swarm<T> {
    /// Whether a connection that a peer opened may be used.
    ///
    /// # Errors
    /// Why not: its path, as seen from here, is left by the policy, or is not known here, so that
    /// nothing can be said for it. Policies say nothing of IP peers.
    pub(super) fn admits(&self, connection: &dyn Connection) -> Result<(), Reason> {
        let Some(policy) = &self.paths.policy else {
            return Ok(());
        };
        let PeerAddr::Scion(peer) = connection.peer() else {
            return Ok(());
        };
        let fingerprint = connection.fingerprint();
        if fingerprint == Fingerprint::local(peer.isd_as) {
            let inside = Path {
                src: peer.isd_as,
                dst: peer.isd_as,
                interfaces: Vec::new(),
                metadata: Metadata::default(),
            };
            let mut denied = denied(Some(policy), &[inside]);
            return denied.remove(&fingerprint).map_or(Ok(()), Err);
        }
        // Who accepts a connection looked them up for it.
        let offers = self.net.transport.offers(peer.into());
        let offers = Arc::clone(&offers.borrow());
        if let Some(reason) = denied(Some(policy), &offers).remove(&fingerprint) {
            return Err(reason);
        }
        let mut known = offers.iter().map(|path| path.as_ref().fingerprint());
        match known.any(|known| known == fingerprint) {
            true => Ok(()),
            false => Err(Reason::Policy {
                why: "nothing is known of the path".into(),
            }),
        }
    }
}
