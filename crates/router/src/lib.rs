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
mod io;
pub mod live;
mod mac;
mod onehop;
mod pace;
mod place;
mod port;
mod reason;
mod router;
mod run;
mod scmp;
mod server;
mod wire;

pub use self::counters::{Counters, InterfaceCounters};
pub use self::deliver::ENDHOST_PORT;
pub use self::forward::{Answer, CLOCK_SKEW, Forwarder, Origin, Verdict};
pub use self::mac::{HopKey, MacInput};
pub use self::place::{Face, Service};
pub use self::reason::Reason;
pub use self::router::{Router, RouterError};
pub use self::scmp::Problem;
