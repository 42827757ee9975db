//! Coupled subflows beside CUBIC, alone, and on paths that share only a part of their links.

use super::*;

/// 100 Mbit/s.
const LINK: Link = Link {
    rate: 12.5e6,
    rtt: Duration::from_millis(25),
    queue: Duration::from_millis(50),
    loss: 0.0,
    acks: None,
    change: None,
};

/// Sends this many bytes per second, whatever becomes of them.
#[derive(Debug)]
struct Constant(f64);

impl RateControl for Constant {
    fn sent(&mut self, _now: Instant, _number: u64, _bytes: u64) {}

    fn acked(&mut self, _now: Instant, _number: u64, _sent: Instant, _bytes: u64) {}

    fn lost(&mut self, _now: Instant, _number: u64, _sent: Instant, _bytes: u64) {}

    fn end(&mut self, _now: Instant, _in_flight: u64, _app_limited: bool) {}

    fn timed_out(&mut self, _now: Instant) {}

    fn rate(&self) -> f64 {
        self.0
    }

    fn window(&self) -> u64 {
        u64::MAX
    }

    fn name(&self) -> &'static str {
        "constant"
    }
}

fn subflows(count: u64, seed: u64) -> Vec<Sender> {
    let subflow = |at| Sender::new(Algorithm::default(), Announced::default(), seed + 50 * at);
    (0..count).map(subflow).collect()
}

fn cubic(active: [u64; 2], seed: u64) -> Sender {
    let active = active.map(Duration::from_secs);
    Sender::new(Algorithm::Cubic, Announced::default(), seed).active([active[0]..active[1]])
}

/// The share that `count` subflows have together, by that of CUBIC beside them.
fn beside_cubic(link: Link, count: u64, coupled: bool, late: bool, seed: u64) -> f64 {
    let begins = [0, 3].map(|at| if late { 3 - at } else { at });
    let mut senders = subflows(count, seed);
    for one in &mut senders {
        one.active = vec![Duration::from_secs(begins[0])..Duration::MAX];
        if coupled {
            one.control.couple(count as u32);
        }
    }
    senders.push(cubic([begins[1], 1000], seed + 1000));
    run(link, &mut senders, Duration::from_secs(40), seed);
    let shares = senders.iter().map(|one| share(one, link.rate, 15.0, 40.0));
    let shares: Vec<_> = shares.collect();
    let last = shares.len() - 1;
    shares[..last].iter().sum::<f64>() / shares[last]
}

#[test]
fn coupled_subflows_take_one_share_beside_cubic() {
    for late in [false, true] {
        let ratios = [0, 1, 2].map(|seed| beside_cubic(LINK, 2, true, late, seed));
        let mean = ratios.iter().product::<f64>().cbrt();
        assert!((0.5..2.0).contains(&mean), "{late}: {ratios:?}");
        let each = ratios.iter().all(|ratio| (0.4..2.5).contains(ratio));
        assert!(each, "{late}: {ratios:?}");
    }
}

#[test]
fn uncoupled_subflows_take_more() {
    let queue = 25 * MS;
    let link = Link { queue, ..LINK };
    let [coupled, uncoupled] = [true, false].map(|is| beside_cubic(link, 4, is, true, 0));
    assert!(coupled < 2.0, "{coupled}");
    assert!(uncoupled > 3.0 * coupled, "{uncoupled} {coupled}");
}

#[test]
fn coupled_subflows_fill_a_link() {
    for (count, rtt) in [(2, 25), (4, 25), (2, 194)] {
        let link = Link {
            rate: 62.5e6,
            rtt: rtt * MS,
            ..LINK
        };
        let mut senders = subflows(count, 1);
        senders
            .iter_mut()
            .for_each(|one| one.control.couple(count as u32));
        run(link, &mut senders, Duration::from_secs(15), 1);
        let sum: f64 = (senders.iter().map(|one| share(one, link.rate, 5.0, 15.0))).sum();
        assert!(sum > 0.97, "{count} {rtt}: {sum}");
    }
}

