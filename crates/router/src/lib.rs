//! A SCION border router of an AS.
//!
//! [`Forwarder`] is the router without I/O: it decides what to do with one packet. [`Router`] adds
//! the sockets: it receives and sends packets in batches, and emulates the state of each link that
//! `links.json` or a later [`live::Request::SetLink`] describes.
//!
//! Its life: [`Router::open`] reads the folder of the AS and binds all sockets, the control socket
//! last. [`Router::run`] forwards in as many threads as its [`Options`] say; each has sockets of
//! its own for every interface, and the kernel gives it whole flows. The calling thread is the
//! first of them. It alone has the BFD sessions, the signals and the control socket, and passes
//! what it finds on to the others. On SIGHUP or [`live::Request::Reload`] all go over to another
//! topology at once, or nothing changes. It ends on SIGTERM, SIGINT, [`live::Request::Stop`], or
//! when any of its threads ends. A thread naps while packets flow, and otherwise waits until
//! packets come, something is due, or it is woken. Packets are held only for the delay of their
//! link, at most 256 MiB of them for each thread and interface.
//!
//! What a thread forwards with is behind one lock (`switch`). The thread holds it while it works,
//! which includes receiving and sending, not while it waits. The first thread also locks those of
//! the others, one at a time, for links, counters and BFD. Only a reload has several, all of them,
//! in the order of their threads; it reads the hop key and binds new sockets meanwhile. The budgets
//! of an interface, which its threads share, are locked under that, one at a time.

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
#[cfg(test)]
mod testing;
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
pub use self::reason::DropReason;
pub use self::router::{Options, Router};
pub use self::verdict::{Answer, Origin, PacketVerdict};
