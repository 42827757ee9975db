//! From the limits that are wanted and the kernel's state: what to change.

mod filters;
mod place;

use std::collections::{BTreeMap, BTreeSet};

#[cfg(test)]
pub(crate) use self::place::VISITS;
pub(crate) use self::place::known;
use self::place::{Place, places};
use crate::change::Change;
use crate::error::LimitError;
use crate::htb::Class;
use crate::layout::Layout;
use crate::limit::{DeviceLimits, Direction, Limits, Owner, Remote};
use crate::shape::Shape;
use crate::state::{
    DEFAULT_CLASS, Filters, Host, KernelState, Point, Root, Shaper, Then, direction_of,
};
use crate::text::Names;
use crate::wire::encode::ifb_name;

/// The IFB whose default class has what the device receives of other traffic.
const DEFAULT_IFB: u8 = 1;

/// A device, as far as limits depend on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Device<'a> {
    pub name: &'a str,
    /// The kernel's number.
    pub index: u32,
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
    found: &KernelState,
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
        plan.filters(device, Point::Root(host), &layout)?;
    }
    let rest = ingress.default.map(|_| Then::Redirect(DEFAULT_IFB));
    if !ingress.is_empty() || !plan.remove_ingress(classes.keys()) {
        plan.filters(device, Point::Ingress, &ingress.layout(rest))?;
    }
    plan.remove_filters();
    plan.remove(&classes);
    Ok(plan.changes)
}

/// The changes for limits whose rates or queues alone differ from those of `before`, which the device has:
/// the same links, with limits in the same directions. `None` if more differs. So that a change of one
/// limit takes no longer among thousands.
pub(crate) fn plan_rates(
    device: Device<'_>,
    wanted: &DeviceLimits,
    before: &DeviceLimits,
    found: &KernelState,
) -> Option<Result<Vec<Change>, LimitError>> {
    let both = |limits: &Limits| (limits.egress.is_some(), limits.ingress.is_some());
    let same = |a: &Limits, b: &Limits| both(a) == both(b);
    if wanted.links.len() != before.links.len() || !same(&wanted.default, &before.default) {
        return None;
    }
    let mut changes = Vec::new();
    let links = wanted.links.iter().zip(&before.links);
    let links = links.map(|((a, now), (b, old))| (Owner::Link(*a), Owner::Link(*b), now, old));
    let default = (
        Owner::Default,
        Owner::Default,
        &wanted.default,
        &before.default,
    );
    for (owner, other, now, old) in links.chain([default]) {
        if owner != other || !same(now, old) {
            return None;
        }
        for direction in [Direction::Egress, Direction::Ingress] {
            let (Some(limit), true) = (now.of(direction), now.of(direction) != old.of(direction))
            else {
                continue;
            };
            let place = match owner {
                Owner::Link(remote) => place::place(direction, remote, found)?,
                Owner::Default => default_place(direction),
            };
            let shape = match Shape::new(&limit, device.mtu, device.name, owner) {
                Ok(shape) => shape,
                Err(error) => return Some(Err(error)),
            };
            let shaper = found.shapers.get(&place.host)?;
            let now = shaper.classes.get(&place.class)?;
            let queue = shaper.queues.get(&place.class);
            changes.extend(class(place, shape, owner, Some(now), queue));
        }
    }
    Some(Ok(changes))
}

/// The class of all other traffic.
fn default_place(direction: Direction) -> Place {
    let host = match direction {
        Direction::Egress => Host::Device,
        Direction::Ingress => Host::Ifb(DEFAULT_IFB),
    };
    Place {
        host,
        class: DEFAULT_CLASS,
    }
}

impl Wanted {
    fn new(
        device: Device<'_>,
        wanted: &DeviceLimits,
        found: &KernelState,
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
            let place = default_place(wanted.direction);
            all.entry(place.host)
                .or_default()
                .insert(place.class, (shape, Owner::Default));
        }
    }
    // Links that are redirected to IFBs are looked up on the device.
    if !egress.is_empty() {
        all.entry(Host::Device).or_default();
    }
    all
}

/// A plan in the making.
struct Plan<'a> {
    found: &'a KernelState,
    /// HTBs that are created anew, with nothing below them.
    renewed: BTreeSet<Host>,
    changes: Vec<Change>,
    /// Removals of filters, which come after all additions.
    removals: Vec<Change>,
}

impl<'a> Plan<'a> {
    fn new(found: &'a KernelState) -> Self {
        Self {
            found,
            renewed: BTreeSet::new(),
            changes: Vec::new(),
            removals: Vec::new(),
        }
    }

    fn change(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// What a host has; `None` if its HTB is missing, or is created anew.
    fn shaper(&self, host: Host) -> Option<&'a Shaper> {
        let shaper = self.found.shapers.get(&host)?;
        (shaper.root == Root::Htb && !self.renewed.contains(&host)).then_some(shaper)
    }

