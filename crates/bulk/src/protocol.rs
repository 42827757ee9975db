//! The bulk protocol, without I/O and without a clock (`docs/bulk-protocol.md`).
//!
//! - [`Message`] and [`SessionMessage`] are what a control stream carries; [`Framing`] takes them out
//!   of it. [`Outbox`] and [`Inbox`] keep the messages of a session complete and in order while
//!   connections come and go.
//! - [`Sealer`] and [`Opener`] turn content, acknowledgements and probes into datagrams and back.
//! - [`Source`] decides what is sent over which subflow, and when. [`Sink`] decides what is
//!   acknowledged, and when. Both are given the time with each call.

mod ack;
mod log;
mod message;
mod packet;
mod ranges;
mod sink;
mod source;
mod wire;

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod model;

pub use self::ack::Ack;
pub use self::log::{Inbox, LogError, Outbox};
pub use self::message::{
    Choices, ErrorCode, Framing, MAX_MESSAGE, Message, Open, Role, SESSION_ID, SessionId,
    SessionMessage, SkipReason, Wants,
};
pub use self::packet::{
    DATA_OVERHEAD, FORMAT, Opened, Opener, Payload, Rejected, Rejections, Sealer,
};
pub use self::ranges::RangeSet;
pub use self::sink::{NewParts, Sink, SinkError, SinkStats};
pub use self::source::{Acked, Source, SourceError, SubflowStats, Transmit};
pub use self::wire::{DecodeError, MAX_VARINT, Reader, VERSION, Writer};

/// The name of a subflow inside one process. Its user chooses it, and uses none twice in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubflowKey(pub u32);
