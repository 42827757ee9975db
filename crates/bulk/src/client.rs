//! A transfer that this host begins.

use std::sync::{Arc, OnceLock};

use hawser_endhost::ScionAddr;
use hawser_manager::{PathOptions, PathSet};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::algorithm::Algorithm;
use crate::content::Source;
use crate::dialer::{Dialer, Target};
use crate::error::TransferError;
use crate::joined::CREDIT;
use crate::node::Node;
use crate::protocol::{self, Cipher};
use crate::report::{Summary, TransferEvent};
use crate::session::{Begin, Destination, Role, Session};
use crate::trust::Trust;

/// What is transferred.
pub enum Request {
    /// Content is sent to the server.
    Send {
        /// The content.
        content: Arc<Source>,
        /// Where the server puts it, relative to its folder; empty for the folder itself.
        name: String,
    },
    /// Content is fetched from the server.
    Fetch {
        /// What is wanted, relative to the server's folder.
        name: String,
        /// Where it goes.
        destination: Destination,
    },
}

/// How a transfer is done.
#[derive(Debug, Clone)]
pub struct TransferOptions {
    /// Which paths are used.
    pub paths: PathOptions,
    /// How the rate of each path is controlled.
    pub algorithm: Algorithm,
    /// How the server shows that it is the right one.
    pub server: Trust,
}

/// Transfers content to or from the server at `peer`; what happens goes to `events`.
///
/// # Errors
/// [`TransferError`] when no path works, the server refuses, or one of the sides cannot read or
/// write. What was verified stays, and is not sent again by the next attempt.
pub async fn transfer(
    node: &Node,
    peer: ScionAddr,
    request: Request,
    options: TransferOptions,
    events: UnboundedSender<TransferEvent>,
) -> Result<Summary, TransferError> {
    let paths = node.host().paths(peer.isd_as).await?;
    drop(paths);
    let (role, wire_role, name) = match request {
        Request::Send { content, name } => (Role::Source(content), protocol::Role::Source, name),
        Request::Fetch { name, destination } => {
            (Role::Sink(destination), protocol::Role::Sink, name)
        }
    };
    let target = Arc::new(Target {
        node: node.clone(),
        peer,
        trust: options.server,
        agreed: OnceLock::new(),
        role: wire_role,
        name,
        cipher: Cipher::preferred(),
        algorithm: options.algorithm,
        session: tokio::sync::Mutex::new(None),
    });
    let (joined, new_subflows) = unbounded_channel();
    let mut dialer = Dialer::new(target, PathSet::new(options.paths), joined);
    let credit = first_credit(&mut dialer, peer, &events).await?;
    let begin = Begin {
        node: node.clone(),
        key: node.session_key(),
        peer,
        credit: match role {
            Role::Source(_) => credit,
            Role::Sink(_) => CREDIT,
        },
        role,
        dialer: Some(dialer),
        joined: new_subflows,
        replaced: Arc::default(),
        events,
    };
    Session::new(begin).run().await
}

/// Dials until the server has accepted the session. Returns its credit.
async fn first_credit(
    dialer: &mut Dialer,
    peer: ScionAddr,
    events: &UnboundedSender<TransferEvent>,
) -> Result<u64, TransferError> {
    let first = async {
        loop {
            dialer.next().await;
            dialer.orders(events)?;
            if let Some(credit) = dialer.credit {
                return Ok(credit);
            }
            if !dialer.is_usable() {
                let reason = dialer.trouble();
                let reason = reason.unwrap_or_else(|| "none is offered".to_owned());
                return Err(TransferError::NoPath { peer, reason });
            }
        }
    };
    match tokio::time::timeout(crate::session::KEPT, first).await {
        Ok(first) => first,
        Err(_) => Err(TransferError::Unreachable {
            peer,
            after: crate::session::KEPT,
            reason: dialer
                .trouble()
                .unwrap_or_else(|| "no path is connected".to_owned()),
        }),
    }
}
