//! Attachment points and user ASes.

use std::net::IpAddr;

use hawser_topology::IsdAsn;
use serde::Deserialize;
use utoipa::ToSchema;

use super::Coordinator;
use super::moved::{check_addresses, move_ends};
use super::names::check_name;
use crate::access::{Action, Actor, allows};
use crate::change::ChangeKind;
use crate::describe::{Address, Device, Name, SingleIsdAs};
use crate::error::ChangeError;
use crate::host::{AttachmentPoint, Host, Place, UserAs};
use crate::state::State;
use crate::user::UserId;

/// The first UDP port for links when none is given.
const FIRST_PORT: u16 = 50_000;

const fn first_port() -> u16 {
    FIRST_PORT
}

/// An attachment point to be added, or what one is to be.
#[derive(Debug, Clone, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAttachmentPoint {
    /// The AS.
    #[schema(value_type = SingleIsdAs)]
    pub isd_as: IsdAsn,
    /// What people call it.
    #[schema(value_type = Name)]
    pub label: String,
    /// Where it is.
    #[serde(default)]
    pub place: Option<Place>,
    /// The border router's addresses for links: at most one IPv4, and at most one IPv6 address, none
    /// of which is unspecified or multicast.
    #[serde(default)]
    #[schema(value_type = Vec<Address>, max_items = 2)]
    pub addresses: Vec<IpAddr>,
    /// The first UDP port for links.
    #[serde(default = "first_port")]
    #[schema(minimum = 1024, maximum = 65535)]
    pub first_port: u16,
    /// The network interface of its links, if it is not that of the machine's route.
    #[serde(default)]
    #[schema(value_type = Option<Device>)]
    pub device: Option<String>,
}

/// A user AS to be added, or what one is to be.
#[derive(Debug, Clone, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUserAs {
    /// The AS.
    #[schema(value_type = SingleIsdAs)]
    pub isd_as: IsdAsn,
    /// The user whose it is; none for that of an administrator.
    #[serde(default)]
    pub owner: Option<UserId>,
    /// What people call it.
    #[schema(value_type = Name)]
    pub label: String,
    /// Where it is.
    #[serde(default)]
    pub place: Option<Place>,
    /// The border router's addresses for links: at most one IPv4, and at most one IPv6 address, none
    /// of which is unspecified or multicast.
    #[serde(default)]
    #[schema(value_type = Vec<Address>, max_items = 2)]
    pub addresses: Vec<IpAddr>,
    /// The first UDP port for links.
    #[serde(default = "first_port")]
    #[schema(minimum = 1024, maximum = 65535)]
    pub first_port: u16,
}

/// What was removed with an AS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removed {
    /// How many links.
    pub links: usize,
}

/// Checks what both kinds of AS have.
fn check(
    label: &str,
    place: Option<Place>,
    addresses: &[IpAddr],
    first_port: u16,
) -> Result<(), ChangeError> {
    check_name("the label of an AS", label)?;
    if place.is_some_and(|place| !place.is_valid()) {
        return Err(ChangeError::Invalid(
            "there is no such place: give a latitude of -90 to 90 and a longitude of -180 to 180"
                .to_owned(),
        ));
    }
    check_addresses(addresses)?;
    // Below are the ports of the system's own services.
    if first_port < 1024 {
        return Err(ChangeError::Invalid(format!(
            "links cannot begin at UDP port {first_port}: give 1024 or higher"
        )));
    }
    Ok(())
}

/// Checks the name of a network interface, as the kernel does.
pub(super) fn check_device(device: Option<&str>) -> Result<(), ChangeError> {
    let is_wrong = |name: &str| {
        let bytes = name.as_bytes();
        let odd = |byte: &u8| !byte.is_ascii_graphic() || matches!(byte, b'/' | b':');
        bytes.is_empty() || bytes.len() > 15 || bytes.iter().any(odd) || matches!(name, "." | "..")
    };
    match device.filter(|name| is_wrong(name)) {
        Some(name) => Err(ChangeError::Invalid(format!(
            "{name:?} is not the name of a network interface"
        ))),
        None => Ok(()),
    }
}

