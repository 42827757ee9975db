//! This host in its sessions: its key, its connections, its datagrams.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hawser_endhost::{Endhost, ScionAddr};
use hawser_kernel::pace::BusyPoll;
use hawser_keys::{Allowed, Identity, Known, PeerKey, ServerKeyError};
use hawser_quic::{CloseReason, Config, Connection};
use hawser_seal::Cipher;
use tokio::sync::mpsc::UnboundedSender;

use super::error::CarrierError;
use super::underlay::{PlainIp, PlainIpOptions, Underlay};
use crate::budget::Budget;
use crate::choice::{CarrierKind, CarrierSet};
use crate::link::ToHolder;
use crate::plane::lane::{LaneKeys, SealedLane};
use crate::plane::{NewPlane, Plane};
use crate::served::Served;

/// The application protocol of connections (TLS ALPN).
const ALPN: &[u8] = b"hawser-shim/1";
/// How long a connection stays open without a packet from the peer. Whether datagrams get through
/// shows earlier; this ends what no router reports.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time after which an idle connection shows that it is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(1);
/// Bytes of streams that a connection takes at least: what it has taken arrives over its path, or
/// has to be sent again.
const SEND_WINDOW: u64 = 128 << 10;

/// How hosts recognise each other.
#[derive(Debug, Clone)]
pub struct Trust {
    /// The keys of hosts that this one connects to; `None` trusts any.
    pub servers: Option<Known>,
    /// The keys of hosts that may connect to this one; `None` allows any.
    pub clients: Option<Allowed>,
}

/// This host. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Node(Arc<Inner>);

struct Inner {
    host: Endhost,
    scion: Underlay,
    plain_ip: Option<PlainIp>,
    plane: Plane,
    trust: Trust,
    /// Tells this host's sessions from those of other processes with the same key.
    tag: u64,
    cipher: Cipher,
    /// The largest MTU of a lane so far, in bytes.
    mtu: AtomicU32,
    holder: UnboundedSender<ToHolder>,
    carrier: CarrierKind,
    carriers: CarrierSet,
    served: Served,
    budget: Budget,
    busy_poll: BusyPoll,
}

/// The side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// What a node begins with.
pub(crate) struct NewNode {
    pub plane: NewPlane,
    pub host: Endhost,
    /// Where others connect to; `default_port` of this host's address if `None`.
    pub listen: Option<SocketAddr>,
    pub default_port: u16,
    pub plain_ip: Option<PlainIpOptions>,
    pub identity: Identity,
    pub trust: Trust,
    pub cipher: Cipher,
    pub tag: u64,
    /// What carries the connections of this host's programs.
    pub carrier: CarrierKind,
    pub served: Served,
    pub holder: UnboundedSender<ToHolder>,
}

impl Node {
    /// Binds the sockets, and starts the threads that carry packets. Must be called inside a tokio
    /// runtime.
    pub(crate) fn bind(new: NewNode) -> Result<Self, CarrierError> {
        let busy_poll = BusyPoll::default();
        let config = Config {
            alpn: ALPN.to_vec(),
            idle_timeout: IDLE_TIMEOUT,
            keep_alive: Some(KEEP_ALIVE),
            identity: Some(new.identity),
            least_send_window: SEND_WINDOW,
            busy_poll: busy_poll.clone(),
            ..Config::default()
        };
        let mut carriers = CarrierSet::of(CarrierKind::Quic);
        if new.plane.queue.is_some() {
            carriers = carriers.with(CarrierKind::Mptcp);
        }
        let started = Plane::start(new.plane, busy_poll.clone());
        let plane = started.map_err(|error| CarrierError::Socket(error.to_string()))?;
        let port = new.default_port;
        let scion = Underlay::bind(&new.host, new.listen, port, config.clone(), &plane)?;
        let plain_ip = match new.plain_ip {
            Some(options) => Some(PlainIp::bind(options.listen, config, &plane)?),
            None => None,
        };
        Ok(Self(Arc::new(Inner {
            host: new.host,
            scion,
            plain_ip,
            plane,
            trust: new.trust,
            tag: new.tag,
            cipher: new.cipher,
            mtu: AtomicU32::new(0),
            holder: new.holder,
            carrier: new.carrier,
            carriers,
            served: new.served,
            budget: Budget::of_process(),
            busy_poll,
        })))
    }

