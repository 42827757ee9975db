//! Which hosts may connect.

use std::sync::{Arc, PoisonError, RwLock};

use hawser_keys::{Allowed, KeysFileError, PeerKey, StillAllowed};

/// The hosts that may connect, by their keys. Cloning shares it, and it may change while a server
/// uses it: a host that is no longer allowed loses its sessions within a second.
#[derive(Debug, Clone)]
pub struct Clients(Arc<RwLock<Rule>>);

#[derive(Debug, Clone)]
enum Rule {
    Any,
    Allowed(Allowed),
}

/// Those that may go on, when they were looked at.
pub(super) enum Still {
    Any,
    Allowed(StillAllowed),
}

impl Clients {
    /// Every host.
    #[must_use]
    pub fn any() -> Self {
        Self(Arc::new(RwLock::new(Rule::Any)))
    }

    /// The hosts of these keys.
    #[must_use]
    pub fn allowed(allowed: Allowed) -> Self {
        Self(Arc::new(RwLock::new(Rule::Allowed(allowed))))
    }

    /// Allows the hosts of these keys from now on, and no others.
    pub fn set(&self, allowed: Allowed) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Rule::Allowed(allowed);
    }

    fn rule(&self) -> Rule {
        let rule = self.0.read().unwrap_or_else(PoisonError::into_inner);
        rule.clone()
    }

    /// Whether the host with `key` may connect now.
    ///
    /// # Errors
    /// When the file of keys cannot be used: then only keys that are not from it are allowed.
    pub(super) fn allows(&self, key: &PeerKey) -> Result<bool, KeysFileError> {
        match self.rule() {
            Rule::Any => Ok(true),
            Rule::Allowed(allowed) => allowed.allows(key),
        }
    }

    /// Those that may go on. Blocks while the file is read; the error is why it could not be used.
    pub(super) fn still(&self) -> (Still, Option<KeysFileError>) {
        match self.rule() {
            Rule::Any => (Still::Any, None),
            Rule::Allowed(allowed) => match allowed.still() {
                Ok(still) => (Still::Allowed(still), None),
                Err(error) => (Still::Allowed(allowed.given()), Some(error)),
            },
        }
    }
}

impl Still {
    pub(super) fn allows(&self, key: &PeerKey) -> bool {
        match self {
            Self::Any => true,
            Self::Allowed(still) => still.contains(key),
        }
    }
}
