//! Limits of a coordinator's links as kernel state of this machine.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hawser_coordinator::{
    Counters, EnforceError, EnforcedLink, Enforcer, FailedLinks, LinkId, LinkUsage,
};
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
    fn enforce(&self, links: &[EnforcedLink]) -> Result<FailedLinks, EnforceError> {
        let mut inner = self.inner();
        enforce(&mut inner, links).map_err(|error| EnforceError(error.to_string()))
    }

    fn usage(&self) -> Result<Vec<LinkUsage>, EnforceError> {
        let mut inner = self.inner();
        let inner = &mut *inner;
        let devices: Vec<String> = inner.devices.keys().cloned().collect();
        let read = inner.limiter.read_all(Some(&devices));
        // Why counters of a device are missing is why its limits are not in force.
        let read = read.map_err(|error| EnforceError(error.to_string()))?.done;
        let mut usage: BTreeMap<LinkId, LinkUsage> = BTreeMap::new();
        for (device, links) in &inner.devices {
            for reading in read.get(device).into_iter().flatten() {
                add(&mut usage, links, reading);
            }
        }
        Ok(usage.into_values().collect())
    }
}

fn enforce(inner: &mut Inner, links: &[EnforcedLink]) -> Result<FailedLinks, LimitError> {
    let mut routes = Routes::open()?;
    let mut wanted: BTreeMap<String, DeviceLimits> = BTreeMap::new();
    let mut devices: BTreeMap<String, BTreeMap<Remote, LinkId>> = BTreeMap::new();
    let mut failed = FailedLinks::new();
    // Where links have limits now; read for the first link without a route.
    let mut now = None;
    for link in links {
        let remote = Remote {
            address: link.ip,
            port: link.port,
        };
        let device = match &link.device {
            Some(device) => Ok(device.clone()),
            None => routes.device_to(link.ip),
        };
        let device = match device {
            Ok(device) => device,
            Err(error) => {
                failed.insert(link.link, error.to_string());
                if now.is_none() {
                    now = Some(inner.limiter.devices_of_links()?);
                }
                // Without a route it keeps its limit where it is.
                match now.as_ref().and_then(|now| now.get(&remote)) {
                    Some(device) => device.clone(),
                    None => continue,
                }
            }
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
    for device in inner.limiter.devices()? {
        wanted.entry(device).or_default();
    }
    for error in inner.limiter.remove_orphans()?.failed.values() {
        tracing::warn!("{error}");
    }
    let outcome = inner.limiter.apply(&wanted)?;
    for (device, error) in &outcome.failed {
        for link in devices.get(device).into_iter().flat_map(BTreeMap::values) {
            failed.entry(*link).or_insert_with(|| error.to_string());
        }
        if !devices.contains_key(device) {
            tracing::error!("limits are left on a device without links: {error}");
        }
    }
    inner.devices = devices;
    Ok(failed)
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
