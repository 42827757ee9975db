//! A SCION network on one machine.
//!
//! A [`Lab`] runs a [`Network`]: a network namespace per AS, a veth pair per link with limits on
//! both ends, a border router and a control service per AS (or several routers, if the topology
//! names them). It can be changed while traffic crosses it, and is removed without remains.
//!
//! A lab exists as processes, not as files: a namespace exists while a process is in it, devices
//! and limits while their namespace exists, and the services while the lab's supervisor runs. The
//! supervisor restarts services that end, and ends with the lab's owner, if there is one. The
//! folder of a lab only describes the lab; the next command removes the remains of killed commands
//! ([`Lab::sweep`]). Without root a lab has a separate user namespace; a lab never changes the
//! namespaces of the machine.
//!
//! Addresses: the host of the AS that the topology lists as number n has `10.0.n.1`, its first
//! router `10.0.n.254:30042` (the next ones `.253` and below), its control service
//! `10.0.n.254:30252`, its daemon `127.0.0.1:30255`. Links have pairs of `10.128.0.0/9`. If the
//! topology says `underlay: UDP/IPv6`, SCION runs over IPv6: hosts have `fd00:0:0:n::1`, routers
//! and services `fd00:0:0:n::fe` and below, links pairs of `fd00:0:1::/48`. Hosts always reach each
//! other by plain IPv4 too, over the fewest links, so that TCP can be compared with SCION. A process
//! per AS, its emulator, gives plain IP the links' delay, jitter and loss. In a lab that was changed while
//! it ran ([`Lab::apply`]) parts that stayed have the addresses that they had, and n of an AS that came
//! later is the lowest number that was free.
//!
//! Hosts may be added to an AS while the lab runs, as a namespace of another program ([`Lab::attach`]) or one
//! of their own ([`Lab::add_host`]): with `10.0.n.2` and above, or `fd00:0:0:n::2`. The daemon answers them at
//! `10.0.n.254:30255`. Plain IP reaches them inside their AS alone.
//!
//! [`Network`]: hawser_topology::Network
//!
//! The life of a lab. [`Lab::up`] takes the lab's lock, writes its folder and starts the supervisor, which
//! shares the lock until all is up; if that fails, the command clears up, or the supervisor does if the
//! command was killed. While the lab runs, commands speak with the supervisor over its socket, one at a
//! time. [`Lab::down`] or the end of the owner ends all processes and removes the folder. If the supervisor
//! is killed, the kernel ends the services with it.
//!
//! The lock of a lab is a file beside its folder (flock(2)); nothing in memory is locked. [`Lab::up`],
//! [`Lab::down`], [`Lab::sweep`] and changes of the lab hold it for all of their work, also while they wait
//! for the supervisor. So the supervisor takes it only after it has closed its socket.

mod announce;
mod apply;
mod attach;
mod bfd;
mod build;
mod capture;
mod change;
mod dir;
mod down;
mod emulator;
mod enter;
mod error;
mod invite;
mod lab;
mod link;
mod live;
mod logs;
mod name;
mod names;
mod need;
mod netlink;
mod place;
mod plan;
mod process;
mod protocol;
mod reap;
mod report;
mod restart;
mod state;
mod status;
mod stray;
mod supervisor;
mod sweep;
mod up;

pub use self::apply::{Applied, ApplyError};
pub use self::attach::{Guest, GuestError};
pub use self::capture::{Capture, CaptureInterface, CaptureWriter, Frame, SNAP_LENGTH};
pub use self::change::LabStep;
pub use self::down::DownProgress;
pub use self::emulator::{PlainIp, emulate};
pub use self::error::{DownError, LabError};
pub use self::invite::{Invitation, Invite, Relay, RelayEnd, Relayed};
pub use self::lab::{Lab, Listed, OpenError};
pub use self::link::LinkChange;
pub use self::logs::{BoundedLog, LOG_LIMIT, LogLine, LogSource, Logs};
pub use self::name::{DEFAULT_NAME, NameError, check as check_name};
pub use self::need::Resources;
pub use self::place::PlaceError;
pub use self::plan::{PlanError, ip_route};
pub use self::protocol::{Attached, LimitState};
pub use self::report::{StartError, UpProgress};
pub use self::restart::RestartOf;
pub use self::status::{
    AsStatus, EndStatus, HostStatus, LinkStatus, ProcessStatus, RouterStatus, Status,
};
pub use self::supervisor::supervise;
pub use self::up::{Options, Up, UpError};
