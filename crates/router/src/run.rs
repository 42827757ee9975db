//! Consecutive packets that are sent with one call.

use std::net::SocketAddr;
use std::ops::Range;

/// Maximum number of segments of one send (UDP_MAX_SEGMENTS; 128 since Linux 6.9).
pub(crate) const MAX_PACKETS: usize = 64;
/// Maximum number of bytes of one send: the largest UDP payload over IPv4.
pub(crate) const MAX_BYTES: usize = 65507;

/// Packets of one size, except for a shorter last one, to one address: what UDP segmentation
/// offload can send in one call. The packets stay in the receive buffers; a run is only a list of
/// ranges.
#[derive(Default)]
pub(crate) struct Run {
    /// The destination of the packets; `None` if the socket is connected.
    pub to: Option<SocketAddr>,
    /// Length of each packet but the last.
    pub segment: usize,
    pub bytes: usize,
    packets: usize,
    ended: bool,
    /// The ranges of the packets' bytes, adjacent packets as one. At most 64.
    pub parts: Vec<Range<usize>>,
}

impl Run {
    /// Adds the packet at `range`; returns `false` if its destination differs, its size does not
    /// fit, or the run would exceed `cap` bytes. An empty run accepts any packet.
    #[inline]
    pub fn add(&mut self, to: Option<SocketAddr>, range: Range<usize>, cap: usize) -> bool {
        let length = range.len();
        if self.packets == 0 {
            self.to = to;
            self.segment = length;
        } else if self.ended
            || length > self.segment
            || self.packets == MAX_PACKETS
            || self.bytes + length > cap.min(MAX_BYTES)
            || self.to != to
        {
            return false;
        }
        self.ended = length < self.segment;
        self.bytes += length;
        self.packets += 1;
        match self.parts.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.parts.push(range),
        }
        true
    }

    pub fn clear(&mut self) {
        self.parts.clear();
        (self.bytes, self.packets, self.ended) = (0, 0, false);
    }

    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// The ranges of the packets, one by one.
    pub fn packets(&self) -> impl Iterator<Item = Range<usize>> {
        self.parts.iter().flat_map(move |part| {
            (part.start..part.end)
                .step_by(self.segment.max(1))
                .map(move |at| at..(at + self.segment).min(part.end))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_of(places: &[Range<usize>]) -> (Run, usize) {
        let mut run = Run::default();
        let taken = places
            .iter()
            .take_while(|place| run.add(None, (*place).clone(), MAX_BYTES))
            .count();
        (run, taken)
    }

    #[test]
    fn adjacent_packets_become_one_part() {
        let (run, taken) = run_of(&[0..10, 10..20, 64..74, 74..77]);
        assert_eq!(taken, 4);
        assert_eq!(run.parts, [0..20, 64..77]);
        assert_eq!(
            run.packets().collect::<Vec<_>>(),
            [0..10, 10..20, 64..74, 74..77]
        );
        assert_eq!((run.bytes, run.segment), (33, 10));
    }

    #[test]
    fn a_shorter_packet_is_the_last() {
        assert_eq!(run_of(&[0..10, 10..19, 20..30]).1, 2);
        assert_eq!(run_of(&[0..10, 10..21]).1, 1);
    }

    #[test]
    fn another_destination_begins_a_new_run() {
        let mut run = Run::default();
        let (a, b) = ("10.0.0.1:1".parse().ok(), "10.0.0.2:1".parse().ok());
        assert!(run.add(a, 0..10, MAX_BYTES));
        assert!(!run.add(b, 10..20, MAX_BYTES));
        run.clear();
        assert!(run.add(b, 10..20, MAX_BYTES));
        assert_eq!(run.to, b);
    }

    #[test]
    fn a_cap_below_one_packet_lets_single_packets_through() {
        let mut run = Run::default();
        assert!(run.add(None, 0..1400, 1));
        assert!(!run.add(None, 1400..2800, 1));
    }

    #[test]
    fn runs_respect_the_limits_of_the_kernel() {
        let small: Vec<_> = (0..100).map(|i| i * 50..(i + 1) * 50).collect();
        assert_eq!(run_of(&small).1, MAX_PACKETS);
        let large: Vec<_> = (0..20).map(|i| i * 8000..(i + 1) * 8000).collect();
        assert_eq!(run_of(&large).1, 8);
    }
}
