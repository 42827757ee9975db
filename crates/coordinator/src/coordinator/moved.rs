//! ASes whose addresses change while they have links.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use hawser_topology::IsdAsn;

use super::Coordinator;
use crate::access::Actor;
use crate::change::ChangeKind;
use crate::error::ChangeError;
use crate::link::LinkEnd;
use crate::state::State;

/// Checks the addresses of an AS for links.
pub(super) fn check_addresses(addresses: &[IpAddr]) -> Result<(), ChangeError> {
    let count = |of: fn(&IpAddr) -> bool| addresses.iter().filter(|ip| of(ip)).count();
    if count(IpAddr::is_ipv4) > 1 || count(IpAddr::is_ipv6) > 1 {
        return Err(ChangeError::Invalid(
            "an AS has at most one IPv4 and one IPv6 address for links".to_owned(),
        ));
    }
    if let Some(ip) = addresses
        .iter()
        .find(|ip| ip.is_unspecified() || ip.is_multicast())
    {
        return Err(ChangeError::Invalid(format!(
            "{ip} is not the address of a router"
        )));
    }
    Ok(())
}

/// Has the links of an AS follow when its addresses change from `before` to `now`: each end at an address
/// that the AS no longer has goes to its new address of the same family, and keeps its interface and its
/// UDP port, so that the limits and the paths of the link stay. Ends at addresses that never were among
/// those of the AS stay where they are.
///
/// # Errors
/// [`ChangeError::Conflict`] when links need an address of a family of which the AS is to have none, or
/// when two links could not be told apart at the new address. The state may have been changed in part
/// then.
pub(super) fn move_ends(
    state: &mut State,
    isd_as: IsdAsn,
    before: &[IpAddr],
    now: &[IpAddr],
) -> Result<(), ChangeError> {
    let mut has_moved = false;
    let mut follow = |end: &mut LinkEnd| -> Result<(), ChangeError> {
        let left = |ip: &IpAddr| before.contains(ip) && !now.contains(ip);
        let Some(old) = end.ip.filter(left) else {
            return Ok(());
        };
        if end.isd_as != isd_as {
            return Ok(());
        }
        let new = now.iter().find(|ip| ip.is_ipv4() == old.is_ipv4());
        let new = new.ok_or_else(|| {
            let family = if old.is_ipv4() { "IPv4" } else { "IPv6" };
            ChangeError::Conflict(format!(
                "{isd_as} has links with the address {old}: give it another {family} address, or \
                 remove these first"
            ))
        })?;
        end.ip = Some(*new);
        has_moved = true;
        Ok(())
    };
    state.ends_mut().try_for_each(&mut follow)?;
    match has_moved {
        true => check_distinct(state, isd_as),
        false => Ok(()),
    }
}

impl Coordinator {
    /// The machine of an AS, which has shown its secret, has the address `to` in place of `from`, as after
    /// DHCP has given it another one. Its links follow. Nothing changes if that is known already.
    ///
    /// # Errors
    /// [`ChangeError::Conflict`] when `from` is not an address of the AS, is of another family than `to`, or
    /// links cannot follow; [`ChangeError::Invalid`] when `to` cannot be the address of a router.
    pub fn report_address(
        &self,
        isd_as: IsdAsn,
        from: IpAddr,
        to: IpAddr,
    ) -> Result<(), ChangeError> {
        let unknown = || ChangeError::Unknown(format!("AS {isd_as}"));
        let known = addresses(&self.state(), isd_as).ok_or_else(unknown)?;
        if known.contains(&to) && !known.contains(&from) {
            return Ok(());
        }
        self.change(&Actor::program(), |_, state, changes| {
            let before = addresses(state, isd_as).ok_or_else(unknown)?;
            let Some(at) = before.iter().position(|ip| *ip == from) else {
                return Err(ChangeError::Conflict(format!(
                    "{from} is not an address of {isd_as} but of a link alone: change it there"
                )));
            };
            if from.is_ipv4() != to.is_ipv4() {
                return Err(ChangeError::Conflict(format!(
                    "{to} cannot take the place of {from}, which is of another family"
                )));
            }
            let mut now = before.clone();
            now[at] = to;
            check_addresses(&now)?;
            move_ends(state, isd_as, &before, &now)?;
            if let Some(one) = state.attachment_points.get_mut(&isd_as) {
                one.addresses = now;
                changes.push(ChangeKind::AttachmentPointChanged { isd_as });
            } else if let Some(one) = state.user_ases.get_mut(&isd_as) {
                one.addresses = now;
                changes.push(ChangeKind::UserAsChanged { isd_as });
            }
            Ok(())
        })
    }
}

/// The addresses of an AS for links.
fn addresses(state: &State, isd_as: IsdAsn) -> Option<Vec<IpAddr>> {
    let point = state.attachment_points.get(&isd_as);
    let point = point.map(|one| one.addresses.clone());
    point.or_else(|| {
        let user = state.user_ases.get(&isd_as);
        user.map(|one| one.addresses.clone())
    })
}

/// Checks that the links of an AS can be told apart, at its own border router by their UDP ports, and at
/// each AS that limits them by the addresses of their far ends.
fn check_distinct(state: &State, isd_as: IsdAsn) -> Result<(), ChangeError> {
    let mut own = BTreeSet::new();
    let mut neighbours = BTreeSet::from([isd_as]);
    for ends in state.link_ends_of(isd_as) {
        neighbours.extend(ends.map(|end| end.isd_as));
        let here = ends.iter().filter(|end| end.isd_as == isd_as);
        if let Some(at) = here
            .filter_map(LinkEnd::underlay)
            .find(|at| !own.insert(*at))
        {
            return Err(ChangeError::Conflict(format!(
                "{isd_as} would have two links at {at}: remove one of them first"
            )));
        }
    }
    for limiting in neighbours {
        let mut known = BTreeMap::new();
        for (id, far) in state.limited_far_ends(limiting) {
            let Some(ip) = far.ip else {
                continue;
            };
            if let Some(other) = known.insert((ip, far.port), id) {
                return Err(ChangeError::Conflict(format!(
                    "links {other} and {id} would both have the address {ip}: remove one of them first"
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
