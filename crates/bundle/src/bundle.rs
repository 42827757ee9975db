//! The files of an AS in memory.

use std::collections::BTreeMap;
use std::path::Path;

use hawser_topology::{AsTopology, IsdAsn, LinkState};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::link_info::LinkInfo;
use crate::manifest::{FORMAT, MANIFEST, Manifest};
use crate::name::{self, NameError};
use crate::neighbours::{NEIGHBOURS, Neighbours};

pub(crate) const TOPOLOGY: &str = "topology.json";
pub(crate) const LINK_INFO: &str = "link_info.json";
pub(crate) const LINK_STATES: &str = "links.json";

/// The files of an AS, by name.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Bundle {
    files: BTreeMap<String, Vec<u8>>,
}

/// The reason why the files are not the configuration of an AS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContentError {
    /// A file is missing.
    #[error("it has no {0}: it is not the configuration of an AS")]
    Missing(&'static str),
    /// A file is not valid.
    #[error("its {file} is not valid: {reason}")]
    Invalid {
        /// The file.
        file: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The format is newer than this program.
    #[error("it is of format {0}, of a newer hawser: this one reads formats up to {FORMAT}")]
    Newer(u32),
    /// The manifest names another AS than the topology.
    #[error("its {MANIFEST} is of AS {manifest}, but its {TOPOLOGY} of AS {topology}")]
    TwoAses {
        /// The AS of the manifest.
        manifest: IsdAsn,
        /// The AS of the topology.
        topology: IsdAsn,
    },
}

impl Bundle {
    /// Adds a file, or replaces it.
    ///
    /// # Errors
    /// When the name is not one for a file of an AS.
    pub fn insert(&mut self, name: &str, bytes: impl Into<Vec<u8>>) -> Result<(), NameError> {
        let name = name::check(Path::new(name))?;
        self.files.insert(name, bytes.into());
        Ok(())
    }

    /// The content of a file.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.files.get(name).map(Vec::as_slice)
    }

    /// All files by name, in the order of their names.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let files = self.files.iter();
        files.map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
    }

    /// Sets `topology.json`.
    pub fn set_topology(&mut self, topology: &AsTopology) {
        self.set(TOPOLOGY, topology);
    }

    /// Sets `link_info.json`.
    pub fn set_link_info(&mut self, links: &LinkInfo) {
        self.set(LINK_INFO, links);
    }

    /// Sets `links.json`: the state of each interface, with the delay, jitter and loss of its link.
    pub fn set_link_states(&mut self, states: &BTreeMap<u16, LinkState>) {
        self.set(LINK_STATES, states);
    }

    /// Sets `hawser.json`.
    pub fn set_manifest(&mut self, manifest: &Manifest) {
        self.set(MANIFEST, manifest);
    }

    /// Sets `neighbours.json`.
    pub fn set_neighbours(&mut self, neighbours: &Neighbours) {
        self.set(NEIGHBOURS, neighbours);
    }

    fn set(&mut self, name: &str, value: &impl Serialize) {
        // Plain data with text keys can always be written as JSON.
        let mut bytes = serde_json::to_vec_pretty(value).unwrap_or_default();
        bytes.push(b'\n');
        self.files.insert(name.to_owned(), bytes);
    }

    /// Reads `hawser.json`.
    ///
    /// # Errors
    /// When it is missing, not valid, or of a newer format.
    pub fn manifest(&self) -> Result<Manifest, ContentError> {
        // A newer format may have other keys.
        #[derive(serde::Deserialize)]
        struct Format {
            format: u32,
        }
        let Format { format } = self.parse(MANIFEST)?;
        if format > FORMAT {
            return Err(ContentError::Newer(format));
        }
        let manifest: Manifest = self.parse(MANIFEST)?;
        debug_assert_eq!(manifest.format(), format);
        Ok(manifest)
    }

    /// Reads `topology.json`.
    ///
    /// # Errors
    /// When it is missing or not valid.
    pub fn topology(&self) -> Result<AsTopology, ContentError> {
        self.parse(TOPOLOGY)
    }

    /// Reads `link_info.json`; empty if there is none.
    ///
    /// # Errors
    /// When it is not valid.
    pub fn link_info(&self) -> Result<LinkInfo, ContentError> {
        match self.get(LINK_INFO) {
            None => Ok(LinkInfo::default()),
            Some(_) => self.parse(LINK_INFO),
        }
    }

    /// Reads `links.json`; empty if there is none.
    ///
    /// # Errors
    /// When it is not valid.
    pub fn link_states(&self) -> Result<BTreeMap<u16, LinkState>, ContentError> {
        match self.get(LINK_STATES) {
            None => Ok(BTreeMap::new()),
            Some(_) => self.parse(LINK_STATES),
        }
    }

    /// Reads `neighbours.json`; empty if there is none.
    ///
    /// # Errors
    /// When it is not valid.
    pub fn neighbours(&self) -> Result<Neighbours, ContentError> {
        match self.get(NEIGHBOURS) {
            None => Ok(Neighbours::default()),
            Some(_) => self.parse(NEIGHBOURS),
        }
    }

    fn parse<T: DeserializeOwned>(&self, file: &'static str) -> Result<T, ContentError> {
        let bytes = self.get(file).ok_or(ContentError::Missing(file))?;
        serde_json::from_slice(bytes).map_err(|error| ContentError::Invalid {
            file,
            reason: error.to_string(),
        })
    }

    /// Checks that the files are the configuration of one AS, and returns what it is.
    ///
    /// # Errors
    /// [`ContentError`].
    pub fn check(&self) -> Result<(Manifest, AsTopology), ContentError> {
        let (manifest, topology) = (self.manifest()?, self.topology()?);
        self.link_info()?;
        let has = |id| {
            let mut routers = topology.border_routers.values();
            routers.any(|router| router.interfaces.contains_key(&id))
        };
        if let Some(id) = self.link_states()?.keys().find(|id| !has(**id)) {
            return Err(ContentError::Invalid {
                file: LINK_STATES,
                reason: format!("{TOPOLOGY} has no interface {id}"),
            });
        }
        let named = self.neighbours()?.check(has);
        named.map_err(|reason| ContentError::Invalid {
            file: NEIGHBOURS,
            reason,
        })?;
        if manifest.isd_as != topology.isd_as {
            return Err(ContentError::TwoAses {
                manifest: manifest.isd_as,
                topology: topology.isd_as,
            });
        }
        match self.get("keys/master0.key") {
            Some(_) => Ok((manifest, topology)),
            None => Err(ContentError::Missing("keys/master0.key")),
        }
    }

    /// [`Self::hash`] as an entity tag of HTTP.
    pub fn tag(&self) -> String {
        let hash: String = self.hash().iter().map(|b| format!("{b:02x}")).collect();
        format!("\"{hash}\"")
    }

    /// SHA-256 of the names and contents of all files.
    pub fn hash(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for (name, bytes) in &self.files {
            for part in [name.as_bytes(), bytes] {
                hash.update((part.len() as u64).to_be_bytes());
                hash.update(part);
            }
        }
        hash.finalize().into()
    }
}

