//! From the limits that are wanted and the kernel's state: what to change.

mod filters;
mod place;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use self::place::known;
use self::place::{Place, places};
use crate::change::Change;
use crate::error::LimitError;
use crate::layout::Layout;
use crate::limit::{DeviceLimits, Direction, Owner, Remote};
use crate::shape::Shape;
use crate::state::{DEFAULT_CLASS, Host, Point, Root, Shaper, State, Then};

/// The IFB whose default class has what the device receives of other traffic.
const DEFAULT_IFB: u8 = 1;

/// A device, as far as limits depend on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Device<'a> {
    pub name: &'a str,
    /// Longest packet in bytes, without the Ethernet header.
    pub mtu: u32,
}

/// What is wanted in one direction, in the kernel's units.
struct Wanted {
    direction: Direction,
    links: BTreeMap<Remote, Shape>,
    default: Option<Shape>,
    places: BTreeMap<Remote, Place>,
}

/// The wanted classes of an HTB.
type Classes = BTreeMap<u16, (Shape, Owner)>;

/// The changes after which `device`, whose state is `found`, has the limits `wanted`. What already is as
/// wanted is not touched; what hawser did not set is removed only if `replace` is set, and only where
/// hawser's must be. If only some of the changes are made, the changes planned then lead to the same.
///
/// # Errors
/// When a limit is out of bounds, there are too many links, or something is in the way.
pub(crate) fn plan(
    device: Device<'_>,
    wanted: &DeviceLimits,
    found: &State,
    replace: bool,
) -> Result<Vec<Change>, LimitError> {
    let egress = Wanted::new(device, wanted, found, Direction::Egress)?;
    let ingress = Wanted::new(device, wanted, found, Direction::Ingress)?;
    let mut plan = Plan::new(found);
    let classes = classes(&egress, &ingress);
    plan.hosts(device, classes.keys(), !ingress.is_empty(), replace)?;
    for (&host, classes) in &classes {
        plan.classes(host, classes);
    }
    if !ingress.is_empty() && found.ingress.is_none() {
        plan.change(Change::AddIngress);
    }
    for &host in classes.keys().rev() {
        let layout = match host {
            Host::Device => egress.layout(None),
            Host::Ifb(_) => egress.layout_of(host, &ingress),
        };
        plan.filters(Point::Root(host), &layout);
    }
    let rest = ingress.default.map(|_| Then::Redirect(DEFAULT_IFB));
    if !ingress.is_empty() || !plan.remove_ingress(classes.keys()) {
        plan.filters(Point::Ingress, &ingress.layout(rest));
    }
    plan.remove_filters();
    plan.remove(&classes);
    Ok(plan.changes)
}

impl Wanted {
    fn new(
        device: Device<'_>,
        wanted: &DeviceLimits,
        found: &State,
        direction: Direction,
    ) -> Result<Self, LimitError> {
        let shape = |limit, owner| Shape::new(&limit, device.mtu, device.name, owner);
        let mut links = BTreeMap::new();
        for (&remote, limits) in &wanted.links {
            if let Some(limit) = limits.of(direction) {
                links.insert(remote, shape(limit, Owner::Link(remote))?);
            }
        }
        let default = wanted.default.of(direction);
        let default = default.map(|limit| shape(limit, Owner::Default));
        let remotes: BTreeSet<Remote> = links.keys().copied().collect();
        let places = places(direction, &remotes, found);
        Ok(Self {
            direction,
            default: default.transpose()?,
            places: places.ok_or_else(|| LimitError::TooMany {
                device: device.name.to_owned(),
                links: remotes.len(),
            })?,
            links,
        })
    }

    fn is_empty(&self) -> bool {
        self.links.is_empty() && self.default.is_none()
    }

