//! This host in its SCION network, which may be joined after the service has started.

use std::path::Path;

use hawser_bootstrap::JoinError;
use hawser_endhost::{Bootstrap, BootstrapError, Endhost};
use hawser_keys::{Identity, KeyFile, KeyFileError};
use thiserror::Error;
use tokio::sync::OnceCell;
use tokio::sync::mpsc::UnboundedSender;

use crate::config::NetworkConfig;
use crate::event::ServiceEvent;

/// Why this host cannot take part in transfers now.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HostError {
    /// It is in no network.
    #[error("{0}")]
    Network(String),
    /// Its key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// The task that reads its key has ended.
    #[error("the key was not read: {0}")]
    Task(String),
}

/// A network that a host joins, when it is first needed.
#[derive(Debug)]
pub struct HostNetwork {
    joined: OnceCell<Endhost>,
    /// Why none is sought.
    refusal: Option<String>,
}

impl HostNetwork {
    /// The network that `host` is in.
    #[must_use]
    pub fn joined(host: Endhost) -> Self {
        Self {
            joined: OnceCell::new_with(Some(host)),
            refusal: None,
        }
    }

    /// The network that is found when it is needed: that of the environment, or of this host's daemon or files.
    #[must_use]
    pub fn sought() -> Self {
        Self {
            joined: OnceCell::new(),
            refusal: None,
        }
    }

    /// None, for this reason.
    #[must_use]
    pub fn none(reason: impl Into<String>) -> Self {
        Self {
            joined: OnceCell::new(),
            refusal: Some(reason.into()),
        }
    }

    /// Whether it is joined.
    #[must_use]
    pub fn is_joined(&self) -> bool {
        self.joined.initialized()
    }

    async fn host(&self) -> Result<Endhost, HostError> {
        let refused = self.refusal.clone().map(HostError::Network);
        refused.map_or(Ok(()), Err)?;
        let found = self.joined.get_or_try_init(async || {
            // Large, and within the futures of all that may wait for it.
            let found = Box::pin(Endhost::bootstrap(&Bootstrap::default())).await;
            found.map_err(|error| HostError::Network(error.to_string()))
        });
        found.await.cloned()
    }
}

/// Why a network that a configuration names cannot be joined.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// What the bootstrap server has cannot be fetched or kept.
    #[error("network.bootstrap: {0}")]
    Bootstrap(#[from] JoinError),
    /// The daemon or the folder cannot be used.
    #[error("network: {0}")]
    Network(#[from] BootstrapError),
}

impl NetworkConfig {
    /// Whether it names a network, or how this host is in it.
    #[must_use]
    pub const fn is_named(&self) -> bool {
        self.sciond.is_some()
            || self.config_dir.is_some()
            || self.bootstrap.is_some()
            || self.local.is_some()
    }

    /// Joins the network. What a bootstrap server has is kept in `state`; keys that are trusted by that are
    /// reported to `events`.
    ///
    /// # Errors
    /// [`NetworkError`].
    pub async fn join(
        &self,
        state: &Path,
        events: &UnboundedSender<ServiceEvent>,
    ) -> Result<Endhost, NetworkError> {
        let mut config_dir = self.config_dir.clone();
        if let Some(server) = &self.bootstrap {
            let joined = hawser_bootstrap::join(server, &state.join("bootstrap")).await?;
            for id in joined.trusted {
                let trouble = format!(
                    "{id} of {server} is trusted from now on, and nothing proves it: compare it with one \
                     that you have ({})",
                    joined.folder.join("certs").display()
                );
                // Without a receiver nobody wants to know.
                let _ = events.send(ServiceEvent::Trouble(trouble));
            }
            config_dir = Some(joined.folder);
        }
        let bootstrap = Bootstrap {
            daemon: self.sciond.clone(),
            config_dir,
            local: self.local,
        };
        Ok(Endhost::bootstrap(&bootstrap).await?)
    }
}

/// This host as others see it: in its network, with its key.
#[derive(Debug)]
pub struct Host {
    network: HostNetwork,
    key: KeyFile,
    identity: OnceCell<Identity>,
}

impl Host {
    /// The host in `network` with the key in this file, which is made when it is needed and does not exist.
    #[must_use]
    pub fn new(network: HostNetwork, key: KeyFile) -> Self {
        Self {
            network,
            key,
            identity: OnceCell::new(),
        }
    }

    /// Its network.
    #[must_use]
    pub const fn network(&self) -> &HostNetwork {
        &self.network
    }

    /// Its key.
    ///
    /// # Errors
    /// [`HostError`] if the file cannot be used.
    pub async fn identity(&self) -> Result<Identity, HostError> {
        let opened = self.identity.get_or_try_init(async || {
            let key = self.key.clone();
            let opened = tokio::task::spawn_blocking(move || key.open()).await;
            let opened = opened.map_err(|error| HostError::Task(error.to_string()))?;
            opened.map_err(HostError::Key)
        });
        opened.await.cloned()
    }

    /// It in its network, which is joined now if it was not before, and its key.
    ///
    /// # Errors
    /// [`HostError`]; a later call may succeed.
    pub async fn open(&self) -> Result<(Endhost, Identity), HostError> {
        Ok((self.network.host().await?, self.identity().await?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn without_a_network_the_reason_is_told_and_no_key_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let network = HostNetwork::none("it was told so");
        assert!(!network.is_joined());
        let host = Host::new(network, KeyFile::at(&path));
        let error = host.open().await.unwrap_err();
        assert_eq!(error.to_string(), "it was told so");
        assert!(!path.exists());
        let key = host.identity().await.unwrap().key();
        assert_eq!(host.identity().await.unwrap().key(), key);
        assert!(path.exists());
    }

    #[tokio::test]
    async fn a_key_that_cannot_be_used_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "none").unwrap();
        let host = Host::new(HostNetwork::sought(), KeyFile::at(&path));
        let error = host.identity().await.unwrap_err().to_string();
        assert!(error.contains(path.to_str().unwrap()), "{error}");
    }
}
