//! The state of a network of user ASes: attachment points, user ASes, the links between them with
//! their limits, users, and every change.
//!
//! - [`State`]: all of it at one moment, in memory. Plain values: [`AttachmentPoint`], [`UserAs`],
//!   [`Link`], [`CoreLink`], [`User`].
//! - [`Coordinator`]: reads and changes the state; what it has confirmed is on disk.
//! - [`allows`]: who may do what. Pure.
//! - [`enforce_locally`]: has an [`Enforcer`](hawser_limit::Enforcer) bring the limits of this machine's
//!   links into force.
//! - [`Configurations`]: the archives of the ASes, and the segments of their network.
//! - [`Change`]: the record of each change.

mod access;
mod change;
mod configuration;
mod coordinator;
mod enforce;
mod error;
mod host;
mod instances;
mod limits;
mod link;
mod state;
mod store;
mod user;

pub mod describe;
pub use hawser_limit::{Direction, LinkCounters};

pub use self::access::{Action, Actor, Denied, allows};
pub use self::change::{Change, ChangeKind, ChangePage};
pub use self::configuration::{Access, ConfigurationError, Configurations, Tagged};
pub use self::coordinator::{
    Coordinator, NewAttachmentPoint, NewCoreLink, NewLink, NewUserAs, Removed,
};
pub use self::enforce::enforce_locally;
pub use self::error::{ChangeError, OpenError};
pub use self::host::{AttachmentPoint, Deployment, Host, HostKind, Place, UserAs};
pub use self::limits::{LimitError, Limits, MAX_LIMIT, MIN_LIMIT, rate_schema};
pub use self::link::{CoreLink, FailedLinks, Link, LinkEnd, LinkId, LinkUsage};
pub use self::state::{EnforcedLink, State};
pub use self::store::SCHEMA;
pub use self::user::{Role, User, UserId};
