//! A SCION border router of an AS.
//!
//! [`Forwarder`] is the router without I/O: it decides what to do with one packet. [`Router`] adds
//! the sockets: it receives and sends packets in batches, and emulates the state of each link that
//! `links.json` or a later [`live::Request::SetLink`] describes.

mod bfd;
mod budget;
mod check;
mod deliver;
mod error;
mod flow;
mod forward;
mod forwarder;
mod io;
pub mod live;
mod mac;
mod onehop;
mod port;
mod reason;
mod reload;
mod repeat;
mod router;
mod run;
mod scmp;
mod server;
mod setup;
mod shared;
pub mod stun;
mod switch;
mod transmit;
mod upkeep;
mod verdict;
mod worker;

pub use self::check::CLOCK_SKEW;
pub use self::deliver::ENDHOST_PORT;
pub use self::error::RouterError;
pub use self::forwarder::{ExternalInterface, Forwarder, Service};
pub use self::io::Signals;
pub use self::live::{Counters, InterfaceCounters};
pub use self::mac::HopKey;
pub use self::reason::DropReason;
pub use self::router::{Options, Router};
pub use self::verdict::{Answer, Origin, PacketVerdict};
