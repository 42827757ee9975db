//! Requests of commands to a lab's supervisor, over the Unix socket `lab.sock`.
//!
//! The reply to [`Request::Enter`] comes with the namespaces as file descriptors: no `/proc` is
//! needed, and no process number that may have been reused.

use std::path::Path;
use std::time::Duration;

use hawser_kernel::rpc;
use hawser_limit::{Counters as LimitCounters, LinkLimit};
use hawser_topology::LinkState;
use rustix::fd::OwnedFd;
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::state::Service;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// The namespaces of the AS at that index in the network.
    Enter { owner: usize },
    /// The limits of all links, with counters.
    Limits,
    /// Changes the limit on both ends of the link at that index in the network, and sets its devices
    /// up or down.
    SetLink { link: usize, state: LinkState },
    /// The history of the services that have ended at least once.
    Services,
    /// Ends a service of the AS at that index in the network, and starts it again. Answered once it
    /// is ready.
    Restart { owner: usize, service: Service },
    /// Ends all processes of the lab, then the supervisor itself.
    Stop,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// Comes with the network namespace, and the user namespace if the lab has one of its own.
    Entered,
    /// For each link, in the network's order, the limits of its two ends.
    Limits(Vec<[Option<LimitState>; 2]>),
    Services(Vec<History>),
    Done,
    Error {
        message: String,
    },
}

/// A limit and its counters, as the kernel has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitState {
    /// The limit in bit/s of Ethernet frames.
    pub rate: u64,
    /// Bytes of frames sent.
    pub bytes: u64,
    /// Frames sent; one of segmentation offload counts as one.
    pub packets: u64,
    /// Frames dropped at a full queue.
    pub drops: u64,
    /// Bytes of frames waiting.
    pub backlog: u64,
}

impl LimitState {
    pub(crate) fn new(limit: LinkLimit, counters: LimitCounters) -> Self {
        Self {
            rate: limit.rate,
            bytes: counters.bytes,
            packets: counters.packets,
            drops: counters.drops.into(),
            backlog: counters.backlog.into(),
        }
    }
}

/// The history of a service that has ended by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct History {
    pub owner: usize,
    pub service: Service,
    /// How it ended last: `exit status: 1`, `signal: 9 (SIGKILL)`.
    pub ended: String,
    /// Number of times that it was started again.
    pub restarts: u32,
    /// Time until it is started again; `None` while it runs.
    pub restart_in: Option<Duration>,
}

/// Asks the supervisor at `socket`, and waits for its reply up to `timeout`.
pub(crate) fn call(
    socket: &Path,
    request: &Request,
    timeout: Duration,
) -> Result<(Reply, Vec<OwnedFd>), LabError> {
    let supervisor = rpc::Service {
        name: "lab supervisor",
        timeout,
    };
    match supervisor.call_for_fds(socket, request)? {
        (Reply::Error { message }, _) => Err(LabError::Failed(message)),
        reply => Ok(reply),
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
        fn any_request_is_survived(mut bytes in prop::collection::vec(any::<u8>(), 0..512)) {
            let (mut here, there) = UnixStream::pair().unwrap();
            bytes.push(b'\n');
            here.write_all(&bytes).unwrap();
            drop(here);
            let _ = rpc::receive::<Request>(&there);
        }
    }
}
