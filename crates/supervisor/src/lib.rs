//! Services kept alive: processes that are started, watched, started again when they end, and ended.
//!
//! The life of a service. It is *down* until it is wanted. Then it *waits* for its time, which is now
//! for a new one, and *launches*: a process is started. The process is *starting* until it listens on
//! its socket, then *ready*. When it ends by itself, the service waits again, longer after each such
//! end in a row; after a run of [`Policy::steady`] the row is over. When it is no longer wanted, or is
//! to be replaced, it is *ending*: SIGTERM, after [`Policy::grace`] SIGKILL, and if it still runs
//! after [`Policy::kill_timeout`], it is *stuck*, and only watched. Once the process has ended, the
//! service launches at once if it was to be replaced, and is down otherwise. So it never has two
//! processes.
//!
//! [`ServiceSet`] holds these lives. It has no I/O and no clock: events go in with their time, and
//! [`ServiceSet::orders`] says what is to be done. [`Supervisor`] drives it with child processes: its
//! user calls [`Supervisor::drive`] whenever the supervisor's file descriptor is readable, and at
//! [`Supervisor::next_due`]. The user creates the processes and gets [`Report`]s. Nothing is written
//! to a log and no thread is started here, so that it works in a loop of `poll(2)` as well as in an
//! async runtime ([`AsyncSupervisor`]).
//!
//! A process with number 1 reaps orphans too. It must leave the processes of the supervisor to it:
//! `waitid(2)` with `WNOWAIT` tells whose process has ended, and [`Supervisor::owns`] whether that is
//! one of its own.

mod asynchronous;
mod handle;
mod lines;
mod policy;
mod process;
mod report;
mod service;
mod set;
mod supervisor;

pub use self::asynchronous::AsyncSupervisor;
pub use self::handle::Handle;
pub use self::policy::{KILL_TIMEOUT, Policy};
pub use self::process::listens;
pub use self::report::Report;
pub use self::service::{Exit, Status};
pub use self::set::{Order, ServiceId, ServiceSet};
pub use self::supervisor::{Launch, Supervisor};
