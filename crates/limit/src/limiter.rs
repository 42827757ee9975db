//! Limits set and read over netlink.

mod execute;
mod read;
mod summary;

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use hawser_kernel::netlink::{Netlink, NetlinkError, Notifications};

use self::read::readings;
pub use self::summary::Summary;
use crate::change::Change;
use crate::error::LimitError;
use crate::htb::Class;
use crate::limit::{Counters, DeviceLimits, Direction, Limit, Owner};
use crate::outcome::Outcome;
use crate::plan::{self, Device};
use crate::state::{Host, KernelState, ROOT_TABLE};
use crate::text::Names;
use crate::wire::decode::{Lists, Reading};
use crate::wire::encode::{Indices, remove_link};

/// `RTMGRP_TC`: changes of traffic control.
const TRAFFIC_CONTROL: u32 = 8;
/// From this number of changes on their reports are not waited for.
const MIN_BATCHED_CHANGES: usize = 256;

/// Sets and reads the limits of devices in a network namespace.
///
/// It remembers the state that it has set, so that a change of one limit among thousands is quick; when
/// somebody else changes traffic control, it reads the kernel's state anew. Only one may set limits of a
/// device at a time.
#[derive(Debug)]
pub struct Limiter {
    netlink: Netlink,
    /// The port of `netlink`, which the kernel's reports of own changes name.
    port: u32,
    /// `None` while no state is remembered.
    reports: Option<Notifications>,
    known: BTreeMap<String, Known>,
    replace: bool,
}

/// The state of a device after the last changes.
#[derive(Debug, Clone)]
struct Known {
    state: KernelState,
    indices: Indices,
    mtu: u32,
    /// The limits that were set last.
    limits: Option<DeviceLimits>,
}

/// The changes that would be made on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plan {
    /// The device.
    pub device: String,
    /// How many limits would be added, changed and removed.
    pub summary: Summary,
    /// The changes as a script of tc(8) and ip(8) commands, with comments.
    pub commands: Vec<String>,
}

/// A limit as it is in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitReading {
    /// Whose it is.
    pub owner: Owner,
    /// In which direction.
    pub direction: Direction,
    /// The rate in bit/s.
    pub rate: u64,
    /// The length of the queue in bytes.
    pub queue: u32,
    /// The counters since it was set up.
    pub counters: Counters,
    /// What it is in the kernel.
    pub(crate) class: (Host, u16, Class),
}

impl Limiter {
    /// Opens sockets to the network namespace of the calling thread. Reading needs no privileges.
    ///
    /// # Errors
    /// [`LimitError::Netlink`].
    pub fn open() -> Result<Self, LimitError> {
        let failed = |error: NetlinkError| LimitError::Netlink(error.into());
        let netlink = Netlink::open().map_err(failed)?;
        Ok(Self {
            port: netlink.port().map_err(LimitError::Netlink)?,
            netlink,
            reports: None,
            known: BTreeMap::new(),
            replace: false,
        })
    }

    /// Has root queueing disciplines that others set replaced where limits need the place. They do not
    /// come back when the limits are removed.
    #[must_use]
    pub fn with_replace(self, replace: bool) -> Self {
        Self { replace, ..self }
    }

    /// What would change so that the devices have these limits.
    ///
    /// # Errors
    /// As [`apply`](Self::apply), but for those of the changes themselves.
    pub fn plan(
        &mut self,
        wanted: &BTreeMap<String, DeviceLimits>,
    ) -> Result<Outcome<Vec<Plan>>, LimitError> {
        let mut outcome = Outcome {
            done: Vec::new(),
            failed: self.learn(wanted.keys())?,
        };
        for (device, limits) in wanted {
            if outcome.failed.contains_key(device) {
                continue;
            }
            match self.changes(device, limits) {
                Ok(changes) => outcome.done.push(self.plan_of(device, &changes)),
                Err(error) => drop(outcome.failed.insert(device.clone(), error)),
            }
        }
        Ok(outcome)
    }

    fn plan_of(&self, device: &str, changes: &[Change]) -> Plan {
        let known = self.known.get(device);
        let names = Names {
            device,
            index: known.map_or(0, |known| known.indices.device),
        };
        let lines = changes.iter().flat_map(|change| {
            let comment = names.comment(change).map(|text| format!("# {text}"));
            comment.into_iter().chain([names.command(change)])
        });
        let nothing = KernelState::default();
        let found = known.map_or(&nothing, |known| &known.state);
        Plan {
            commands: lines.collect(),
            summary: Summary::of(changes, found),
            device: device.to_owned(),
        }
    }

