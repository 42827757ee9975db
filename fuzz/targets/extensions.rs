//! Messages of extensions: extended handshakes, peers that are exchanged, `scion_multipath`. What is read
//! is written so that it is read as the same.

#![no_main]

use hawser_wire::{AddrKind, Exchange, ExtendedHandshake, Multipath};
use libfuzzer_sys::fuzz_target;

/// Most addresses that are read of a row.
const MAX_READ: usize = 200;

fuzz_target!(|input: &[u8]| {
    if let Ok(handshake) = ExtendedHandshake::decode(input) {
        // A name is escaped once more when it is read again.
        let handshake = ExtendedHandshake {
            client: None,
            ..handshake
        };
        let again = ExtendedHandshake::decode(&handshake.encode());
        assert_eq!(again, Ok(handshake));
    }
    for kind in [AddrKind::Ip, AddrKind::Scion] {
        if let Ok(exchange) = Exchange::decode(input, kind) {
            for addrs in [&exchange.added, &exchange.dropped] {
                assert!(addrs.len() <= 2 * MAX_READ);
                let is_of_kind = |addr| AddrKind::of(addr) == kind && addr.is_reachable();
                assert!(addrs.iter().all(|addr| is_of_kind(*addr)));
            }
            assert_eq!(Exchange::decode(&exchange.encode(kind), kind), Ok(exchange));
        }
    }
    if let Ok(Some(message)) = Multipath::decode(input) {
        let again = Multipath::decode(&message.encode());
        match (message, again) {
            // A reason is escaped once more when it is read again.
            (
                Multipath::Report { interfaces, .. },
                Ok(Some(Multipath::Report {
                    interfaces: read, ..
                })),
            ) => {
                assert_eq!(read, interfaces);
            }
            (message, again) => assert_eq!(again, Ok(Some(message))),
        }
    }
});
