//! Consecutive packets that are sent with one call.

use std::net::SocketAddr;
use std::ops::Range;

/// Maximum number of segments of one send (UDP_MAX_SEGMENTS; 128 since Linux 6.9).
pub(crate) const MAX_PACKETS: usize = 64;
/// Maximum number of bytes of one send: the largest UDP payload over IPv4.
pub(crate) const MAX_BYTES: usize = 65507;

/// Maximum number of runs that grow at a time.
const RUNS: usize = 64;

/// Packets of one flow and size, except for a shorter last one, to one address: what UDP
/// segmentation offload can send in one call. The packets stay in the receive buffers; a run is only
/// a list of ranges.
#[derive(Default)]
pub(crate) struct Run {
    /// The destination of the packets; `None` if it is that of all packets of the port.
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
    /// of bytes added. None fit if they are too large; the run does not exceed `cap` bytes. An empty
    /// run accepts at least one packet.
    #[inline]
    pub fn add(&mut self, range: Range<usize>, length: usize, cap: usize) -> usize {
        let room = cap.min(MAX_BYTES).saturating_sub(self.bytes) / length.max(1);
        let mut count = (range.len() / length.max(1)).min(room.min(MAX_PACKETS - self.packets));
        if self.packets == 0 {
            self.segment = length;
            count = count.max(1);
        } else if self.ended || length > self.segment || count == 0 {
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

    /// How many of `others` can follow this run in one send of at most `cap` bytes: those to the same address
    /// with packets of the same size, up to one that ends with a shorter packet.
    pub fn followed_by(&self, others: &[Self], cap: usize) -> usize {
        let (mut bytes, mut packets, mut ended) = (self.bytes, self.packets, self.ended);
        let mut follows = |next: &&Self| {
            bytes += next.bytes;
            packets += next.packets;
            let fits = bytes <= cap.min(MAX_BYTES) && packets <= MAX_PACKETS;
            let same = next.to == self.to && next.segment == self.segment;
            fits && same && !std::mem::replace(&mut ended, next.ended)
        };
        others.iter().take_while(|next| follows(next)).count()
    }

    pub fn clear(&mut self) {
        self.parts.clear();
        (self.bytes, self.packets, self.ended) = (0, 0, false);
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

/// The runs that a port sends next, one for each flow, so that what is sent of a flow stays together. A
/// router of several threads must not mix flows in one send: one thread of a neighbour that has several,
/// too, processes the whole of it.
#[derive(Default)]
pub(crate) struct Runs {
    /// The flow of each run that is used, apart from the runs, as a search looks at many of them.
    flows: Vec<u32>,
    /// Those that are used first. Others keep their memory.
    runs: Vec<Run>,
}

impl Runs {
    /// Index of the run for packets of `flow` to `to`; `None` if all are used for others.
    #[inline]
    pub fn position(&mut self, to: Option<SocketAddr>, flow: u32) -> Option<usize> {
        let mut used = self.flows.iter().zip(&self.runs);
        let known = used.position(|(known, run)| *known == flow && run.to == to);
        known.or_else(|| self.begin(to, flow))
    }

    fn begin(&mut self, to: Option<SocketAddr>, flow: u32) -> Option<usize> {
        let index = self.flows.len();
        if index == RUNS {
            return None;
        }
        if index == self.runs.len() {
            self.runs.push(Run::default());
        }
        self.flows.push(flow);
        self.runs[index].to = to;
        Some(index)
    }

    /// The run at `index`.
    #[inline]
    pub fn at(&mut self, index: usize) -> &mut Run {
        &mut self.runs[index]
    }

    /// The runs that are used.
    #[inline]
    pub fn used_runs(&self) -> &[Run] {
        &self.runs[..self.used()]
    }

    /// Their number.
    #[inline]
    pub fn used(&self) -> usize {
        self.flows.len()
    }

    /// Forgets all runs, which must be empty.
    #[inline]
    pub fn clear(&mut self) {
        self.flows.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_of(places: &[Range<usize>]) -> (Run, usize) {
        let mut run = Run::default();
        let taken = places
            .iter()
            .take_while(|place| run.add((*place).clone(), place.len(), MAX_BYTES) > 0)
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
    fn each_flow_and_destination_has_a_run() {
        let mut runs = Runs::default();
        let (a, b) = ("10.0.0.1:1".parse().ok(), "10.0.0.2:1".parse().ok());
        assert_eq!(runs.position(a, 1), Some(0));
        assert_eq!(runs.position(a, 2), Some(1));
        assert_eq!(runs.position(b, 1), Some(2));
        assert_eq!(runs.position(a, 2), Some(1));
        for flow in 3..RUNS as u32 {
            assert_eq!(runs.position(b, flow), Some(flow as usize));
        }
        assert_eq!(runs.position(b, 100), None);
        assert_eq!(runs.position(b, 1), Some(2));
        runs.clear();
        assert_eq!(runs.position(b, 100), Some(0));
        assert_eq!((runs.used(), runs.at(0).to), (1, b));
    }

    #[test]
    fn a_cap_below_one_packet_lets_single_packets_through() {
        let mut run = Run::default();
        assert_eq!(run.add(0..2800, 1400, 1), 1400);
        assert_eq!(run.add(1400..2800, 1400, 1), 0);
    }

    #[test]
    fn many_packets_are_added_as_far_as_they_fit() {
        let mut run = Run::default();
        assert_eq!(run.add(0..40, 10, 25), 20);
        assert_eq!(run.add(20..40, 10, 45), 20);
        assert_eq!(run.add(40..58, 6, 100), 6, "the shorter one is the last");
        assert_eq!(run.add(46..58, 6, 100), 0);
        assert_eq!((run.parts.len(), run.bytes), (1, 46));
        run.clear();
        assert_eq!(run.add(0..1000, 10, MAX_BYTES), 10 * MAX_PACKETS);
        assert_eq!(run.packets().count(), MAX_PACKETS);
    }

    #[test]
    fn runs_of_one_size_are_sent_together() {
        let run = |packets: usize, length: usize, last: usize, to: Option<SocketAddr>| {
            let mut run = Run::default();
            run.add(0..packets * length, length, MAX_BYTES);
            run.add(10_000..10_000 + last, last, MAX_BYTES);
            run.to = to;
            run
        };
        let to = "10.0.0.1:1".parse().ok();
        let full = || run(4, 100, 100, None);
        let first = full();
        let follow = |others: &[Run]| first.followed_by(others, MAX_BYTES);
        assert_eq!(follow(&[]), 0);
        assert_eq!(follow(&[full(), full(), full()]), 3);
        // A shorter packet is the last, and none of another size or to another address follows.
        let short = || run(4, 100, 99, None);
        assert_eq!(follow(&[full(), short(), full()]), 2);
        assert_eq!(short().followed_by(&[full()], MAX_BYTES), 0);
        assert_eq!(follow(&[full(), run(4, 101, 101, None), full()]), 1);
        assert_eq!(follow(&[full(), run(4, 100, 100, to), full()]), 1);
        // Not more than the kernel cuts or the link may get at once.
        let many: Vec<_> = (0..20).map(|_| full()).collect();
        assert_eq!(follow(&many), MAX_PACKETS / 5 - 1);
        assert_eq!(first.followed_by(&many, 1600), 2);
    }

    #[test]
    fn runs_respect_the_limits_of_the_kernel() {
        let small: Vec<_> = (0..100).map(|i| i * 50..(i + 1) * 50).collect();
        assert_eq!(run_of(&small).1, MAX_PACKETS);
        let large: Vec<_> = (0..20).map(|i| i * 8000..(i + 1) * 8000).collect();
        assert_eq!(run_of(&large).1, 8);
    }
}
