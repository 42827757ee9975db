//! Limits set and read over netlink.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use hawser_kernel::netlink::{Netlink, NetlinkError, Notifications};

use crate::change::Change;
use crate::error::{LimitError, reading};
use crate::limit::{Counters, DeviceLimits, Direction, Owner};
use crate::plan::{self, Device, direction_of};
use crate::shape::Shape;
use crate::state::{DEFAULT_CLASS, Host, ROOT_TABLE, State};
use crate::text::Names;
use crate::wire::decode::{Lists, Reading};
use crate::wire::encode::{Indices, ifb_name, remove_link, request};

/// `RTMGRP_TC`: changes of traffic control.
const TRAFFIC_CONTROL: u32 = 8;
/// From this number of changes on their reports are not waited for.
const MANY: usize = 256;
/// Longest wait for the kernel to release a table, and the time between two attempts.
const RELEASE: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(5);

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
    state: State,
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

/// How many limits, each of one direction, were added, changed and removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// New ones.
    pub added: usize,
    /// Those whose rate or queue is another.
    pub changed: usize,
    /// Those that are gone.
    pub removed: usize,
    /// Requests to the kernel; 0 if everything was as wanted.
    pub requests: usize,
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
    ) -> Result<Vec<Plan>, LimitError> {
        let all = self.changes(wanted)?;
        let plan = |(device, changes): (String, Vec<Change>)| {
            let known = self.known.get(&device);
            let names = Names {
                device: &device,
                index: known.map_or(0, |known| known.indices.device),
            };
            let lines = changes.iter().flat_map(|change| {
                let comment = names.comment(change).map(|text| format!("# {text}"));
                comment.into_iter().chain([names.command(change)])
            });
            let nothing = State::default();
            let found = known.map_or(&nothing, |known| &known.state);
            Plan {
                commands: lines.collect(),
                summary: Summary::of(&changes, found),
                device,
            }
        };
        Ok(all.into_iter().map(plan).collect())
    }

    /// Sets the limits of devices. Others are not touched; a device with no limits in `wanted` is left as
    /// it was before it had any. What already is as wanted is not touched, nor is a packet lost that
    /// waits in the queue of another limit. If it is interrupted or fails half way, the next call
    /// completes it.
    ///
    /// # Errors
    /// Before anything is changed: when there is no such device, a limit is out of bounds, or something
    /// that others set is in the way. Afterwards: when the kernel refuses a change, as without
    /// `CAP_NET_ADMIN`.
    pub fn apply(
        &mut self,
        wanted: &BTreeMap<String, DeviceLimits>,
    ) -> Result<Summary, LimitError> {
        match self.apply_once(wanted) {
            Err(LimitError::Refused { source, .. })
                if source.kind() == io::ErrorKind::AlreadyExists =>
            {
                // Somebody has removed filters, and left tables that the kernel does not list.
                let nothing = |name: &String| (name.clone(), DeviceLimits::default());
                self.apply_once(&wanted.keys().map(nothing).collect())?;
                self.apply_once(wanted)
            }
            other => other,
        }
    }

    fn apply_once(
        &mut self,
        wanted: &BTreeMap<String, DeviceLimits>,
    ) -> Result<Summary, LimitError> {
        let mut all = self.changes(wanted)?;
        if all
            .iter()
            .any(|(device, changes)| self.lacks_tables(device, changes))
        {
            self.known.clear();
            all = self.changes(wanted)?;
        }
        let mut summary = Summary::default();
        for (device, changes) in all {
            if changes.is_empty() {
                continue;
            }
            let Some(mut known) = self.known.remove(&device) else {
                continue;
            };
            let done = Summary::of(&changes, &known.state);
            // The kernel reports what it sets up on a new device, and no longer whose request that
            // was; and reports of many changes take longer than the changes.
            let quiet = changes.len() > MANY || changes.iter().any(Change::is_of_ifb);
            if quiet {
                self.reports = None;
            }
            self.execute(&device, &changes, &mut known)?;
            if quiet {
                self.subscribe()?;
            }
            known.state.apply_all(&changes);
            known.limits = wanted.get(&device).cloned();
            self.known.insert(device, known);
            summary.add(done);
        }
        Ok(summary)
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

    /// Removes IFBs of devices that are gone; returns how many there were.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn remove_orphans(&mut self) -> Result<usize, LimitError> {
        let lists = Lists::read(&mut self.netlink)?;
        let mut count = 0;
        for link in lists.orphans() {
            self.netlink
                .raw_batch(&[remove_link(link.index)])
                .map_err(|(_, error)| reading(&link.name, error))?;
            count += 1;
        }
        Ok(count)
    }

    /// The limits of a device, in the order of their owners.
    ///
    /// # Errors
    /// When there is no such device, or its limits are set up only in part.
    pub fn read(&mut self, device: &str) -> Result<Vec<LimitReading>, LimitError> {
        let lists = Lists::read(&mut self.netlink)?;
        let reading = lists.state(&mut self.netlink, device)?;
        let incomplete = || LimitError::Incomplete(device.to_owned());
        let mut limits = Vec::new();
        for (&host, shaper) in &reading.state.shapers {
            let direction = direction_of(host);
            let mut owners: BTreeMap<u16, Owner> = plan::known(direction, &reading.state)
                .into_iter()
                .filter(|(_, place)| place.host == host)
                .map(|(remote, place)| (place.class, Owner::Link(remote)))
                .collect();
            owners.insert(DEFAULT_CLASS, Owner::Default);
            for (minor, class) in &shaper.classes {
                let queue = *shaper.queues.get(minor).ok_or_else(incomplete)?;
                let shape = Shape {
                    class: *class,
                    queue,
                };
                let counters = reading.counters.get(&(host, *minor)).copied();
                limits.push(LimitReading {
                    owner: *owners.get(minor).ok_or_else(incomplete)?,
                    direction,
                    rate: shape.rate(),
                    queue,
                    counters: counters.unwrap_or_default(),
                });
            }
        }
        if reading.state.ifbs.values().any(|ifb| !ifb.ready) {
            return Err(incomplete());
        }
        limits.sort_by_key(|limit| (limit.owner, limit.direction));
        Ok(limits)
    }

    /// The changes for each device, whose state is known afterwards.
    fn changes(
        &mut self,
        wanted: &BTreeMap<String, DeviceLimits>,
    ) -> Result<Vec<(String, Vec<Change>)>, LimitError> {
        self.is_disturbed()?;
        if wanted.keys().any(|device| !self.known.contains_key(device)) {
            let lists = Lists::read(&mut self.netlink)?;
            for device in wanted.keys() {
                if !self.known.contains_key(device) {
                    let reading = lists.state(&mut self.netlink, device)?;
                    self.known.insert(device.clone(), reading.into());
                }
            }
        }
        let planned = wanted.iter().filter_map(|(name, limits)| {
            let known = self.known.get(name)?;
            let device = Device {
                name,
                mtu: known.mtu,
            };
            let before = known.limits.as_ref();
            let rates =
                before.and_then(|before| plan::plan_rates(device, limits, before, &known.state));
            let changes =
                rates.unwrap_or_else(|| plan::plan(device, limits, &known.state, self.replace));
            Some(changes.map(|changes| (name.clone(), changes)))
        });
        planned.collect()
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

    fn execute(
        &mut self,
        device: &str,
        changes: &[Change],
        known: &mut Known,
    ) -> Result<(), LimitError> {
        // Tables that are released one by one, and IFBs, whose numbers the kernel chooses, need a look
        // at each answer.
        let alone = |change: &Change| match change {
            Change::AddIfb(_) | Change::DelTable { .. } => true,
            Change::DelPreference { .. } => {
                let is_table = |other: &Change| matches!(other, Change::DelTable { .. });
                changes.iter().any(is_table)
            }
            _ => false,
        };
        let mut rest = changes;
        while let Some(first) = rest.first() {
            let count = match alone(first) {
                true => 1,
                false => rest.iter().take_while(|change| !alone(change)).count(),
            };
            let (batch, later) = rest.split_at(count);
            rest = later;
            self.send(device, batch, known, alone(first))?;
            if let Change::AddIfb(ifb) = first {
                let name = ifb_name(known.indices.device, *ifb);
                let found = self.netlink.interface(&name);
                let found = found.map_err(|error| reading(&name, error))?;
                let found = found.ok_or(LimitError::NoDevice(name))?;
                known.indices.ifbs.insert(*ifb, found.index);
            }
        }
        Ok(())
    }

    fn send(
        &mut self,
        device: &str,
        batch: &[Change],
        known: &Known,
        alone: bool,
    ) -> Result<(), LimitError> {
        let request = |change| request(change, device, &known.indices, &known.state);
        let requests: Vec<_> = batch.iter().map(request).collect();
        let start = std::time::Instant::now();
        loop {
            let Err((at, error)) = self.netlink.raw_batch(&requests) else {
                return Ok(());
            };
            let may_be_gone = alone && !matches!(batch.first(), Some(Change::AddIfb(_)));
            match error.refusal() {
                // With its last filter the kernel may have removed the preference, and all tables.
                Some(libc::ENOENT | libc::EINVAL) if may_be_gone => return Ok(()),
                Some(libc::EBUSY) if may_be_gone && start.elapsed() < RELEASE => {
                    std::thread::sleep(AGAIN);
                }
                _ => {
                    let names = Names {
                        device,
                        index: known.indices.device,
                    };
                    return Err(failed(device, batch.get(at), &names, error));
                }
            }
        }
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

impl Summary {
    /// What `changes` do to `found`.
    fn of(changes: &[Change], found: &State) -> Self {
        let mut summary = Self {
            requests: changes.len(),
            ..Self::default()
        };
        let classes = |host| found.shapers.get(&host).map_or(0, |one| one.classes.len());
        let mut put = None;
        for change in changes {
            match *change {
                Change::PutClass {
                    host, minor, new, ..
                } => {
                    put = Some((host, minor));
                    match new {
                        true => summary.added += 1,
                        false => summary.changed += 1,
                    }
                }
                Change::PutQueue { host, minor, .. } if put != Some((host, minor)) => {
                    summary.changed += 1;
                }
                Change::DelClass { .. } => summary.removed += 1,
                Change::DelRoot(host) => summary.removed += classes(host),
                Change::DelIfb(ifb) => summary.removed += classes(Host::Ifb(ifb)),
                _ => {}
            }
        }
        summary
    }

    fn add(&mut self, other: Self) {
        self.added += other.added;
        self.changed += other.changed;
        self.removed += other.removed;
        self.requests += other.requests;
    }
}

/// The error of a change that the kernel refused.
fn failed(
    device: &str,
    change: Option<&Change>,
    names: &Names<'_>,
    error: NetlinkError,
) -> LimitError {
    let source = match error {
        NetlinkError::Refused(source) => source,
        other => return reading(device, other),
    };
    let unsupported = |what, module| LimitError::Unsupported { what, module };
    match (source.raw_os_error(), change) {
        (_, _) if source.kind() == io::ErrorKind::PermissionDenied => {
            LimitError::Denied(device.to_owned())
        }
        (Some(libc::ENODEV | libc::ENXIO), _) => LimitError::Vanished(device.to_owned()),
        (Some(libc::EOPNOTSUPP), Some(Change::AddIfb(_))) => unsupported("IFB devices", "ifb"),
        (Some(libc::ENOENT), Some(Change::AddRoot(_))) => unsupported("HTB", "sch_htb"),
        (Some(libc::ENOENT), Some(Change::AddIngress)) => {
            unsupported("ingress queueing discipline", "sch_ingress")
        }
        (Some(libc::ENOENT), Some(Change::AddTable { .. })) => {
            unsupported("u32 classifier", "cls_u32")
        }
        (_, change) => LimitError::Refused {
            change: change.map_or_else(|| device.to_owned(), |change| names.command(change)),
            source,
        },
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
        for (device, changes) in self.changes(wanted).unwrap() {
            all += changes.len();
            let mut known = self.known.remove(&device).unwrap();
            let part = &changes[..count.min(changes.len())];
            self.execute(&device, part, &mut known).unwrap();
        }
        all
    }

    /// The state that is remembered.
    pub(crate) fn known_state(&self, device: &str) -> State {
        self.known[device].state.clone()
    }

    /// The kernel's state.
    pub(crate) fn found_state(&mut self, device: &str) -> State {
        let lists = Lists::read(&mut self.netlink).unwrap();
        lists.state(&mut self.netlink, device).unwrap().state
    }
}
