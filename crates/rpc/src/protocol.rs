//! Which protocol a request is of, and what its head demands.

use std::time::Duration;

use hyper::HeaderMap;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE};

use crate::code::{Code, RpcError};
use crate::timeout;

/// The content types that are answered.
pub(crate) const ACCEPTED: &str = "application/grpc, application/grpc+proto, application/proto";

/// A protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Grpc,
    Connect,
}

/// What a content type says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// Messages of a protocol.
    Proto(Protocol),
    /// gRPC with other messages, or gRPC-Web.
    OtherGrpc,
    Other,
}

impl Content {
    pub fn of(headers: &HeaderMap) -> Self {
        let text = text(headers, CONTENT_TYPE.as_str()).unwrap_or_default();
        let media_type = text.split(';').next().unwrap_or_default().trim();
        match media_type {
            "application/grpc" | "application/grpc+proto" => Self::Proto(Protocol::Grpc),
            "application/proto" => Self::Proto(Protocol::Connect),
            other if other.starts_with("application/grpc") => Self::OtherGrpc,
            _ => Self::Other,
        }
    }
}

impl Protocol {
    /// The content type of answers.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Grpc => "application/grpc+proto",
            Self::Connect => "application/proto",
        }
    }

    /// How long the answer may take, if the client says so.
    pub fn timeout(self, headers: &HeaderMap) -> Option<Duration> {
        match self {
            Self::Grpc => timeout::grpc(text(headers, "grpc-timeout")?),
            Self::Connect => timeout::connect(text(headers, "connect-timeout-ms")?),
        }
    }

    /// # Errors
    /// When the head demands what there is not: compression, or another version.
    pub fn check(self, headers: &HeaderMap) -> Result<(), RpcError> {
        let encoding = match self {
            Self::Grpc => "grpc-encoding",
            Self::Connect => CONTENT_ENCODING.as_str(),
        };
        if let Some(other) = text(headers, encoding).filter(|&name| name != "identity") {
            let message = format!("unsupported compression: {other}");
            return Err(RpcError::new(Code::Unimplemented, message));
        }
        let version = text(headers, "connect-protocol-version");
        if self == Self::Connect && version.is_some_and(|version| version != "1") {
            let message = "unsupported protocol version";
            return Err(RpcError::new(Code::InvalidArgument, message));
        }
        Ok(())
    }
}

/// The value of a header; empty if it is not text.
fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers
        .get(name)
        .map(|value| value.to_str().unwrap_or_default())
}
