//! How a client recognises a server.

use crate::code::Code;
use crate::known::Known;

/// How a client recognises a server.
#[derive(Debug, Clone)]
pub enum Trust {
    /// By its key.
    Known(Known),
    /// By a short code, which also shows the server that the client is the right one.
    Code(Code),
    /// Any server is trusted.
    Any,
}