    /// The filters at the point that all packets of the direction reach.
    fn layout(&self, rest: Option<Then>) -> Layout {
        let then = |place: &Place| match (self.direction, place.host) {
            (Direction::Egress, Host::Device) => Then::Class(place.class),
            (Direction::Ingress, Host::Device) => Then::Other,
            (_, Host::Ifb(ifb)) => Then::Redirect(ifb),
        };
        let links = self.places.iter().map(|(&to, place)| (to, then(place)));
        Layout::new(self.direction, &links.collect(), rest)
    }

    /// The filters of an IFB, which is of this direction or of the other.
    fn layout_of(&self, host: Host, other: &Self) -> Layout {
        let of = match direction_of(host) {
            direction if direction == self.direction => self,
            _ => other,
        };
        let here = of.places.iter().filter(|(_, place)| place.host == host);
        let links = here.map(|(&to, place)| (to, Then::Class(place.class)));
        Layout::new(of.direction, &links.collect(), None)
    }
}

/// The direction whose links a host has.
pub(crate) fn direction_of(host: Host) -> Direction {
    match host {
        Host::Ifb(ifb) if ifb <= crate::state::IFBS => Direction::Ingress,
        Host::Device | Host::Ifb(_) => Direction::Egress,
    }
}

/// The wanted classes of each HTB that is needed.
fn classes(egress: &Wanted, ingress: &Wanted) -> BTreeMap<Host, Classes> {
    let mut all: BTreeMap<Host, Classes> = BTreeMap::new();
    for wanted in [egress, ingress] {
        for (remote, place) in &wanted.places {
            let class = (wanted.links[remote], Owner::Link(*remote));
            all.entry(place.host)
                .or_default()
                .insert(place.class, class);
        }
        if let Some(shape) = wanted.default {
            let host = match wanted.direction {
                Direction::Egress => Host::Device,
                Direction::Ingress => Host::Ifb(DEFAULT_IFB),
            };
            all.entry(host)
                .or_default()
                .insert(DEFAULT_CLASS, (shape, Owner::Default));
        }
    }
    // Links that are redirected to IFBs are looked up on the device.
    if !egress.is_empty() {
        all.entry(Host::Device).or_default();
    }
    all
}

/// A plan in the making.
struct Plan {
    changes: Vec<Change>,
    /// Removals of filters, which come after all additions.
    removals: Vec<Change>,
    /// The state after the changes so far.
    state: State,
}

impl Plan {
    fn new(found: &State) -> Self {
        Self {
            changes: Vec::new(),
            removals: Vec::new(),
            state: found.clone(),
        }
    }

    fn change(&mut self, change: Change) {
        let applied = self.state.apply(&change);
        debug_assert!(applied.is_ok(), "{change:?}: {applied:?}");
        self.changes.push(change);
    }

