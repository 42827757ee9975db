//! `hawser.json`: what a bundle is, and where newer ones come from.

use hawser_topology::IsdAsn;
use serde::{Deserialize, Serialize};

/// The name of the manifest's file.
pub const MANIFEST: &str = "hawser.json";

/// The format of bundles that this version writes, and the newest that it reads.
pub(crate) const FORMAT: u32 = 1;

/// The manifest of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the format.
    format: u32,
    /// The AS.
    pub isd_as: IsdAsn,
    /// What the AS is to its coordinator.
    pub role: Role,
    /// A name of the AS for people; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// The version of the configuration; it grows with each change.
    pub version: u64,
    /// Where newer versions come from; `None` if the configuration does not change by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coordinator: Option<Coordinator>,
}

/// What an AS is to its coordinator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// An attachment point: user ASes have links to it.
    AttachmentPoint,
    /// A user AS.
    User,
}

/// The coordinator of an AS, and how the AS shows who it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coordinator {
    /// The URL that paths of the API are added to, such as `https://coordinator.example:8040`.
    pub url: String,
    /// The identifier of this host.
    pub host: String,
    /// The secret of this host.
    pub token: String,
    /// Certificates in PEM that the coordinator's certificate must be issued by; `None` for those
    /// that the system trusts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
}

impl Manifest {
    /// The manifest of an AS's configuration.
    pub fn new(isd_as: IsdAsn, role: Role, version: u64) -> Self {
        Self {
            format: FORMAT,
            isd_as,
            role,
            label: String::new(),
            version,
            coordinator: None,
        }
    }

    pub(crate) fn format(&self) -> u32 {
        self.format
    }
}