    /// Creates what is missing of IFBs and HTBs.
    fn hosts<'b>(
        &mut self,
        device: Device<'_>,
        hosts: impl Iterator<Item = &'b Host> + Clone,
        has_ingress: bool,
        replace: bool,
    ) -> Result<(), LimitError> {
        let made_ingress = match self.found.ingress {
            Some(_) => self.made_ingress(),
            None => has_ingress,
        };
        for &host in hosts.clone() {
            let Host::Ifb(ifb) = host else { continue };
            let now = self.found.ifbs.get(&ifb);
            if self.found.foreign_ifbs.contains(&ifb) {
                return Err(LimitError::ForeignDevice {
                    device: device.name.to_owned(),
                    name: ifb_name(device.index, ifb),
                });
            }
            if now.is_none() {
                self.change(Change::AddIfb(ifb));
            }
            if now.is_none_or(|now| !now.ready || now.made_ingress != made_ingress) {
                self.change(Change::PrepareIfb { ifb, made_ingress });
            }
        }
        for &host in hosts {
            let found = self.found.shapers.get(&host);
            match found.map(|shaper| (&shaper.root, &shaper.filters)) {
                Some((Root::Htb, has)) if filters::are_possible(direction_of(host), has) => {
                    continue;
                }
                // Set by another version of hawser.
                Some((Root::Htb, _)) => self.change(Change::DelRoot(host)),
                None | Some((Root::Free, _)) => {}
                Some((Root::Foreign { kind, handle }, _)) => {
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
            self.renewed.insert(host);
        }
        Ok(())
    }

    fn classes(&mut self, host: Host, wanted: &Classes) {
        let found = self.shaper(host);
        for (&minor, &(shape, owner)) in wanted {
            let now = found.and_then(|found| found.classes.get(&minor));
            let queue = found.and_then(|found| found.queues.get(&minor));
            let place = Place { host, class: minor };
            self.changes.extend(class(place, shape, owner, now, queue));
        }
    }

    fn filters(
        &mut self,
        device: Device<'_>,
        point: Point,
        wanted: &Layout,
    ) -> Result<(), LimitError> {
        let direction = match point {
            Point::Ingress => Direction::Ingress,
            Point::Root(host) => direction_of(host),
        };
        let none = Filters::default();
        let found = match point {
            Point::Ingress => &self.found.ingress_filters,
            Point::Root(host) => self.shaper(host).map_or(&none, |shaper| &shaper.filters),
        };
        if let (Some(other), false) = (&found.in_the_way, wanted.nodes.is_empty()) {
            let names = Names {
                device: device.name,
                index: device.index,
            };
            return Err(LimitError::ForeignFilter {
                device: device.name.to_owned(),
                kind: other.kind.clone(),
                preference: other.preference,
                point: names.point(point),
            });
        }
        let ingress = self.found.ingress;
        let foreign =
            point == Point::Ingress && ingress.is_some_and(|ingress| ingress.foreign_filters);
        let found = match filters::are_possible(direction, found) {
            true => found,
            false => {
                // Set by another version of hawser.
                self.changes.extend(filters::clear(point, found));
                &none
            }
        };
        let (additions, removals) = filters::difference(point, found, wanted, foreign);
        self.changes.extend(additions);
        self.removals.extend(removals);
        Ok(())
    }

    fn made_ingress(&self) -> bool {
        self.found.ifbs.values().any(|ifb| ifb.made_ingress)
    }

    /// Removes the ingress queueing discipline, and what IFBs that stay say of it; returns whether hawser
    /// created it and nobody else uses it.
    fn remove_ingress<'b>(&mut self, hosts: impl Iterator<Item = &'b Host>) -> bool {
        let ingress = self.found.ingress;
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
        let removals = std::mem::take(&mut self.removals);
        self.changes.extend(removals.into_iter().rev());
    }

    /// Removes the classes, HTBs and IFBs that nobody needs.
    fn remove(&mut self, wanted: &BTreeMap<Host, Classes>) {
        for (&host, shaper) in &self.found.shapers {
            match (host, wanted.get(&host)) {
                (_, Some(_)) if self.renewed.contains(&host) => {}
                (_, Some(classes)) => {
                    let gone = shaper
                        .classes
                        .keys()
                        .filter(|&minor| !classes.contains_key(minor));
                    self.changes
                        .extend(gone.map(|&minor| Change::DelClass { host, minor }));
                }
                (Host::Device, None) if shaper.root == Root::Htb => {
                    self.changes.push(Change::DelRoot(host));
                }
                (Host::Device, None) => {}
                (Host::Ifb(ifb), None) => self.changes.push(Change::DelIfb(ifb)),
            }
        }
    }
}

/// What to change in a class and its queue.
fn class(
    place: Place,
    shape: Shape,
    owner: Owner,
    now: Option<&Class>,
    queue: Option<&u32>,
) -> impl Iterator<Item = Change> {
    let Place { host, class: minor } = place;
    let put_class = now.is_none_or(|now| !now.is_like(&shape.class));
    let put_class = put_class.then_some(Change::PutClass {
        host,
        minor,
        class: shape.class,
        owner,
        new: now.is_none(),
    });
    let put_queue = (queue != Some(&shape.queue)).then_some(Change::PutQueue {
        host,
        minor,
        bytes: shape.queue,
    });
    put_class.into_iter().chain(put_queue)
}

#[cfg(test)]
mod tests;
