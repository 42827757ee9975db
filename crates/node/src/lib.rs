//! One AS on this machine: its border routers and its control service, its limits, and the way to
//! the coordinator that configures it.
//!
//! - [`Folder`]: the folder of the AS on disk. Each version of its configuration is a folder of its
//!   own; a symbolic link names the current one, so that a crash at any moment leaves the old
//!   version or the new one, whole.
//! - [`run()`]: runs the services as child processes, restarts those that end, and follows the
//!   coordinator: changed limits are applied at once and restart nothing; changed files of the
//!   services restart them. While the coordinator is away, everything goes on.
//!
//! An [`Enforcer`](hawser_limit::Enforcer) limits the links of an attachment point, and counts what they
//! carry.
//!
//! The life of a node. [`run()`] puts the limits into force, starts the services, and follows the
//! coordinator. If a service ends before all have been ready once, [`run()`] fails; later it is started
//! again. A version is *deployed*, and reported as such, once all services are ready and its limits are in
//! force. Another version is installed on disk; then its limits are put into force, and the services go
//! over to it or start again where it changes them. While the coordinator has no configuration for this
//! host, no service runs. When `stop` completes, the coordinator is no longer followed, the services are
//! stopped, and the limits are removed.
//!
//! One task does this (`run`). Another one keeps the processes alive (`keeper`), and three or four speak
//! with the coordinator (`follow`): they ask for the configuration and the segments, and report versions
//! and counters. Where neighbours are known by names, one more resolves these every 5 s (`neighbours`), and
//! border routers go over to changed addresses while they run. They hand over one update at a time, of bounded size. What fails is tried again after
//! pauses that grow; limits are put into force again every 30 s.
//!
//! A [`Health`] answers whether all of this works, for those that watch the process; others [`ask`] at a
//! [`HealthSocket`] in the folder.
//!
//! Tasks speak over channels, and nothing is locked in memory. A [`Folder`] holds a lock on its folder
//! (flock(2)) as long as it exists, so that one process at a time runs the AS. Its files are read and
//! written in the task itself, the limits on threads for blocking work.

mod error;
mod event;
mod folder;
mod follow;
mod health;
mod http;
mod keeper;
mod limits;
mod moved;
mod mtus;
mod neighbours;
mod run;
mod services;
mod tls;
mod update;

pub use self::error::{FetchError, InstallError, NodeError};
pub use self::event::{Event, ServiceName};
pub use self::folder::{Folder, Installed};
pub use self::health::socket::{AskError, HealthSocket, ask, is_alive};
pub use self::health::{Health, HealthReport, HealthReporter, health};
pub use self::moved::Substitutes;
pub use self::run::{Options, run};
