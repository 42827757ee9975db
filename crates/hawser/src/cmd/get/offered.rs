//! The paths to SCION peers that were offered during a download.

use std::collections::BTreeMap;
use std::sync::Arc;

use hawser_endhost::{Endhost, Path};
use hawser_path::Fingerprint;
use tokio::sync::watch;

use crate::cli::GetArgs;

/// Every path offered during the download, by fingerprint.
#[derive(Default)]
pub struct OfferedPaths {
    watched: Vec<watch::Receiver<Arc<Vec<Path>>>>,
    /// The paths, also those that are not offered any more.
    pub paths: BTreeMap<Fingerprint, Path>,
}

impl OfferedPaths {
    /// The paths to the SCION peers that the arguments name.
    pub fn new(host: &Endhost, args: &GetArgs) -> Self {
        let mut ases: Vec<_> = args
            .peer
            .iter()
            .filter_map(|p| Some(p.scion()?.isd_as))
            .collect();
        ases.sort_unstable();
        ases.dedup();
        Self {
            watched: ases.into_iter().map(|isd_as| host.watch(isd_as)).collect(),
            paths: BTreeMap::new(),
        }
    }

    /// Adds the paths that are offered now.
    pub fn update(&mut self) {
        for watched in &mut self.watched {
            for path in watched.borrow_and_update().iter() {
                self.paths.insert(path.fingerprint(), path.clone());
            }
        }
    }
}
