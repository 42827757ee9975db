//! Requests of commands to a lab's supervisor, over the Unix socket `lab.sock`.
//!
//! The reply to [`Request::Enter`] comes with the namespaces as file descriptors, so that commands
//! need neither `/proc` nor process numbers, which may have been reused.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use hawser_kernel::rpc;
use hawser_limit::LimitReading;
use hawser_topology::{IsdAsn, LinkState, Side};
use rustix::fd::{BorrowedFd, OwnedFd};
use serde::{Deserialize, Serialize};

use crate::change::Step;
use crate::error::LabError;
use crate::plan::LinkId;
use crate::state::Service;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Requests the namespaces of an AS, or of a host that was added to it.
    Enter {
        isd_as: IsdAsn,
        #[serde(default)]
        host: Option<String>,
    },
    /// Makes a host of an AS. The network namespace that comes with the request becomes the host; if
    /// none does, the supervisor makes one.
    AddHost {
        isd_as: IsdAsn,
        /// Its name; `None` for one that the lab chooses.
        name: Option<String>,
    },
    /// Removes a host, and ends what runs in it if the lab made its namespace.
    RemoveHost { isd_as: IsdAsn, name: String },
    /// The services of an AS that is to be added run elsewhere.
    RunElsewhere { isd_as: IsdAsn },
    /// Requests the hosts whose namespaces have ended, each with its AS.
    EndedHosts,
    /// Requests the limits of all links, with counters.
    Limits,
    /// Changes the limit on these ends of a link, and sets its devices up or down.
    SetLink {
        link: LinkId,
        sides: Vec<Side>,
        state: LinkState,
    },
    /// Requests the history of the services that have ended at least once.
    Services,
    /// Restarts a service of an AS. The reply comes when the service is ready.
    Restart { isd_as: IsdAsn, service: Service },
    /// Requests the steps that make the lab one of the network in the file `next.json`.
    Plan,
    /// Carries out a step towards the network in `next.json`, which must be one of the planned.
    Step(Step),
    /// Ends all processes of the lab, then the supervisor itself.
    Stop,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// Comes with the network namespace, and the lab's user namespace if there is one.
    Entered,
    /// For each link the limits of its two ends.
    Limits(Vec<(LinkId, [Option<LimitState>; 2])>),
    /// The steps, in their order.
    Steps(Vec<Step>),
    /// A step was carried out; perhaps a part of it is left to the user.
    Stepped {
        note: Option<String>,
    },
    Services(Vec<History>),
    /// A host was made.
    Host(Attached),
    EndedHosts(Vec<(IsdAsn, String)>),
    Done,
    Error {
        message: String,
    },
}

/// A host that was added to an AS, and what its programs need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Attached {
    /// The AS.
    pub isd_as: IsdAsn,
    /// The name of the host, unique in its AS.
    pub name: String,
    /// Its address.
    pub address: IpAddr,
    /// The daemon of the AS, for `SCION_DAEMON`.
    pub daemon: SocketAddr,
    /// The bootstrap server of the AS.
    pub bootstrap: SocketAddr,
    /// What is left to the user.
    pub notes: Vec<String>,
}

/// A limit and its counters, read from the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitState {
    /// The limit in bit/s of Ethernet frames.
    pub rate: u64,
    /// Bytes of frames sent.
    pub bytes: u64,
    /// Frames sent. A super-packet of segmentation offload counts as one frame; the kernel does not
    /// count those of plain IP over a link with delay, jitter or loss.
    pub packets: u64,
    /// Frames dropped at a full queue.
    pub drops: u64,
    /// Bytes of frames in the queue.
    pub backlog: u64,
}

impl LimitState {
    pub(crate) fn new(limit: &LimitReading) -> Self {
        let counters = limit.counters;
        Self {
            rate: limit.rate,
            bytes: counters.bytes,
            packets: counters.packets,
            drops: counters.drops.into(),
            backlog: counters.backlog.into(),
        }
    }
}

/// The history of a service that has ended without a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct History {
    pub isd_as: IsdAsn,
    pub service: Service,
    /// How it ended the last time: `exit status: 1`, `signal: 9 (SIGKILL)`.
    pub ended: String,
    /// Number of restarts.
    pub restarts: u32,
    /// Time until the next start; `None` while it runs.
    pub restart_in: Option<Duration>,
}

/// Sends a request to the supervisor at `socket`, and waits up to `timeout` for its reply.
pub(crate) fn call(
    socket: &Path,
    request: &Request,
    timeout: Duration,
) -> Result<(Reply, Vec<OwnedFd>), LabError> {
    match supervisor(timeout).call_for_fds(socket, request)? {
        (Reply::Error { message }, _) => Err(LabError::Failed(message)),
        reply => Ok(reply),
    }
}

/// As [`call`]; sends descriptors with the request.
pub(crate) fn call_with(
    socket: &Path,
    (request, fds): (&Request, &[BorrowedFd<'_>]),
    timeout: Duration,
) -> Result<Reply, LabError> {
    match supervisor(timeout).call_with_fds(socket, request, fds)? {
        Reply::Error { message } => Err(LabError::Failed(message)),
        reply => Ok(reply),
    }
}

fn supervisor(timeout: Duration) -> rpc::Service {
    rpc::Service {
        name: "lab supervisor",
        timeout,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parsing_any_request_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..512)) {
            let (mut here, there) = UnixStream::pair().unwrap();
            bytes.push(b'\n');
            here.write_all(&bytes).unwrap();
            drop(here);
            let _ = rpc::receive::<Request>(&there);
        }
    }
}
