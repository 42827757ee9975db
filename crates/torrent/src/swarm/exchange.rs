//! Telling connected peers of each other, peers of the same kind only: `ut_pex` (BEP 11) and `scion_pex`.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use hawser_address::PeerAddr;

use crate::picker::ConnId;
use crate::wire::{AddrKind, Exchange, MAX_EXCHANGED, Message};

/// Time between two messages to a peer (BEP 11: at most one a minute).
const INTERVAL: Duration = Duration::from_secs(60);

/// The first message waits this long after the extended handshake, for others that join at the same time.
const FIRST: Duration = Duration::from_secs(2);

/// What is exchanged over each connection.
#[derive(Debug, Default)]
pub(super) struct Exchanges(HashMap<ConnId, Exchanging>);

/// What is exchanged over one connection.
#[derive(Debug)]
struct Exchanging {
    kind: AddrKind,
    /// The id under which the peer takes messages.
    id: u8,
    /// When the next message is due.
    due: Instant,
    /// Addresses announced to the peer and not withdrawn.
    sent: BTreeSet<PeerAddr>,
}

impl Exchanges {
    /// A peer takes messages with addresses of `kind` under `id`.
    pub fn join(&mut self, conn: ConnId, kind: AddrKind, id: u8, now: Instant) {
        let known = self.0.entry(conn).or_insert_with(|| Exchanging {
            kind,
            id,
            due: now + FIRST,
            sent: BTreeSet::new(),
        });
        known.id = id;
    }

    /// A connection has ended, or its peer takes no messages any more.
    pub fn leave(&mut self, conn: ConnId) {
        self.0.remove(&conn);
    }

    /// No peer takes messages any more.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The messages that are due. `peers` are the connections with the addresses at which their peers
    /// accept others.
    pub fn due(
        &mut self,
        peers: impl FnOnce() -> Vec<(ConnId, PeerAddr)>,
        now: Instant,
    ) -> Vec<(ConnId, Message)> {
        if self.0.values().all(|it| it.due > now) {
            return Vec::new();
        }
        let peers = peers();
        let due = self.0.iter_mut().filter(|(_, it)| it.due <= now);
        due.filter_map(|(conn, it)| {
            it.due = now + INTERVAL;
            let own = peers.iter().filter(|(of, _)| of == conn);
            let own: BTreeSet<PeerAddr> = own.map(|(_, addr)| *addr).collect();
            let others = peers.iter().map(|(_, addr)| *addr);
            let others = others.filter(|addr| AddrKind::of(*addr) == it.kind);
            let others: BTreeSet<PeerAddr> = others.filter(|addr| !own.contains(addr)).collect();
            let exchange = it.advance(&others)?;
            let payload = exchange.encode(it.kind).into();
            Some((*conn, Message::Extended { id: it.id, payload }))
        })
        .collect()
    }

    /// When the next message is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.0.values().map(|it| it.due).min()
    }
}

impl Exchanging {
    /// The difference between the addresses announced to the peer and the present ones; `None` if they are
    /// equal.
    fn advance(&mut self, peers: &BTreeSet<PeerAddr>) -> Option<Exchange> {
        let added = peers.difference(&self.sent).take(MAX_EXCHANGED);
        let dropped = self.sent.difference(peers).take(MAX_EXCHANGED);
        let exchange = Exchange {
            added: added.copied().collect(),
            dropped: dropped.copied().collect(),
        };
        for addr in &exchange.dropped {
            self.sent.remove(addr);
        }
        self.sent.extend(&exchange.added);
        let is_empty = exchange.added.is_empty() && exchange.dropped.is_empty();
        (!is_empty).then_some(exchange)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn ip(n: u16) -> PeerAddr {
        PeerAddr::Ip(SocketAddr::from(([10, 0, 0, 1], n)))
    }

    fn read(messages: Vec<(ConnId, Message)>) -> Vec<(ConnId, Exchange)> {
        let read = messages.into_iter().map(|(conn, message)| match message {
            Message::Extended { payload, .. } => {
                (conn, Exchange::decode(&payload, AddrKind::Ip).unwrap())
            }
            other => panic!("{other:?}"),
        });
        let mut read: Vec<_> = read.collect();
        read.sort_by_key(|(conn, _)| *conn);
        read
    }

    #[test]
    fn each_peer_is_told_of_the_others_once_and_when_they_leave() {
        let begin = Instant::now();
        let mut exchanges = Exchanges::default();
        exchanges.join(1, AddrKind::Ip, 7, begin);
        exchanges.join(2, AddrKind::Ip, 7, begin);
        let all = || vec![(1, ip(1)), (2, ip(2)), (3, ip(3))];
        assert!(exchanges.due(all, begin).is_empty());
        assert_eq!(exchanges.next_due(), Some(begin + FIRST));
        let told = read(exchanges.due(all, begin + FIRST));
        let added = |added: &[PeerAddr]| Exchange {
            added: added.to_vec(),
            ..Exchange::default()
        };
        assert_eq!(
            told,
            [(1, added(&[ip(2), ip(3)])), (2, added(&[ip(1), ip(3)]))]
        );
        let next = begin + FIRST + INTERVAL;
        assert!(
            exchanges
                .due(all, next - Duration::from_millis(1))
                .is_empty()
        );
        assert!(exchanges.due(all, next).is_empty());
        let left = || vec![(1, ip(1)), (2, ip(2))];
        let dropped = Exchange {
            dropped: vec![ip(3)],
            ..Exchange::default()
        };
        let told = read(exchanges.due(left, next + INTERVAL));
        assert_eq!(told, [(1, dropped.clone()), (2, dropped)]);
        exchanges.leave(1);
        exchanges.leave(2);
        assert_eq!(exchanges.next_due(), None);
    }

    #[test]
    fn many_peers_are_told_over_several_messages_and_never_of_the_other_kind() {
        let mut now = Instant::now();
        let mut exchanges = Exchanges::default();
        exchanges.join(0, AddrKind::Ip, 1, now);
        let scion = "1-ff00:0:110,10.0.0.1:6881".parse().unwrap();
        let peers = || {
            let ips = (1..=120).map(|n| (ConnId::from(n), ip(n)));
            ips.chain([(500, scion)]).collect()
        };
        let mut told = Vec::new();
        for _ in 0..4 {
            now += INTERVAL;
            let messages = read(exchanges.due(peers, now));
            told.push(messages.iter().map(|(_, it)| it.added.len()).sum::<usize>());
        }
        assert_eq!(told, [50, 50, 20, 0]);
    }
}
