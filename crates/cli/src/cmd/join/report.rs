//! What `hawser as join` prints.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use hawser_bundle::{Bundle, Neighbours, Role};
use hawser_node::{Event, Installed};
use hawser_topology::{Interface, IsdAsn, LinkTo, format_rate};
use serde::Serialize;

use crate::cmd::print;
use crate::failure::{Doing, Failure};
use crate::out::{errln, outln, plain};

/// The AS that was joined.
#[derive(Debug, Serialize)]
pub struct Joined {
    isd_as: IsdAsn,
    role: Role,
    label: String,
    version: u64,
    /// The version that the folder had before, if that was another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<u64>,
    folder: PathBuf,
    links: Vec<JoinedLink>,
    routers: Vec<SocketAddr>,
    control: Vec<SocketAddr>,
    coordinator: Option<String>,
    /// Where the segments of the network are expected.
    segments: PathBuf,
}

/// A link of it.
#[derive(Debug, Serialize)]
struct JoinedLink {
    interface: u16,
    to: IsdAsn,
    to_interface: u16,
    /// What the neighbour is to this AS.
    neighbour: &'static str,
    local: SocketAddr,
    remote: SocketAddr,
    /// The name of the far end, whose address replaces `remote` when it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    remote_name: Option<String>,
    /// The limits that this AS keeps, in bit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    egress: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ingress: Option<u64>,
}

impl Joined {
    /// What is in the folder now; its segments are expected at `segments`.
    pub fn new(
        bundle: &Bundle,
        folder: &Path,
        installed: Installed,
        segments: PathBuf,
    ) -> Result<Self, Failure> {
        let (manifest, topology) = bundle.check().doing(folder.display())?;
        let limits = bundle.link_info().doing(folder.display())?;
        let Neighbours(names) = bundle.neighbours().doing(folder.display())?;
        let routers = topology.border_routers.values();
        let interfaces = routers.clone().flat_map(|router| &router.interfaces);
        let links = interfaces.map(|(&id, interface)| {
            let remote = interface.underlay.remote;
            let of_it = |l: &&hawser_bundle::LimitedLink| {
                l.ip == remote.ip() && l.port.is_none_or(|port| port == remote.port())
            };
            let limit = limits.0.values().find(of_it);
            let bits = |kbit: Option<u64>| kbit.map(|kbit| kbit.saturating_mul(1000));
            let both = limit.and_then(|limit| limit.bandwidth);
            JoinedLink {
                interface: id,
                to: interface.isd_as,
                to_interface: interface.remote_id,
                neighbour: neighbour(interface),
                local: interface.underlay.local,
                remote,
                remote_name: names.get(&id).cloned(),
                egress: bits(limit.and_then(|limit| limit.egress).or(both)),
                ingress: bits(limit.and_then(|limit| limit.ingress).or(both)),
            }
        });
        let before = match installed {
            Installed::Replaced { before } => Some(before),
            _ => None,
        };
        Ok(Self {
            isd_as: manifest.isd_as,
            role: manifest.role,
            label: manifest.label,
            version: manifest.version,
            before,
            folder: folder.to_owned(),
            links: links.collect(),
            routers: routers.map(|router| router.internal_addr).collect(),
            control: topology.control_service.values().copied().collect(),
            coordinator: manifest.coordinator.map(|one| one.url),
            segments,
        })
    }

    /// Prints it for people.
    pub fn print(&self) {
        let role = match self.role {
            Role::AttachmentPoint => "attachment point",
            Role::User => "user AS",
        };
        let label = match self.label.as_str() {
            "" => String::new(),
            label => format!(" ({})", plain(label)),
        };
        outln!(
            "{role} {}{label}, version {}, in {}",
            self.isd_as,
            self.version,
            self.folder.display()
        );
        for link in &self.links {
            outln!("  {link}");
        }
        if self.links.is_empty() {
            outln!("  it has no links yet");
        }
        for router in &self.routers {
            outln!("  border router at {router}");
        }
        for control in &self.control {
            outln!("  control service at {control}, daemon at 127.0.0.1:30255");
        }
        match &self.coordinator {
            Some(url) => outln!("  changes come from {}", plain(url)),
            None => outln!(
                "  no coordinator: it stays as it is, and has paths once {} has segments",
                self.segments.display()
            ),
        }
    }
}

