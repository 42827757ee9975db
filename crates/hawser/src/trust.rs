//! Which keys are trusted.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use hawser_endhost::ScionAddr;
use hawser_keys::{Allowed, Known, PeerKey, ServerKeyError};
use tokio::task::spawn_blocking;

use crate::addr::addr;
use crate::error::ConnectError;

/// Which key the server of one connection may show. All its paths must show the same one.
#[derive(Debug, Clone)]
pub(crate) struct ServerTrust {
    /// `None` for any.
    known: Option<Known>,
    /// The key of the first path that was trusted.
    pinned: Arc<Mutex<Option<PeerKey>>>,
}

impl ServerTrust {
    pub(crate) fn any() -> Self {
        Self {
            known: None,
            pinned: Arc::default(),
        }
    }

    pub(crate) fn known(known: Known) -> Self {
        Self {
            known: Some(known),
            pinned: Arc::default(),
        }
    }

    /// Checks the key that `server` shows on a path.
    pub(crate) async fn check(&self, server: ScionAddr, key: PeerKey) -> Result<(), ConnectError> {
        if let Some(known) = self.known.clone() {
            let checked = spawn_blocking(move || known.check(server, key)).await;
            match checked {
                Ok(checked) => checked.map_err(|error| named(error, server, key))?,
                Err(error) => return Err(ConnectError::KeysFile(error.to_string())),
            }
        }
        let mut pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        match *pinned.get_or_insert(key) == key {
            true => Ok(()),
            false => Err(ConnectError::WrongServerKey {
                addr: addr(server),
                key,
            }),
        }
    }
}

fn named(error: ServerKeyError, server: ScionAddr, key: PeerKey) -> ConnectError {
    let addr = addr(server);
    match error {
        ServerKeyError::Unknown { file, .. } => ConnectError::UnknownServerKey { addr, key, file },
        ServerKeyError::Changed { .. } | ServerKeyError::NotGiven { .. } => {
            ConnectError::WrongServerKey { addr, key }
        }
        error => ConnectError::KeysFile(error.to_string()),
    }
}

/// Whose connections a listener accepts.
#[derive(Debug, Clone)]
pub(crate) enum ClientTrust {
    Allowed(Allowed),
    Any,
}

impl ClientTrust {
    /// Whether the holder of `key` may connect. A file that cannot be used allows nobody.
    pub(crate) async fn allows(&self, key: PeerKey) -> bool {
        let Self::Allowed(allowed) = self.clone() else {
            return true;
        };
        let answer = spawn_blocking(move || allowed.allows(&key)).await;
        match answer {
            Ok(Ok(allows)) => allows,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the file of allowed keys cannot be used");
                false
            }
            Err(_) => false,
        }
    }
}

/// A file of the user's in the folder of keys.
pub(crate) fn user_file(name: &str) -> Result<PathBuf, String> {
    let folder = hawser_keys::folder();
    folder
        .map(|folder| folder.join(name))
        .map_err(|error| error.to_string())
}