/// Checks that this names one AS. A server that limits the links of its own machine alone has ASes without
/// an ISD, which nobody adds.
fn check_named(isd_as: IsdAsn) -> Result<(), ChangeError> {
    match isd_as.is_wildcard() {
        true => Err(ChangeError::Invalid(format!(
            "{isd_as} stands for many ASes: give an ISD and an AS number that are not 0"
        ))),
        false => Ok(()),
    }
}

fn check_free(state: &State, isd_as: IsdAsn) -> Result<(), ChangeError> {
    match state.host(isd_as) {
        Some(_) => Err(ChangeError::Conflict(format!("{isd_as} is there already"))),
        None => Ok(()),
    }
}

fn check_owner(state: &State, owner: Option<UserId>) -> Result<(), ChangeError> {
    match owner.filter(|owner| !state.users.contains_key(owner)) {
        Some(owner) => Err(ChangeError::Unknown(format!("user {owner}"))),
        None => Ok(()),
    }
}

/// Removes the links of an AS.
fn remove_links(state: &mut State, isd_as: IsdAsn, changes: &mut Vec<ChangeKind>) -> Removed {
    let links: Vec<_> = state.links_of(isd_as).cloned().collect();
    let core: Vec<_> = state.core_links_of(isd_as).cloned().collect();
    for link in &links {
        state.links.remove(&link.id);
        changes.push(ChangeKind::LinkRemoved {
            link: link.id,
            from: link.attachment_point.isd_as,
            to: link.user_as.isd_as,
        });
    }
    for link in &core {
        state.core_links.remove(&link.id);
        changes.push(ChangeKind::LinkRemoved {
            link: link.id,
            from: link.ends[0].isd_as,
            to: link.ends[1].isd_as,
        });
    }
    let others: Vec<_> = state.as_links_of(isd_as).cloned().collect();
    for link in &others {
        state.as_links.remove(&link.id);
        changes.push(ChangeKind::LinkRemoved {
            link: link.id,
            from: link.ends[0].isd_as,
            to: link.ends[1].isd_as,
        });
    }
    Removed {
        links: links.len() + core.len() + others.len(),
    }
}

pub(super) fn add_user_as(
    state: &mut State,
    changes: &mut Vec<ChangeKind>,
    new: NewUserAs,
) -> Result<UserAs, ChangeError> {
    check_free(state, new.isd_as)?;
    check_owner(state, new.owner)?;
    check(&new.label, new.place, &new.addresses, new.first_port)?;
    let added = UserAs {
        isd_as: new.isd_as,
        owner: new.owner,
        label: new.label,
        place: new.place,
        addresses: new.addresses,
        first_port: new.first_port,
        host: Host::trusted_since(state.next.change),
    };
    state.user_ases.insert(added.isd_as, added.clone());
    changes.push(ChangeKind::UserAsAdded {
        isd_as: added.isd_as,
    });
    Ok(added)
}

pub(super) fn add_attachment_point(
    state: &mut State,
    changes: &mut Vec<ChangeKind>,
    new: NewAttachmentPoint,
) -> Result<AttachmentPoint, ChangeError> {
    check_free(state, new.isd_as)?;
    check(&new.label, new.place, &new.addresses, new.first_port)?;
    check_device(new.device.as_deref())?;
    let added = AttachmentPoint {
        isd_as: new.isd_as,
        label: new.label,
        place: new.place,
        addresses: new.addresses,
        first_port: new.first_port,
        device: new.device,
        host: Host::trusted_since(state.next.change),
    };
    state.attachment_points.insert(added.isd_as, added.clone());
    let isd_as = added.isd_as;
    changes.push(ChangeKind::AttachmentPointAdded { isd_as });
    Ok(added)
}

impl Coordinator {
    /// Adds an attachment point.
    ///
    /// # Errors
    /// [`ChangeError`] when the AS is there already, a value cannot be used, or the actor may not.
    pub fn add_attachment_point(
        &self,
        actor: &Actor,
        new: NewAttachmentPoint,
    ) -> Result<AttachmentPoint, ChangeError> {
        self.change(actor, |actor, state, changes| {
            allows(actor, Action::Administer)?;
            check_named(new.isd_as)?;
            add_attachment_point(state, changes, new)
        })
    }

