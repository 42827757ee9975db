//! Ids that follow from addresses (BEP 42), so that nobody can choose the id of a node freely.

use fastrand::Rng;

use crate::address::Address;
use crate::id::Id;

/// What is known of the id of a node by its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The id follows from the address.
    Verified,
    /// The address is local: any id may be used.
    Exempt,
    /// The id does not follow from the address. Programs older than BEP 42 have such ids.
    Unverified,
}

/// A random id that follows from the address of its node; any random id, if the address is local.
pub fn secure_id<A: Address>(addr: A, rng: &mut Rng) -> Id {
    let mut id = Id::random(rng);
    let random = id.0[Id::LEN - 1];
    if let Some(hash) = addr.id_hash(random) {
        let [a, b, c, _] = hash.to_be_bytes();
        id.0[0] = a;
        id.0[1] = b;
        id.0[2] = c & 0xf8 | id.0[2] & 0x07;
    }
    id
}

/// Whether the id of a node follows from its address: the first 21 bits are those of the hash that
/// the last byte selects.
pub fn standing<A: Address>(addr: A, id: Id) -> Standing {
    let Some(hash) = addr.id_hash(id.0[Id::LEN - 1]) else {
        return Standing::Exempt;
    };
    let [a, b, c, _] = hash.to_be_bytes();
    match id.0[0] == a && id.0[1] == b && id.0[2] & 0xf8 == c & 0xf8 {
        true => Standing::Verified,
        false => Standing::Unverified,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;
    use std::net::{SocketAddrV4, SocketAddrV6};
    use std::str::FromStr;

    use hawser_address::ScionAddr;

    use super::*;

    fn id(hex: &str) -> Id {
        let byte = |at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap();
        Id(std::array::from_fn(byte))
    }

    #[test]
    fn the_ids_of_bep_42_are_verified() {
        for (ip, text) in [
            ("124.31.75.21", "5fbfbff10c5d6a4ec8a88e4c6ab4c28b95eee401"),
            ("21.75.31.124", "5a3ce9c14e7a08645677bbd1cfe7d8f956d53256"),
            ("65.23.51.170", "a5d43220bc8f112a3d426c84764f8c2a1150e616"),
            ("84.124.73.14", "1b0321dd1bb1fe518101ceef99462b947a01ff41"),
            ("43.213.53.83", "e56f6cbf5b7c4be0237986d5243b87aa6d51305a"),
        ] {
            let addr = SocketAddrV4::new(ip.parse().unwrap(), 6881);
            assert_eq!(standing(addr, id(text)), Standing::Verified, "{ip}");
            let other = SocketAddrV4::new("8.8.8.8".parse().unwrap(), 6881);
            assert_eq!(standing(other, id(text)), Standing::Unverified, "{ip}");
        }
    }

    fn check<A: Address + FromStr<Err: Debug>>(addr: &str, other: &str, local: &str) {
        let [addr, other, local] = [addr, other, local].map(|text| text.parse::<A>().unwrap());
        let mut rng = Rng::with_seed(7);
        for _ in 0..50 {
            let id = secure_id(addr, &mut rng);
            assert_eq!(standing(addr, id), Standing::Verified);
            assert_eq!(standing(other, id), Standing::Unverified);
            assert_eq!(standing(local, id), Standing::Exempt);
        }
        assert_ne!(secure_id(addr, &mut rng), secure_id(addr, &mut rng));
        assert_ne!(secure_id(local, &mut rng), secure_id(local, &mut rng));
    }

    #[test]
    fn ids_follow_from_all_kinds_of_addresses() {
        check::<SocketAddrV4>("93.184.216.34:1", "93.184.217.34:1", "192.168.0.1:1");
        check::<SocketAddrV6>("[2001:db8::1]:1", "[2001:db9::1]:1", "[fd00::1]:1");
        let local = "1-ff00:0:110,127.0.0.1:1";
        check::<ScionAddr>("1-ff00:0:110,10.0.0.1:1", "1-ff00:0:111,10.0.0.1:1", local);
        check::<ScionAddr>(
            "1-ff00:0:110,[fd00::1]:1",
            "1-ff00:0:111,[fd00::1]:1",
            local,
        );
    }
}
