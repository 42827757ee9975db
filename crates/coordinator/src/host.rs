//! ASes and the machines that run them.

use std::net::IpAddr;

use hawser_http::TokenHash;
use hawser_topology::IsdAsn;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::instances::Instances;
use crate::link::FailedLinks;
use crate::link::LinkId;
use crate::user::UserId;

/// A place on the earth, in degrees.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// North of the equator, -90 to 90.
    #[schema(minimum = -90, maximum = 90)]
    pub latitude: f64,
    /// East of Greenwich, -180 to 180.
    #[schema(minimum = -180, maximum = 180)]
    pub longitude: f64,
}

impl Place {
    /// Whether there is such a place.
    #[must_use]
    pub fn is_valid(self) -> bool {
        (-90.0..=90.0).contains(&self.latitude) && (-180.0..=180.0).contains(&self.longitude)
    }
}

/// The machine that runs an AS, as the coordinator knows it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Host {
    /// The hash of the secret by which it fetches its configuration; `None` if it fetches none.
    #[serde(default)]
    pub secret: Option<TokenHash>,
    /// The number of the change since which this machine is trusted, as by a new owner. Its secret
    /// and its keys are of this number, so that those from before are of no use. 0 in a state that
    /// is older than these numbers.
    #[serde(default)]
    pub trusted_since: u64,
    /// The version of its configuration; grows with each change of it.
    pub version: u64,
    /// The version that it last reported to run.
    #[serde(default)]
    pub deployed: Option<u64>,
    /// When it reported that, in milliseconds since 1970.
    #[serde(default)]
    pub deployed_at: Option<u64>,
}

impl Host {
    /// The machine of an AS that is added with the change of this number.
    pub(crate) fn trusted_since(change: u64) -> Self {
        Self {
            trusted_since: change,
            ..Self::default()
        }
    }

    /// Ends the trust in the machine with the change of this number: it is refused until it has a
    /// new archive, with another secret and other keys.
    pub(crate) fn end_trust(&mut self, change: u64) {
        (self.secret, self.trusted_since) = (None, change);
        // What is known of it is of the machine before.
        (self.deployed, self.deployed_at) = (None, None);
    }
}

/// What is known of a configuration's way to its machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Deployment {
    /// When the machine was last heard of since this process started, in milliseconds since 1970.
    pub last_seen: Option<u64>,
    /// The version that could last not be brought into force, and why; `None` once one is.
    pub failure: Option<(u64, String)>,
    /// The links whose limits alone are not in force, each with the reason.
    pub failed_links: FailedLinks,
    /// The runs of the program for the AS.
    pub(crate) instances: Instances,
    /// Grows when the machines are to ask again.
    pub(crate) roll_call: u64,
}

impl Deployment {
    /// Why something of the configuration is not in force, if that is known.
    #[must_use]
    pub fn error(&self) -> Option<String> {
        if let Some((_, reason)) = &self.failure {
            return Some(reason.clone());
        }
        let (link, reason) = self.failed_links.first_key_value()?;
        Some(match self.failed_links.len() {
            1 => format!("link {link}: {reason}"),
            all => format!("the limits of {all} links are not in force; link {link}: {reason}"),
        })
    }

    /// Why the limits of a link are not in force, if that is known.
    #[must_use]
    pub fn error_of(&self, link: LinkId) -> Option<&str> {
        let failure = self.failure.as_ref().map(|(_, reason)| reason);
        failure
            .or_else(|| self.failed_links.get(&link))
            .map(String::as_str)
    }
}

/// What a machine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostKind {
    /// An attachment point.
    AttachmentPoint,
    /// A user AS.
    UserAs,
}

/// An AS that user ASes attach to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttachmentPoint {
    /// The AS; [`IsdAsn::WILDCARD`] if only the limits of this machine's links are set.
    pub isd_as: IsdAsn,
    /// What people call it.
    pub label: String,
    /// Where it is.
    #[serde(default)]
    pub place: Option<Place>,
    /// The border router's addresses for links: at most one IPv4, and at most one IPv6 address.
    pub addresses: Vec<IpAddr>,
    /// The first UDP port for links.
    pub first_port: u16,
    /// The network interface of its links, if it is not that of the machine's route.
    #[serde(default)]
    pub device: Option<String>,
    /// Its machine.
    pub host: Host,
}

/// The AS of a user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserAs {
    /// The AS.
    pub isd_as: IsdAsn,
    /// Whose it is; `None` for that of an administrator.
    pub owner: Option<UserId>,
    /// What people call it.
    pub label: String,
    /// Where it is.
    #[serde(default)]
    pub place: Option<Place>,
    /// The border router's addresses for links, as those of an attachment point.
    pub addresses: Vec<IpAddr>,
    /// The first UDP port for links.
    pub first_port: u16,
    /// Its machine.
    pub host: Host,
}