    /// Changes what an attachment point is. Its links follow when its addresses change.
    ///
    /// # Errors
    /// [`ChangeError`] when there is none, a value cannot be used, links cannot follow to its new
    /// addresses, or the actor may not.
    pub fn change_attachment_point(
        &self,
        actor: &Actor,
        new: NewAttachmentPoint,
    ) -> Result<AttachmentPoint, ChangeError> {
        self.change(actor, |actor, state, changes| {
            allows(actor, Action::Administer)?;
            check(&new.label, new.place, &new.addresses, new.first_port)?;
            check_device(new.device.as_deref())?;
            let isd_as = new.isd_as;
            if let Some(one) = state.attachment_points.get(&isd_as) {
                let before = one.addresses.clone();
                move_ends(state, isd_as, &before, &new.addresses)?;
            }
            let one = state.attachment_points.get_mut(&isd_as);
            let one =
                one.ok_or_else(|| ChangeError::Unknown(format!("attachment point {isd_as}")))?;
            one.label = new.label;
            one.place = new.place;
            one.addresses = new.addresses;
            one.first_port = new.first_port;
            one.device = new.device;
            changes.push(ChangeKind::AttachmentPointChanged { isd_as });
            Ok(one.clone())
        })
    }

    /// Removes an attachment point and its links.
    ///
    /// # Errors
    /// [`ChangeError`] when there is none, or the actor may not.
    pub fn remove_attachment_point(
        &self,
        actor: &Actor,
        isd_as: IsdAsn,
    ) -> Result<Removed, ChangeError> {
        self.change(actor, |actor, state, changes| {
            allows(actor, Action::Administer)?;
            let removed = remove_links(state, isd_as, changes);
            match state.attachment_points.remove(&isd_as) {
                None => Err(ChangeError::Unknown(format!("attachment point {isd_as}"))),
                Some(_) => {
                    changes.push(ChangeKind::AttachmentPointRemoved { isd_as });
                    Ok(removed)
                }
            }
        })
    }

    /// Adds a user AS.
    ///
    /// # Errors
    /// [`ChangeError`] when the AS is there already, a value cannot be used, or the actor may not.
    pub fn add_user_as(&self, actor: &Actor, new: NewUserAs) -> Result<UserAs, ChangeError> {
        self.change(actor, |actor, state, changes| {
            allows(actor, Action::Administer)?;
            check_named(new.isd_as)?;
            add_user_as(state, changes, new)
        })
    }

    /// Changes what a user AS is. Its links follow when its addresses change. With another owner it gets
    /// another secret and other keys.
    ///
    /// # Errors
    /// [`ChangeError`] when there is none, a value cannot be used, links cannot follow to its new
    /// addresses, or the actor may not.
    pub fn change_user_as(&self, actor: &Actor, new: NewUserAs) -> Result<UserAs, ChangeError> {
        self.change(actor, |actor, state, changes| {
            allows(actor, Action::Administer)?;
            check_owner(state, new.owner)?;
            check(&new.label, new.place, &new.addresses, new.first_port)?;
            let isd_as = new.isd_as;
            let number = state.next.change;
            if let Some(one) = state.user_ases.get(&isd_as) {
                let before = one.addresses.clone();
                move_ends(state, isd_as, &before, &new.addresses)?;
            }
            let one = state.user_ases.get_mut(&isd_as);
            let one = one.ok_or_else(|| ChangeError::Unknown(format!("user AS {isd_as}")))?;
            if one.owner != new.owner {
                one.host.end_trust(number);
            }
            one.owner = new.owner;
            one.label = new.label;
            one.place = new.place;
            one.addresses = new.addresses;
            one.first_port = new.first_port;
            changes.push(ChangeKind::UserAsChanged { isd_as });
            Ok(one.clone())
        })
    }

    /// Removes a user AS and its links.
    ///
    /// # Errors
    /// [`ChangeError`] when there is none, or the actor may not.
    pub fn remove_user_as(&self, actor: &Actor, isd_as: IsdAsn) -> Result<Removed, ChangeError> {
        self.change(actor, |actor, state, changes| {
            allows(actor, Action::Administer)?;
            let removed = remove_links(state, isd_as, changes);
            match state.user_ases.remove(&isd_as) {
                None => Err(ChangeError::Unknown(format!("user AS {isd_as}"))),
                Some(_) => {
                    changes.push(ChangeKind::UserAsRemoved { isd_as });
                    Ok(removed)
                }
            }
        })
    }
}
