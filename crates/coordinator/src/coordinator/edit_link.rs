//! Links that change: maxima, limits, queue, delay, jitter and loss.

use hawser_limit::Direction;

use super::Coordinator;
use crate::access::{Action, Actor, allows};
use crate::change::ChangeKind;
use crate::emulation::{Emulation, EmulationEdit, check_time};
use crate::error::ChangeError;
use crate::limits::Limits;
use crate::link::{CoreLink, Link, LinkId};

/// Rates by direction.
type Rates = Vec<(Direction, Option<u64>)>;

/// What of a link is to be another; what is not given stays.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LinkEdit {
    /// Maxima in the named directions. Limits above them become equal to them.
    pub maxima: Rates,
    /// Limits in the named directions, none above its maximum.
    pub limits: Rates,
    /// Longest wait of a packet in the queue of each limit, in microseconds; `Some(None)` for the usual one.
    pub queue_us: Option<Option<u64>>,
    /// Delay, jitter and loss.
    pub emulation: EmulationEdit,
}

impl LinkEdit {
    /// Whether all stays.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it is of limits alone, which owners set.
    fn is_limits_only(&self) -> bool {
        self.maxima.is_empty() && self.queue_us.is_none() && self.emulation.is_empty()
    }

    /// Whether it is of delay, jitter and loss alone.
    fn is_emulation_only(&self) -> bool {
        self.maxima.is_empty() && self.limits.is_empty() && self.queue_us.is_none()
    }
}

/// There is no such link to a user AS.
pub(super) fn unknown(id: LinkId) -> ChangeError {
    ChangeError::Unknown(format!("link {id}"))
}

/// Records what differs between two limits.
fn record(
    changes: &mut Vec<ChangeKind>,
    (from, to): (Limits, Limits),
    kind: impl Fn(Direction, Option<u64>, Option<u64>) -> ChangeKind,
) {
    for direction in Direction::ALL {
        let (from, to) = (from.of(direction), to.of(direction));
        if from != to {
            changes.push(kind(direction, from, to));
        }
    }
}

/// Records what of a link's maximum differs.
pub(super) fn record_maximum(
    changes: &mut Vec<ChangeKind>,
    link: LinkId,
    maximum: (Limits, Limits),
) {
    record(changes, maximum, |direction, from, to| {
        ChangeKind::Maximum {
            link,
            direction,
            from,
            to,
        }
    });
}

/// Limits with other rates in the named directions.
pub(super) fn edited(limits: Limits, rates: &Rates) -> Limits {
    rates.iter().fold(limits, |limits, (direction, rate)| {
        limits.with(*direction, *rate)
    })
}

/// Records what of a link's limit, queue, delay, jitter and loss differs.
pub(super) fn record_all(
    changes: &mut Vec<ChangeKind>,
    link: LinkId,
    limit: (Limits, Limits),
    (from, to): (Option<u64>, Option<u64>),
    (before, now): (Emulation, Emulation),
) {
    record(changes, limit, |direction, from, to| ChangeKind::Limit {
        link,
        direction,
        from,
        to,
    });
    if from != to {
        changes.push(ChangeKind::Queue { link, from, to });
    }
    record_emulation(changes, link, before, now);
}

/// Records what of a link's delay, jitter and loss differs.
fn record_emulation(
    changes: &mut Vec<ChangeKind>,
    link: LinkId,
    before: Emulation,
    now: Emulation,
) {
    if before.delay_us != now.delay_us {
        let (from, to) = (before.delay_us, now.delay_us);
        changes.push(ChangeKind::Delay { link, from, to });
    }
    if before.jitter_us != now.jitter_us {
        let (from, to) = (before.jitter_us, now.jitter_us);
        changes.push(ChangeKind::Jitter { link, from, to });
    }
    if before.loss != now.loss {
        let (from, to) = (before.loss, now.loss);
        changes.push(ChangeKind::Loss { link, from, to });
    }
}

