//! Links between user ASes, and peering links.

use std::collections::BTreeSet;

use hawser_topology::IsdAsn;
use serde::Deserialize;
use utoipa::ToSchema;

use super::Coordinator;
use super::edit_link::{LinkEdit, edited, record_all};
use super::links::{check_far_end, common_addresses, end};
use crate::access::{Action, Actor, allows};
use crate::as_link::{AsLink, AsLinkKind};
use crate::change::ChangeKind;
use crate::describe;
use crate::emulation::{Emulation, check_time};
use crate::error::ChangeError;
use crate::limits::Limits;
use crate::link::LinkId;
use crate::state::State;

/// A link between two user ASes, or a peering link, to be added.
#[derive(Debug, Clone, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAsLink {
    /// What the ASes are to each other.
    pub kind: AsLinkKind,
    /// The ASes; the parent is the first one.
    #[schema(schema_with = describe::two_ases)]
    pub ends: [IsdAsn; 2],
    /// What the first AS sends (egress), and the second one (ingress).
    #[serde(default)]
    pub limit: Limits,
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
}

fn unknown(id: LinkId) -> ChangeError {
    ChangeError::Unknown(format!("peering link, or link between user ASes, {id}"))
}

/// Checks that two ASes may have a link of a kind.
fn check_kind(state: &State, kind: AsLinkKind, ends: [IsdAsn; 2]) -> Result<(), ChangeError> {
    let invalid = |reason: String| Err(ChangeError::Invalid(reason));
    for isd_as in ends {
        if state.host(isd_as).is_none() || isd_as.is_wildcard() {
            return Err(ChangeError::Unknown(format!("AS {isd_as}")));
        }
    }
    let [parent, child] = ends;
    if parent == child {
        return invalid(format!("a link has two ends: {parent} cannot be both"));
    }
    if kind == AsLinkKind::Peer {
        return Ok(());
    }
    if state.attachment_points.contains_key(&child) {
        return invalid(format!(
            "the attachment point {child} cannot be a child: it is a core AS"
        ));
    }
    if state.attachment_points.contains_key(&parent) {
        return invalid(format!(
            "{parent} is an attachment point: add a link of `/api/v1/links` to {child}"
        ));
    }
    if parent.isd() != child.isd() {
        return invalid(format!(
            "{child} cannot be a child of {parent}, which is of another ISD"
        ));
    }
    let mut ancestors = BTreeSet::from([parent]);
    let mut next = vec![parent];
    while let Some(of) = next.pop() {
        let links = state.as_links.values();
        let links = links.filter(|link| link.kind == AsLinkKind::Child);
        let above = links.filter(|link| link.ends[1].isd_as == of);
        let above = above.map(|link| link.ends[0].isd_as);
        next.extend(above.filter(|isd_as| ancestors.insert(*isd_as)));
    }
    match ancestors.contains(&child) {
        true => invalid(format!(
            "{child} cannot be a child of {parent}, which is below it"
        )),
        false => Ok(()),
    }
}

impl Coordinator {
    /// Adds a link between two user ASes, or a peering link.
    ///
    /// # Errors
    /// [`ChangeError`] when an AS does not exist, they cannot have such a link or have no addresses of one
    /// family, a value is out of bounds, or the actor may not.
    pub fn add_as_link(&self, actor: &Actor, new: &NewAsLink) -> Result<AsLink, ChangeError> {
        self.change(actor, |actor, state, changes| {
            allows(actor, Action::Administer)?;
            check_kind(state, new.kind, new.ends)?;
            new.limit.check()?;
            check_time("queue", new.queue_us)?;
            let emulation = Emulation {
                delay_us: new.delay_us,
                jitter_us: new.jitter_us,
                loss: new.loss,
            };
            emulation.check()?;
            let [one, other] = new.ends;
            let (here, there) = common_addresses(state, one, other)?;
            let ends = [
                end(state, one, Some(here), None)?,
                end(state, other, Some(there), None)?,
            ];
            check_far_end(state, one, &ends[1])?;
            check_far_end(state, other, &ends[0])?;
            let link = AsLink {
                id: LinkId(state.next.link),
                kind: new.kind,
                ends,
                limit: new.limit,
                queue_us: new.queue_us,
                emulation,
            };
            state.next.link += 1;
            state.as_links.insert(link.id, link.clone());
            changes.push(ChangeKind::LinkAdded {
                link: link.id,
                from: one,
                to: other,
            });
            Ok(link)
        })
    }

    /// Changes such a link. It has no maximum.
    ///
    /// # Errors
    /// [`ChangeError`] when there is no such link, a value is out of bounds, or the actor may not.
    pub fn edit_as_link(
        &self,
        actor: &Actor,
        id: LinkId,
        edit: &LinkEdit,
    ) -> Result<AsLink, ChangeError> {
        self.change(actor, |actor, state, changes| {
            allows(actor, Action::Administer)?;
            let link = state.as_links.get_mut(&id).ok_or_else(|| unknown(id))?;
            if !edit.maxima.is_empty() {
                let reason = "such a link has no maximum: administrators alone set its limit";
                return Err(ChangeError::Invalid(reason.to_owned()));
            }
            let limit = edited(link.limit, &edit.limits);
            limit.check()?;
            let queue_us = edit.queue_us.unwrap_or(link.queue_us);
            check_time("queue", queue_us)?;
            let emulation = edit.emulation.apply(link.emulation);
            emulation.check()?;
            record_all(
                changes,
                id,
                (link.limit, limit),
                (link.queue_us, queue_us),
                (link.emulation, emulation),
            );
            (link.limit, link.queue_us, link.emulation) = (limit, queue_us, emulation);
            Ok(link.clone())
        })
    }

    /// Removes such a link.
    ///
    /// # Errors
    /// [`ChangeError`] when there is none, or the actor may not.
    pub fn remove_as_link(&self, actor: &Actor, id: LinkId) -> Result<(), ChangeError> {
        self.change(actor, |actor, state, changes| {
            allows(actor, Action::Administer)?;
            let link = state.as_links.remove(&id).ok_or_else(|| unknown(id))?;
            let [from, to] = link.ends.map(|end| end.isd_as);
            changes.push(ChangeKind::LinkRemoved { link: id, from, to });
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests;
