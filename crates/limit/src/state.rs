//! The kernel's state of a device, as far as limits are concerned.
//!
//! ```text
//! device ── root: HTB 4857: ── filters ──> classes, each with a queue        (egress)
//!        └─ ingress ── filters ──> redirect to an IFB
//! IFB ──── root: HTB 4857: ── filters ──> classes, each with a queue         (ingress)
//! ```
//!
//! What does not fit on the device's own HTB ([`HOST_CAPACITY`]) is redirected to IFBs, too.

use std::collections::{BTreeMap, BTreeSet};

use crate::htb::Class;
use crate::limit::Direction;

/// The major number of hawser's HTBs. `tc` prints `4857:` (HW in ASCII).
pub(crate) const ROOT: u16 = 0x4857;
/// The minor number of the class of all other traffic.
pub(crate) const DEFAULT_CLASS: u16 = 0xfffe;
/// The highest minor number of a link's class. Its queue has that number as its major number, which must
/// differ from [`ROOT`].
pub(crate) const LAST_CLASS: u16 = 0x3fff;
/// Most classes under one HTB. For each new class the kernel goes through all the others, so that 4,000
/// under one HTB take eight times as long as under sixteen (`tc_bind_tclass` in `net/sched/sch_api.c`).
pub(crate) const HOST_CAPACITY: usize = 256;
/// Most IFBs for each direction.
pub(crate) const IFBS: u8 = 64;
/// Most links of a device.
pub const MAX_LINKS: usize = HOST_CAPACITY * IFBS as usize;

/// What has an HTB for links of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Host {
    /// The device itself, for what it sends.
    Device,
    /// One of its IFBs: 1 to [`IFBS`] for what it receives, the next [`IFBS`] numbers for what it
    /// sends.
    Ifb(u8),
}

/// The direction whose links a host has.
pub(crate) fn direction_of(host: Host) -> Direction {
    match host {
        Host::Ifb(ifb) if ifb <= IFBS => Direction::Ingress,
        Host::Device | Host::Ifb(_) => Direction::Egress,
    }
}

/// Where packets are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Point {
    /// At an HTB.
    Root(Host),
    /// Where the device has received them.
    Ingress,
}

/// The root queueing discipline of a device or IFB.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Root {
    /// The kernel's default.
    #[default]
    Free,
    /// Hawser's HTB.
    Htb,
    /// One that hawser did not set.
    Foreign { kind: String, handle: u32 },
}

/// An HTB and what is below it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Shaper {
    pub root: Root,
    pub classes: BTreeMap<u16, Class>,
    /// Lengths in bytes of the queues of classes, as far as hawser set them.
    pub queues: BTreeMap<u16, u32>,
    pub filters: Filters,
}

/// The place of a filter in a hash table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Spot {
    /// The preference: in which order filters are tried.
    pub preference: u16,
    /// The table; [`ROOT_TABLE`] for the one with which a preference begins.
    pub table: u16,
    pub bucket: u8,
}

/// The table with which a preference begins.
pub(crate) const ROOT_TABLE: u16 = 0;

/// A comparison of 32 bits of a packet, in network order, with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub mask: u32,
    pub value: u32,
    /// Offset in bytes from the begin of the IP header.
    pub at: i32,
}

/// What happens with packets that a filter matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Then {
    /// The search goes on in a bucket of another table, which the bits `mask` at `at` give.
    Table { table: u16, mask: u32, at: i32 },
    /// They belong to this class.
    Class(u16),
    /// They are redirected to an IFB.
    Redirect(u8),
    /// Something that hawser does not set.
    Other,
}

/// A filter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Filter {
    /// All of these must match.
    pub keys: Vec<Key>,
    pub then: Then,
}

/// The filters of a point, with hawser's preferences.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Filters {
    /// Preferences with any filter.
    pub preferences: BTreeSet<u16>,
    /// Tables, each with the preference that it belongs to.
    pub tables: BTreeMap<u16, u16>,
    /// Filters by place and number there.
    pub nodes: BTreeMap<(Spot, u16), Filter>,
    /// The kernel's numbers of the tables with which preferences begin, as far as known.
    pub root_tables: BTreeMap<u16, u32>,
    /// A filter of others with a preference or a table of hawser's.
    pub in_the_way: Option<ForeignFilter>,
}

/// A filter that hawser did not set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForeignFilter {
    pub kind: String,
    pub preference: u16,
}

/// The ingress queueing discipline of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ingress {
    /// Whether there are filters that hawser did not set.
    pub foreign_filters: bool,
}

/// An IFB of a device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Ifb {
    /// Whether it is up, and has its alias.
    pub ready: bool,
    /// Whether its alias says that hawser created the device's ingress queueing discipline.
    pub made_ingress: bool,
}

/// The state of a device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct KernelState {
    pub shapers: BTreeMap<Host, Shaper>,
    pub ifbs: BTreeMap<u8, Ifb>,
    /// Numbers of IFBs whose names devices of others have.
    pub foreign_ifbs: BTreeSet<u8>,
    pub ingress: Option<Ingress>,
    pub ingress_filters: Filters,
}

impl KernelState {
    pub fn filters(&self, point: Point) -> Option<&Filters> {
        match point {
            Point::Ingress => Some(&self.ingress_filters),
            Point::Root(host) => self.shapers.get(&host).map(|shaper| &shaper.filters),
        }
    }
}

impl Filters {
    /// Whether any filter leads to this class.
    pub fn has_class(&self, class: u16) -> bool {
        self.nodes
            .values()
            .any(|node| node.then == Then::Class(class))
    }
}
