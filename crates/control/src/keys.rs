//! The hop keys of a network's ASes.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use hawser_topology::{AsDir, FileError, IsdAsn, Network};

/// The key with which each AS makes the MACs of its hop fields.
#[derive(Clone, Default)]
pub struct Keys(BTreeMap<IsdAsn, [u8; 16]>);

impl Keys {
    /// Reads the keys of all ASes of a network from their folders in `lab` ([`as_folder`]).
    ///
    /// # Errors
    /// When a key is missing or is none.
    pub fn read(lab: &Path, network: &Network) -> Result<Self, FileError> {
        network
            .ases
            .iter()
            .map(|r#as| {
                let key = AsDir::new(as_folder(lab, r#as.isd_as)).hop_key()?;
                Ok((r#as.isd_as, key))
            })
            .collect()
    }

    /// The key of an AS.
    pub fn of(&self, isd_as: IsdAsn) -> Option<[u8; 16]> {
        self.0.get(&isd_as).copied()
    }
}

impl FromIterator<(IsdAsn, [u8; 16])> for Keys {
    fn from_iter<I: IntoIterator<Item = (IsdAsn, [u8; 16])>>(keys: I) -> Self {
        Self(keys.into_iter().collect())
    }
}

/// Names the ASes only: keys have no place in a log.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The folder of an AS in a lab's folder.
pub fn as_folder(lab: &Path, isd_as: IsdAsn) -> PathBuf {
    lab.join(hawser_topology::as_folder(isd_as))
}
