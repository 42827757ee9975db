//! Changes as commands of tc(8) and ip(8).

use std::borrow::Cow;
use std::fmt::Write;

use crate::change::Change;
use crate::htb;
use crate::layout::{Version, version};
use crate::quote::quoted;
use crate::state::{DEFAULT_CLASS, Host, Point, ROOT, ROOT_TABLE, Spot, Then, direction_of};
use crate::wire::encode::{IFB_QUEUE, ifb_alias, ifb_name};

/// A device, as commands name it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names<'a> {
    pub device: &'a str,
    /// The kernel's number of the device.
    pub index: u32,
}

impl Names<'_> {
    fn device(&self) -> Cow<'_, str> {
        quoted(self.device)
    }

    fn host(&self, host: Host) -> String {
        match host {
            Host::Device => self.device().into_owned(),
            Host::Ifb(ifb) => self.ifb(ifb),
        }
    }

    fn ifb(&self, ifb: u8) -> String {
        ifb_name(self.index, ifb)
    }

    /// A place of filters, as tc(8) takes it.
    pub fn point(&self, point: Point) -> String {
        match point {
            Point::Ingress => format!("dev {} ingress", self.device()),
            Point::Root(host) => format!("dev {} parent {ROOT:x}:", self.host(host)),
        }
    }

    /// A change as a command that has the same effect.
    pub fn command(&self, change: &Change) -> String {
        match *change {
            Change::AddIfb(ifb) => format!(
                "ip link add {} txqueuelen {IFB_QUEUE} numtxqueues 1 numrxqueues 1 type ifb",
                self.ifb(ifb)
            ),
            Change::PrepareIfb { ifb, made_ingress } => format!(
                "ip link set {} up txqueuelen {IFB_QUEUE} alias {}",
                self.ifb(ifb),
                quoted(&ifb_alias(self.device, made_ingress))
            ),
            Change::DelIfb(ifb) => format!("ip link del {}", self.ifb(ifb)),
            Change::DelForeignRoot(host) | Change::DelRoot(host) => {
                format!("tc qdisc del dev {} root", self.host(host))
            }
            Change::AddRoot(host) => format!(
                "tc qdisc add dev {} root handle {ROOT:x}: htb default {DEFAULT_CLASS:x}",
                self.host(host)
            ),
            Change::PutClass {
                host,
                minor,
                class,
                new,
                ..
            } => {
                let verb = if new { "add" } else { "change" };
                format!(
                    "tc class {verb} dev {} parent {ROOT:x}: classid {ROOT:x}:{minor:x} htb \
                     rate {}bit ceil {}bit burst {} cburst {} quantum {}",
                    self.host(host),
                    class.rate.saturating_mul(8),
                    class.ceil.saturating_mul(8),
                    htb::bytes(class.burst, class.rate),
                    htb::bytes(class.ceil_burst, class.ceil),
                    class.quantum
                )
            }
            Change::DelClass { host, minor } => format!(
                "tc class del dev {} classid {ROOT:x}:{minor:x}",
                self.host(host)
            ),
            Change::PutQueue { host, minor, bytes } => format!(
                "tc qdisc replace dev {} parent {ROOT:x}:{minor:x} handle {minor:x}: bfifo \
                 limit {bytes}",
                self.host(host)
            ),
            Change::AddIngress => format!("tc qdisc add dev {} ingress", self.device()),
            Change::DelIngress => format!("tc qdisc del dev {} ingress", self.device()),
            Change::AddTable {
                point,
                preference,
                table,
            } => format!(
                "tc filter add {} handle {table:x}: u32 divisor 256",
                self.filters(point, preference)
            ),
            Change::DelTable {
                point,
                preference,
                table,
            } => format!(
                "tc filter del {} handle {table:x}: u32",
                self.filters(point, preference)
            ),
            Change::PutNode {
                point,
                spot,
                number,
                ref filter,
                new,
            } => {
                let verb = if new { "add" } else { "replace" };
                let mut text = format!(
                    "tc filter {verb} {} handle {} u32",
                    self.filters(point, spot.preference),
                    node(spot, number)
                );
                if spot.table != ROOT_TABLE {
                    let _ = write!(text, " ht {:x}:{:x}:", spot.table, spot.bucket);
                }
                for key in &filter.keys {
                    let (value, mask, at) = (key.value, key.mask, key.at);
                    let _ = write!(text, " match u32 {value:#010x} {mask:#010x} at {at}");
                }
                text + &self.then(filter.then)
            }
            Change::DelNode {
                point,
                spot,
                number,
            } => format!(
                "tc filter del {} handle {} u32",
                self.filters(point, spot.preference),
                node(spot, number)
            ),
            Change::DelPreference { point, preference } => {
                format!("tc filter del {}", self.filters(point, preference))
            }
        }
    }

    fn filters(&self, point: Point, preference: u16) -> String {
        let protocol = match version(preference) {
            Version::V4 => "ip",
            Version::V6 => "ipv6",
        };
        format!(
            "{} protocol {protocol} pref {preference}",
            self.point(point)
        )
    }

    fn then(&self, then: Then) -> String {
        match then {
            Then::Table { table, mask, at } => {
                format!(" link {table:x}: hashkey mask {mask:#010x} at {at}")
            }
            Then::Class(minor) => format!(" flowid {ROOT:x}:{minor:x}"),
            Then::Redirect(ifb) => format!(
                " flowid {ROOT:x}: action mirred egress redirect dev {}",
                self.ifb(ifb)
            ),
            Then::Other => String::new(),
        }
    }

    /// What a change is about, where its command does not say.
    pub fn comment(&self, change: &Change) -> Option<String> {
        match change {
            Change::PutClass {
                host, class, owner, ..
            } => {
                let direction = direction_of(*host);
                Some(format!("{owner}, {direction}: {} bit/s", class.rate * 8))
            }
            _ => None,
        }
    }
}

fn node(spot: Spot, number: u16) -> String {
    match spot.table {
        ROOT_TABLE => format!("::{number:x}"),
        table => format!("{table:x}:{:x}:{number:x}", spot.bucket),
    }
}
