//! Lanes: paths in use by a socket, each to one remote.
//!
//! A [`Lane`] sends over one path and never leaves it. Its headers are replaced by fresher ones of
//! the same path well before they expire. When SCMP errors or outages report the path down,
//! and its user finds that nothing gets through, the lane ends with a [`LaneEnd`].
//!
//! SCMP errors are not authenticated: any host can send one to an address it knows, and addresses
//! and paths are public. An error counts only if the packet it quotes carries the [`Token`] of
//! packets that are being sent, went to the lane's remote and over its very path. An error that
//! quotes too little to check does not count (RFC 9000, 14.2.1, has the same rule for ICMP). Errors
//! that pass are rate-limited per path, so that replaying a true one gains nothing.

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

use hawser_packet::ScionAddr;
use tokio::sync::mpsc;

pub use self::doubt::{Doubt, LaneEnd, LaneUser, Probing, Verdict};
pub use self::flow::{Flow, FlowId};
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

/// Faults that wait to be handled. Of more, the next packets bring the same again.
const PENDING: usize = 256;

/// The lanes of one socket. Cloning shares them.
#[derive(Debug, Clone)]
pub struct Lanes {
    shared: Arc<Shared>,
    registry: Arc<Registry>,
}

impl Lanes {
    /// Lanes that send and receive at `socket` packets of `format`. All that arrives for them comes
    /// out of the receiver. Must be called inside a tokio runtime.
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
        // It ends when nothing is left that could report a fault.
        tokio::spawn(watch::run(Arc::clone(&registry), outages, pending));
        let receiver = LaneReceiver::new(Arc::clone(&shared));
        (Self { shared, registry }, receiver)
    }

    /// The socket.
    pub fn socket(&self) -> &Socket {
        &self.shared.socket
    }

    /// Opens a lane to `remote` over `path`. Fresher copies of the path take its place as they are
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

    /// The lane back to where packets of the flow `id` come from; `None` when the flow is
    /// forgotten. Its path is unknown until it is [looked up](Lane::look_up), and the remote keeps
    /// it fresh: answers take the path of the packets that arrive.
    pub fn accept(&self, id: FlowId) -> Option<Lane> {
        let flow = self.shared.flows.hold(id)?;
        let lane = Lane::new(Arc::clone(&self.shared), flow, None);
        self.registry.add(&lane);
        Some(lane)
    }

    /// The flow with this `id`; `None` when it is forgotten.
    pub fn flow(&self, id: FlowId) -> Option<Arc<Flow>> {
        self.shared.flows.find(id)
    }

    /// A sender. Each task that sends has its own.
    pub fn sender(&self) -> LaneSender {
        LaneSender::new(Arc::clone(&self.shared))
    }
}
