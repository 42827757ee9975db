//! On which device each link is limited.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use crate::enforcer::{FailedLinks, NamedLink};
use crate::error::LimitError;
use crate::limit::{DeviceLimits, Limits, Remote};

/// Links by device.
#[derive(Debug)]
pub(super) struct Placed<K> {
    pub names: BTreeMap<String, BTreeMap<Remote, K>>,
    pub limits: BTreeMap<String, DeviceLimits>,
    pub failed: FailedLinks<K>,
}

/// Places links on their devices, with the limits `default` for all other traffic. `device_to` has the
/// device that leads to an address, `limited_on` the one on which a link has limits now: without a route a
/// link keeps its limits where it is, and fails. Of links with one remote all but the first fail.
///
/// # Errors
/// Those of `limited_on`.
pub(super) fn place<K: Ord + Clone + fmt::Display>(
    links: &[NamedLink<K>],
    default: Limits,
    mut device_to: impl FnMut(IpAddr) -> Result<String, String>,
    mut limited_on: impl FnMut(&Remote) -> Result<Option<String>, LimitError>,
) -> Result<Placed<K>, LimitError> {
    let mut placed = Placed {
        names: BTreeMap::new(),
        limits: BTreeMap::new(),
        failed: FailedLinks::new(),
    };
    let mut known: BTreeMap<Remote, &K> = BTreeMap::new();
    for link in links {
        let (name, remote) = (link.name.clone(), link.remote);
        if let Some(other) = known.get(&remote) {
            let error = format!("link {other} has the same address, {remote}");
            placed.failed.insert(name, error);
            continue;
        }
        known.insert(remote, &link.name);
        let device = match &link.device {
            Some(device) => Ok(device.clone()),
            None => device_to(remote.address),
        };
        let device = match device {
            Ok(device) => device,
            Err(error) => {
                placed.failed.insert(name.clone(), error);
                match limited_on(&remote)? {
                    Some(device) => device,
                    None => continue,
                }
            }
        };
        let limits = placed.limits.entry(device.clone()).or_default();
        limits.default = default;
        limits.links.insert(remote, link.limits);
        placed.names.entry(device).or_default().insert(remote, name);
    }
    Ok(placed)
}
