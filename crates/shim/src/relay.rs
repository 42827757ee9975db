//! Relaying the connections of programs: copying between two of them, and connecting to servers.

mod copy;
mod endpoint;
mod server;

pub(crate) use self::copy::{
    connect, copy, copy_bytes, delivered, discard, finish, has_ended, is_end, is_incomplete,
    read_exact, reset, wait_after, write_all,
};
pub(crate) use self::endpoint::{Endpoint, Watched};
pub(crate) use self::server::{IncomingError, connect_server};
