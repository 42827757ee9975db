//! The answers to queries of others.

use std::time::Instant;

use fastrand::Rng;

use crate::address::Address;
use crate::config::Config;
use crate::limiter::Limiter;
use crate::message::{ErrorCode, Found, Method, write_answer, write_error};
use crate::secret::Secret;
use crate::store::Store;
use crate::table::Table;
use crate::tokens::Tokens;

/// Bytes that the peers of an answer may take, so that a datagram passes every network whole: with
/// 8 nodes of 48 bytes, it has at most about 1,150 bytes.
const VALUES_BUDGET: usize = 640;

/// Answers queries.
#[derive(Debug)]
pub(crate) struct Server<A> {
    pub store: Store<A>,
    tokens: Tokens,
    limiter: Limiter<A>,
}

impl<A: Address> Server<A> {
    pub fn new(config: &Config<A>, secret: &mut Secret, now: Instant) -> Self {
        Self {
            store: Store::new(config.max_torrents),
            tokens: Tokens::new(secret, now),
            limiter: Limiter::new(config.answers_per_second),
        }
    }

    /// Whether a query from `from` is answered; if so, it counts as answered.
    pub fn allows(&mut self, from: A, now: Instant) -> bool {
        self.limiter.allows(from, now)
    }

    /// The answer to a query from `from`.
    pub fn answer(
        &mut self,
        (from, transaction): (A, &[u8]),
        method: &Method,
        table: &Table<A>,
        rng: &mut Rng,
        now: Instant,
    ) -> Vec<u8> {
        let refuse = |code, text| write_error(transaction, code, text);
        let found = match method {
            Method::Ping => Found::default(),
            Method::FindNode(target) => Found {
                nodes: Some(table.nearest_answering(*target)),
                ..Found::default()
            },
            Method::GetPeers(info_hash) => Found {
                nodes: Some(table.nearest_answering(*info_hash)),
                values: self.store.sample(*info_hash, VALUES_BUDGET, rng),
                token: Some(self.tokens.token(from, *info_hash)),
            },
            Method::Announce {
                info_hash,
                port,
                token,
            } => {
                if !self.tokens.is_valid(from, *info_hash, token) {
                    return refuse(ErrorCode::Protocol, "invalid token");
                }
                let peer = port.map_or(from, |port| from.with_port(port));
                if !self.store.announce(*info_hash, peer, now) {
                    return refuse(ErrorCode::Server, "too many peers");
                }
                Found::default()
            }
        };
        write_answer(transaction, table.own(), from, &found)
    }

    /// Forgets old peers, and changes the secret of the tokens.
    pub fn advance(&mut self, secret: &mut Secret, now: Instant) {
        self.store.expire(now);
        self.tokens.advance(secret, now);
    }
}

/// The answer to a query that cannot be understood.
pub(crate) fn refusal(transaction: &[u8], code: ErrorCode) -> Vec<u8> {
    let text = match code {
        ErrorCode::MethodUnknown => "method unknown",
        _ => "invalid arguments",
    };
    write_error(transaction, code, text)
}
