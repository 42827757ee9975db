//! QUIC's connection ids: 64 random bits here, visible only on the path. An SCMP error counts only
//! if it quotes an id in use.

use hawser_endhost::lanes::{PacketFormat, TOKEN, Token};

use crate::transport::MIN_MTU;

/// The format of QUIC packets. No report asks for smaller ones than QUIC's smallest (RFC 9000,
/// 14.2.1).
pub(crate) const FORMAT: PacketFormat = PacketFormat {
    token: beginning,
    min_payload: MIN_MTU,
};

/// The beginning of the destination connection id of a QUIC packet (RFC 9000, 17.2 and 17.3);
/// `None` when the packet is cut short. Endpoints here make ids of [`TOKEN`] bytes. Longer ids are
/// compared by their beginning; errors that quote a packet with a shorter id do not count.
#[inline]
fn beginning(packet: &[u8]) -> Option<Token> {
    const LONG: u8 = 0x80;
    let (first, rest) = packet.split_first()?;
    let id = match first & LONG {
        // The length of a short header's id is not in the packet.
        0 => rest,
        _ => {
            let (_version, rest) = rest.split_first_chunk::<4>()?;
            let (length, rest) = rest.split_first()?;
            rest.get(..usize::from(*length))?
        }
    };
    id.first_chunk::<TOKEN>().copied()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SHORT: [u8; 9] = [0x40, 1, 2, 3, 4, 5, 6, 7, 8];

    #[test]
    fn ids_are_found_in_long_and_short_headers() {
        let id = beginning(&SHORT);
        assert!(id.is_some());
        let long = |length: u8, id: &[u8]| [&[0xc0, 0, 0, 0, 1, length][..], id].concat();
        assert_eq!(beginning(&long(8, &SHORT[1..])), id);
        let longer = [&SHORT[1..], &[9; 12]].concat();
        assert_eq!(beginning(&long(20, &longer)), id);
        for too_short in [&SHORT[..8], &[], &long(7, &SHORT[1..]), &long(0, &[])] {
            assert_eq!(beginning(too_short), None, "{too_short:?}");
        }
        assert_eq!(beginning(&long(20, &SHORT[1..])), None, "cut short");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Some(id) = beginning(&bytes) {
                prop_assert!(bytes.windows(TOKEN).any(|window| window == id));
            }
        }
    }
}
