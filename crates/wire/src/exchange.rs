//! Exchange of peers: `ut_pex` among IP peers (BEP 11) and `scion_pex` among SCION peers, never mixed.
//!
//! Both are bencoded dictionaries. `ut_pex` has `added` and `dropped` with compact IPv4 addresses,
//! `added6` and `dropped6` with IPv6 ones, one after another, and a byte of flags for each address added
//! in `added.f` and `added6.f`. `scion_pex` has `added` and `dropped`, each a row of addresses of
//! either length: a byte of length, 14 or 26, before a compact SCION address (ISD-AS 8 bytes, IP 4 or
//! 16, port 2, big-endian).

use std::net::SocketAddr;

use hawser_address::{PeerAddr, ScionAddr, compact_ip, ip_from_compact};
use hawser_bencode::{self as bencode, Dict, Value};

use super::error::WireError;

/// The names of the extensions in the extended handshake.
pub const UT_PEX_NAME: &str = "ut_pex";
/// That of `scion_pex`.
pub const SCION_PEX_NAME: &str = "scion_pex";

/// The ids under which this program receives their messages.
pub const UT_PEX: u8 = 2;
/// The id of `scion_pex`.
pub const SCION_PEX: u8 = 3;

/// Most addresses added, and most dropped, in a message that is sent (BEP 11); of one received, most that
/// are read.
pub const MAX_EXCHANGED: usize = 50;
const MAX_READ: usize = 200;

/// The flag of a peer that accepts connections (BEP 11).
const REACHABLE: u8 = 0x10;

/// The kind of addresses that a peer takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddrKind {
    /// Addresses of IP.
    Ip,
    /// Addresses of SCION.
    Scion,
}

impl AddrKind {
    /// The kind of an address.
    pub fn of(addr: PeerAddr) -> Self {
        match addr {
            PeerAddr::Scion(_) => Self::Scion,
            PeerAddr::Ip(_) => Self::Ip,
        }
    }
}

/// Peers that joined and left, as one peer tells another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exchange {
    /// Those that joined.
    pub added: Vec<PeerAddr>,
    /// Those that left.
    pub dropped: Vec<PeerAddr>,
}

impl Exchange {
    /// Encodes it for a peer that takes addresses of `kind`; others are left out.
    pub fn encode(&self, kind: AddrKind) -> Vec<u8> {
        match kind {
            AddrKind::Ip => self.encode_ip(),
            AddrKind::Scion => {
                let (added, dropped) = (scion_row(&self.added), scion_row(&self.dropped));
                Value::dict([
                    ("added", Some(Value::Bytes(&added))),
                    ("dropped", Some(Value::Bytes(&dropped))),
                ])
                .encode()
            }
        }
    }

    fn encode_ip(&self) -> Vec<u8> {
        let rows = [
            ip_row(&self.added, false),
            ip_row(&self.added, true),
            ip_row(&self.dropped, false),
            ip_row(&self.dropped, true),
        ];
        let [added, added6, dropped, dropped6] = &rows;
        let flags = [
            vec![REACHABLE; added.len() / 6],
            vec![REACHABLE; added6.len() / 18],
        ];
        Value::dict([
            ("added", Some(Value::Bytes(added))),
            ("added.f", Some(Value::Bytes(&flags[0]))),
            ("added6", Some(Value::Bytes(added6))),
            ("added6.f", Some(Value::Bytes(&flags[1]))),
            ("dropped", Some(Value::Bytes(dropped))),
            ("dropped6", Some(Value::Bytes(dropped6))),
        ])
        .encode()
    }

    /// Decodes a message with addresses of `kind`. Of each row the first 200 are read; addresses at which
    /// no peer can be, and what is unknown or of another type, are left out.
    ///
    /// # Errors
    /// If it is not a bencoded dictionary.
    pub fn decode(payload: &[u8], kind: AddrKind) -> Result<Self, WireError> {
        let document = bencode::parse_tolerant(payload).map_err(WireError::BadExchange)?;
        let top = document.as_dict().ok_or(WireError::ExchangeNoDict)?;
        Ok(Self {
            added: addrs(top, ["added", "added6"], kind),
            dropped: addrs(top, ["dropped", "dropped6"], kind),
        })
    }
}

/// The addresses under two keys, the latter for IPv6.
fn addrs(top: &Dict<'_>, keys: [&str; 2], kind: AddrKind) -> Vec<PeerAddr> {
    let [row, row6] = keys.map(|key| top.bytes(key).unwrap_or_default());
    let mut addrs: Vec<PeerAddr> = match kind {
        AddrKind::Scion => read_scion_row(row),
        AddrKind::Ip => {
            let of = |row: &[u8], length| {
                let addrs = row.chunks_exact(length).take(MAX_READ);
                let addrs = addrs.filter_map(ip_from_compact);
                addrs.map(PeerAddr::Ip).collect::<Vec<_>>()
            };
            [of(row, 6), of(row6, 18)].concat()
        }
    };
    addrs.retain(|addr| addr.is_reachable());
    addrs
}

