//! The flows of packets: which packets must keep their order, and which thread processes them.

use hawser_packet::header::DST_HOST;
use hawser_packet::number::next_header;

/// Odd multiplier that mixes bits well: 2^32 divided by the golden ratio.
pub(crate) const FACTOR: u32 = 0x9e37_79b9;
/// The flow label in the first word of a packet.
pub(crate) const LABEL: u32 = 0xf_ffff;
/// Offset of the next header.
pub(crate) const NEXT_HEADER: usize = 4;
/// Offsets of the words that identify a flow besides its label: both hosts if they have IPv4
/// addresses, else the first half of the destination.
pub(crate) const HOSTS: [usize; 2] = [DST_HOST, DST_HOST + 4];

/// A number that is equal for all packets of a flow: a hash of flow label and hosts. 0 if the packet
/// is truncated.
#[inline]
pub(crate) fn flow(packet: &[u8]) -> u32 {
    let word = |at: usize| {
        let bytes = packet.get(at..).and_then(<[u8]>::first_chunk)?;
        Some(u32::from_be_bytes(*bytes))
    };
    let Some([line, first, second]) = word(0)
        .zip(word(HOSTS[0]))
        .zip(word(HOSTS[1]))
        .map(|((line, first), second)| [line, first, second])
    else {
        return 0;
    };
    let hash = (line & LABEL).wrapping_mul(FACTOR) ^ first;
    let hash = hash.wrapping_mul(FACTOR) ^ second;
    hash.wrapping_mul(FACTOR)
}

/// The thread, of `threads` at most 65535, that processes `packet`. The same one processes all
/// packets of a flow, in order. BFD belongs to the first thread.
#[inline]
pub(crate) fn thread(packet: &[u8], threads: usize) -> usize {
    match packet.get(NEXT_HEADER) {
        Some(&next_header::BFD) => 0,
        _ => ((flow(packet) >> 16) as usize * threads) >> 16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_shared_out_evenly() {
        for threads in [1, 2, 3, 4, 8] {
            let mut counts = vec![0; threads];
            for label in 1..=1000u32 {
                let mut packet = [0x0a; 40];
                packet[..4].copy_from_slice(&label.to_be_bytes());
                counts[thread(&packet, threads)] += 1;
            }
            let fair = 1000 / threads;
            let even = counts
                .iter()
                .all(|count| (fair * 3 / 4..=fair * 5 / 4).contains(count));
            assert!(even, "{counts:?}");
        }
    }

    #[test]
    fn bfd_and_truncated_packets_belong_to_the_first_thread() {
        let mut packet = [0xff; 40];
        packet[NEXT_HEADER] = next_header::BFD;
        assert_eq!(thread(&packet, 4), 0);
        for length in 0..36 {
            assert_eq!(thread(&[0xff; 36][..length], 4), 0, "{length} bytes");
        }
    }

    #[test]
    fn traffic_class_and_path_do_not_distinguish_flows() {
        let packet = [0x5a; 60];
        let mut other = packet;
        other[0] ^= 0xff;
        other[1] ^= 0xf0;
        other[HOSTS[1] + 4] ^= 0xff;
        assert_eq!(flow(&packet), flow(&other));
        for at in [1, 3, HOSTS[0], HOSTS[1] + 3] {
            let mut other = packet;
            other[at] ^= 1;
            assert_ne!(flow(&packet), flow(&other), "byte {at}");
        }
    }
}
