//! The transfer service: a queue of bulk transfers with an HTTP API.
//!
//! - [`Config`]: what its file says.
//! - [`run()`]: runs a service of a configuration.
//! - [`Queue`]: the jobs, their states and limits, and which of them runs next. Pure: no I/O, no
//!   clock.
//! - [`JobLog`]: the jobs on disk, so that they survive a crash.
//! - [`Service`]: both at work, with a [`Carrier`] that does the transfers.
//!
//! The life of a service. [`run()`] reads the jobs, binds the sockets, and reports that it is ready; what
//! fails until then is its error. Then it starts jobs until it is stopped, with a task for each attempt.
//! Beside it run a task for each socket of the API, one that receives from other hosts, and one that
//! follows the configuration's file; when one of these ends by itself, the service ends. At the end
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
mod http;
mod job;
mod log;
mod queue;
mod run;
mod service;
mod text;
mod users;

pub use self::carrier::{Attempt, BulkCarrier, Carrier, Task};
pub use self::config::{
    Config, ConfigError, HttpConfig, HttpsConfig, NetworkConfig, ReceiveConfig, TransfersConfig,
    UserConfig,
};
pub use self::event::{Addresses, ServiceEvent};
pub use self::http::Listener;
pub use self::job::{FailureKind, Job, JobFailure, JobId, JobProgress, JobState, Submission};
pub use self::log::{JobLog, JobLogError, Loaded};
pub use self::queue::{CancelError, Limits, Outcome, Queue, SubmitError, UserLimits};
pub use self::run::{RunError, run};
pub use self::service::{Counters, NewJob, Receive, RequestError, Service};
pub use self::users::{Place, PlaceError, User, Users};
