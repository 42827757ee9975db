//! Links that are added and removed.

use std::collections::BTreeSet;
use std::net::IpAddr;

use hawser_topology::IsdAsn;
use serde::Deserialize;
use utoipa::ToSchema;

use super::Coordinator;
use super::ases::{NewAttachmentPoint, NewUserAs, add_attachment_point, add_user_as, check_device};
use super::edit_link::{record_all, record_maximum, unknown};
use crate::access::{Action, Actor, allows};
use crate::change::ChangeKind;
use crate::describe::{self, Address, Device, IsdAs};
use crate::emulation::{Emulation, check_time};
use crate::error::ChangeError;
use crate::limits::Limits;
use crate::link::{CoreLink, Link, LinkEnd, LinkId};
use crate::state::State;

/// A link to be added.
///
/// What is not given of its ends is chosen: the next free interface number, an address that both ends
/// have one of the family of, and the next free UDP port. An end whose AS has no address stays without.
#[derive(Debug, Clone, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewLink {
    /// The attachment point.
    #[schema(value_type = IsdAs)]
    pub attachment_point: IsdAsn,
    /// The user AS.
    #[schema(value_type = IsdAs)]
    pub user_as: IsdAsn,
    /// The user AS's address for the link, if it is not one of that AS.
    #[serde(default)]
    #[schema(value_type = Option<Address>)]
    pub ip: Option<IpAddr>,
    /// Its UDP port.
    #[serde(default)]
    #[schema(maximum = 65535)]
    pub port: Option<u16>,
    /// The attachment point's network interface, if it is not that of the machine's route.
    #[serde(default)]
    #[schema(value_type = Option<Device>)]
    pub device: Option<String>,
    /// Longest wait of a packet in the queue of each limit, in microseconds, up to an hour; 50 ms and at
    /// least 256 KiB when not given.
    #[serde(default)]
    #[schema(maximum = 3600000000u64)]
    pub queue_us: Option<u64>,
    /// Added delay in each direction, in microseconds, up to an hour.
    #[serde(default)]
    #[schema(maximum = 3600000000u64)]
    pub delay_us: u64,
    /// Largest difference of a packet's delay from that, above or below, in microseconds, up to an hour.
    #[serde(default)]
    #[schema(maximum = 3600000000u64)]
    pub jitter_us: u64,
    /// Fraction of packets lost in each direction, 0 to 1.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1)]
    pub loss: f64,
    /// What an administrator allows.
    #[serde(default)]
    pub maximum: Limits,
    /// What the user wants.
    #[serde(default)]
    pub limit: Limits,
}

/// A link between two attachment points to be added.
#[derive(Debug, Clone, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewCoreLink {
    /// The attachment points.
    #[schema(schema_with = describe::two_ases)]
    pub ends: [IsdAsn; 2],
    /// Added delay in each direction, in microseconds, up to an hour.
    #[serde(default)]
    #[schema(maximum = 3600000000u64)]
    pub delay_us: u64,
    /// Largest difference of a packet's delay from that, above or below, in microseconds, up to an hour.
    #[serde(default)]
    #[schema(maximum = 3600000000u64)]
    pub jitter_us: u64,
    /// Fraction of packets lost in each direction, 0 to 1.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1)]
    pub loss: f64,
}

impl NewLink {
    fn emulation(&self) -> Emulation {
        Emulation {
            delay_us: self.delay_us,
            jitter_us: self.jitter_us,
            loss: self.loss,
        }
    }
}

impl NewCoreLink {
    /// A link without delay, jitter and loss.
    #[must_use]
    pub const fn new(ends: [IsdAsn; 2]) -> Self {
        Self {
            ends,
            delay_us: 0,
            jitter_us: 0,
            loss: 0.0,
        }
    }

    fn emulation(&self) -> Emulation {
        Emulation {
            delay_us: self.delay_us,
            jitter_us: self.jitter_us,
            loss: self.loss,
        }
    }
}

/// An AS's addresses for links, and its first port for them.
fn router(state: &State, isd_as: IsdAsn) -> Result<(&[IpAddr], u16), ChangeError> {
    let attachment_point = state.attachment_points.get(&isd_as);
    let router = attachment_point.map(|one| (&*one.addresses, one.first_port));
    let user_as = state.user_ases.get(&isd_as);
    let router = router.or_else(|| user_as.map(|one| (&*one.addresses, one.first_port)));
    router.ok_or_else(|| ChangeError::Unknown(format!("AS {isd_as}")))
}

/// All ends of links in an AS.
fn ends(state: &State, isd_as: IsdAsn) -> impl Iterator<Item = LinkEnd> {
    let ends = state.link_ends_of(isd_as).flatten();
    ends.filter(move |end| end.isd_as == isd_as)
}