    pub(crate) fn host(&self) -> &Endhost {
        &self.0.host
    }

    pub(crate) fn scion(&self) -> &Underlay {
        &self.0.scion
    }

    /// Plain IP, if it may be used.
    pub(crate) fn plain_ip(&self) -> Option<&PlainIp> {
        self.0.plain_ip.as_ref()
    }

    pub(crate) fn plane(&self) -> &Plane {
        &self.0.plane
    }

    pub(crate) fn tag(&self) -> u64 {
        self.0.tag
    }

    /// What carries the connections of this host's programs.
    pub(crate) fn carrier(&self) -> CarrierKind {
        self.0.carrier
    }

    /// The carriers that this host has, for those of other hosts.
    pub(crate) fn carriers(&self) -> CarrierSet {
        self.0.carriers
    }

    /// What other hosts may connect to.
    pub(crate) fn served(&self) -> &Served {
        &self.0.served
    }

    /// How this host seals its own datagrams.
    pub(crate) fn cipher(&self) -> Cipher {
        self.0.cipher
    }

    /// How many connections of programs and servers this process may have.
    pub(crate) fn budget(&self) -> &Budget {
        &self.0.budget
    }

    /// How long threads look for packets again after traffic.
    pub(crate) fn busy_poll(&self) -> &BusyPoll {
        &self.0.busy_poll
    }

    /// Informs the holder. If it has ended, the carrier ends as well.
    pub(crate) fn tell(&self, message: ToHolder) {
        let _ = self.0.holder.send(message);
    }

    /// Has the kernel make segments as large as `lane` takes, if no other lane takes larger ones:
    /// they are cut for those that take less.
    pub(crate) fn report_mtu(&self, lane: &SealedLane) {
        let mtu = lane.mtu();
        if self.0.mtu.fetch_max(mtu, Ordering::Relaxed) < mtu {
            self.tell(ToHolder::Mtu(mtu));
        }
    }

    /// Checks the key that `peer` shows.
    pub(crate) fn check(&self, peer: ScionAddr, key: PeerKey) -> Result<(), ServerKeyError> {
        match &self.0.trust.servers {
            Some(known) => known.check(peer, key),
            None => Ok(()),
        }
    }

    /// The keys of hosts that this one connects to; `None` trusts any.
    pub(crate) fn known(&self) -> Option<&Known> {
        self.0.trust.servers.as_ref()
    }

    /// The keys of hosts that may connect; `None` allows any.
    pub(crate) fn allowed(&self) -> Option<&Allowed> {
        self.0.trust.clients.as_ref()
    }

    /// Whether the host with `key` may connect.
    pub(crate) fn allows(&self, key: &PeerKey) -> bool {
        match &self.0.trust.clients {
            None => true,
            Some(allowed) => allowed.allows(key).unwrap_or_else(|error| {
                tracing::error!("{error}");
                false
            }),
        }
    }

    /// The keys of the datagrams beside `connection`, on this `side` of it; the side that dials
    /// chooses the cipher, which is this host's there.
    pub(crate) fn lane_keys(
        &self,
        connection: &Connection,
        side: Side,
    ) -> Result<LaneKeys, CloseReason> {
        let client = connection.export_secret(b"EXPORTER-hawser-shim client", b"")?;
        let server = connection.export_secret(b"EXPORTER-hawser-shim server", b"")?;
        let (here, there) = match side {
            Side::Client => (client, server),
            Side::Server => (server, client),
        };
        Ok(LaneKeys {
            cipher: self.0.cipher,
            here,
            there,
        })
    }
}
