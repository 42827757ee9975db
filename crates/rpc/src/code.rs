//! Why calls fail.

/// Why a call failed. Both protocols have the same codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// The caller gave up.
    Canceled,
    /// None of the others.
    Unknown,
    /// The request is wrong, whatever the state of the service is.
    InvalidArgument,
    /// There was no answer in time.
    DeadlineExceeded,
    /// What is asked for does not exist.
    NotFound,
    /// What is to be made exists.
    AlreadyExists,
    /// The caller may not do this.
    PermissionDenied,
    /// A bound is exceeded.
    ResourceExhausted,
    /// The service is not in the state for this.
    FailedPrecondition,
    /// Another call interfered.
    Aborted,
    /// The request goes past the end of something.
    OutOfRange,
    /// The service does not have the method, or what is asked of it.
    Unimplemented,
    /// A fault of the service.
    Internal,
    /// The service cannot be reached, or cannot answer now.
    Unavailable,
    /// Data are lost.
    DataLoss,
    /// The caller is unknown.
    Unauthenticated,
}

/// Each code with its name in Connect and its HTTP status there. Its number in gRPC is its place,
/// counted from 1.
const CODES: [(Code, &str, u16); 16] = [
    (Code::Canceled, "canceled", 499),
    (Code::Unknown, "unknown", 500),
    (Code::InvalidArgument, "invalid_argument", 400),
    (Code::DeadlineExceeded, "deadline_exceeded", 504),
    (Code::NotFound, "not_found", 404),
    (Code::AlreadyExists, "already_exists", 409),
    (Code::PermissionDenied, "permission_denied", 403),
    (Code::ResourceExhausted, "resource_exhausted", 429),
    (Code::FailedPrecondition, "failed_precondition", 400),
    (Code::Aborted, "aborted", 409),
    (Code::OutOfRange, "out_of_range", 400),
    (Code::Unimplemented, "unimplemented", 501),
    (Code::Internal, "internal", 500),
    (Code::Unavailable, "unavailable", 503),
    (Code::DataLoss, "data_loss", 500),
    (Code::Unauthenticated, "unauthenticated", 401),
];

impl Code {
    /// Its number in gRPC, 1 to 16.
    pub(crate) fn number(self) -> u16 {
        self as u16 + 1
    }

    /// The code with a number of gRPC; `None` for 0, which is no error, and for unknown ones.
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        let place = usize::try_from(number).ok()?.checked_sub(1)?;
        CODES.get(place).map(|(code, _, _)| *code)
    }

    /// Its name in Connect.
    pub fn name(self) -> &'static str {
        CODES[usize::from(self.number() - 1)].1
    }

    /// The HTTP status of an answer of Connect.
    pub(crate) fn http_status(self) -> u16 {
        CODES[usize::from(self.number() - 1)].2
    }

    /// The code for an answer that is not gRPC's (`doc/http-grpc-status-mapping.md`).
    pub(crate) fn from_http_status(status: u16) -> Self {
        match status {
            400 => Self::Internal,
            401 => Self::Unauthenticated,
            403 => Self::PermissionDenied,
            404 => Self::Unimplemented,
            429 | 502..=504 => Self::Unavailable,
            _ => Self::Unknown,
        }
    }
}

/// Why a call failed, in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct RpcError {
    /// The code, which decides.
    pub code: Code,
    /// The explanation: the name of the code if the service gave none.
    pub message: String,
}

impl RpcError {
    /// An error with an explanation.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            code,
            message: match message.is_empty() {
                true => code.name().to_owned(),
                false => message,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_stand_at_their_numbers() {
        for (at, (code, _, _)) in CODES.into_iter().enumerate() {
            assert_eq!(usize::from(code.number()), at + 1);
            assert_eq!(Code::from_number(u32::from(code.number())), Some(code));
        }
        // Numbers that the protocol fixes.
        assert_eq!(Code::NotFound.number(), 5);
        assert_eq!(Code::Unimplemented.number(), 12);
        assert_eq!(Code::Unauthenticated.number(), 16);
        for none in [0, 17, u32::MAX] {
            assert_eq!(Code::from_number(none), None);
        }
    }
}
