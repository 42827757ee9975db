//! Which failures of transfers may pass.

use std::fmt::Display;

use hawser_bulk::protocol::ErrorCode;
use hawser_bulk::{FailedFile, TransferError};

use crate::job::{FailureKind, JobFailure};
use crate::queue::Outcome;

pub(super) fn failed(kind: FailureKind, text: impl Display) -> JobFailure {
    JobFailure {
        kind,
        text: text.to_string(),
    }
}

/// The outcome of an attempt that failed with `error`.
pub(super) fn of(error: &TransferError) -> Outcome {
    let (kind, may_pass) = classify(error);
    let failure = failed(kind, error);
    match may_pass {
        true => Outcome::Transient(failure),
        false => Outcome::Permanent(failure),
    }
}

/// The outcome of an attempt after which these files are missing: the next one sends them.
pub(super) fn of_files(missing: &[FailedFile]) -> Outcome {
    let Some(first) = missing.first() else {
        return Outcome::Done;
    };
    let kind = match first.at_source {
        true => FailureKind::Source,
        false => FailureKind::Storage,
    };
    let (path, reason) = (first.path.display(), &first.reason);
    let text = match missing.len() - 1 {
        0 => format!("{path} was not transferred: {reason}"),
        more => format!("{path} was not transferred: {reason}; nor were {more} others"),
    };
    Outcome::Transient(failed(kind, text))
}

/// The kind, and whether a later attempt may work without a change of the job or a configuration.
const fn classify(error: &TransferError) -> (FailureKind, bool) {
    match error {
        TransferError::Paths(_) | TransferError::NoPath { .. } => (FailureKind::NoPaths, true),
        TransferError::Unreachable { .. } => (FailureKind::Timeout, true),
        TransferError::Scan(_) => (FailureKind::Source, false),
        // A file that changed meanwhile is listed anew.
        TransferError::Source(_) | TransferError::Mismatch => (FailureKind::Source, true),
        TransferError::Manifest(_) => (FailureKind::TooLarge, false),
        TransferError::ServerKey(_)
        | TransferError::OtherServer { .. }
        | TransferError::Code
        | TransferError::Revoked => (FailureKind::Refused, false),
        TransferError::Peer { code, .. } => by_code(*code),
        TransferError::Bind(_)
        | TransferError::DataSocket(_)
        | TransferError::Thread(_)
        | TransferError::Data(_)
        | TransferError::Replaced => (FailureKind::Other, true),
        _ => (FailureKind::Other, false),
    }
}

const fn by_code(code: ErrorCode) -> (FailureKind, bool) {
    match code {
        ErrorCode::KEY | ErrorCode::NOT_ALLOWED => (FailureKind::Refused, false),
        ErrorCode::DISK_FULL | ErrorCode::STORAGE => (FailureKind::Storage, true),
        ErrorCode::MANIFEST => (FailureKind::TooLarge, false),
        ErrorCode::MISMATCH => (FailureKind::Source, true),
        ErrorCode::NO_SESSION | ErrorCode::TOO_MANY | ErrorCode::CANCELLED => {
            (FailureKind::Other, true)
        }
        _ => (FailureKind::Other, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_attempt_cannot_change_fails_at_once() {
        let peer = |code| TransferError::Peer {
            code,
            text: "no".into(),
        };
        for code in [ErrorCode::KEY, ErrorCode::MANIFEST, ErrorCode::VERSION] {
            assert!(matches!(of(&peer(code)), Outcome::Permanent(_)), "{code:?}");
        }
        for code in [
            ErrorCode::DISK_FULL,
            ErrorCode::TOO_MANY,
            ErrorCode::CANCELLED,
        ] {
            assert!(matches!(of(&peer(code)), Outcome::Transient(_)), "{code:?}");
        }
        let outcome = of(&TransferError::Replaced);
        assert!(matches!(outcome, Outcome::Transient(_)));
    }
}
