//! Limits of links that have names.
//!
//! The life of a link's limits. They are *in force* once [`Enforcer::enforce`] has been called with the
//! link, or have *failed* for a reason that it returns; the next call tries again. A link that is not among
//! those of a call loses its limits. [`Enforcer::reset`] removes all that can be removed. Callers have
//! tasks that call it when links change, after a failure and every half minute, and read the counters each
//! second, all of it on threads for blocking work. An enforcer may be called by several threads, and orders
//! the calls itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;

use crate::limit::{Counters, Direction, Limits, Remote};

/// A link to be limited, under a name of type `K`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedLink<K> {
    /// Its name.
    pub name: K,
    /// What tells its packets from others.
    pub remote: Remote,
    /// The network interface; `None` for that of the route to the address.
    pub device: Option<String>,
    /// Its limits.
    pub limits: Limits,
}

/// The links whose limits are not in force, each with the reason in one line.
pub type FailedLinks<K> = BTreeMap<K, String>;

/// What a link carried; nothing in a direction that is not limited, and so not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkUsage<K> {
    /// The name of the link.
    pub link: K,
    /// What was sent.
    #[serde(default)]
    pub egress: Option<LinkCounters>,
    /// What was received.
    #[serde(default)]
    pub ingress: Option<LinkCounters>,
}

impl<K> LinkUsage<K> {
    /// The counters of a direction.
    pub fn of(&self, direction: Direction) -> Option<LinkCounters> {
        match direction {
            Direction::Egress => self.egress,
            Direction::Ingress => self.ingress,
        }
    }
}

/// What a link carried in one direction since its limit was set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkCounters {
    /// Bytes of frames that passed.
    #[schema(maximum = 18446744073709551615u64)]
    pub bytes: u64,
    /// Packets that passed.
    #[schema(maximum = 18446744073709551615u64)]
    pub packets: u64,
    /// Packets that were dropped.
    #[schema(maximum = 18446744073709551615u64)]
    pub drops: u64,
    /// Bytes that wait in the queue now.
    #[schema(maximum = 18446744073709551615u64)]
    pub backlog: u64,
}

impl From<Counters> for LinkCounters {
    fn from(counters: Counters) -> Self {
        Self {
            bytes: counters.bytes,
            packets: counters.packets,
            drops: counters.drops.into(),
            backlog: counters.backlog.into(),
        }
    }
}

/// Why limits are not in force, or their counters not known, in one line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct EnforceError(String);

impl EnforceError {
    /// An error with this reason.
    pub fn new(reason: impl ToString) -> Self {
        Self(reason.to_string())
    }
}

/// What brings limits into force, as the kernel does. The calls may block.
pub trait Enforcer<K>: Send + Sync {
    /// Has exactly these links limited. Called again with the same links, it changes nothing. Returns
    /// those for which that failed: they keep no other from its limits.
    ///
    /// # Errors
    /// When no link can be limited; what was in force then stays as far as possible.
    fn enforce(&self, links: &[NamedLink<K>]) -> Result<FailedLinks<K>, EnforceError>;

    /// What the links carried.
    ///
    /// # Errors
    /// When the counters cannot be read.
    fn usage(&self) -> Result<Vec<LinkUsage<K>>, EnforceError>;

    /// Removes all limits that can be removed.
    ///
    /// # Errors
    /// When some are left.
    fn reset(&self) -> Result<(), EnforceError>;
}
