//! Lanes: paths in use by a socket, each to one remote.
//!
//! A [`Lane`] sends over one path and never leaves it. Fresher headers of the same path replace its
//! headers well before they expire. When SCMP errors or outages report the path down, and the
//! lane's user finds that nothing gets through, the lane ends with a [`LaneEnd`].
//!
//! SCMP errors are not authenticated: any host can send one to an address it knows, and addresses
//! and paths are public. An error counts only if the packet it quotes carries the [`Token`] of
//! packets that are being sent, and went to the lane's remote over exactly its path. An error that
//! quotes too little to check does not count (RFC 9000, 14.2.1, has the same rule for ICMP). Errors
//! that pass are rate-limited per path, so that replaying a genuine one gains nothing.
//!
//! Paths of packets are not authenticated either. A lane that answers a remote takes the path of
//! the packet because of which it was accepted. Shortly before that expires, a packet over a
//! fresher one shows a [`Candidate`], and the lane's user has the lane [adopt](Lanes::adopt) it if
//! the packet opens. Until a connection is set up nothing opens that an attacker could not make:
//! whose packet comes first then decides over which path it is answered.
//!
//! The life of a lane. It is *opened* over a path, which a task of its own keeps fresh, or
//! *accepted* for the flow of a packet. A task for all lanes of the socket turns faults (at most
//! 256 wait) and outages into [`Doubt`]s. A lane without a user ends at the first that counts (see
//! [`LaneUser`]); otherwise it is *doubted* while its user [probes](LaneUser::probe) it in one more
//! task, and is in use again or *ends* by the [`Evidence`]. The first reason stays. Its [`Flow`]
//! outlives it: 1024 that no lane uses are kept, the oldest give way.
//!
//! The table of flows is locked by each look-up of a flow, and by a [`Batch`] as long as it
//! exists: a thread that has one must not open, accept or adopt, nor look a flow up, but may drop
//! lanes. Under it come only the flows that lanes have left, the tokens and the counters of drops.
//! The list of lanes, the budget of a flow's errors and the path of a lane are each locked alone,
//! the last also while the paths of the host that it follows are borrowed. Under none of them is
//! anything awaited or a packet sent, and no user is called.

mod doubt;
mod flow;
mod lane;
mod receiver;
mod sender;
mod shared;
mod table;
mod tokens;
mod watch;

use std::sync::Arc;

use hawser_address::ScionAddr;
use tokio::sync::mpsc;

pub use self::doubt::{Doubt, Evidence, LaneEnd, LaneUser, Probing};
pub use self::flow::{Candidate, Flow, FlowId};
pub use self::lane::Lane;
pub use self::receiver::{Batch, LaneDatagram, LaneReceiver};
pub use self::sender::LaneSender;
use self::shared::Shared;
use self::table::Flows;
use self::tokens::Tokens;
pub use self::tokens::{PacketFormat, TOKEN, Token};
use self::watch::Registry;
use crate::headers::{Headers, HeadersError};
use crate::path::Path;
use crate::socket::Socket;

/// Most faults that wait to be handled. Further ones are dropped; later packets cause them again.
const PENDING: usize = 256;

/// The lanes of one socket. Cloning shares them.
#[derive(Debug, Clone)]
pub struct Lanes {
    shared: Arc<Shared>,
    registry: Arc<Registry>,
}

impl Lanes {
    /// Lanes that send and receive packets of `format` at `socket`. The receiver returns everything
    /// that arrives for them. Must be called inside a tokio runtime.
    pub fn new(socket: Socket, format: PacketFormat) -> (Self, LaneReceiver) {
        let outages = socket.host().outages();
        let (faults, pending) = mpsc::channel(PENDING);
        let shared = Arc::new(Shared {
            socket,
            flows: Arc::new(Flows::default()),
            tokens: Tokens::default(),
            format,
            faults,
        });
        let registry = Arc::new(Registry::default());
        // The task ends when no part is left that could report a fault.
        tokio::spawn(watch::run(Arc::clone(&registry), outages, pending));
        let receiver = LaneReceiver::new(Arc::clone(&shared));
        (Self { shared, registry }, receiver)
    }

    /// The socket.
    pub fn socket(&self) -> &Socket {
        &self.shared.socket
    }

    /// Opens a lane to `remote` over `path`. Fresher copies of the path replace it as they are
    /// offered, well before it expires.
    ///
    /// # Errors
    /// [`HeadersError`] when the path does not lead from this socket to `remote`.
    pub fn open(&self, remote: ScionAddr, path: Path) -> Result<Lane, HeadersError> {
        let headers = Headers::new(self.socket().local_addr(), remote, &path)?;
        let ids: Vec<u16> = path.info().interfaces.iter().map(|one| one.id).collect();
        let flow = self.shared.flows.open(headers, &ids, path.expiry());
        let lane = Lane::new(Arc::clone(&self.shared), flow, Some(path));
        lane.follow();
        self.registry.add(&lane);
        Ok(lane)
    }

    /// The lane back to the sender of packets of the flow `id`; `None` when the flow was removed.
    /// Its path is unknown until it is [looked up](Lane::look_up).
    ///
    /// `candidate` is that of the packet because of which the lane is accepted. Unless another lane
    /// uses the flow, the lane takes its path, and keeps it while it lasts.
    pub fn accept(&self, id: FlowId, candidate: Option<&Candidate>) -> Option<Lane> {
        let flow = self.shared.flows.hold(id, candidate)?;
        let lane = Lane::new(Arc::clone(&self.shared), flow, None);
        self.registry.add(&lane);
        Some(lane)
    }

    /// Lets answers take the path of `candidate`, if theirs expires within a minute and it lasts
    /// longer, or if no lane uses its flow. A path that this side chose is not replaced.
    ///
    /// Only for packets that were authenticated and were not received before: an attacker on a link
    /// can send copies of packets over paths of which no router returns anything.
    pub fn adopt(&self, candidate: &Candidate) {
        self.shared.flows.lock().adopt(candidate);
    }

    /// The flow with this `id`; `None` when it was removed.
    pub fn flow(&self, id: FlowId) -> Option<Arc<Flow>> {
        self.shared.flows.find(id)
    }

    /// The flow with this `id` for an answer to one packet, over the packet's own path if that is a
    /// `candidate`; `None` when it was removed.
    pub fn answer(&self, id: FlowId, candidate: Option<&Candidate>) -> Option<Arc<Flow>> {
        let flow = self.flow(id)?;
        Some(match candidate {
            Some(candidate) => Arc::new(flow.over(candidate)),
            None => flow,
        })
    }

    /// A sender. Each sending task needs one.
    pub fn sender(&self) -> LaneSender {
        LaneSender::new(Arc::clone(&self.shared))
    }
}
