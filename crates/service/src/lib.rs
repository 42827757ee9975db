//! The transfers of a daemon: a queue of bulk transfers with an HTTP API.
//!
//! - [`Config`]: what the file of the daemon says, its users among it.
//! - [`Transfers`]: a queue from its configuration and files; [`HostNetwork`]: the network that this host is in,
//!   or joins when it is needed.
//! - [`Queue`]: the jobs, their states and limits, and which of them runs next. Pure: no I/O, no
//!   clock.
//! - [`JobLog`]: the jobs on disk, so that they survive a crash.
//! - [`Service`]: both at work, with a [`Carrier`] that does the transfers; [`part`]: its API.
//!
//! The life of a service. [`Transfers::open`] reads the jobs, and binds the sockets if this host is in a network;
//! what fails until then is its error. [`Transfers::run`] starts jobs until it is stopped, with a task for each
//! attempt. Beside it run a task that receives from other hosts, as soon as this one is in a network, and one
//! that follows the configuration's file; when one of these ends by itself, the service ends. At the end
//! attempts are interrupted, and have three seconds to end. Their jobs are queued again when the service is
//! run next.
//!
//! All jobs are in memory: those to run, of which each user may have so many, and those that have ended,
//! for as many days as the configuration says, whatever their number. `hawser-http` bounds connections of
//! the API, the configuration sessions of other hosts.
//!
//! `service` says which locks there are, and `queue` which states a job has.

mod carrier;
mod config;
mod event;
mod follow;
mod host;
mod http;
mod job;
mod log;
mod owner;
mod queue;
mod service;
mod text;
mod transfers;
mod users;

pub use self::carrier::{Attempt, BulkCarrier, Carrier, Task};
pub use self::config::{
    Config, ConfigError, HttpConfig, HttpsConfig, NetworkConfig, ReceiveConfig, TransfersConfig,
    UserConfig,
};
pub use self::event::ServiceEvent;
pub use self::host::{Host, HostError, HostNetwork, NetworkError};
pub use self::http::{description, part};
pub use self::job::{FailureKind, Job, JobFailure, JobId, JobProgress, JobState, Submission};
pub use self::log::{JobLog, JobLogError, Loaded};
pub use self::owner::OWNER;
pub use self::queue::{CancelError, Limits, Outcome, Queue, SubmitError, UserLimits};
pub use self::service::{Counters, NewJob, RequestError, Service};
pub use self::transfers::{Transfers, TransfersError};
pub use self::users::{Place, PlaceError, User, Users};
