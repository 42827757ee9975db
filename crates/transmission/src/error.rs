//! Why a call fails, with the codes of Transmission's RPC.

use thiserror::Error;

use crate::limits::{MAX_BODY, MAX_VALUES};

/// Why a call fails. A client of the old form gets the text as `result`; one of JSON-RPC the code
/// as of Transmission 4.1, its short text and, as `error_string`, this one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CallError {
    /// No method has this name.
    #[error("method name not recognized")]
    UnknownMethod,
    /// An argument is missing, of the wrong type or out of its range. The text says which.
    #[error("{0}")]
    InvalidParams(String),
    /// Trackers were to be added, removed or replaced, and nothing changes thereby.
    #[error("error setting announce list")]
    AnnounceList,
    /// A list of trackers holds something other than announce URLs.
    #[error("Invalid tracker list")]
    TrackerList,
    /// A folder is not named by an absolute path.
    #[error("{0} is not absolute")]
    PathNotAbsolute(&'static str),
    /// What is to be added is no file, no URL, no magnet link, and no metainfo in base64.
    #[error("unrecognized info")]
    UnrecognizedInfo,
    /// The system or the engine refuses. The text says what and why.
    #[error("{0}")]
    System(String),
    /// hawser has no such thing.
    #[error("{0} not supported")]
    Unsupported(&'static str),
    /// A torrent has no file of this index.
    #[error("file index out of range")]
    FileIndex,
    /// A torrent has no piece of this index.
    #[error("piece index out of range")]
    PieceIndex,
    /// A server on the web did not answer as it should. The text says which and how.
    #[error("{0}")]
    Http(String),
    /// Metainfo that is invalid.
    #[error("invalid or corrupt torrent file")]
    CorruptTorrent,
}

impl CallError {
    /// An argument that is wrong, as the text says.
    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self::InvalidParams(text.into())
    }

    /// Its code in JSON-RPC, and the short text that belongs to the code.
    pub(crate) const fn code(&self) -> (i32, &'static str) {
        match self {
            Self::UnknownMethod => (-32601, "Method not found"),
            Self::InvalidParams(_) => INVALID_PARAMS,
            Self::AnnounceList => (1, "error setting announce list"),
            Self::TrackerList => (2, "Invalid tracker list"),
            Self::PathNotAbsolute(_) => (3, "path is not absolute"),
            Self::UnrecognizedInfo => (4, "unrecognized info"),
            Self::System(_) | Self::Unsupported(_) => (5, "system error"),
            Self::FileIndex => (6, "file index out of range"),
            Self::PieceIndex => (7, "piece index out of range"),
            Self::Http(_) => (8, "HTTP error from backend service"),
            Self::CorruptTorrent => (9, "invalid or corrupt torrent file"),
        }
    }
}

const INVALID_PARAMS: (i32, &str) = (-32602, "Invalid params");
const INVALID_REQUEST: (i32, &str) = (-32600, "Invalid Request");

/// Why a body is no request.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum RequestError {
    #[error("the request is longer than {max} bytes", max = MAX_BODY)]
    TooLong,
    #[error("the request has more than {max} values", max = MAX_VALUES)]
    TooManyValues,
    #[error("{0}")]
    Json(String),
    #[error("request must be an Object")]
    NotObject,
    #[error("batches of requests are not supported: send each request by itself")]
    Batch,
    #[error("JSON-RPC version is not 2.0")]
    Version,
    #[error("id type must be String, Number, or Null")]
    Id,
    #[error("no method name")]
    NoMethod,
    #[error("{0} must be an Object")]
    Arguments(&'static str),
}

impl RequestError {
    /// As of [`CallError::code`].
    pub(crate) const fn code(&self) -> (i32, &'static str) {
        match self {
            Self::Json(_) => (-32700, "Parse error"),
            Self::Arguments(_) => INVALID_PARAMS,
            _ => INVALID_REQUEST,
        }
    }
}
