//! Link limits as kernel state, by difference.
//!
//! A link's packets are told from others on a device by the far end's address, or address and UDP port.
//! What this host sends over it waits in a class of an HTB on the device; what it receives is redirected
//! to an IFB, where it does the same. Each class has a queue of its own (`bfifo`), sized in time. Packets
//! are looked up in `u32` hash tables. All other traffic on the device passes as before, unless a default
//! limit is set.
//!
//! [`Limiter::apply`] reads the kernel's state, plans the difference, and sends it as one batch of
//! requests over netlink. The kernel is the only memory: which class a link has is read back from its
//! filters. What fails on one device is that device's failure alone.
//!
//! An [`Enforcer`] limits links that have names, and counts what they carried: [`KernelEnforcer`] by the
//! kernel, for everything that keeps limits in force while it runs.
//!
//! HTB counts a packet that is segmented later (GSO, TSO) with the headers of all its segments, but
//! queues and sends it as one packet. A queue drops a packet that is larger than the whole queue.
//!
//! All calls block, and act on the network namespace of the thread that opened the [`Limiter`].
//!
//! The life of limits. A [`Limiter`] knows nothing of a device at first. It reads the kernel's state, makes
//! its changes, and remembers the outcome, up to [`MAX_LINKS`] links of a device. It forgets a device when
//! a change there has failed, and all of them when the kernel reports that somebody else has changed
//! traffic control. Limits stay in the kernel when the process ends: they are removed by applying none.
//! Nothing runs by itself; who keeps limits in force calls again, at intervals and after each change.
//!
//! A [`Limiter`] belongs to one caller. [`KernelEnforcer`] has a lock around its own, which is held for all
//! of a call, with all requests to the kernel, so that calls wait for each other. No other lock is taken
//! under it.

mod change;
mod device;
mod enforcer;
mod error;
mod htb;
mod kernel_enforcer;
mod layout;
mod limit;
mod limiter;
mod outcome;
mod plan;
mod quote;
mod shape;
mod state;
#[cfg(test)]
mod tests;
mod text;
mod wire;

pub use self::device::{DeviceError, Routes};
pub use self::enforcer::{EnforceError, Enforcer, FailedLinks, LinkCounters, LinkUsage, NamedLink};
pub use self::error::LimitError;
pub use self::kernel_enforcer::{KernelEnforcer, Scope};
pub use self::limit::{Counters, DeviceLimits, Direction, Limit, Limits, Owner, Remote};
pub use self::limiter::{LimitReading, Limiter, Plan, Summary};
pub use self::outcome::Outcome;
pub use self::state::MAX_LINKS;
