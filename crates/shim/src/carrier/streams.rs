//! The streams of a session at work: shared by the tasks that carry their frames over the paths, and
//! those that copy between streams and TCP connections.

mod copy;
mod incoming;
mod inline;
mod instance;
mod outgoing;
mod path;
mod registry;
mod shared;

pub(crate) use self::incoming::serve;
pub(crate) use self::instance::Instance;
pub(crate) use self::outgoing::carry;
pub(crate) use self::path::{Accepted, accept_path, open_path};
pub(crate) use self::registry::Connections;
pub(crate) use self::shared::Stream;
