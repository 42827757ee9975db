//! A job: one transfer that a user has submitted.

use std::fmt;

use hawser_endhost::ScionAddr;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::text;

/// The number of a job. It is never used again.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    ToSchema,
)]
#[serde(transparent)]
#[schema(as = TransferId)]
pub struct JobId(pub u64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a user asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Submission {
    /// The user.
    pub user: String,
    /// The file or folder on this host: absolute, or relative to the user's first folder.
    pub source: String,
    /// The server that receives it.
    #[serde(with = "text")]
    #[schema(value_type = String)]
    pub server: ScionAddr,
    /// The name that it gets there, relative to the server's folder.
    pub destination: String,
    /// Jobs of higher priority run first.
    #[serde(default)]
    #[schema(required, minimum = -128, maximum = 127)]
    pub priority: i8,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Transfer)]
pub struct Job {
    /// Its number.
    pub id: JobId,
    /// What the user asked for.
    #[serde(flatten)]
    pub submission: Submission,
    /// How far it is.
    #[serde(flatten)]
    pub state: JobState,
    /// Attempts that failed since content was last delivered.
    pub failed_attempts: u32,
    /// When the first of these failed, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub failing_since: Option<u64>,
    /// Why the last attempt failed, or the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<JobFailure>,
    /// What was delivered when the last attempt ended; of a running job, now.
    pub progress: JobProgress,
    /// When it was submitted, in seconds since 1970.
    pub submitted: u64,
    /// When it first ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub started: Option<u64>,
    /// When it reached its final state.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub ended: Option<u64>,
}

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = TransferState)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum JobState {
    /// It runs when its turn comes.
    Queued,
    /// An attempt failed, and the next one is not made yet.
    Waiting {
        /// When it may run again, in seconds since 1970.
        until: u64,
    },
    /// It runs.
    Running,
    /// Everything was delivered and verified.
    Done,
    /// It failed, and is not tried again.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl JobState {
    /// Whether it never changes again.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled)
    }

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Waiting { .. } => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = TransferFailure)]
pub struct JobFailure {
    /// For programs.
    pub kind: FailureKind,
    /// For people.
    pub text: String,
}

/// The kinds of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// No path to the server is known, or works.
    NoPaths,
    /// The server did not answer.
    Timeout,
    /// What is to be sent does not exist, may not be read, or changed meanwhile.
    Source,
    /// It has more files, or longer names, than can be sent.
    TooLarge,
    /// One side does not trust or allow the other.
    Refused,
    /// The server cannot write.
    Storage,
    /// Any other.
    Other,
}

/// What of a job was delivered. Bytes are bytes of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = TransferProgress)]
pub struct JobProgress {
    /// Bytes in all; 0 before the files are known.
    pub bytes: u64,
    /// Bytes that are verified at the server.
    pub verified_bytes: u64,
    /// Bytes of these that were there before.
    pub existing_bytes: u64,
    /// Number of files.
    pub files: u64,
}
