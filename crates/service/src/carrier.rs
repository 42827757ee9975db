//! How a job is done: one attempt at a time.

mod bulk;
mod failure;

use std::pin::Pin;

use hawser_bulk::Limit;
use hawser_endhost::ScionAddr;
use tokio::sync::{oneshot, watch};

pub use self::bulk::BulkCarrier;
pub(crate) use self::bulk::SocketsError;
use crate::job::JobProgress;
use crate::queue::Outcome;
use crate::users::Place;

/// What does transfers.
pub trait Carrier: Send + Sync + 'static {
    /// Makes one attempt.
    fn carry(&self, task: Task) -> Pin<Box<dyn Future<Output = Attempt> + Send>>;
}

/// What is to be done.
#[derive(Debug)]
pub struct Task {
    /// What is sent.
    pub source: Place,
    /// The server.
    pub server: ScionAddr,
    /// The folder there, relative to the server's, with a slash at its end; empty for that itself.
    pub folder: String,
    /// The name that it gets there.
    pub name: String,
    /// What the transfer keeps to, with others; `None` for no limit.
    pub limit: Option<Limit>,
    /// What was delivered is reported here.
    pub progress: watch::Sender<JobProgress>,
    /// The attempt is interrupted when the other end is dropped.
    pub stop: oneshot::Receiver<()>,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempt {
    /// By itself.
    Ended(Outcome),
    /// It was interrupted.
    Interrupted,
}
