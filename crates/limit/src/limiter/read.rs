//! The kernel's state as limits.

use std::collections::{BTreeMap, BTreeSet};

use super::{LimitReading, Limiter};
use crate::error::LimitError;
use crate::limit::{Counters, Direction, Owner, Remote};
use crate::outcome::Outcome;
use crate::plan;
use crate::shape::Shape;
use crate::state::{DEFAULT_CLASS, Host, KernelState, direction_of};
use crate::wire::decode::{Lists, classes};

impl Limiter {
    /// The limits of a device, in the order of their owners.
    ///
    /// # Errors
    /// When there is no such device, or its limits are set up only in part.
    pub fn read(&mut self, device: &str) -> Result<Vec<LimitReading>, LimitError> {
        let lists = Lists::read(&mut self.netlink)?;
        let reading = lists.state(&mut self.netlink, device)?;
        readings(device, &reading.state, &reading.counters)
    }

    /// The limits of several devices, each in the order of their owners: of those named, or of all that
    /// have any.
    ///
    /// # Errors
    /// When the kernel's state cannot be read. What fails on one device alone is in
    /// [`Outcome::failed`].
    pub fn read_all(
        &mut self,
        devices: Option<&[String]>,
    ) -> Result<Outcome<BTreeMap<String, Vec<LimitReading>>>, LimitError> {
        let lists = Lists::read(&mut self.netlink)?;
        let names: Vec<String> = match devices {
            Some(devices) => devices.to_vec(),
            None => lists.limited().map(str::to_owned).collect(),
        };
        let mut outcome = Outcome::<BTreeMap<_, _>>::default();
        for name in names {
            let state = lists.state(&mut self.netlink, &name);
            match state.and_then(|one| readings(&name, &one.state, &one.counters)) {
                Ok(readings) => drop(outcome.done.insert(name, readings)),
                Err(error) => drop(outcome.failed.insert(name, error)),
            }
        }
        Ok(outcome)
    }

    /// Reads the counters of limits again, which is much faster than to read the limits: what leads to
    /// them is not looked at. Returns whether they are still there, and the only ones where they are:
    /// otherwise their counters are not known, and the limits are to be read again.
    ///
    /// # Errors
    /// When the kernel's state cannot be read.
    pub fn read_counters(
        &mut self,
        limits: &mut BTreeMap<String, Vec<LimitReading>>,
    ) -> Result<bool, LimitError> {
        let lists = Lists::links(&mut self.netlink)?;
        for (name, limits) in limits {
            let hosts: BTreeSet<Host> = limits.iter().map(|limit| limit.class.0).collect();
            let mut found = BTreeMap::new();
            for host in hosts {
                let Some(index) = lists.index(name, host) else {
                    return Ok(false);
                };
                for (minor, class, counters) in classes(&mut self.netlink, name, index)? {
                    found.insert((host, minor), (class, counters));
                }
            }
            if found.len() != limits.len() {
                return Ok(false);
            }
            for limit in limits {
                let (host, minor, class) = limit.class;
                match found.get(&(host, minor)) {
                    Some((same, counters)) if *same == class => limit.counters = *counters,
                    _ => return Ok(false),
                }
            }
        }
        Ok(true)
    }

    /// The device on which each link has limits now. Devices whose state cannot be read are left out.
    ///
    /// # Errors
    /// When the kernel's state cannot be read.
    pub fn devices_of_links(&mut self) -> Result<BTreeMap<Remote, String>, LimitError> {
        let lists = Lists::read(&mut self.netlink)?;
        let mut devices = BTreeMap::new();
        for name in lists.limited() {
            let Ok(reading) = lists.state(&mut self.netlink, name) else {
                continue;
            };
            for direction in [Direction::Egress, Direction::Ingress] {
                let links = plan::known(direction, &reading.state).into_iter();
                devices.extend(links.map(|(remote, _)| (remote, name.to_owned())));
            }
        }
        Ok(devices)
    }
}

/// The limits that the state of a device has.
pub(super) fn readings(
    device: &str,
    state: &KernelState,
    counters: &BTreeMap<(Host, u16), Counters>,
) -> Result<Vec<LimitReading>, LimitError> {
    let incomplete = || LimitError::Incomplete(device.to_owned());
    let mut owners: BTreeMap<(Host, u16), Owner> = BTreeMap::new();
    for direction in [Direction::Egress, Direction::Ingress] {
        let links = plan::known(direction, state).into_iter();
        owners.extend(links.map(|(to, place)| ((place.host, place.class), Owner::Link(to))));
    }
    let mut limits = Vec::new();
    for (&host, shaper) in &state.shapers {
        for (&minor, &class) in &shaper.classes {
            let queue = *shaper.queues.get(&minor).ok_or_else(incomplete)?;
            let owner = match minor {
                DEFAULT_CLASS => Owner::Default,
                _ => *owners.get(&(host, minor)).ok_or_else(incomplete)?,
            };
            limits.push(LimitReading {
                owner,
                direction: direction_of(host),
                rate: Shape { class, queue }.rate(),
                queue,
                counters: counters.get(&(host, minor)).copied().unwrap_or_default(),
                class: (host, minor, class),
            });
        }
    }
    if state.ifbs.values().any(|ifb| !ifb.ready) {
        return Err(incomplete());
    }
    limits.sort_by_key(|limit| (limit.owner, limit.direction));
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::{DeviceLimits, Limit, Limits};
    use crate::plan::{Device, VISITS, plan};

    /// How many filters are looked at to read the limits of `count` links.
    fn visits(count: u32) -> usize {
        let remote = |i: u32| Remote {
            address: (0x0a01_0000 + i).to_be_bytes().into(),
            port: None,
        };
        let limits = Limits::both(Limit::new(1_000_000));
        let wanted = DeviceLimits {
            links: (0..count).map(|i| (remote(i), limits)).collect(),
            default: Limits::default(),
        };
        let device = Device {
            name: "a",
            index: 7,
            mtu: 1500,
        };
        let mut state = KernelState::default();
        let changes = plan(device, &wanted, &state, false).unwrap();
        state.apply_all(&changes);
        VISITS.set(0);
        let read = readings("a", &state, &BTreeMap::new()).unwrap();
        assert_eq!(read.len(), 2 * count as usize);
        VISITS.get()
    }

    #[test]
    fn each_filter_is_looked_at_once() {
        for count in [500, 1000, 4000] {
            // Those of the links, and some that lead to tables.
            let visits = visits(count);
            assert!(
                visits <= 3 * count as usize,
                "{visits} filters for {count} links"
            );
        }
    }
}
