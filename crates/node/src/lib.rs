//! One AS on this machine: its border routers and its control service, its limits, and the way to
//! the coordinator that configures it.
//!
//! - [`Folder`]: the folder of the AS on disk. Each version of its configuration is a folder of its
//!   own; a symbolic link names the current one, so that a crash at any moment leaves the old
//!   version or the new one, whole.
//! - [`run`]: runs the services as child processes, restarts those that end, and follows the
//!   coordinator: changed limits are applied at once and restart nothing; changed files of the
//!   services restart them. While the coordinator is away, everything goes on.
//!
//! An [`Enforcer`](hawser_limit::Enforcer) limits the links of an attachment point, and counts what they
//! carry.

mod error;
mod event;
mod folder;
mod follow;
mod http;
mod keeper;
mod limits;
mod run;
mod services;
mod tls;

pub use self::error::{FetchError, InstallError, NodeError};
pub use self::event::{Event, ServiceName};
pub use self::folder::{Folder, Installed};
pub use self::run::{Options, run};
