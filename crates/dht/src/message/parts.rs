//! What messages consist of.

use crate::id::Id;

/// A node, as others name it.
pub(crate) type Node<A> = (Id, A);

/// What a query asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Method {
    Ping,
    FindNode(Id),
    GetPeers(Id),
    Announce {
        info_hash: Id,
        /// `None` for the port that the query comes from (`implied_port`).
        port: Option<u16>,
        token: Vec<u8>,
    },
}

/// Codes of errors (BEP 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorCode {
    Server = 202,
    Protocol = 203,
    MethodUnknown = 204,
}