impl Coordinator {
    /// Sets the limits of a link in the named directions.
    ///
    /// # Errors
    /// As [`Self::edit_link`].
    pub fn set_limit(
        &self,
        actor: &Actor,
        id: LinkId,
        wanted: &[(Direction, Option<u64>)],
    ) -> Result<Link, ChangeError> {
        let limits = wanted.to_vec();
        let edit = LinkEdit {
            limits,
            ..LinkEdit::default()
        };
        self.edit_link(actor, id, &edit)
    }

    /// Sets the maxima of a link in the named directions. Limits above them become equal to them.
    ///
    /// # Errors
    /// As [`Self::edit_link`].
    pub fn set_maximum(
        &self,
        actor: &Actor,
        id: LinkId,
        wanted: &[(Direction, Option<u64>)],
    ) -> Result<Link, ChangeError> {
        let maxima = wanted.to_vec();
        let edit = LinkEdit {
            maxima,
            ..LinkEdit::default()
        };
        self.edit_link(actor, id, &edit)
    }

    /// Changes a link, all or nothing: maxima first, then limits. Owners set limits, administrators all.
    ///
    /// # Errors
    /// [`ChangeError`] when there is no such link, a value is out of bounds, a limit is above the maximum,
    /// or the actor may not.
    pub fn edit_link(
        &self,
        actor: &Actor,
        id: LinkId,
        edit: &LinkEdit,
    ) -> Result<Link, ChangeError> {
        self.change(actor, |actor, state, changes| {
            let link = state.links.get(&id).ok_or_else(|| unknown(id))?;
            let owner = state.owner(link);
            if !edit.is_limits_only() {
                allows(actor, Action::Administer)?;
            }
            allows(actor, Action::SetLimit { owner })?;
            let maximum = edited(link.maximum, &edit.maxima);
            maximum.check()?;
            let mut limit = link.limit;
            for direction in Direction::ALL {
                // A limit of `None` follows the maximum as it is.
                if limit.of(direction).is_some() {
                    limit = limit.with(direction, limit.min(maximum).of(direction));
                }
            }
            let limit = edited(limit, &edit.limits);
            limit.check_below(maximum)?;
            let queue_us = edit.queue_us.unwrap_or(link.queue_us);
            check_time("queue", queue_us)?;
            let emulation = edit.emulation.apply(link.emulation);
            emulation.check()?;
            record_maximum(changes, id, (link.maximum, maximum));
            record_all(
                changes,
                id,
                (link.limit, limit),
                (link.queue_us, queue_us),
                (link.emulation, emulation),
            );
            let link = Link {
                maximum,
                limit,
                queue_us,
                emulation,
                ..link.clone()
            };
            state.links.insert(id, link.clone());
            Ok(link)
        })
    }

    /// Changes delay, jitter and loss of a link between attachment points.
    ///
    /// # Errors
    /// [`ChangeError`] when there is no such link, a value is out of bounds, the change is of limits or their
    /// queue, or the actor may not.
    pub fn edit_core_link(
        &self,
        actor: &Actor,
        id: LinkId,
        edit: &LinkEdit,
    ) -> Result<CoreLink, ChangeError> {
        self.change(actor, |actor, state, changes| {
            allows(actor, Action::Administer)?;
            let unknown = || ChangeError::Unknown(format!("link {id} between attachment points"));
            let link = state.core_links.get_mut(&id).ok_or_else(unknown)?;
            if !edit.is_emulation_only() {
                let reason =
                    "a link between attachment points has no limits and no queue of theirs";
                return Err(ChangeError::Invalid(reason.to_owned()));
            }
            let emulation = edit.emulation.apply(link.emulation);
            emulation.check()?;
            record_emulation(changes, id, link.emulation, emulation);
            link.emulation = emulation;
            Ok(link.clone())
        })
    }
}

#[cfg(test)]
mod tests;