/// Two paths share the first link; `rivals` congest the second link of one of them (003, Fig. 1). The
/// least that the two subflows carry in a second from second 5 to 44, and what the rivals have from
/// second 18 to 30, as shares of a link.
fn beside_congestion(rate: f64, rivals: Vec<Sender>, seed: u64) -> (f64, f64) {
    let link = Link { rate, ..LINK };
    let routes = [vec![0, 1], vec![0, 2]];
    let mut coupling = Coupling::default();
    for (at, route) in routes.iter().enumerate() {
        coupling.add(at, route.clone());
    }
    let shares: Vec<_> = coupling.shares().collect();
    assert_eq!(shares, [(0, 2), (1, 2)]);
    let mut network: Vec<Sender> = Vec::new();
    let coupled = subflows(2, seed).into_iter().zip(routes);
    for ((_, share), (mut sender, route)) in shares.into_iter().zip(coupled) {
        sender.control.couple(share);
        network.push(sender.over(route));
    }
    network.extend(rivals.into_iter().map(|rival| rival.over([2])));
    let length = Duration::from_secs(45);
    run_network(&[link; 3], &mut network, length, seed, |now, senders| {
        for (at, sender) in senders.iter().take(2).enumerate() {
            coupling.delivered(now, at, sender.delivered(), link.rtt);
        }
        for (at, rate) in coupling.take(now) {
            senders[at].control.take(rate);
        }
    });
    let sum = |from: f64| -> f64 {
        let subflows = network[..2].iter();
        subflows.map(|one| share(one, rate, from, from + 1.0)).sum()
    };
    let seconds = (50..440).map(|tenth| f64::from(tenth) / 10.0);
    let least = seconds.map(sum).fold(f64::MAX, f64::min);
    let rivals = network[2..].iter();
    let rivals = rivals.map(|one| share(one, rate, 18.0, 30.0)).sum();
    (least, rivals)
}

#[test]
fn what_a_path_gives_up_to_cubic_is_taken_by_the_other() {
    for (rate, seed) in [(12.5e6, 0), (12.5e6, 1), (50e6, 0)] {
        let rivals = (0..2).map(|at| cubic([15, 30], 100 + seed + at)).collect();
        let (least, rivals) = beside_congestion(rate, rivals, seed);
        assert!(least > 0.94, "{rate} {seed}: {least}");
        assert!(rivals > 0.3, "{rate} {seed}: {rivals}");
    }
}

#[test]
fn what_a_path_gives_up_to_a_constant_rate_is_taken_by_the_other() {
    for (rate, seed) in [(12.5e6, 0), (62.5e6, 0), (62.5e6, 1)] {
        let seconds = [15, 30].map(Duration::from_secs);
        let rival: Box<dyn RateControl> = Box::new(Constant(0.82 * rate));
        let rival = Sender::with(rival).active([seconds[0]..seconds[1]]);
        let (least, rival) = beside_congestion(rate, vec![rival], seed);
        assert!(least > 0.95, "{rate} {seed}: {least}");
        assert!(rival > 0.78, "{rate} {seed}: {rival}");
    }
}

#[test]
fn subflows_share_their_busiest_link() {
    let mut coupling = Coupling::default();
    coupling.add('a', vec![1, 2]);
    coupling.add('b', vec![1, 3]);
    coupling.add('c', vec![4, 3]);
    coupling.add('d', vec![1, 6]);
    coupling.add('e', vec![]);
    let shares = |coupling: &Coupling<char, u16>| coupling.shares().collect::<Vec<_>>();
    let four = [('a', 3), ('b', 3), ('c', 2), ('d', 3), ('e', 1)];
    assert_eq!(shares(&coupling), four);
    coupling.remove('b');
    let three = [('a', 2), ('c', 1), ('d', 2), ('e', 1)];
    assert_eq!(shares(&coupling), three);
}

/// What is taken when the subflow `a` delivers less from second 2 on, beside `b` over one of its links
/// and `c` over others.
fn taken(rates: [(u64, u64); 3]) -> Vec<(char, f64)> {
    let mut coupling = Coupling::default();
    coupling.add('a', vec![1, 2]);
    coupling.add('b', vec![1, 3]);
    coupling.add('c', vec![4, 5]);
    let (start, mut taken) = (Instant::now(), Vec::new());
    let mut delivered = [0; 3];
    for at in 0..230u32 {
        let now = start + at * 10 * MS;
        for ((key, bytes), (before, after)) in "abc".chars().zip(&mut delivered).zip(rates) {
            *bytes += if at < 200 { before } else { after };
            coupling.delivered(now, key, *bytes, 25 * MS);
        }
        taken.extend(coupling.take(now));
    }
    taken
}

#[test]
fn what_one_gives_up_is_for_those_that_share_a_link() {
    // Of 200 kB/s 100 are given up: 60 at least when that shows first, and then more.
    let taken_by_b = taken([(2000, 1000), (2000, 2000), (2000, 2000)]);
    assert!(taken_by_b.iter().all(|(key, _)| *key == 'b'));
    let rates: Vec<_> = taken_by_b.iter().map(|(_, rate)| *rate).collect();
    assert!((259e3..290e3).contains(&rates[0]), "{rates:?}");
    let most = rates.iter().copied().fold(0.0, f64::max);
    assert!((290e3..301e3).contains(&most), "{rates:?}");
    // All over the link have less: others take it.
    assert_eq!(taken([(2000, 1000), (2000, 1000), (2000, 2000)]), []);
    assert_eq!(taken([(2000, 1700), (2000, 2000), (2000, 2000)]), []);
}
