//! The sessions of a listener: which greeting begins one, which joins one, which is refused.

use std::collections::{HashMap, VecDeque};

use hawser_keys::PeerKey;

use crate::wire::{Greeting, Refusal, Secret, SessionId};
use crate::{MAX_PATHS, MAX_SESSIONS, MAX_SESSIONS_PER_KEY};

/// How many sessions that have ended are remembered: a greeting of theirs may still arrive.
const MAX_ENDED: usize = 1024;

/// The sessions of a listener, each with a `T`.
pub(crate) struct Registry<T> {
    sessions: HashMap<SessionId, Entry<T>>,
    /// The latest that have ended.
    ended: VecDeque<SessionId>,
}

struct Entry<T> {
    key: PeerKey,
    secret: Secret,
    paths: usize,
    session: T,
}

impl<T> Default for Registry<T> {
    fn default() -> Self {
        Self {
            sessions: HashMap::new(),
            ended: VecDeque::new(),
        }
    }
}

impl<T: Clone> Registry<T> {
    /// Takes a path in, whose client shows `key`. Returns its session, which `begin` makes if the greeting
    /// begins one, and whether it does. The path counts until [`leave`](Self::leave).
    pub(crate) fn admit(
        &mut self,
        greeting: &Greeting,
        key: PeerKey,
        begin: impl FnOnce() -> T,
    ) -> Result<(T, bool), Refusal> {
        if let Some(entry) = self.sessions.get_mut(&greeting.id) {
            if entry.key != key || !entry.secret.is(&greeting.secret) {
                return Err(Refusal::NotYours);
            }
            if entry.paths >= MAX_PATHS {
                return Err(Refusal::Busy);
            }
            entry.paths += 1;
            return Ok((entry.session.clone(), false));
        }
        if self.ended.contains(&greeting.id) {
            return Err(Refusal::Ended);
        }
        if greeting.known {
            return Err(Refusal::Unknown);
        }
        let of_key = self.sessions.values().filter(|entry| entry.key == key);
        if self.sessions.len() >= MAX_SESSIONS || of_key.count() >= MAX_SESSIONS_PER_KEY {
            return Err(Refusal::Busy);
        }
        let session = begin();
        let entry = Entry {
            key,
            secret: greeting.secret,
            paths: 1,
            session: session.clone(),
        };
        self.sessions.insert(greeting.id, entry);
        Ok((session, true))
    }

    /// A path of a session has ended.
    pub(crate) fn leave(&mut self, id: SessionId) {
        if let Some(entry) = self.sessions.get_mut(&id) {
            entry.paths = entry.paths.saturating_sub(1);
        }
    }

    /// A session has ended: nothing joins it any more.
    pub(crate) fn end(&mut self, id: SessionId) {
        if self.sessions.remove(&id).is_some() {
            if self.ended.len() >= MAX_ENDED {
                self.ended.pop_front();
            }
            self.ended.push_back(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn greeting(id: u16, secret: u8, known: bool) -> Greeting {
        let mut name = [0; 16];
        name[..2].copy_from_slice(&id.to_be_bytes());
        Greeting {
            id: SessionId(name),
            secret: Secret([secret; 32]),
            known,
            path: 0,
        }
    }

    fn key(number: u8) -> PeerKey {
        PeerKey([number; 32])
    }

    #[test]
    fn only_the_same_key_with_the_secret_joins() {
        let mut registry = Registry::default();
        let mut admit = |greeting: Greeting, of| registry.admit(&greeting, key(of), || 'a');
        assert_eq!(admit(greeting(1, 1, true), 1), Err(Refusal::Unknown));
        assert_eq!(admit(greeting(1, 1, false), 1), Ok(('a', true)));
        assert_eq!(admit(greeting(1, 1, true), 1), Ok(('a', false)));
        assert_eq!(admit(greeting(1, 1, false), 1), Ok(('a', false)));
        assert_eq!(admit(greeting(1, 1, false), 2), Err(Refusal::NotYours));
        assert_eq!(admit(greeting(1, 2, false), 1), Err(Refusal::NotYours));
        registry.end(greeting(1, 1, false).id);
        let again = registry.admit(&greeting(1, 1, false), key(1), || 'b');
        assert_eq!(again, Err(Refusal::Ended));
    }

    #[test]
    fn everything_is_bounded() {
        let mut registry = Registry::default();
        for path in 0..=MAX_PATHS {
            let admitted = registry.admit(&greeting(0, 0, false), key(0), || ());
            assert_eq!(admitted.is_ok(), path < MAX_PATHS);
        }
        registry.leave(greeting(0, 0, false).id);
        assert!(
            registry
                .admit(&greeting(0, 0, false), key(0), || ())
                .is_ok()
        );
        let mut sessions = 1;
        for id in 1..=2000 {
            let of = key((id / 70) as u8);
            sessions += usize::from(registry.admit(&greeting(id, 0, false), of, || ()).is_ok());
        }
        assert_eq!(sessions, MAX_SESSIONS);
        for id in 0..=2000 {
            registry.end(greeting(id, 0, false).id);
        }
        assert_eq!(
            (registry.sessions.len(), registry.ended.len()),
            (0, MAX_ENDED)
        );
    }

    proptest! {
        #[test]
        fn a_session_is_of_one_key(
            steps in prop::collection::vec((0u16..4, 0u8..3, any::<bool>(), 0u8..3, 0u8..6), 0..200)
        ) {
            let mut registry = Registry::default();
            for (id, secret, known, of, action) in steps {
                let greeting = greeting(id, secret, known);
                match action {
                    0 => registry.end(greeting.id),
                    1 => registry.leave(greeting.id),
                    _ => if let Ok((begun_by, is_new)) = registry.admit(&greeting, key(of), || (of, secret)) {
                        prop_assert_eq!(begun_by, (of, secret));
                        prop_assert!(!(is_new && known));
                    },
                }
                for entry in registry.sessions.values() {
                    prop_assert!(entry.paths <= MAX_PATHS);
                }
            }
        }
    }
}
