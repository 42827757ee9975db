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
//!
//! The life of the state. [`Coordinator::open`] checks and reads the file. From then on the state is in
//! memory: a change is made on a copy, which is written with its record as one transaction and then
//! replaces the state; [subscribers](Coordinator::subscribe) are woken. After a failed write the
//! file is opened again, at once or with the next change, and the state is what it has then. There is
//! nothing to do at the end: what was confirmed is on disk.
//!
//! The life of a configuration. What changes the configuration of an AS gives it a new version. The machine
//! of the AS fetches that as an archive, and reports that it runs it or why it cannot; on this machine,
//! [`enforce_locally`] does so for the limits. When the trust in a machine ends, what it has reported is
//! forgotten.
//!
//! Nothing in here runs by itself: requests, and the task of [`enforce_locally`], call it. In memory are
//! the state, for each AS the last report, up to eight runs of its program and the archive that was made
//! last, and the segments.
//!
//! [`Configurations`] has one lock, which is taken before those of the [`Coordinator`], never after them.
//! Files are read and written under locks of both, so changes and archives block their callers.

mod access;
mod as_link;
mod change;
mod configuration;
mod coordinator;
mod emulation;
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
pub use self::as_link::{AsLink, AsLinkKind};
pub use self::change::{Change, ChangeKind, ChangePage};
pub use self::configuration::{Access, ConfigurationError, Configurations, Tagged};
pub use self::coordinator::{
    Coordinator, LinkEdit, NewAsLink, NewAttachmentPoint, NewCoreLink, NewLink, NewUserAs, Removed,
};
pub use self::emulation::{Emulation, EmulationEdit};
pub use self::enforce::enforce_locally;
pub use self::error::{ChangeError, OpenError};
pub use self::host::{AttachmentPoint, Deployment, Host, HostKind, Place, UserAs};
pub use self::limits::{LimitError, Limits, MAX_LIMIT, MIN_LIMIT, rate_schema};
pub use self::link::{CoreLink, FailedLinks, Link, LinkEnd, LinkId, LinkUsage};
pub use self::state::{EnforcedLink, State};
pub use self::store::SCHEMA;
pub use self::user::{Role, User, UserId};
