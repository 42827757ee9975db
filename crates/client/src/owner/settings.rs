//! Changes of what holds for all torrents.

use super::Owner;
use crate::network::NetworkSettings;
use crate::torrents::{CommandError, Torrents};

impl Owner {
    /// Makes a change of the limits of all torrents, and of how peers are reached: all of it, or nothing.
    ///
    /// # Errors
    /// What is refused, or [`CommandError::Value`], if the address at which peers connect is in use, or a way to find
    /// peers cannot be opened.
    pub fn change_all(
        &mut self,
        network: NetworkSettings,
        change: impl FnOnce(&mut Torrents) -> Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        let kept = self.torrents.kept_limits();
        let changed = change(&mut self.torrents).and_then(|()| self.change_network(network));
        if changed.is_err() {
            self.torrents.restore_limits(kept);
        }
        changed
    }

    /// Changes how peers are reached, at once.
    ///
    /// # Errors
    /// [`CommandError::Value`], if the address at which they connect is in use, or a way to find them cannot be
    /// opened; nothing is changed then.
    fn change_network(&mut self, changes: NetworkSettings) -> Result<(), CommandError> {
        self.engine
            .open_ways(&changes)
            .map_err(CommandError::Value)?;
        let network = &self.engine.network;
        if let Some(transports) = changes.transports {
            let changed = network.set_transports(transports);
            changed.map_err(|error| CommandError::Value(error.to_string()))?;
        }
        if let Some(policy) = changes.encryption {
            network.set_encryption(policy);
        }
        self.torrents.note_network(changes);
        self.engine.allow_ways(&self.torrents.all_limits().network);
        Ok(())
    }
}