    /// Sets the limits of devices. Others are not touched; a device with no limits in `wanted` is left as
    /// it was before it had any. What already is as wanted is not touched, nor is a packet lost that
    /// waits in the queue of another limit. If it is interrupted half way, the next call completes it.
    ///
    /// A device that fails keeps no other from its limits: it is named in [`Outcome::failed`]. Nothing is
    /// changed there when the device does not exist, a limit is out of bounds, or something that others
    /// set is in the way. When the kernel refuses a change half way, the device gets back what it had
    /// before; what was set up only in part then stays so, and the next call completes it.
    ///
    /// # Errors
    /// When the kernel's state cannot be read.
    pub fn apply(
        &mut self,
        wanted: &BTreeMap<String, DeviceLimits>,
    ) -> Result<Outcome<Summary>, LimitError> {
        let mut outcome = Outcome {
            done: Summary::default(),
            failed: self.learn(wanted.keys())?,
        };
        for (device, limits) in wanted {
            if outcome.failed.contains_key(device) {
                continue;
            }
            match self.apply_to(device, limits) {
                Ok(done) => outcome.done.add(done),
                Err(error) => {
                    // What was in the way is gone the next time, perhaps.
                    self.known.remove(device);
                    outcome.failed.insert(device.clone(), error);
                }
            }
        }
        Ok(outcome)
    }

    fn apply_to(&mut self, device: &str, limits: &DeviceLimits) -> Result<Summary, LimitError> {
        let before = self
            .known
            .get(device)
            .and_then(|known| known.before(device));
        let mut applied = self.apply_once(device, limits);
        if let Err(LimitError::Refused { source, .. }) = &applied
            && source.kind() == io::ErrorKind::AlreadyExists
        {
            // Somebody has removed filters, and left tables that the kernel does not list.
            let removed = self.apply_once(device, &DeviceLimits::default());
            applied = removed.and_then(|_| self.apply_once(device, limits));
        }
        let is_in_part = matches!(
            applied,
            Err(LimitError::Refused { .. } | LimitError::Unsupported { .. })
        );
        if let (true, Some(before)) = (is_in_part, before) {
            // If that fails, too, the next call completes it; the first failure is the reason.
            let _ = self.apply_once(device, &before);
        }
        applied
    }

    fn apply_once(&mut self, device: &str, limits: &DeviceLimits) -> Result<Summary, LimitError> {
        let mut changes = self.changes(device, limits)?;
        if self.lacks_tables(device, &changes) {
            self.known.remove(device);
            changes = self.changes(device, limits)?;
        }
        if changes.is_empty() {
            return Ok(Summary::default());
        }
        let Some(mut known) = self.known.remove(device) else {
            return Ok(Summary::default());
        };
        let done = Summary::of(&changes, &known.state);
        // The kernel reports what it sets up on a new device, and no longer whose request that
        // was; and reports of many changes take longer than the changes.
        let quiet = changes.len() > MIN_BATCHED_CHANGES || changes.iter().any(Change::is_of_ifb);
        if quiet {
            self.reports = None;
        }
        let executed = self.execute(device, &changes, &mut known);
        if quiet {
            self.subscribe()?;
        }
        executed?;
        known.state.apply_all(&changes);
        known.limits = Some(limits.clone());
        self.known.insert(device.to_owned(), known);
        Ok(done)
    }

    /// Has the kernel's state read before the next change, as when the MTU of a device may have changed.
    pub fn forget(&mut self) {
        self.known.clear();
    }

    /// Whether somebody else has changed traffic control since the last call or change.
    ///
    /// # Errors
    /// [`LimitError::Netlink`].
    pub fn is_disturbed(&mut self) -> Result<bool, LimitError> {
        let disturbed = match &self.reports {
            Some(reports) => reports
                .others_than(self.port)
                .map_err(LimitError::Netlink)?,
            None => {
                self.subscribe()?;
                true
            }
        };
        if disturbed {
            self.known.clear();
        }
        Ok(disturbed)
    }

    /// The names of the devices that have limits.
    ///
    /// # Errors
    /// When the kernel's state cannot be read.
    pub fn devices(&mut self) -> Result<Vec<String>, LimitError> {
        let lists = Lists::read(&mut self.netlink)?;
        Ok(lists.limited().map(str::to_owned).collect())
    }

    /// Removes IFBs of devices that are gone, and counts them. One that cannot be removed keeps neither
    /// another from it nor a device from its limits: it is named in [`Outcome::failed`].
    ///
    /// # Errors
    /// When the kernel's state cannot be read.
    pub fn remove_orphans(&mut self) -> Result<Outcome<usize>, LimitError> {
        let lists = Lists::read(&mut self.netlink)?;
        let mut outcome = Outcome::<usize>::default();
        for link in lists.orphans() {
            match self.netlink.raw_batch(&[remove_link(link.index)]) {
                Ok(_) => outcome.done += 1,
                // Somebody else was faster.
                Err((_, error)) if error.refusal() == Some(libc::ENODEV) => {}
                Err((_, source)) => {
                    let name = link.name.clone();
                    let error = LimitError::Orphan {
                        name: name.clone(),
                        source: source.into(),
                    };
                    outcome.failed.insert(name, error);
                }
            }
        }
        Ok(outcome)
    }

