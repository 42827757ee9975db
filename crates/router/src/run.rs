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
    /// Adds as many as fit of the packets of `length` bytes each at `range`, and returns the number
    /// of bytes added. None fit if their destination differs or they are too large; the run does
    /// not exceed `cap` bytes. An empty run accepts at least one packet.
    #[inline]
    pub fn add(
        &mut self,
        to: Option<SocketAddr>,
        range: Range<usize>,
        length: usize,
        cap: usize,
    ) -> usize {
        let room = cap.min(MAX_BYTES).saturating_sub(self.bytes) / length.max(1);
        let mut count = (range.len() / length.max(1)).min(room.min(MAX_PACKETS - self.packets));
        if self.packets == 0 {
            self.to = to;
            self.segment = length;
            count = count.max(1);
        } else if self.ended || length > self.segment || count == 0 || self.to != to {
            return 0;
        } else if length < self.segment {
            (self.ended, count) = (true, 1);
        }
        let bytes = count * length;
        self.bytes += bytes;
        self.packets += count;
        let end = range.start + bytes;
        match self.parts.last_mut() {
            Some(last) if last.end == range.start => last.end = end,
            _ => self.parts.push(range.start..end),
        }
        bytes
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
            .take_while(|place| run.add(None, (*place).clone(), place.len(), MAX_BYTES) > 0)
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
        assert_eq!(run.add(a, 0..10, 10, MAX_BYTES), 10);
        assert_eq!(run.add(b, 10..20, 10, MAX_BYTES), 0);
        run.clear();
        assert_eq!(run.add(b, 10..20, 10, MAX_BYTES), 10);
        assert_eq!(run.to, b);
    }

    #[test]
    fn a_cap_below_one_packet_lets_single_packets_through() {
        let mut run = Run::default();
        assert_eq!(run.add(None, 0..2800, 1400, 1), 1400);
        assert_eq!(run.add(None, 1400..2800, 1400, 1), 0);
    }

    #[test]
    fn many_packets_are_added_as_far_as_they_fit() {
        let mut run = Run::default();
        assert_eq!(run.add(None, 0..40, 10, 25), 20);
        assert_eq!(run.add(None, 20..40, 10, 45), 20);
        assert_eq!(
            run.add(None, 40..58, 6, 100),
            6,
            "the shorter one is the last"
        );
        assert_eq!(run.add(None, 46..58, 6, 100), 0);
        assert_eq!((run.parts.len(), run.bytes), (1, 46));
        run.clear();
        assert_eq!(run.add(None, 0..1000, 10, MAX_BYTES), 10 * MAX_PACKETS);
        assert_eq!(run.packets().count(), MAX_PACKETS);
    }

    #[test]
    fn runs_respect_the_limits_of_the_kernel() {
        let small: Vec<_> = (0..100).map(|i| i * 50..(i + 1) * 50).collect();
        assert_eq!(run_of(&small).1, MAX_PACKETS);
        let large: Vec<_> = (0..20).map(|i| i * 8000..(i + 1) * 8000).collect();
        assert_eq!(run_of(&large).1, 8);
    }
}
