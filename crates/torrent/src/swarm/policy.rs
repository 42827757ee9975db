//! Which paths may be used at all, for connections opened by either side.

use std::sync::Arc;

use hawser_address::PeerAddr;
use hawser_manager::denied;
use hawser_path::{Fingerprint, Metadata, Path, Policy, Reason};
use hawser_session::SharedPolicy;

use super::state::Swarm;
use crate::close::CloseCode;
use crate::transport::{Connection, Transport};

/// The text of a [`CloseCode::PathRefused`]. It says that
/// there is a policy, but not what the policy says.
pub(super) const REFUSED: &str = "a policy at the other end does not keep this path";

impl<T: Transport> Swarm<T> {
    /// Uses only paths that `policy` allows, whenever it changes, for connections opened by either side.
    pub fn follow(&mut self, policy: &SharedPolicy) {
        let (current, changes) = policy.follow();
        self.set_policy(current);
        self.dialing.policies = changes;
    }

    /// Uses only paths that `policy` allows from now on.
    pub(super) fn set_policy(&mut self, policy: Option<Policy>) {
        self.dialing.set_policy(policy.clone());
        self.uploads.sharing.set_policy(policy);
        // Those that this side opened are closed by order of the path manager.
        let conns = self.conns.open.iter();
        let accepted = conns.filter(|(_, conn)| conn.dialed.is_none());
        let refused: Vec<_> = accepted
            .filter_map(|(id, conn)| Some((*id, self.admits(&*conn.connection).err()?)))
            .collect();
        for (id, why) in refused {
            tracing::info!(%why, "connection closed");
            self.drop_conn(id, CloseCode::PathRefused, REFUSED);
        }
    }

    /// Checks whether a connection that a peer opened may be used.
    ///
    /// # Errors
    /// The reason if the policy leaves its path, as seen from here, or if the path is not known
    /// here, so that the policy cannot be applied. Policies do not apply to IP peers.
    pub(super) fn admits(&self, connection: &dyn Connection) -> Result<(), Reason> {
        let Some(policy) = &self.dialing.options.policy else {
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
        // Accepting the connection has looked up these paths.
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
