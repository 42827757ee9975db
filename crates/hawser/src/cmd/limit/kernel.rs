//! Limits of a coordinator's links as kernel state of this machine.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hawser_coordinator::{Counters, EnforceError, EnforcedLink, Enforcer, LinkId, LinkUsage};
use hawser_limit::{
    DeviceLimits, Direction, Limit, LimitError, LimitReading, Limiter, Limits, Owner, Remote,
    Routes,
};

/// The kernel of this machine.
pub struct Kernel(Mutex<Inner>);

struct Inner {
    limiter: Limiter,
    /// The limits of all other traffic on devices of links.
    default: Limits,
    /// Which links are limited where.
    devices: BTreeMap<String, BTreeMap<Remote, LinkId>>,
}

impl Kernel {
    /// Opens the kernel's traffic control; `replace` has what others set replaced,
    /// `default` is the limit of all other traffic on devices of links, in bit/s.
    pub fn open(replace: bool, default: Option<u64>) -> Result<Self, LimitError> {
        Ok(Self(Mutex::new(Inner {
            limiter: Limiter::open()?.with_replace(replace),
            default: default
                .map(Limit::new)
                .map(Limits::both)
                .unwrap_or_default(),
            devices: BTreeMap::new(),
        })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        let mut inner = self.0.lock().unwrap_or_else(|poisoned| {
            // What the limiter remembers may be of the middle of a change.
            let mut inner = PoisonError::into_inner(poisoned);
            inner.limiter.forget();
            inner
        });
        // What others changed in the meantime is seen by reading all anew.
        if !matches!(inner.limiter.is_disturbed(), Ok(false)) {
            inner.limiter.forget();
        }
        inner
    }
}

impl Enforcer for Kernel {
    fn enforce(&self, links: &[EnforcedLink]) -> Result<(), EnforceError> {
        let failed = |error: &dyn std::fmt::Display| EnforceError(error.to_string());
        let mut inner = self.inner();
        let mut routes = Routes::open().map_err(|error| failed(&error))?;
        let mut wanted: BTreeMap<String, DeviceLimits> = BTreeMap::new();
        let mut devices: BTreeMap<String, BTreeMap<Remote, LinkId>> = BTreeMap::new();
        let mut problem = None;
        for link in links {
            let device = match &link.device {
                Some(device) => Ok(device.clone()),
                None => routes.device_to(link.ip),
            };
            let device = match device {
                Ok(device) => device,
                // A link without a device does not keep others from having their limits.
                Err(error) => {
                    problem.get_or_insert(EnforceError(format!("link {}: {error}", link.link)));
                    continue;
                }
            };
            let remote = Remote {
                address: link.ip,
                port: link.port,
            };
            let limits = Limits {
                egress: link.limits.egress.map(Limit::new),
                ingress: link.limits.ingress.map(Limit::new),
            };
            let on_device = wanted.entry(device.clone()).or_default();
            on_device.default = inner.default;
            on_device.links.insert(remote, limits);
            let on_device = devices.entry(device).or_default();
            on_device.insert(remote, link.link);
        }
        // Devices without links any more are left as they were before.
        let limited = inner.limiter.devices().map_err(|error| failed(&error))?;
        for device in limited {
            wanted.entry(device).or_default();
        }
        inner
            .limiter
            .remove_orphans()
            .map_err(|error| failed(&error))?;
        inner
            .limiter
            .apply(&wanted)
            .map_err(|error| failed(&error))?;
        inner.devices = devices;
        problem.map_or(Ok(()), Err)
    }

    fn usage(&self) -> Result<Vec<LinkUsage>, EnforceError> {
        let mut inner = self.inner();
        let inner = &mut *inner;
        let mut usage: BTreeMap<LinkId, LinkUsage> = BTreeMap::new();
        for (device, links) in &inner.devices {
            let readings = inner.limiter.read(device);
            let readings = readings.map_err(|error| EnforceError(error.to_string()))?;
            for reading in readings {
                add(&mut usage, links, &reading);
            }
        }
        Ok(usage.into_values().collect())
    }
}

fn add(
    usage: &mut BTreeMap<LinkId, LinkUsage>,
    links: &BTreeMap<Remote, LinkId>,
    reading: &LimitReading,
) {
    let Owner::Link(remote) = reading.owner else {
        return;
    };
    let Some(&link) = links.get(&remote) else {
        return;
    };
    let one = usage.entry(link).or_insert(LinkUsage {
        link,
        egress: None,
        ingress: None,
    });
    let counters = Some(Counters {
        bytes: reading.counters.bytes,
        packets: reading.counters.packets,
        drops: reading.counters.drops.into(),
        backlog: reading.counters.backlog.into(),
    });
    match reading.direction {
        Direction::Egress => one.egress = counters,
        Direction::Ingress => one.ingress = counters,
    }
}
