//! What most experiments run on: a network, a folder, and servers.

use std::path::Path;

use hawser_topology::Network;

use crate::error::ExperimentError;
use crate::scratch::Scratch;
use crate::shape::Bed;
use crate::stage::Stage;

/// A network that is up, with a folder for files of its runs, and servers or else what all runs share.
#[derive(Debug)]
pub struct NetworkBed<S = ()> {
    /// What all runs share.
    pub servers: S,
    /// The network at work.
    pub stage: Stage,
    /// What it consists of.
    pub network: Network,
    folder: Scratch,
}

impl NetworkBed {
    /// Brings a network up; see [`Stage::set`].
    pub fn set(
        network: Network,
        name: &str,
        program: &Path,
        no_offload: bool,
        folder: Scratch,
    ) -> Result<Self, ExperimentError> {
        Ok(Self {
            servers: (),
            stage: Stage::set(&network, name, program, no_offload)?,
            network,
            folder,
        })
    }

    /// The same with servers.
    pub fn with<S>(self, servers: S) -> NetworkBed<S> {
        NetworkBed {
            servers,
            stage: self.stage,
            network: self.network,
            folder: self.folder,
        }
    }
}

impl<S> NetworkBed<S> {
    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl<S> Bed for NetworkBed<S> {
    async fn take_down(self) -> Result<(), ExperimentError> {
        drop(self.servers);
        self.stage.take_down()
    }
}
