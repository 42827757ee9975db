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

/// Two paths share the first link; CUBIC congests the second link of one of them from second 15 to 30
/// (003, Fig. 1).
#[test]
fn what_a_congested_path_gives_up_is_taken_by_the_other() {
    for (rate, seed) in [(12.5e6, 0), (12.5e6, 1), (50e6, 0)] {
        let link = Link { rate, ..LINK };
        let mut senders = subflows(2, seed);
        let routes = [vec![0, 1], vec![0, 2]];
        let mut coupling = Coupling::default();
        for (at, route) in routes.iter().enumerate() {
            coupling.add(at, route.clone());
        }
        let shares: Vec<_> = coupling.shares().collect();
        assert_eq!(shares, [(0, 2), (1, 2)]);
        let mut network: Vec<Sender> = Vec::new();
        for ((_, share), (mut sender, route)) in
            shares.into_iter().zip(senders.drain(..).zip(routes))
        {
            sender.control.couple(share);
            network.push(sender.over(route));
        }
        network.extend((0..2).map(|at| cubic([15, 30], 100 + seed + at).over([2])));
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
        assert!(least > 0.94, "{rate} {seed}: {least}");
        let cubic = share(&network[2], rate, 18.0, 30.0) + share(&network[3], rate, 18.0, 30.0);
        assert!(cubic > 0.3, "{rate} {seed}: {cubic}");
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
    // 100 kB/s are given up, of which half a window of 50 ms must have shown before.
    let taken_by_b = taken([(2000, 1000), (2000, 2000), (2000, 2000)]);
    let [('b', rate), ..] = taken_by_b[..] else {
        panic!("{taken_by_b:?}");
    };
    assert!((80e3..101e3).contains(&rate), "{rate}");
    assert!(taken_by_b.iter().all(|(key, _)| *key == 'b'));
    // All over the link have less: others take it.
    assert_eq!(taken([(2000, 1000), (2000, 1000), (2000, 2000)]), []);
    assert_eq!(taken([(2000, 1500), (2000, 2000), (2000, 2000)]), []);
}
