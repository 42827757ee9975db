//! Entries of peers, each one length byte and a compact address: 14 or 26 bytes for a SCION address
//! ([`ScionAddr::compact`]), 6 or 18 for an IP address ([`compact_ip`], BEP 23 and BEP 7).
//!
//! Entries of other lengths are skipped, so that forms can be added.

use hawser_address::{PeerAddr, ScionAddr, compact_ip, ip_from_compact};

/// Longest entry written, in bytes.
pub const MAX_ENTRY: usize = 27;

/// The entries of `peers`.
pub fn write(peers: impl IntoIterator<Item = PeerAddr>) -> Vec<u8> {
    let mut out = Vec::new();
    for peer in peers {
        let compact = match peer {
            PeerAddr::Scion(addr) => addr.compact(),
            PeerAddr::Ip(addr) => compact_ip(addr),
        };
        // At most 26.
        out.push(compact.len() as u8);
        out.extend(compact);
    }
    out
}

/// The peers of entries, up to the first one that is cut short; also those that cannot be reached.
pub fn read(mut bytes: &[u8]) -> impl Iterator<Item = PeerAddr> {
    let next = move || {
        let (length, after) = bytes.split_first()?;
        let (entry, after) = after.split_at_checked(usize::from(*length))?;
        bytes = after;
        let scion = || ScionAddr::from_compact(entry).map(PeerAddr::Scion);
        Some(scion().or_else(|| ip_from_compact(entry).map(PeerAddr::Ip)))
    };
    std::iter::from_fn(next).flatten()
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use hawser_address::IsdAsn;
    use proptest::prelude::*;

    use super::*;

    fn any_peer() -> impl Strategy<Value = PeerAddr> {
        (any::<Option<u64>>(), any::<IpAddr>(), any::<u16>()).prop_map(|(isd_as, ip, port)| {
            match isd_as {
                Some(isd_as) => ScionAddr::new(IsdAsn(isd_as), (ip, port).into()).into(),
                None => PeerAddr::Ip((ip, port).into()),
            }
        })
    }

    proptest! {
        #[test]
        fn entries_are_read_back(
            peers in proptest::collection::vec(any_peer(), 0..20), other in 0u8..6, cut in 0usize..6,
        ) {
            let mut bytes = vec![other];
            bytes.extend(vec![0xaa; usize::from(other)]);
            bytes.extend(write(peers.iter().copied()));
            prop_assert_eq!(read(&bytes).collect::<Vec<_>>(), peers.clone());
            if !peers.is_empty() {
                bytes.truncate(bytes.len() - 1 - cut);
                prop_assert_eq!(read(&bytes).count(), peers.len() - 1);
            }
        }

        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(read(&bytes).count() <= bytes.len() / 7);
        }
    }
}