    /// Reads the states of devices that are not known. Returns those that cannot be read.
    fn learn<'a>(
        &mut self,
        devices: impl Iterator<Item = &'a String>,
    ) -> Result<BTreeMap<String, LimitError>, LimitError> {
        self.is_disturbed()?;
        let mut failed = BTreeMap::new();
        let mut lists = None;
        for device in devices {
            if self.known.contains_key(device) {
                continue;
            }
            if lists.is_none() {
                lists = Some(Lists::read(&mut self.netlink)?);
            }
            let Some(lists) = &lists else { continue };
            match lists.state(&mut self.netlink, device) {
                Ok(reading) => drop(self.known.insert(device.clone(), reading.into())),
                Err(error) => drop(failed.insert(device.clone(), error)),
            }
        }
        Ok(failed)
    }

    /// The changes for a device, whose state is known afterwards.
    fn changes(&mut self, name: &str, limits: &DeviceLimits) -> Result<Vec<Change>, LimitError> {
        if !self.known.contains_key(name) {
            let lists = Lists::read(&mut self.netlink)?;
            let reading = lists.state(&mut self.netlink, name)?;
            self.known.insert(name.to_owned(), reading.into());
        }
        let Some(known) = self.known.get(name) else {
            return Err(LimitError::NoDevice(name.to_owned()));
        };
        let device = Device {
            name,
            index: known.indices.device,
            mtu: known.mtu,
        };
        let before = known.limits.as_ref();
        let rates =
            before.and_then(|before| plan::plan_rates(device, limits, before, &known.state));
        rates.unwrap_or_else(|| plan::plan(device, limits, &known.state, self.replace))
    }

    fn subscribe(&mut self) -> Result<(), LimitError> {
        let reports = Notifications::subscribe(TRAFFIC_CONTROL);
        self.reports = Some(reports.map_err(|error| LimitError::Netlink(error.into()))?);
        Ok(())
    }

    /// Whether changes need numbers of tables that the kernel has chosen since the state was read.
    fn lacks_tables(&self, device: &str, changes: &[Change]) -> bool {
        let Some(known) = self.known.get(device) else {
            return false;
        };
        changes.iter().any(|change| match change {
            Change::DelNode { point, spot, .. } if spot.table == ROOT_TABLE => {
                let filters = known.state.filters(*point);
                filters.is_none_or(|all| !all.root_tables.contains_key(&spot.preference))
            }
            _ => false,
        })
    }
}

impl Known {
    /// The limits that the device had before a change. `None` if they were set up only in part.
    fn before(&self, device: &str) -> Option<DeviceLimits> {
        if let Some(limits) = &self.limits {
            return Some(limits.clone());
        }
        let readings = readings(device, &self.state, &BTreeMap::new()).ok()?;
        let mut before = DeviceLimits::default();
        for reading in readings {
            let limits = match reading.owner {
                Owner::Link(remote) => before.links.entry(remote).or_default(),
                Owner::Default => &mut before.default,
            };
            let limit = Some(Limit {
                queue: Duration::ZERO,
                least: reading.queue,
                ..Limit::new(reading.rate)
            });
            match reading.direction {
                Direction::Egress => limits.egress = limit,
                Direction::Ingress => limits.ingress = limit,
            }
        }
        Some(before)
    }
}

impl From<Reading> for Known {
    fn from(reading: Reading) -> Self {
        Self {
            state: reading.state,
            indices: reading.indices,
            mtu: reading.mtu,
            limits: None,
        }
    }
}

#[cfg(test)]
impl Limiter {
    /// Makes at most `count` of the changes, as if this process were killed then; returns how many there
    /// are.
    pub(crate) fn apply_part(
        &mut self,
        wanted: &BTreeMap<String, DeviceLimits>,
        count: usize,
    ) -> usize {
        let mut all = 0;
        assert!(self.learn(wanted.keys()).unwrap().is_empty());
        for (device, limits) in wanted {
            let changes = self.changes(device, limits).unwrap();
            all += changes.len();
            let mut known = self.known.remove(device).unwrap();
            let part = &changes[..count.min(changes.len())];
            self.execute(device, part, &mut known).unwrap();
        }
        all
    }

    /// The state that is remembered.
    pub(crate) fn known_state(&self, device: &str) -> KernelState {
        self.known[device].state.clone()
    }

    /// The kernel's state.
    pub(crate) fn found_state(&mut self, device: &str) -> KernelState {
        let lists = Lists::read(&mut self.netlink).unwrap();
        lists.state(&mut self.netlink, device).unwrap().state
    }
}
