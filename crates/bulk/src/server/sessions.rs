//! The sessions that run at a server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hawser_keys::PeerKey;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::mpsc::UnboundedSender;

use super::refusal::Refusal;
use crate::data::SessionId;
use crate::joined::Joined;
use crate::notice::Notice;
use crate::protocol::{ErrorCode, SESSION_ID};

/// The sessions that run at a server. Cloning shares them.
#[derive(Clone, Default)]
pub(super) struct Sessions(Arc<Mutex<HashMap<SessionId, Entry>>>);

/// A session's place among those that may run. Dropping it makes room for another one, also when the
/// session panics.
pub(super) struct Slot {
    sessions: Sessions,
    pub id: SessionId,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.sessions.lock().remove(&self.id);
    }
}

/// A session that runs.
pub(super) struct Entry {
    /// The number of the client's process.
    pub instance: u64,
    /// The client's key.
    pub key: PeerKey,
    /// Where further connections go.
    pub joined: UnboundedSender<Joined>,
    /// What ends the session from outside.
    pub notice: Arc<Notice>,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a session, if there are fewer than `most`.
    pub(super) fn insert(&self, entry: Entry, most: usize) -> Result<Slot, Refusal> {
        let mut id = [0; SESSION_ID];
        let filled = SystemRandom::new().fill(&mut id);
        filled
            .map_err(|_| Refusal(ErrorCode::STORAGE, "this host has no random numbers".into()))?;
        let id = SessionId(id);
        let mut sessions = self.lock();
        if sessions.len() >= most {
            let text = format!("it has {most} sessions, the most that it takes at once");
            return Err(Refusal(ErrorCode::TOO_MANY, text));
        }
        // A client that was killed and started again must not wait for its own files. Sessions of one
        // process may run side by side.
        let is_before = |one: &&Entry| one.key == entry.key && one.instance != entry.instance;
        for before in sessions.values().filter(is_before) {
            before.notice.replace();
        }
        sessions.insert(id, entry);
        drop(sessions);
        let sessions = self.clone();
        Ok(Slot { sessions, id })
    }

    /// Where further connections of the session go that the host with `key` began.
    pub(super) fn find(
        &self,
        session: SessionId,
        key: PeerKey,
    ) -> Result<UnboundedSender<Joined>, Refusal> {
        let sessions = self.lock();
        // Another key's session is as unknown to it as none.
        let known = |entry: &&Entry| entry.key == key && !entry.joined.is_closed();
        let entry = sessions.get(&session).filter(known);
        let none = || Refusal(ErrorCode::NO_SESSION, "the session has ended here".into());
        Ok(entry.ok_or_else(none)?.joined.clone())
    }

    /// The keys of the hosts that have sessions.
    pub(super) fn keys(&self) -> Vec<PeerKey> {
        self.lock().values().map(|entry| entry.key).collect()
    }

    /// Ends the sessions of the host with `key`.
    pub(super) fn revoke(&self, key: PeerKey) {
        let sessions = self.lock();
        for entry in sessions.values().filter(|entry| entry.key == key) {
            entry.notice.revoke();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    type Ends = (Arc<Notice>, UnboundedReceiver<Joined>);

    fn entry(key: u8, instance: u64) -> (Entry, Ends) {
        let notice = Arc::<Notice>::default();
        let (joined, receiver) = unbounded_channel();
        let entry = Entry {
            instance,
            key: PeerKey([key; 32]),
            joined,
            notice: Arc::clone(&notice),
        };
        (entry, (notice, receiver))
    }

    #[test]
    fn only_the_same_key_finds_a_session() {
        let sessions = Sessions::default();
        let (first, ends) = entry(1, 1);
        let slot = sessions.insert(first, 2).ok().unwrap();
        let id = slot.id;
        assert!(sessions.find(id, PeerKey([1; 32])).is_ok());
        let refused = sessions.find(id, PeerKey([2; 32])).err().unwrap();
        assert_eq!(refused.0, ErrorCode::NO_SESSION);
        assert!(sessions.insert(entry(2, 1).0, 1).is_err());
        // The session has ended, and something of it has not.
        drop(ends);
        assert!(sessions.find(id, PeerKey([1; 32])).is_err());
        assert!(sessions.insert(entry(2, 1).0, 1).is_err());
        drop(slot);
        assert!(sessions.insert(entry(2, 1).0, 1).is_ok());
    }

    #[test]
    fn a_session_that_panics_leaves_its_place() {
        let sessions = Sessions::default();
        let slot = sessions.insert(entry(1, 1).0, 1).ok().unwrap();
        let panicked = std::thread::spawn(move || {
            let _slot = slot;
            panic!("a session panics");
        });
        assert!(panicked.join().is_err());
        assert!(sessions.insert(entry(2, 1).0, 1).is_ok());
    }

    #[test]
    fn another_process_of_a_client_replaces_its_sessions() {
        let sessions = Sessions::default();
        let (first, (notice, _joined)) = entry(1, 1);
        let mut slots = vec![sessions.insert(first, 9).ok().unwrap()];
        for (key, instance) in [(1, 1), (2, 2)] {
            slots.push(sessions.insert(entry(key, instance).0, 9).ok().unwrap());
        }
        assert!(!notice.is_replaced());
        slots.push(sessions.insert(entry(1, 2).0, 9).ok().unwrap());
        assert!(notice.is_replaced() && !notice.is_revoked());
    }

    #[test]
    fn a_key_that_is_revoked_loses_all_its_sessions() {
        let sessions = Sessions::default();
        let mut slots = Vec::new();
        let (ends, others): (Vec<_>, Vec<_>) = [(1, 1), (1, 2), (2, 3)]
            .map(|(key, instance)| {
                let (entry, ends) = entry(key, instance);
                slots.push(sessions.insert(entry, 9).ok().unwrap());
                (key, ends)
            })
            .into_iter()
            .partition(|(key, _)| *key == 1);
        assert_eq!(sessions.keys().len(), 3);
        sessions.revoke(PeerKey([1; 32]));
        assert!(ends.iter().all(|(_, (notice, _))| notice.is_revoked()));
        assert!(!others.iter().any(|(_, (notice, _))| notice.is_revoked()));
    }
}
