//! Unary calls between SCION's hosts and services: gRPC over HTTP/2, and Connect with Protocol Buffers
//! over HTTP/1 and HTTP/2, both without TLS.
//!
//! - [`Router`], [`serve`]: a service. One port speaks both protocols; the content type of a request
//!   says which it is.
//! - [`Client`]: a client, which speaks gRPC.
//! - [`RpcError`], [`Code`]: why a call failed.
//!
//! A call is one message each way. There are no streams, no compression, no JSON besides Connect's
//! errors, and no gRPC-Web: who asks for these gets the error that the protocol has for it.
//!
//! Bounds: a message has at most [`MAX_MESSAGE`] bytes, in both directions. A connection has at most 200
//! requests at once (as hyper has it); the head of a request over HTTP/1 may take 10 s. A client may say
//! how long an answer may take (`grpc-timeout`, `connect-timeout-ms`): the time runs from the head of the
//! request, and ends the reading of its body, too.
//!
//! [`serve`] runs a task for each connection, and [`Client`] one for its connection; all of a server's end
//! when its future is dropped.
//!
//! What both protocols consist of is in modules without I/O: `frame` (the frames of gRPC), `status` (its
//! errors as headers), `timeout`, `code` (the codes and their numbers and names) and `protocol` (which
//! one a request is of, and what its head demands). `server::reply` writes answers.
//!
//! Sources: "gRPC over HTTP2" (grpc/grpc, `doc/PROTOCOL-HTTP2.md`), "Connect Protocol Reference"
//! (connectrpc.com).

mod client;
mod code;
mod frame;
mod protocol;
mod server;
mod status;
mod timeout;

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;

pub use self::client::{Client, InvalidAddress};
pub use self::code::{Code, RpcError};
pub use self::frame::MAX_MESSAGE;
pub use self::server::{Encoded, Router, serve};