/// The next free end of a link in an AS, at `ip`.
pub(super) fn end(
    state: &State,
    isd_as: IsdAsn,
    ip: Option<IpAddr>,
    port: Option<u16>,
) -> Result<LinkEnd, ChangeError> {
    let (_, first_port) = router(state, isd_as)?;
    let taken: Vec<LinkEnd> = ends(state, isd_as).collect();
    let interfaces: BTreeSet<u16> = taken.iter().filter_map(|end| end.interface).collect();
    let full = || ChangeError::Conflict(format!("{isd_as} has no free interface"));
    let interface = (1..=u16::MAX).find(|number| !interfaces.contains(number));
    let interface = interface.ok_or_else(full)?;
    let at_ip = taken.iter().filter(|end| end.ip == ip);
    let ports: BTreeSet<u16> = at_ip.filter_map(|end| end.port).collect();
    let port = match (ip, port) {
        (Some(ip), Some(port)) if ports.contains(&port) => {
            return Err(ChangeError::Conflict(format!(
                "{isd_as} has a link at UDP port {port} of {ip} already"
            )));
        }
        (_, Some(port)) => Some(port),
        (None, None) => None,
        (Some(ip), None) => {
            let full = || ChangeError::Conflict(format!("{isd_as} has no free UDP port at {ip}"));
            let free = (first_port..=u16::MAX).find(|port| !ports.contains(port));
            Some(free.ok_or_else(full)?)
        }
    };
    Ok(LinkEnd {
        isd_as,
        interface: Some(interface),
        ip,
        port,
        mtu: None,
    })
}

/// An address of each AS, both of one family; IPv6 where both have it.
fn addresses(one: &[IpAddr], other: &[IpAddr]) -> Option<(IpAddr, IpAddr)> {
    [IpAddr::is_ipv6 as fn(&IpAddr) -> bool, IpAddr::is_ipv4]
        .into_iter()
        .find_map(|family| {
            let of = |ips: &[IpAddr]| ips.iter().copied().find(family);
            of(one).zip(of(other))
        })
}

/// An address of each of two ASes, both of one family.
///
/// # Errors
/// [`ChangeError`] when there is no such AS, or they have none.
pub(super) fn common_addresses(
    state: &State,
    one: IsdAsn,
    other: IsdAsn,
) -> Result<(IpAddr, IpAddr), ChangeError> {
    let chosen = addresses(router(state, one)?.0, router(state, other)?.0);
    chosen.ok_or_else(|| no_common_address(one, other))
}

fn no_common_address(one: IsdAsn, other: IsdAsn) -> ChangeError {
    ChangeError::Conflict(format!(
        "{one} and {other} have no addresses of one family: give both an IPv4 or an IPv6 address"
    ))
}

/// The addresses of a link's two ends, as far as they are known.
fn underlay(state: &State, new: &NewLink) -> Result<(Option<IpAddr>, Option<IpAddr>), ChangeError> {
    let (here, _) = router(state, new.attachment_point)?;
    let (there, _) = router(state, new.user_as)?;
    let there = match &new.ip {
        Some(ip) => std::slice::from_ref(ip),
        None => there,
    };
    if here.is_empty() || there.is_empty() {
        return Ok((here.first().copied(), there.first().copied()));
    }
    match addresses(here, there) {
        Some((here, there)) => Ok((Some(here), Some(there))),
        None => Err(no_common_address(new.attachment_point, new.user_as)),
    }
}

/// Two links of one AS whose packets look alike there cannot have limits of their own: checks that none of
/// those that it may limit has the far end `far`.
pub(super) fn check_far_end(
    state: &State,
    isd_as: IsdAsn,
    far: &LinkEnd,
) -> Result<(), ChangeError> {
    let Some(ip) = far.ip else {
        return Ok(());
    };
    // A link without a port has the packets of all other ports.
    let mut limited = state.limited_far_ends(isd_as);
    let alike = limited.find(|(_, other)| other.ip == Some(ip) && other.port == far.port);
    match alike {
        None => Ok(()),
        Some((id, _)) => Err(ChangeError::Conflict(format!(
            "link {id} has the address {ip} too: give each of them a UDP port of its own"
        ))),
    }
}

