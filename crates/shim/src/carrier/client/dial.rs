//! Connecting to the other host.

use std::net::SocketAddr;

use hawser_endhost::{Path, ScionAddr};

use crate::carrier::control::Control;
use crate::carrier::node::Node;
use crate::carrier::underlay::Underlay;
use crate::session::DialError;

/// A connection to the other host, which has shown a key that is trusted.
pub(super) struct Dialed {
    pub control: Control,
    pub underlay: Underlay,
}

/// What comes of a dial.
pub(super) type Outcome = Result<Dialed, DialError>;

/// Connects to `peer` over `path`.
pub(super) async fn dial(node: Node, peer: ScionAddr, path: Path) -> Outcome {
    let failed = |error: &dyn ToString| DialError::Path(error.to_string());
    let connected = node.scion().quic.connect(peer, path).await;
    let connection = connected.map_err(|error| failed(&error))?;
    let checked = node.check(peer, connection.peer_key());
    checked.map_err(|error| DialError::Peer(error.into()))?;
    let control = Control::open(connection).await;
    Ok(Dialed {
        control: control.map_err(|error| failed(&error))?,
        underlay: node.scion().clone(),
    })
}

/// Connects to `peer` at its address `to` on plain IP. A key that is not the peer's is no error of the
/// session: other networks may have hosts with the same address.
pub(super) async fn dial_plain_ip(node: Node, peer: ScionAddr, to: SocketAddr) -> Outcome {
    let connect = async {
        let plain_ip = node.plain_ip().ok_or("plain IP is not allowed")?;
        let (connection, underlay) = plain_ip.connect(to, node.plane()).await?;
        let checked = node.check(peer, connection.peer_key());
        checked.map_err(|error| format!("plain IP to {to}: {error}"))?;
        let control = Control::open(connection).await;
        Ok(Dialed {
            control: control.map_err(|error| error.to_string())?,
            underlay,
        })
    };
    connect.await.map_err(DialError::Path)
}