    /// Creates what is missing of IFBs and HTBs.
    fn hosts<'a>(
        &mut self,
        device: Device<'_>,
        hosts: impl Iterator<Item = &'a Host> + Clone,
        has_ingress: bool,
        replace: bool,
    ) -> Result<(), LimitError> {
        let made_ingress = match self.state.ingress {
            Some(_) => self.made_ingress(),
            None => has_ingress,
        };
        for &host in hosts.clone() {
            let Host::Ifb(ifb) = host else { continue };
            if !self.state.ifbs.contains_key(&ifb) {
                self.change(Change::AddIfb(ifb));
            }
            let now = &self.state.ifbs[&ifb];
            if !now.ready || now.made_ingress != made_ingress {
                self.change(Change::PrepareIfb { ifb, made_ingress });
            }
        }
        for &host in hosts {
            let found = self.state.shapers.get(&host);
            match found.map(|shaper| &shaper.root) {
                Some(Root::Htb) => {
                    if !self.is_possible(host) {
                        self.change(Change::DelRoot(host));
                        self.change(Change::AddRoot(host));
                    }
                    continue;
                }
                None | Some(Root::Free) => {}
                Some(Root::Foreign { kind, handle }) => {
                    if host == Host::Device && !replace {
                        return Err(LimitError::Foreign {
                            device: device.name.to_owned(),
                            kind: kind.clone(),
                            handle: *handle,
                        });
                    }
                    self.change(Change::DelForeignRoot(host));
                }
            }
            self.change(Change::AddRoot(host));
        }
        Ok(())
    }

    /// Whether the filters of an HTB are such as hawser sets today.
    fn is_possible(&self, host: Host) -> bool {
        let shaper = self.state.shapers.get(&host);
        shaper.is_none_or(|shaper| filters::are_possible(direction_of(host), &shaper.filters))
    }

    fn classes(&mut self, host: Host, wanted: &Classes) {
        let empty = Shaper::default();
        let found = self.state.shapers.get(&host).unwrap_or(&empty).clone();
        for (&minor, &(Shape { class, queue }, owner)) in wanted {
            let now = found.classes.get(&minor);
            if now.is_none_or(|now| !now.is_like(&class)) {
                self.change(Change::PutClass {
                    host,
                    minor,
                    class,
                    owner,
                    new: now.is_none(),
                });
            }
            if found.queues.get(&minor) != Some(&queue) {
                let bytes = queue;
                self.change(Change::PutQueue { host, minor, bytes });
            }
        }
    }

    fn filters(&mut self, point: Point, wanted: &Layout) {
        let direction = match point {
            Point::Ingress => Direction::Ingress,
            Point::Root(host) => direction_of(host),
        };
        let found = self.state.filters(point).cloned().unwrap_or_default();
        let foreign = point == Point::Ingress
            && self
                .state
                .ingress
                .is_some_and(|ingress| ingress.foreign_filters);
        if filters::are_possible(direction, &found) {
            let (additions, removals) = filters::difference(point, &found, wanted, foreign);
            additions.into_iter().for_each(|change| self.change(change));
            self.removals.extend(removals);
        } else {
            // Set by another version of hawser.
            for change in filters::clear(point, &found) {
                self.change(change);
            }
            let (additions, _) = filters::difference(point, &Default::default(), wanted, foreign);
            additions.into_iter().for_each(|change| self.change(change));
        }
    }

    fn made_ingress(&self) -> bool {
        self.state.ifbs.values().any(|ifb| ifb.made_ingress)
    }

    /// Removes the ingress queueing discipline, and what IFBs that stay say of it; returns whether hawser
    /// created it and nobody else uses it.
    fn remove_ingress<'a>(&mut self, hosts: impl Iterator<Item = &'a Host>) -> bool {
        let ingress = self.state.ingress;
        if !self.made_ingress() || ingress.is_none_or(|ingress| ingress.foreign_filters) {
            return false;
        }
        self.change(Change::DelIngress);
        for &host in hosts {
            if let Host::Ifb(ifb) = host {
                let made_ingress = false;
                self.change(Change::PrepareIfb { ifb, made_ingress });
            }
        }
        true
    }

    /// Removes filters that nobody needs: first those that redirect.
    fn remove_filters(&mut self) {
        for change in std::mem::take(&mut self.removals).into_iter().rev() {
            self.change(change);
        }
    }

    /// Removes the classes, HTBs and IFBs that nobody needs.
    fn remove(&mut self, wanted: &BTreeMap<Host, Classes>) {
        let found = self.state.clone();
        for (&host, shaper) in &found.shapers {
            match (host, wanted.get(&host)) {
                (_, Some(classes)) => {
                    for &minor in shaper.classes.keys() {
                        if !classes.contains_key(&minor) {
                            self.change(Change::DelClass { host, minor });
                        }
                    }
                }
                (Host::Device, None) if shaper.root == Root::Htb => {
                    self.change(Change::DelRoot(host));
                }
                (Host::Device, None) => {}
                (Host::Ifb(ifb), None) => self.change(Change::DelIfb(ifb)),
            }
        }
    }
}

#[cfg(test)]
mod tests;