fn add_link(
    state: &mut State,
    changes: &mut Vec<ChangeKind>,
    new: NewLink,
) -> Result<Link, ChangeError> {
    if !state.attachment_points.contains_key(&new.attachment_point) {
        let which = format!("attachment point {}", new.attachment_point);
        return Err(ChangeError::Unknown(which));
    }
    if !state.user_ases.contains_key(&new.user_as) {
        return Err(ChangeError::Unknown(format!("user AS {}", new.user_as)));
    }
    check_device(new.device.as_deref())?;
    check_time("queue", new.queue_us)?;
    new.maximum.check()?;
    new.limit.check_below(new.maximum)?;
    let emulation = new.emulation();
    emulation.check()?;
    let (here, there) = underlay(state, &new)?;
    let attachment_point = end(state, new.attachment_point, here, None)?;
    // A link by its far end's address alone carries all traffic with that address.
    let user_as = match here.is_none() && new.port.is_none() {
        true => LinkEnd {
            port: None,
            ..end(state, new.user_as, there, None)?
        },
        false => end(state, new.user_as, there, new.port)?,
    };
    let link = Link {
        id: LinkId(state.next.link),
        attachment_point,
        user_as,
        device: new.device,
        queue_us: new.queue_us,
        emulation,
        maximum: new.maximum,
        limit: new.limit,
    };
    check_far_end(state, new.attachment_point, &link.user_as)?;
    state.next.link += 1;
    state.links.insert(link.id, link.clone());
    changes.push(ChangeKind::LinkAdded {
        link: link.id,
        from: new.attachment_point,
        to: new.user_as,
    });
    let none = Limits::default();
    record_maximum(changes, link.id, (none, link.maximum));
    let (queue, emulation) = (link.queue_us, link.emulation);
    let limit = (none, link.limit);
    record_all(
        changes,
        link.id,
        limit,
        (queue, queue),
        (emulation, emulation),
    );
    Ok(link)
}

impl Coordinator {
    /// Adds a link.
    ///
    /// # Errors
    /// [`ChangeError`] when an AS does not exist, their addresses do not fit together, a limit cannot
    /// be used, or the actor may not.
    pub fn add_link(&self, actor: &Actor, new: NewLink) -> Result<Link, ChangeError> {
        self.change(actor, |actor, state, changes| {
            allows(actor, Action::Administer)?;
            add_link(state, changes, new)
        })
    }

    /// Adds an attachment point, user ASes and links, all or nothing.
    ///
    /// # Errors
    /// As those that add one of them.
    pub fn add_all(
        &self,
        actor: &Actor,
        attachment_point: NewAttachmentPoint,
        user_ases: Vec<NewUserAs>,
        links: Vec<NewLink>,
    ) -> Result<(), ChangeError> {
        self.change(actor, |actor, state, changes| {
            allows(actor, Action::Administer)?;
            add_attachment_point(state, changes, attachment_point)?;
            for new in user_ases {
                add_user_as(state, changes, new)?;
            }
            for new in links {
                add_link(state, changes, new)?;
            }
            Ok(())
        })
    }

    /// Adds a link between two attachment points.
    ///
    /// # Errors
    /// [`ChangeError`] when one of them does not exist, they have no addresses of one family, or the
    /// actor may not.
    pub fn add_core_link(&self, actor: &Actor, new: &NewCoreLink) -> Result<CoreLink, ChangeError> {
        self.change(actor, |actor, state, changes| {
            allows(actor, Action::Administer)?;
            let [one, other] = new.ends;
            for isd_as in new.ends {
                if !state.attachment_points.contains_key(&isd_as) {
                    return Err(ChangeError::Unknown(format!("attachment point {isd_as}")));
                }
            }
            if one == other {
                let reason = format!("a link has two ends: {one} cannot be both");
                return Err(ChangeError::Invalid(reason));
            }
            let emulation = new.emulation();
            emulation.check()?;
            let (here, there) = common_addresses(state, one, other)?;
            let link = CoreLink {
                id: LinkId(state.next.link),
                ends: [
                    end(state, one, Some(here), None)?,
                    end(state, other, Some(there), None)?,
                ],
                emulation,
            };
            state.next.link += 1;
            state.core_links.insert(link.id, link.clone());
            changes.push(ChangeKind::LinkAdded {
                link: link.id,
                from: one,
                to: other,
            });
            Ok(link)
        })
    }

    /// Removes a link to a user AS.
    ///
    /// # Errors
    /// [`ChangeError`] when there is none, or the actor may not.
    pub fn remove_link(&self, actor: &Actor, id: LinkId) -> Result<(), ChangeError> {
        self.change(actor, |actor, state, changes| {
            allows(actor, Action::Administer)?;
            let link = state.links.remove(&id).ok_or_else(|| unknown(id))?;
            let (from, to) = (link.attachment_point.isd_as, link.user_as.isd_as);
            changes.push(ChangeKind::LinkRemoved { link: id, from, to });
            Ok(())
        })
    }

    /// Removes a link between attachment points.
    ///
    /// # Errors
    /// As [`Self::remove_link`].
    pub fn remove_core_link(&self, actor: &Actor, id: LinkId) -> Result<(), ChangeError> {
        self.change(actor, |actor, state, changes| {
            allows(actor, Action::Administer)?;
            let unknown = || ChangeError::Unknown(format!("link {id} between attachment points"));
            let link = state.core_links.remove(&id).ok_or_else(unknown)?;
            let [from, to] = link.ends.map(|end| end.isd_as);
            changes.push(ChangeKind::LinkRemoved { link: id, from, to });
            Ok(())
        })
    }
}
