//! A SCION border router: one of those of an AS.
//!
//! [`Forwarder`] is the router without I/O: what is to be done with one packet. [`Router`] puts
//! sockets around it: it receives and sends packets in batches, and makes each link behave as
//! `links.json` or a later [`live::Request::SetLink`] says.

mod bfd;
mod budget;
mod check;
mod counters;
mod deliver;
mod emulate;
mod engine;
mod forward;
mod forwarder;
mod interface;
mod io;
pub mod live;
mod mac;
mod onehop;
mod pace;
mod port;
mod reason;
mod router;
mod run;
mod scmp;
mod server;
mod services;
mod verdict;

pub use self::check::CLOCK_SKEW;
pub use self::counters::{Counters, InterfaceCounters};
pub use self::deliver::ENDHOST_PORT;
pub use self::forwarder::Forwarder;
pub use self::interface::ExternalInterface;
pub use self::mac::HopKey;
pub use self::reason::Reason;
pub use self::router::{Router, RouterError};
pub use self::services::Service;
pub use self::verdict::{Answer, Origin, Verdict};
