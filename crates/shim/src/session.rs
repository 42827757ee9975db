//! Sessions of two hosts, as state machines: events in, actions out, without I/O and without a clock.
//!
//! - [`client`]: a session that this host opens. It dials, and decides which lane is under which slot.
//! - [`server`]: the sessions that other hosts open with this one. They follow the side that dials.

mod client;
mod lane_key;
#[cfg(test)]
mod network;
mod published;
mod server;

pub(crate) use self::client::{
    Action, ClientSession, Connect, Connected, DialError, Ending, Figures, HEAD_START, LaneOrigin,
    RequestId, Settings,
};
pub(crate) use self::lane_key::LaneKey;
pub(crate) use self::server::{
    Bindings, Opening, Refusal, ServerAction, ServerSession, ServerSessions, ServerSettings,
    SessionId,
};