/// Shows names and sizes only: files have keys in them.
impl std::fmt::Debug for Bundle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sizes = self.files.iter().map(|(name, bytes)| (name, bytes.len()));
        f.debug_map().entries(sizes).finish()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use hawser_topology::{AsDir, BorderRouter, Shape};

    use super::*;
    use crate::change::ServiceChange;
    use crate::manifest::{Coordinator, Role};

    /// The configuration of a user AS without links.
    pub(crate) fn example() -> Bundle {
        let isd_as: IsdAsn = "1-ff00:0:111".parse().unwrap();
        let mut bundle = Bundle::default();
        let router = BorderRouter {
            internal_addr: "127.0.0.1:30042".parse().unwrap(),
            interfaces: [].into(),
        };
        bundle.set_topology(&AsTopology {
            isd_as,
            mtu: 1472,
            core: false,
            dispatched_ports: (31000, 32767),
            control_service: [].into(),
            discovery_service: [].into(),
            border_routers: [("br1".to_owned(), router)].into(),
        });
        let mut manifest = Manifest::new(isd_as, Role::User, 3);
        manifest.coordinator = Some(Coordinator {
            url: "http://127.0.0.1:8040".to_owned(),
            host: "h1".to_owned(),
            token: "secret".to_owned(),
            ca: None,
        });
        bundle.set_manifest(&manifest);
        bundle.insert("keys/master0.key", "AAAA").unwrap();
        bundle
            .insert("certs/ISD1-B1-S1.trc", vec![7; 3000])
            .unwrap();
        bundle
    }

    #[test]
    fn a_complete_bundle_is_one_as() {
        let (manifest, topology) = example().check().unwrap();
        assert_eq!(manifest.isd_as, topology.isd_as);
        assert_eq!(manifest.version, 3);
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let refused = |change: fn(&mut Bundle)| {
            let mut bundle = example();
            change(&mut bundle);
            bundle.check().unwrap_err().to_string()
        };
        let no_key = refused(|b| drop(b.files.remove("keys/master0.key")));
        assert!(no_key.contains("no keys/master0.key"), "{no_key}");
        let text = refused(|b| b.insert("topology.json", "{").unwrap());
        assert!(text.contains("topology.json is not valid"), "{text}");
        let newer = refused(|b| b.insert(MANIFEST, r#"{"format": 2}"#).unwrap());
        assert!(newer.contains("a newer hawser"), "{newer}");
        let links = refused(|b| b.insert(LINK_INFO, r#"{"1": {"AS_ID": -1}}"#).unwrap());
        assert!(links.contains("link_info.json is not valid"), "{links}");
        let states = refused(|b| b.insert(LINK_STATES, r#"{"1": {}}"#).unwrap());
        assert!(states.contains("links.json is not valid"), "{states}");
        let plain = LinkState {
            up: true,
            shape: Shape::default(),
        };
        let mut bundle = example();
        bundle.set_link_states(&[(7, plain)].into());
        let unknown = bundle.check().unwrap_err().to_string();
        assert!(unknown.contains("has no interface 7"), "{unknown}");
        let other = refused(|b| {
            let other = Manifest::new("1-ff00:0:112".parse().unwrap(), Role::User, 1);
            b.set_manifest(&other);
        });
        assert!(other.contains("1-ff00:0:112"), "{other}");
    }

    #[test]
    fn limits_and_versions_restart_nothing() {
        let before = example();
        let mut after = before.clone();
        after.set_link_info(&LinkInfo::default());
        let manifest = Manifest::new("1-ff00:0:111".parse().unwrap(), Role::User, 4);
        after.set_manifest(&manifest);
        assert_eq!(after.change_from(&before), ServiceChange::None);
        assert_ne!(after.hash(), before.hash());
        let mut topology = before.topology().unwrap();
        topology.mtu -= 1;
        let text = serde_json::to_string(&topology).unwrap();
        after.insert("topology.json", text).unwrap();
        assert_eq!(after.change_from(&before), ServiceChange::Topology);
        let router = topology.border_routers.pop_first().unwrap();
        topology.border_routers.insert("another".into(), router.1);
        let text = serde_json::to_string(&topology).unwrap();
        let mut other = before.clone();
        other.insert("topology.json", text).unwrap();
        assert_eq!(other.change_from(&before), ServiceChange::Restart);
        after.insert("keys/master0.key", "BBBB").unwrap();
        assert_eq!(after.change_from(&before), ServiceChange::Restart);
        let mut less = before.clone();
        less.files.remove("certs/ISD1-B1-S1.trc");
        assert_eq!(less.change_from(&before), ServiceChange::Restart);
    }

    #[test]
    fn secrets_are_not_shown() {
        let shown = format!("{:?}", example());
        assert!(shown.contains("hawser.json"), "{shown}");
        assert!(!shown.contains("secret"), "{shown}");
    }

    #[test]
    fn an_as_folder_is_what_the_services_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("as");
        example().write(&at).unwrap();
        let topology = AsDir::new(&at).topology().unwrap();
        assert_eq!(topology, example().topology().unwrap());
    }
}
