//! Limits by the kernel of this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hawser_bundle::{LimitedLink, LinkInfo};
use hawser_limit::{DeviceLimits, Direction, Limit, LimitError, Limiter, Owner, Remote, Routes};

use crate::limits::{Counters, FailedLinks, Limits, LimitsError, LinkUsage};

/// Limits the links of this machine by HTB. Needs `CAP_NET_ADMIN`.
#[derive(Debug)]
pub struct KernelLimits(Mutex<EnforcerState>);

#[derive(Debug)]
struct EnforcerState {
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
        Ok(Self(Mutex::new(EnforcerState {
            limiter: Limiter::open().map_err(LimitsError::new)?,
            devices: BTreeSet::new(),
            names: BTreeMap::new(),
        })))
    }

    fn state(&self) -> MutexGuard<'_, EnforcerState> {
        // The limiter reads the kernel's state anew where a call was interrupted.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Limits for KernelLimits {
    fn apply(&self, links: &LinkInfo) -> Result<FailedLinks, LimitsError> {
        let mut state = self.state();
        let mut routes = Routes::open().map_err(LimitsError::new)?;
        let now = state.limiter.devices_of_links().map_err(LimitsError::new)?;
        let Wanted {
            mut devices,
            names,
            mut failed,
        } = wanted(links, &now, |address| routes.device_to(address))?;
        let outcome = state.apply(&mut devices)?;
        for (device, error) in outcome {
            if let LimitError::Orphan { .. } = error {
                tracing::warn!("{error}");
            }
            for remote in devices
                .get(&device)
                .into_iter()
                .flat_map(|one| one.links.keys())
            {
                if let Some(name) = names.get(remote) {
                    let reason = || error.to_string();
                    failed.entry(name.clone()).or_insert_with(reason);
                }
            }
        }
        state.names = names;
        Ok(failed)
    }

    fn usage(&self) -> Result<Vec<LinkUsage>, LimitsError> {
        let mut state = self.state();
        let EnforcerState {
            limiter,
            devices,
            names,
        } = &mut *state;
        let mut found: BTreeMap<&str, LinkUsage> = BTreeMap::new();
        let devices: Vec<String> = devices.iter().cloned().collect();
        // Why counters of a device are missing is why its limits are not in force.
        let read = limiter.read_all(Some(&devices)).map_err(LimitsError::new)?;
        for readings in read.done.into_values() {
            for reading in readings {
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
        let failed = self.state().apply(&mut BTreeMap::new())?;
        match failed.is_empty() {
            true => Ok(()),
            false => {
                let failed: Vec<String> = failed.values().map(ToString::to_string).collect();
                Err(LimitsError::new(failed.join("; ")))
            }
        }
    }
}

impl EnforcerState {
    /// Sets the limits of devices, and removes those of others that had some since the start. Returns
    /// the devices that failed, also those that only remain of others.
    fn apply(
        &mut self,
        wanted: &mut BTreeMap<String, DeviceLimits>,
    ) -> Result<BTreeMap<String, LimitError>, LimitsError> {
        for device in &self.devices {
            wanted.entry(device.clone()).or_default();
        }
        self.devices = wanted.keys().cloned().collect();
        // Otherwise what others removed would not be seen.
        self.limiter.is_disturbed().map_err(LimitsError::new)?;
        let mut failed = self.limiter.apply(wanted).map_err(LimitsError::new)?.failed;
        // The kernel removes a device's limits with it, but not the IFB that they had.
        let orphans = self.limiter.remove_orphans().map_err(LimitsError::new)?;
        // A device that is gone has no limits.
        failed.retain(|device, error| {
            let is_gone = matches!(error, LimitError::NoDevice(_) | LimitError::Vanished(_));
            !is_gone || wanted.get(device).is_some_and(|limits| !limits.is_empty())
        });
        // What is left of one limits no link, but it is left.
        failed.extend(orphans.failed);
        Ok(failed)
    }
}

/// What is wanted, as far as devices are known.
#[derive(Debug)]
struct Wanted {
    /// The limits of each device.
    devices: BTreeMap<String, DeviceLimits>,
    /// The names of the links.
    names: BTreeMap<Remote, String>,
    /// The links whose device cannot be found. They keep the limits that they have.
    failed: FailedLinks,
}

/// The limits of each device. `now` has the device on which each link has limits now.
fn wanted<E: fmt::Display>(
    links: &LinkInfo,
    now: &BTreeMap<Remote, String>,
    mut device_to: impl FnMut(IpAddr) -> Result<String, E>,
) -> Result<Wanted, LimitsError> {
    let mut devices: BTreeMap<String, DeviceLimits> = BTreeMap::new();
    let mut names = BTreeMap::new();
    let mut failed = FailedLinks::new();
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
            Some(device) => Ok(device.clone()),
            None => device_to(link.ip),
        };
        let device = match device {
            Ok(device) => device,
            Err(error) => {
                failed.insert(name.clone(), error.to_string());
                match now.get(&remote) {
                    Some(device) => device.clone(),
                    None => continue,
                }
            }
        };
        let on_device = devices.entry(device).or_default();
        on_device.links.insert(remote, limits_of(link));
    }
    Ok(Wanted {
        devices,
        names,
        failed,
    })
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
    use std::process::Command;

    use hawser_kernel::namespace::{NetNs, is_privileged};
    use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

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
        let wanted = wanted(&links, &BTreeMap::new(), on_eth0).unwrap();
        let (wanted, names) = (wanted.devices, wanted.names);
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
        let error = wanted(&links, &BTreeMap::new(), on_eth0);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("links 1 and 2"), "{error}");
    }

    #[test]
    fn a_link_without_a_route_keeps_no_other_from_its_limits() {
        let link = |ip: &str| LimitedLink::new(7, ip.parse().unwrap(), None, Some(8000), None);
        let mut links = LinkInfo::default();
        for (name, ip) in [("1", "10.0.0.1"), ("2", "10.0.0.2"), ("3", "10.0.0.3")] {
            links.0.insert(name.to_owned(), link(ip).unwrap());
        }
        let remote = |ip: &str| Remote {
            address: ip.parse().unwrap(),
            port: None,
        };
        let device_to = |ip: IpAddr| match ip == remote("10.0.0.1").address {
            true => Ok("eth0".to_owned()),
            false => Err("no device leads there"),
        };
        let now = [(remote("10.0.0.3"), "eth1".to_owned())].into();
        let wanted = wanted(&links, &now, device_to).unwrap();
        assert_eq!(wanted.failed.keys().collect::<Vec<_>>(), ["2", "3"]);
        // The third has a limit, and keeps it.
        assert!(
            wanted.devices["eth0"]
                .links
                .contains_key(&remote("10.0.0.1"))
        );
        assert!(
            wanted.devices["eth1"]
                .links
                .contains_key(&remote("10.0.0.3"))
        );
    }

    fn sh(commands: &str) -> String {
        let output = Command::new("sh").args(["-ec", commands]).output().unwrap();
        assert!(output.status.success(), "{commands}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn what_remains_of_a_device_and_stays_keeps_no_other_from_its_limits() {
        if !is_privileged() {
            eprintln!("skipped: needs root");
            return;
        }
        let inside = || {
            sh(
                "ip link add name a type veth peer name b; ip link set dev a up; \
                ip link add name c type veth peer name d; ip link set dev c up",
            );
            let mut links = LinkInfo::default();
            for (name, ip, device) in [("1", "10.0.0.1", "a"), ("2", "10.0.1.1", "c")] {
                let link = LimitedLink::new(7, ip.parse().unwrap(), None, Some(8000), None);
                let mut link = link.unwrap();
                link.device = Some(device.to_owned());
                link.ingress = Some(8000);
                links.0.insert(name.to_owned(), link);
            }
            let limits = KernelLimits::open().unwrap();
            assert!(limits.apply(&links).unwrap().is_empty());
            sh("ip link del dev c");
            links.0.remove("2");
            let all = capabilities(None).unwrap();
            // Without it the kernel refuses to remove a device.
            let fewer = CapabilitySets {
                effective: all.effective - CapabilitySet::NET_ADMIN,
                ..all
            };
            set_capabilities(None, fewer).unwrap();
            let (applied, usage, reset) = (limits.apply(&links), limits.usage(), limits.reset());
            set_capabilities(None, all).unwrap();
            assert!(applied.unwrap().is_empty());
            assert_eq!(usage.unwrap().len(), 1);
            let error = reset.unwrap_err().to_string();
            assert!(error.contains("not allowed to limit a"), "{error}");
            assert!(error.contains("cannot remove hawser"), "{error}");
            // With the right to it, all goes.
            limits.reset().unwrap();
            assert!(!sh("ip link show").contains("hawser"));
        };
        NetNs::create().unwrap().run(inside).unwrap();
    }
}
