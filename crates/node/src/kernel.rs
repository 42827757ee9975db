//! Limits by the kernel of this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hawser_bundle::{LimitedLink, LinkInfo};
use hawser_limit::{DeviceLimits, Direction, Limit, Limiter, Owner, Remote, Routes};

use crate::limits::{Counters, Limits, LimitsError, LinkUsage};

/// Limits the links of this machine by HTB. Needs `CAP_NET_ADMIN`.
#[derive(Debug)]
pub struct KernelLimits(Mutex<State>);

#[derive(Debug)]
struct State {
    limiter: Limiter,
    /// The devices that have had limits since the start.
    devices: BTreeSet<String>,
    /// The names of the limited links.
    names: BTreeMap<Remote, String>,
}

impl KernelLimits {
    /// Limits links in the network namespace of the calling thread.
    ///
    /// # Errors
    /// When the kernel cannot be talked to.
    pub fn open() -> Result<Self, LimitsError> {
        Ok(Self(Mutex::new(State {
            limiter: Limiter::open().map_err(LimitsError::new)?,
            devices: BTreeSet::new(),
            names: BTreeMap::new(),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The limiter reads the kernel's state anew where a call was interrupted.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Limits for KernelLimits {
    fn apply(&self, links: &LinkInfo) -> Result<(), LimitsError> {
        let mut state = self.state();
        let mut routes = Routes::open().map_err(LimitsError::new)?;
        let (mut wanted, names) = wanted(links, |address| routes.device_to(address))?;
        for device in &state.devices {
            wanted.entry(device.clone()).or_default();
        }
        state.devices = wanted.keys().cloned().collect();
        state.names = names;
        // Otherwise what others removed would not be seen.
        state.limiter.is_disturbed().map_err(LimitsError::new)?;
        state.limiter.apply(&wanted).map_err(LimitsError::new)?;
        Ok(())
    }

    fn usage(&self) -> Result<Vec<LinkUsage>, LimitsError> {
        let mut state = self.state();
        let State {
            limiter,
            devices,
            names,
        } = &mut *state;
        let mut found: BTreeMap<&str, LinkUsage> = BTreeMap::new();
        for device in devices.iter() {
            for reading in limiter.read(device).map_err(LimitsError::new)? {
                let Owner::Link(remote) = reading.owner else {
                    continue;
                };
                let Some(name) = names.get(&remote) else {
                    continue;
                };
                let counters = Counters {
                    bytes: reading.counters.bytes,
                    packets: reading.counters.packets,
                    drops: reading.counters.drops.into(),
                    backlog: reading.counters.backlog.into(),
                };
                let usage = found.entry(name).or_insert_with(|| LinkUsage {
                    link: name.clone(),
                    egress: None,
                    ingress: None,
                });
                match reading.direction {
                    Direction::Egress => usage.egress = Some(counters),
                    Direction::Ingress => usage.ingress = Some(counters),
                }
            }
        }
        Ok(found.into_values().collect())
    }

    fn reset(&self) -> Result<(), LimitsError> {
        self.apply(&LinkInfo::default())
    }
}

/// The limits of each device.
type Wanted = BTreeMap<String, DeviceLimits>;

/// The limits of each device, and the names of the links.
fn wanted<E: fmt::Display>(
    links: &LinkInfo,
    mut device_to: impl FnMut(IpAddr) -> Result<String, E>,
) -> Result<(Wanted, BTreeMap<Remote, String>), LimitsError> {
    let mut wanted = Wanted::new();
    let mut names = BTreeMap::new();
    for (name, link) in &links.0 {
        let remote = Remote {
            address: link.ip,
            port: link.port,
        };
        if let Some(other) = names.insert(remote, name.clone()) {
            return Err(LimitsError::new(format_args!(
                "links {other} and {name} have the same address {remote}"
            )));
        }
        let device = match &link.device {
            Some(device) => device.clone(),
            None => device_to(link.ip)
                .map_err(|error| LimitsError::new(format_args!("link {name}: {error}")))?,
        };
        let limits = limits_of(link);
        wanted
            .entry(device)
            .or_default()
            .links
            .insert(remote, limits);
    }
    Ok((wanted, names))
}

fn limits_of(link: &LimitedLink) -> hawser_limit::Limits {
    let limit = |kbit: Option<u64>| {
        let kbit = kbit.or(link.bandwidth);
        kbit.map(|kbit| Limit::new(kbit.saturating_mul(1000)))
    };
    hawser_limit::Limits {
        egress: limit(link.egress),
        ingress: limit(link.ingress),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn on_eth0(_: IpAddr) -> Result<String, Infallible> {
        Ok("eth0".to_owned())
    }

    #[test]
    fn links_become_limits_of_their_devices() {
        let mut links = LinkInfo::default();
        let mut add = |name: &str, ip: &str, port, egress, ingress| {
            let link = LimitedLink::new(7, ip.parse().unwrap(), port, egress, ingress);
            links.0.insert(name.to_owned(), link.unwrap());
        };
        add("1", "127.0.0.1", Some(50000), Some(500_000), Some(500_000));
        add("2", "127.0.0.1", Some(50001), None, Some(0));
        let (wanted, names) = wanted(&links, on_eth0).unwrap();
        assert_eq!(wanted.keys().collect::<Vec<_>>(), ["eth0"]);
        let remote = |port| Remote {
            address: "127.0.0.1".parse().unwrap(),
            port: Some(port),
        };
        let both = hawser_limit::Limits::both(Limit::new(500_000));
        assert_eq!(wanted["eth0"].links[&remote(50000)], both);
        let nothing = wanted["eth0"].links[&remote(50001)];
        assert_eq!(
            (nothing.egress, nothing.ingress),
            (None, Some(Limit::new(0)))
        );
        assert_eq!(names[&remote(50001)], "2");
    }

    #[test]
    fn links_that_cannot_be_told_apart_are_refused() {
        let link = LimitedLink::new(7, "127.0.0.1".parse().unwrap(), None, Some(8000), None);
        let link = link.unwrap();
        let links = LinkInfo([("1".to_owned(), link.clone()), ("2".to_owned(), link)].into());
        let error = wanted(&links, on_eth0).unwrap_err().to_string();
        assert!(error.contains("links 1 and 2"), "{error}");
        let no_route = |_| Err::<String, _>("no device leads there");
        let error = wanted(&links, no_route).unwrap_err().to_string();
        assert_eq!(error, "link 1: no device leads there");
    }
}