/// Compact IP addresses, one after another, of one version.
fn ip_row(addrs: &[PeerAddr], v6: bool) -> Vec<u8> {
    let ips = addrs.iter().filter_map(|addr| addr.ip());
    let ips = ips.filter(|ip: &SocketAddr| ip.is_ipv6() == v6);
    ips.flat_map(compact_ip).collect()
}

/// Compact SCION addresses, each after its length.
fn scion_row(addrs: &[PeerAddr]) -> Vec<u8> {
    let addrs = addrs.iter().filter_map(|addr| addr.scion());
    addrs
        .flat_map(|addr| {
            let compact = addr.compact();
            std::iter::once(compact.len() as u8).chain(compact)
        })
        .collect()
}

fn read_scion_row(mut row: &[u8]) -> Vec<PeerAddr> {
    let mut addrs = Vec::new();
    while let Some((&length, rest)) = row.split_first()
        && let Some((addr, rest)) = rest.split_at_checked(length.into())
        && addrs.len() < MAX_READ
    {
        addrs.extend(ScionAddr::from_compact(addr).map(PeerAddr::Scion));
        // An entry without bytes would be read without end.
        if length == 0 {
            break;
        }
        row = rest;
    }
    addrs
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use hawser_address::IsdAsn;
    use proptest::prelude::*;

    use super::*;

    fn any_addr(kind: AddrKind) -> impl Strategy<Value = PeerAddr> {
        let host = (any::<IpAddr>(), 1u16..).prop_map(|(ip, port)| SocketAddr::new(ip, port));
        let addr = (any::<u64>(), host).prop_map(move |(isd_as, host)| match kind {
            AddrKind::Ip => PeerAddr::Ip(host),
            AddrKind::Scion => PeerAddr::Scion(ScionAddr::new(IsdAsn(isd_as), host)),
        });
        addr.prop_filter("reachable", |addr| addr.is_reachable())
    }

    fn any_exchange(kind: AddrKind) -> impl Strategy<Value = Exchange> {
        let addrs = || proptest::collection::vec(any_addr(kind), 0..MAX_EXCHANGED);
        (addrs(), addrs()).prop_map(|(added, dropped)| Exchange { added, dropped })
    }

    /// IPv4 addresses come first.
    fn sorted(mut exchange: Exchange) -> Exchange {
        exchange
            .added
            .sort_by_key(|addr| addr.ip().is_some_and(|ip| ip.is_ipv6()));
        exchange
            .dropped
            .sort_by_key(|addr| addr.ip().is_some_and(|ip| ip.is_ipv6()));
        exchange
    }

    proptest! {
        #[test]
        fn reads_what_it_writes(
            ip in any_exchange(AddrKind::Ip),
            scion in any_exchange(AddrKind::Scion),
        ) {
            for (exchange, kind) in [(ip, AddrKind::Ip), (scion, AddrKind::Scion)] {
                let read = Exchange::decode(&exchange.encode(kind), kind);
                prop_assert_eq!(read, Ok(sorted(exchange)));
            }
        }

        #[test]
        fn addresses_of_the_other_kind_are_not_sent(ip in any_exchange(AddrKind::Ip)) {
            let bytes = ip.encode(AddrKind::Scion);
            prop_assert_eq!(Exchange::decode(&bytes, AddrKind::Scion), Ok(Exchange::default()));
        }

        #[test]
        fn garbage_is_bounded(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            row in proptest::collection::vec(any::<u8>(), 0..20_000),
        ) {
            let rows = ["added", "added6", "dropped"].map(|key| (key, Some(Value::Bytes(&row))));
            for kind in [AddrKind::Ip, AddrKind::Scion] {
                let _ = Exchange::decode(&bytes, kind);
                let read = Exchange::decode(&Value::dict(rows.clone()).encode(), kind);
                let read = read.expect("a dictionary");
                prop_assert!(read.added.len() <= 2 * MAX_READ && read.dropped.len() <= MAX_READ);
                prop_assert!(read.added.iter().all(|addr| addr.is_reachable()));
            }
        }
    }

    #[test]
    fn what_is_no_dictionary_is_refused_and_what_is_unknown_left_out() {
        let read = |bytes: &[u8]| Exchange::decode(bytes, AddrKind::Ip);
        assert_eq!(read(b"le"), Err(WireError::ExchangeNoDict));
        assert!(matches!(read(b"x"), Err(WireError::BadExchange(_))));
        assert_eq!(read(b"d5:addedi1e1:xlee"), Ok(Exchange::default()));
        // Port 0, and an address cut short.
        assert_eq!(
            read(b"d5:added8:\x0a\0\0\x01\0\0\x0a\0e"),
            Ok(Exchange::default())
        );
    }
}
