//! The transfer service: a queue of bulk transfers with an HTTP API.
//!
//! - [`Config`]: what its file says.
//! - [`run`]: runs a service of a configuration.
//! - [`Queue`]: the jobs, their states and limits, and which of them runs next. Pure: no I/O, no
//!   clock.
//! - [`JobLog`]: the jobs on disk, so that they survive a crash.
//! - [`Service`]: both at work, with a [`Carrier`] that does the transfers.

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
