//! Connecting to the other host.

use std::net::SocketAddr;

use hawser_endhost::{Path, ScionAddr};
use hawser_keys::PeerKey;

use crate::carrier::control::Control;
use crate::carrier::node::Node;
use crate::carrier::underlay::Underlay;
use crate::session::{DialError, SessionError};

/// A connection to the other host, which has shown a key that is trusted.
pub(super) struct Dialed {
    pub control: Control,
    pub underlay: Underlay,
}

/// What comes of a dial.
pub(super) type Outcome = Result<Dialed, DialError>;

/// Connects to `peer` over `path`.
pub(super) async fn dial(
    node: Node,
    peer: ScionAddr,
    path: Path,
    expected: Option<PeerKey>,
) -> Outcome {
    let failed = |error: &dyn ToString| DialError::Path(error.to_string());
    let connected = node.scion().quic.connect(peer, path).await;
    let connection = connected.map_err(|error| failed(&error))?;
    let key = connection.peer_key();
    let checked = node.check(peer, key);
    checked.map_err(|error| {
        DialError::Peer(match expected {
            // A further dial may be the first to notice.
            Some(known) if known == key => SessionError::Distrusted { peer, key },
            _ => error.into(),
        })
    })?;
    if expected.is_some_and(|expected| expected != key) {
        return Err(DialError::Peer(SessionError::OtherKey { peer, key }));
    }
    let control = Control::open(connection).await;
    Ok(Dialed {
        control: control.map_err(|error| failed(&error))?,
        underlay: node.scion().clone(),
    })
}

/// Connects to `peer` at its address `to` on plain IP. Another key than the peer's is no error of the
/// session: other networks may have hosts with the same address.
pub(super) async fn dial_plain_ip(
    node: Node,
    peer: ScionAddr,
    to: SocketAddr,
    expected: Option<PeerKey>,
) -> Outcome {
    let connect = async {
        let plain_ip = node.plain_ip().ok_or("plain IP is not allowed")?;
        let (connection, underlay) = plain_ip.connect(to, node.plane()).await?;
        let key = connection.peer_key();
        let checked = node.check(peer, key);
        checked.map_err(|error| format!("plain IP to {to}: {error}"))?;
        if expected.is_some_and(|expected| expected != key) {
            return Err(format!(
                "plain IP to {to}: another host answers, with the key {key}"
            ));
        }
        let control = Control::open(connection).await;
        Ok(Dialed {
            control: control.map_err(|error| error.to_string())?,
            underlay,
        })
    };
    connect.await.map_err(DialError::Path)
}
