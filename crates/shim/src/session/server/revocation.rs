//! Sessions of hosts whose key is no longer allowed.

use hawser_keys::PeerKey;

use super::{Refusal, ServerAction, ServerSessions, SessionId};
use crate::protocol::RefusalCode;
use crate::session::lane_key::LaneKey;

impl ServerSessions {
    /// It was looked which keys are still allowed: ends the sessions of hosts whose key is not.
    pub(crate) fn on_allowed_keys(&mut self, is_allowed: impl Fn(&PeerKey) -> bool) {
        let held = self.all.keys().map(|id| id.key);
        for key in self.revocations.look(held, is_allowed) {
            self.revoke(key);
        }
    }

    /// A host connects whose key is not allowed.
    pub(crate) fn on_not_allowed(&mut self, lane: LaneKey, key: PeerKey) {
        // Its sessions end first: the other host ends them when it learns of this, and they would end as
        // if it had wanted that.
        self.revoke(key);
        let text = format!("the key {key} is not allowed here");
        let refusal = Refusal {
            code: RefusalCode::KEY,
            text,
        };
        self.actions.push(ServerAction::Refuse { lane, refusal });
    }

    /// Ends the sessions of the host with this key.
    fn revoke(&mut self, key: PeerKey) {
        let reason = format!("the key {key} is no longer allowed");
        let refusal = Refusal {
            code: RefusalCode::KEY,
            text: format!("{reason} here"),
        };
        let ids = self.all.keys().filter(|id| id.key == key);
        for id in ids.copied().collect::<Vec<SessionId>>() {
            self.end(id, &reason, Some(refusal.clone()));
        }
    }
}
