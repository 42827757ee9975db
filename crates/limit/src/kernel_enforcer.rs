//! Limits of links that have names, by the kernel of this machine.
//!
//! It remembers which links it has limited on which device, until the device is gone, and nothing else that
//! the [`Limiter`] does not. One lock is around all of it, which is held while the kernel is asked and
//! changed; no other is taken under it. After a panic under the lock the limiter reads the kernel's state
//! anew.

mod place;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use self::place::{Placed, place};
use crate::device::Routes;
use crate::enforcer::{EnforceError, Enforcer, FailedLinks, LinkUsage, NamedLink};
use crate::error::LimitError;
use crate::limit::{DeviceLimits, Direction, Limits, Owner, Remote};
use crate::limiter::Limiter;

/// The devices on which limits of links that are not named any more are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All that have limits.
    AllDevices,
    /// Those that the enforcer itself has limited.
    OwnDevices,
}

/// Limits links by HTB in the network namespace of the thread that opened its [`Limiter`]. Needs
/// `CAP_NET_ADMIN`.
#[derive(Debug)]
pub struct KernelEnforcer<K>(Mutex<EnforcerState<K>>);

#[derive(Debug)]
struct EnforcerState<K> {
    limiter: Limiter,
    scope: Scope,
    /// The limits of all other traffic on devices of links.
    default: Limits,
    /// The links that are limited, by device; none on a device that has had some.
    devices: BTreeMap<String, BTreeMap<Remote, K>>,
}

impl<K> KernelEnforcer<K> {
    /// Limits links with `limiter`, and all other traffic on their devices to `default`.
    pub fn new(limiter: Limiter, scope: Scope, default: Limits) -> Self {
        Self(Mutex::new(EnforcerState {
            limiter,
            scope,
            default,
            devices: BTreeMap::new(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, EnforcerState<K>> {
        self.0.lock().unwrap_or_else(|poisoned| {
            // What the limiter remembers may be of the middle of a change.
            let mut state = PoisonError::into_inner(poisoned);
            state.limiter.forget();
            state
        })
    }
}

impl<K: Ord + Clone + fmt::Display + Send> Enforcer<K> for KernelEnforcer<K> {
    fn enforce(&self, links: &[NamedLink<K>]) -> Result<FailedLinks<K>, EnforceError> {
        let applied = self.state().apply(links).map_err(EnforceError::new)?;
        for error in applied.left.values() {
            tracing::warn!("limits are left where no link has any: {error}");
        }
        Ok(applied.failed)
    }

    fn usage(&self) -> Result<Vec<LinkUsage<K>>, EnforceError> {
        let usage = self.state().usage().map_err(EnforceError::new)?;
        Ok(usage.into_values().collect())
    }

    fn reset(&self) -> Result<(), EnforceError> {
        let left = self.state().apply(&[]).map_err(EnforceError::new)?.left;
        match left.is_empty() {
            true => Ok(()),
            false => {
                let left: Vec<String> = left.values().map(ToString::to_string).collect();
                Err(EnforceError::new(left.join("; ")))
            }
        }
    }
}

/// What became of limits.
struct Applied<K> {
    failed: FailedLinks<K>,
    /// The devices without links that still have limits, and the IFBs of devices that are gone, each with
    /// the reason.
    left: BTreeMap<String, LimitError>,
}

impl<K: Ord + Clone + fmt::Display> EnforcerState<K> {
    fn apply(&mut self, links: &[NamedLink<K>]) -> Result<Applied<K>, LimitError> {
        // Otherwise what others removed would not be seen.
        self.limiter.is_disturbed()?;
        let mut routes = Routes::open()?;
        let mut now = None;
        let limiter = &mut self.limiter;
        let Placed {
            names,
            mut limits,
            mut failed,
        } = place(
            links,
            self.default,
            |address| routes.device_to(address).map_err(|error| error.to_string()),
            |remote| {
                if now.is_none() {
                    now = Some(limiter.devices_of_links()?);
                }
                Ok(now.as_ref().and_then(|now| now.get(remote)).cloned())
            },
        )?;
        // Devices without links any more are left as they were before they had some.
        let found = match self.scope {
            Scope::AllDevices => self.limiter.devices()?,
            Scope::OwnDevices => Vec::new(),
        };
        let before = std::mem::replace(&mut self.devices, names);
        for device in before.into_keys().chain(found) {
            limits.entry(device.clone()).or_default();
            self.devices.entry(device).or_default();
        }
        // The kernel removes a device's limits with it, but not the IFB that they had.
        let mut left = self.limiter.remove_orphans()?.failed;
        for (device, error) in self.limiter.apply(&limits)?.failed {
            let links = self.devices.get(&device).into_iter();
            for name in links.flat_map(BTreeMap::values) {
                let reason = || error.to_string();
                failed.entry(name.clone()).or_insert_with(reason);
            }
            let has_none = limits.get(&device).is_none_or(DeviceLimits::is_empty);
            // A device that is gone has no limits.
            let is_gone = matches!(error, LimitError::NoDevice(_) | LimitError::Vanished(_));
            if has_none && is_gone {
                self.devices.remove(&device);
            } else if has_none {
                left.insert(device, error);
            }
        }
        Ok(Applied { failed, left })
    }

    fn usage(&mut self) -> Result<BTreeMap<K, LinkUsage<K>>, LimitError> {
        let limited = self.devices.iter().filter(|(_, links)| !links.is_empty());
        let devices: Vec<String> = limited.map(|(device, _)| device.clone()).collect();
        // Why counters of a device are missing is why its limits are not in force.
        let read = self.limiter.read_all(Some(&devices))?.done;
        let mut usage = BTreeMap::new();
        for (device, links) in &self.devices {
            for reading in read.get(device).into_iter().flatten() {
                let Owner::Link(remote) = reading.owner else {
                    continue;
                };
                let Some(name) = links.get(&remote) else {
                    continue;
                };
                let one = usage.entry(name.clone()).or_insert_with(|| LinkUsage {
                    link: name.clone(),
                    egress: None,
                    ingress: None,
                });
                let counters = Some(reading.counters.into());
                match reading.direction {
                    Direction::Egress => one.egress = counters,
                    Direction::Ingress => one.ingress = counters,
                }
            }
        }
        Ok(usage)
    }
}
