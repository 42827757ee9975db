//! One session of a transfer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hawser_endhost::ScionAddr;
use hawser_endhost::patience::wait;
use hawser_keys::Trust;
use hawser_manager::{Carried, PathSet};
use hawser_seal::Cipher;
use tokio::sync::mpsc::UnboundedSender;

use super::retry::Retry;
use super::{Request, TransferOptions, trust};
use crate::dialer::{Agreement, Dialed, Dialer, Opening, Target};
use crate::error::TransferError;
use crate::node::Node;
use crate::notice::Notice;
use crate::protocol;
use crate::report::TransferEvent;
use crate::session::{self, Begin, Connections, Ended, Role, Session, landing_options};

/// What the sessions of a transfer have in common.
pub(super) struct Attempt<'a> {
    pub node: &'a Node,
    pub peer: ScionAddr,
    pub request: &'a Request,
    pub options: &'a TransferOptions,
    /// What is known of the code.
    pub agreement: Arc<Agreement>,
    /// Tells this session's process, or its attempt, from earlier ones with the same key.
    pub instance: u64,
    /// Longest wait for the first connection.
    pub patience: Duration,
    pub events: &'a UnboundedSender<TransferEvent>,
}

impl Attempt<'_> {
    /// One session.
    ///
    /// # Errors
    /// When the server has accepted none.
    pub(super) async fn run(&self, retry: &mut Retry) -> Result<Ended, TransferError> {
        let (node, peer, options) = (self.node, self.peer, self.options);
        // Without any path it fails here, with the reason.
        node.host().paths(peer.isd_as).await?;
        let memory = node.memory().join();
        let own_credit = memory.credit();
        let opening = match self.request {
            Request::Send { content, .. } => Opening::of(session::manifest(content)),
            Request::Fetch { .. } => Opening::default(),
        };
        let (role, wire_role, name, offered) = match self.request.clone() {
            Request::Send { content, name } => {
                (Role::Source(content), protocol::Role::Source, name, 0)
            }
            Request::Fetch { name, destination } => (
                Role::Sink(
                    destination,
                    landing_options(options.wants.choices, options.wants.choices, String::new()),
                ),
                protocol::Role::Sink,
                name,
                own_credit,
            ),
        };
        let target = Arc::new(Target {
            node: node.clone(),
            peer,
            trust: options.server.clone(),
            agreement: Arc::clone(&self.agreement),
            shown: Mutex::default(),
            instance: self.instance,
            role: wire_role,
            credit: offered,
            name,
            wants: options.wants.clone(),
            opening,
            cipher: Cipher::preferred(),
            algorithm: options.algorithm,
            session: tokio::sync::Mutex::default(),
        });
        let paths = PathSet::new(options.paths.clone());
        let mut dialer = Dialer::new(Arc::clone(&target), paths, options.policy.as_ref());
        let first = first_connection(&mut dialer, peer, self.patience, self.events).await?;
        if retry.is_lost() {
            let _ = self.events.send(TransferEvent::Continued);
        }
        retry.reached();
        let notice = Arc::<Notice>::default();
        let begin = Begin {
            node: node.clone(),
            key: node.session_key(),
            peer,
            credit: match role {
                Role::Sink(..) => own_credit,
                Role::Source(_) | Role::Shared(_) => first.credit,
            },
            role,
            limit: options.limit.clone(),
            memory,
            connections: Connections::Dialed(Box::new((dialer, first))),
            notice: Arc::clone(&notice),
            events: self.events.clone(),
        };
        let mut ended = tokio::select! {
            ended = Session::new(begin).run() => ended,
            never = trust::end_revoked(Arc::clone(&target), notice) => match never {},
        };
        if let (Err(TransferError::Revoked), Trust::Known(known)) = (&ended.result, &target.trust) {
            ended.result = Err(trust::reason(&target, known));
        }
        Ok(ended)
    }
}

/// Dials until the server has accepted the session.
async fn first_connection(
    dialer: &mut Dialer,
    peer: ScionAddr,
    patience: Duration,
    events: &UnboundedSender<TransferEvent>,
) -> Result<Dialed, TransferError> {
    let first = async {
        loop {
            if let Some(dialed) = dialer.next().await {
                return Ok(dialed);
            }
            // Nothing is measured, and no order about a subflow given, before one is connected.
            dialer.orders(|_| Carried::default(), events)?;
            if !dialer.paths().is_usable() {
                let reason = dialer.paths().trouble();
                let reason = reason.unwrap_or_else(|| "none is offered".to_owned());
                return Err(TransferError::NoPath { peer, reason });
            }
        }
    };
    match wait(patience, first).await {
        Some(first) => first,
        None => Err(TransferError::Unreachable {
            peer,
            after: patience,
            reason: dialer
                .paths()
                .trouble()
                .unwrap_or_else(|| "no path is connected".to_owned()),
        }),
    }
}