fn neighbour(interface: &Interface) -> &'static str {
    match interface.link_to {
        LinkTo::Core => "core",
        LinkTo::Parent => "parent",
        LinkTo::Child => "child",
        LinkTo::Peer => "peer",
    }
}

impl fmt::Display for JoinedLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            interface,
            to,
            neighbour,
            local,
            ..
        } = self;
        let remote = match &self.remote_name {
            Some(name) => plain(name),
            None => self.remote.to_string(),
        };
        write!(f, "#{interface} to {neighbour} {to}: {local} to {remote}")?;
        for (name, rate) in [("out", self.egress), ("in", self.ingress)] {
            if let Some(rate) = rate {
                write!(f, ", {name} at most {}", format_rate(rate))?;
            }
        }
        Ok(())
    }
}

/// Prints an event.
pub fn show(event: &Event, json: bool) -> Result<(), Failure> {
    if json {
        return print::json(event);
    }
    match event {
        Event::Ready { version } => outln!("version {version} is in force"),
        Event::Health { ready: true, .. } => outln!("ready"),
        Event::Health { reasons, .. } => {
            errln!("hawser: not ready: {}", plain(&reasons.join("; ")));
        }
        // The error that a service ends with is shown when it has ended.
        Event::Said { service, line } if !line.starts_with("hawser: ") => {
            errln!("{service}: {}", plain(line));
        }
        Event::Ended {
            service,
            how,
            again_after,
        } => errln!(
            "hawser: the {service} ended: {}; it is started again after {} ms",
            plain(how),
            again_after.as_millis()
        ),
        Event::Changed { version, restart } => {
            let what = if *restart {
                "the services start again"
            } else {
                "limits or links changed, and nothing is interrupted"
            };
            outln!("received version {version}: {what}");
        }
        Event::NeighbourAt { interface, address } => {
            outln!("the neighbour at interface {interface} is at {address}");
        }
        Event::NeighbourUnknown {
            interface,
            name,
            reason,
        } => errln!(
            "hawser: the neighbour at interface {interface}, {}, has no address: {}; this is tried again",
            plain(name),
            plain(reason)
        ),
        Event::Moved { from, to } => {
            outln!(
                "this machine has the address {to}, and {from} no more: the coordinator is told"
            );
        }
        Event::NotMoved { to, reason } => errln!(
            "hawser: the coordinator does not take the address {to}: {}; this is tried again",
            plain(reason)
        ),
        Event::Nothing => {
            outln!("the coordinator has no configuration for this AS now: its services are stopped")
        }
        Event::LimitsFailed { reason } => {
            errln!("hawser: the limits are not in force: {}", plain(reason));
        }
        Event::LinkFailed { link, reason } => errln!(
            "hawser: the limits of link {} are not in force: {}; this is tried again",
            plain(link),
            plain(reason)
        ),
        Event::Coordinator { reason } => errln!("hawser: {}; this is tried again", plain(reason)),
        Event::OtherMachine { address } => errln!(
            "hawser: another machine, at {}, runs this AS too, and both disturb each other: stop `hawser as join` on one of them; if you do not know that machine, have the archive replaced by a new one",
            plain(address)
        ),
        Event::CoordinatorBack => outln!("the coordinator answers again"),
        Event::NotInstalled { reason } => {
            errln!("hawser: a new configuration is not used: {}", plain(reason));
        }
        event => tracing::debug!(?event),
    }
    Ok(())
}
