//! Which SCMP errors quote packets that were sent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use hawser_address::IsdAsn;

use super::flow::{Flow, FlowId};
use crate::socket::Report;
use crate::sync::lock;

/// Bytes of a token.
pub const TOKEN: usize = 8;

/// Random bytes in all packets of a connection or transfer: only hosts and routers on the path can
/// know them.
pub type Token = [u8; TOKEN];

/// The format of packets on lanes, as far as needed to check an SCMP error that quotes one.
#[derive(Debug, Clone, Copy)]
pub struct PacketFormat {
    /// Reads the token at the beginning of a payload. `None` when the payload is cut short or has
    /// no token; then no SCMP error about that packet counts.
    pub token: fn(&[u8]) -> Option<Token>,
    /// The largest payload that is sent over every path, in bytes, also if the path's MTU is smaller.
    /// A "packet too big" with an MTU that is too small for it, and smaller than SCION's smallest
    /// (1280 bytes), is forged.
    pub min_payload: u16,
}

/// The tokens of packets that are being sent, each with its flow.
#[derive(Debug, Default)]
pub(super) struct Tokens(Mutex<HashMap<Token, Sent>>);

#[derive(Debug)]
struct Sent {
    flow: Arc<Flow>,
    /// The number of senders that use this token.
    senders: usize,
}

impl Tokens {
    /// Adds a sender whose packets go over `flow` with `token`.
    fn add(&self, token: Token, flow: &Arc<Flow>) {
        let mut tokens = lock(&self.0);
        let senders = tokens.get(&token).map_or(0, |sent| sent.senders) + 1;
        let flow = Arc::clone(flow);
        tokens.insert(token, Sent { flow, senders });
    }

    /// Removes a sender of packets with `token`.
    fn remove(&self, token: Token) {
        let mut tokens = lock(&self.0);
        if let Some(sent) = tokens.get_mut(&token) {
            sent.senders -= 1;
            if sent.senders == 0 {
                tokens.remove(&token);
            }
        }
    }

    /// The flow of the packet that `report` quotes, if the packet was sent from the AS `local` and
    /// the report is plausible.
    pub(super) fn flow_of(
        &self,
        report: &Report<'_>,
        format: &PacketFormat,
        local: IsdAsn,
    ) -> Option<Arc<Flow>> {
        // Most forged quotes are rejected here, by one look-up and without allocating.
        let token = (format.token)(report.quote.payload)?;
        let flow = Arc::clone(&lock(&self.0).get(&token)?.flow);
        let may_be_true = flow.may_have_sent(report, local, format.min_payload);
        may_be_true.then_some(flow)
    }
}

/// The last token that one sender used.
#[derive(Debug, Default)]
pub(super) struct LastToken(Option<(Token, FlowId)>);

impl LastToken {
    /// Records the token of packets over `flow`, where it is new.
    #[inline]
    pub(super) fn set(&mut self, tokens: &Tokens, token: Option<Token>, flow: &Arc<Flow>) {
        let new = token.map(|token| (token, flow.id));
        if new == self.0 {
            return;
        }
        // Added before the old one is removed, so that there is always a known token.
        if let Some(token) = token {
            tokens.add(token, flow);
        }
        self.clear(tokens);
        self.0 = new;
    }

    /// Removes the token: SCMP errors about the sender's packets no longer count.
    pub(super) fn clear(&mut self, tokens: &Tokens) {
        if let Some((token, _)) = self.0.take() {
            tokens.remove(token);
        }
    }
}

#[cfg(test)]
mod tests;
