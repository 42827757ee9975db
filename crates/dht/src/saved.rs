//! What a node keeps for its next run: its id, and nodes that answered.
//!
//! As bytes it is a bencoded dictionary of `id` (20 bytes) and `nodes` (a list of compact addresses).

use hawser_bencode::{BencodeError, Value, parse};
use thiserror::Error;

use crate::address::Address;
use crate::id::Id;
use crate::upkeep::MAX_SEEDS;

/// Most nodes that are kept. A node remembers [`MAX_SEEDS`] addresses that it is given, and those that a
/// user names must have room among them.
const MAX_SAVED: usize = MAX_SEEDS / 2;
/// More bytes than any encoded value has.
pub const MAX_SAVED_BYTES: usize = 4096;

/// What a node keeps for its next run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved<A> {
    /// The id of the node.
    pub id: Id,
    /// Nodes that answered. The first 32 are encoded.
    pub nodes: Vec<A>,
}

/// Why bytes are not what a node keeps.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SavedError {
    /// They are not bencode.
    #[error(transparent)]
    Bencode(#[from] BencodeError),
    /// They are more than [`MAX_SAVED_BYTES`].
    #[error("it has {0} bytes, and at most {MAX_SAVED_BYTES} are read")]
    TooLong(usize),
    /// There is no id.
    #[error("`id` is not the id of a node: 20 bytes")]
    Id,
    /// There is no list of addresses, or one of them is not an address of this kind.
    #[error("`nodes` is not a list of addresses of this kind")]
    Nodes,
}

impl<A: Address> Saved<A> {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let nodes = self.nodes.iter().take(MAX_SAVED);
        let nodes: Vec<Vec<u8>> = nodes.map(|addr| addr.compact()).collect();
        let nodes = nodes.iter().map(|addr| Value::Bytes(addr)).collect();
        Value::dict([
            ("id", Some(Value::Bytes(&self.id.0))),
            ("nodes", Some(Value::List(nodes))),
        ])
        .encode()
    }

    /// Reads what [`encode`](Self::encode) has written.
    ///
    /// # Errors
    /// If the bytes are something else.
    pub fn decode(bytes: &[u8]) -> Result<Self, SavedError> {
        if bytes.len() > MAX_SAVED_BYTES {
            return Err(SavedError::TooLong(bytes.len()));
        }
        let value = parse(bytes)?;
        let dict = value.as_dict().ok_or(SavedError::Id)?;
        let id = dict.bytes("id").and_then(Id::from_bytes);
        let id = id.ok_or(SavedError::Id)?;
        let nodes = dict.list("nodes").ok_or(SavedError::Nodes)?.iter();
        let nodes = nodes.map(|node| node.as_bytes().and_then(A::from_compact));
        let nodes: Option<Vec<A>> = nodes.take(MAX_SAVED).collect();
        let nodes = nodes.ok_or(SavedError::Nodes)?;
        Ok(Self { id, nodes })
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv6Addr, SocketAddrV4, SocketAddrV6};

    use hawser_address::{IsdAsn, ScionAddr};
    use hawser_fuzz::fuzz;
    use proptest::prelude::*;

    use super::*;

    fn check<A: Address>(id: [u8; 20], nodes: Vec<A>) {
        let saved = Saved { id: Id(id), nodes };
        let bytes = saved.encode();
        assert!(bytes.len() <= MAX_SAVED_BYTES);
        let read = Saved::<A>::decode(&bytes).unwrap();
        assert_eq!(read.id, saved.id);
        let kept = saved.nodes.len().min(MAX_SAVED);
        assert_eq!(read.nodes, saved.nodes[..kept]);
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_read_back(
            id: [u8; 20], ips in prop::collection::vec(any::<(Ipv6Addr, u16)>(), 0..100),
        ) {
            let v6 = |(ip, port): &(Ipv6Addr, u16)| SocketAddrV6::new(*ip, *port, 0, 0);
            check(id, ips.iter().map(v6).collect());
            let v4 = |(ip, port): &(Ipv6Addr, u16)| {
                let [a, b, c, d, ..] = ip.octets();
                SocketAddrV4::new([a, b, c, d].into(), *port)
            };
            check(id, ips.iter().map(v4).collect());
            let scion = |addr| ScionAddr::new(IsdAsn(7), v6(addr).into());
            check(id, ips.iter().map(scion).collect());
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        let node: SocketAddrV4 = "93.184.216.34:6881".parse().unwrap();
        let saved = Saved {
            id: Id([1; 20]),
            nodes: vec![node; 3],
        };
        fuzz(&[saved.encode()], |input| {
            if let Ok(read) = Saved::<SocketAddrV4>::decode(input) {
                assert_eq!(Saved::decode(&read.encode()), Ok(read));
            }
        });
    }

    #[test]
    fn what_is_wrong_is_named() {
        let decode = Saved::<SocketAddrV4>::decode;
        assert_eq!(decode(b"de"), Err(SavedError::Id));
        assert_eq!(decode(b"d2:id3:abce"), Err(SavedError::Id));
        let id = "d2:id20:aaaaaaaaaaaaaaaaaaaa";
        let with = |rest: &str| decode(format!("{id}{rest}").as_bytes());
        assert_eq!(with("e"), Err(SavedError::Nodes));
        assert_eq!(with("5:nodesl3:abcee"), Err(SavedError::Nodes));
        assert!(with("5:nodeslee").is_ok());
        assert!(matches!(decode(b"x"), Err(SavedError::Bencode(_))));
        let long = vec![b'd'; MAX_SAVED_BYTES + 1];
        assert_eq!(decode(&long), Err(SavedError::TooLong(MAX_SAVED_BYTES + 1)));
    }
}
