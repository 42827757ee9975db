//! Sessions of hosts whose key is no longer allowed.

use std::time::Duration;

use hawser_keys::{Allowed, KeysFileError, PeerKey, Revocations, StillAllowed};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Interval, MissedTickBehavior};

use super::Server;
use crate::carrier::control::Control;
use crate::carrier::report;
use crate::protocol::{Message, RefusalCode};

/// Time between two looks at the file.
const INTERVAL: Duration = Revocations::<PeerKey>::INTERVAL;

/// The keys that are allowed, as they change.
pub(super) struct Followed {
    /// `None` allows any.
    allowed: Option<Allowed>,
    tick: Interval,
    /// The look that is under way: what waits for it may be interrupted.
    reading: Option<JoinHandle<Result<StillAllowed, KeysFileError>>>,
    /// Whether it was reported that the file cannot be used.
    is_reported: bool,
}

impl Followed {
    pub(super) fn new(allowed: Option<Allowed>) -> Self {
        let mut tick = tokio::time::interval(INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            allowed,
            tick,
            reading: None,
            is_reported: false,
        }
    }

    /// The keys that are allowed at the next look; never comes if any is. While the file cannot be used,
    /// only those that are in no file are.
    pub(super) async fn next(&mut self) -> StillAllowed {
        let Some(allowed) = &self.allowed else {
            return std::future::pending().await;
        };
        let reading = match &mut self.reading {
            Some(reading) => reading,
            none => {
                self.tick.tick().await;
                let allowed = allowed.clone();
                none.insert(spawn_blocking(move || allowed.still()))
            }
        };
        let read = reading.await;
        self.reading = None;
        let was_reported = self.is_reported;
        self.is_reported = false;
        match read {
            Ok(Ok(still)) => still,
            Ok(Err(error)) => {
                self.is_reported = true;
                if !was_reported {
                    tracing::error!("{error}: sessions of hosts whose keys are in it end");
                }
                allowed.given()
            }
            // A panic was reported.
            Err(_) => allowed.given(),
        }
    }
}

impl Server {
    /// Ends the sessions of hosts whose key is no longer allowed.
    pub(super) fn revoke(&mut self, still: &StillAllowed) {
        let held = self.sessions.keys().map(|(key, _)| *key);
        let revoked = self.revocations.look(held, |key| still.contains(key));
        for key in revoked {
            self.revoke_key(key);
        }
    }

    /// Ends the sessions of the host with this key.
    fn revoke_key(&mut self, key: PeerKey) {
        let reason = format!("the key {key} is no longer allowed");
        let refusal = Message::Refuse {
            code: RefusalCode::KEY,
            text: format!("{reason} here"),
        };
        let of_key = self.sessions.extract_if(|(of, _), _| *of == key);
        for (_, session) in of_key {
            tracing::warn!(peer = %session.peer, "a session was ended: {reason}");
            session.end(&self.node, &reason, Some(&refusal));
        }
        self.lanes.retain(|_, (of, _)| *of != key);
    }

    /// The refusal of a connection of a host whose key is not allowed.
    pub(super) fn refuse_key(&mut self, control: &Control) -> Message {
        let key = control.connection.peer_key();
        // Its sessions end first: the other host ends them when it learns of this, and they would end as
        // if it had wanted that.
        self.revoke_key(key);
        let text = format!("the key {key} is not allowed here");
        let peer = report::peer(control.connection.peer());
        tracing::warn!(peer, "a connection was refused: {text}");
        let code = RefusalCode::KEY;
        Message::Refuse { code, text }
    }
}
