//! The strategies beyond `shortest` and `disjoint`.

use super::*;
use crate::Carbon;

fn parse(text: &str) -> Select {
    text.parse().unwrap()
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[test]
fn combinations_read_and_print() {
    for text in [
        "shortest",
        "disjoint",
        "latency,disjoint",
        "carbon,latency,spread:40%",
        "disjoint:2",
        "bandwidth,disjoint:any",
    ] {
        assert_eq!(parse(text).to_string(), text);
        let json = serde_json::to_value(parse(text)).unwrap();
        assert_eq!(json, text);
        assert_eq!(serde_json::from_value::<Select>(json).unwrap(), parse(text));
    }
    assert_eq!(parse("disjoint, latency"), parse("latency,disjoint"));
    assert_eq!(parse("disjoint:0"), Select::disjoint());
}

#[test]
fn invalid_combinations_are_rejected_with_a_remedy() {
    for (text, hint) in [
        ("fastest", "shortest, latency"),
        ("", "shortest, latency"),
        ("latency,", "shortest, latency"),
        ("disjoint:-1", "disjoint:2"),
        ("disjoint:", "disjoint:2"),
        ("disjoint:+1", "disjoint:2"),
        ("spread", "spread:40%"),
        ("spread:40", "spread:40%"),
        ("spread:0%", "spread:40%"),
        ("spread:101%", "spread:40%"),
        ("latency:3", "nothing after"),
        ("latency,latency", "once"),
        ("disjoint,spread:40%", "one of them"),
    ] {
        let error = text.parse::<Select>().unwrap_err().to_string();
        assert!(error.contains(hint), "{text}: {error}");
    }
}

#[test]
fn measured_latency_takes_precedence_over_announced() {
    let mut paths = paths(&["1 1>1 2", "1 2>2 2", "1 3>3 2"]);
    paths[0].metadata.latency = vec![Some(ms(12))];
    paths[1].metadata.latency = vec![Some(ms(1))];
    let rtt = Some(ms(96));
    let measured = [Measured::default(), Measured { rtt, rate: None }];
    let selection = select_measured(&paths, &measured, &parse("latency"), 1);
    assert_eq!(selection.taken, [0]);
    assert_eq!(
        reasons(&selection),
        [
            "taken: best remaining by latency: 12 ms announced",
            "left: limit of 1 path reached: 48 ms measured",
            "left: limit of 1 path reached: latency not announced",
        ]
    );
    assert_eq!(select(&paths, &parse("latency"), 3).taken, [1, 0, 2]);
}

#[test]
fn bandwidth_is_that_of_the_narrowest_part() {
    let mut paths = paths(&["1 1>1 2 2>1 4", "1 2>1 3 2>2 4", "1 3>1 5 2>3 4"]);
    paths[0].metadata.bandwidth = vec![Some(9_000_000), Some(2_500_000), Some(9_000_000)];
    paths[1].metadata.bandwidth = vec![Some(3_000_000); 3];
    paths[2].metadata.bandwidth = vec![Some(1_000_000_000), None, None];
    let selection = select(&paths, &parse("bandwidth"), 1);
    assert_eq!(
        reasons(&selection),
        [
            "left: limit of 1 path reached: 2.5 Mbit/s announced",
            "taken: best remaining by bandwidth: 3 Mbit/s announced",
            "left: limit of 1 path reached: 1 Gbit/s announced by 1 of 3 parts",
        ]
    );
    let rate = Some(4_000_000);
    let measured = [Measured { rtt: None, rate }];
    let selection = select_measured(&paths, &measured, &parse("bandwidth"), 3);
    assert_eq!(selection.taken, [0, 1, 2]);
}

#[test]
fn the_largest_packets_come_first() {
    let mut paths = paths(&["1 1>1 2", "1 2>2 2", "1 3>3 2"]);
    for (path, mtu) in paths.iter_mut().zip([1472, 9000, 0]) {
        path.metadata.mtu = mtu;
    }
    let selection = select(&paths, &parse("mtu"), 1);
    assert_eq!(
        reasons(&selection),
        [
            "left: limit of 1 path reached: MTU 1472 bytes",
            "taken: best remaining by MTU: MTU 9000 bytes",
            "left: limit of 1 path reached: MTU not announced",
        ]
    );
}

#[test]
fn the_first_rank_counts_before_the_second() {
    let mut paths = paths(&["1 1>1 2", "1 2>2 2", "1 3>3 2"]);
    for (path, (latency, bandwidth)) in paths.iter_mut().zip([(5, 1), (5, 2), (4, 1)]) {
        path.metadata.latency = vec![Some(ms(latency))];
        path.metadata.bandwidth = vec![Some(bandwidth)];
    }
    assert_eq!(
        select(&paths, &parse("latency,bandwidth"), 3).taken,
        [2, 1, 0]
    );
    assert_eq!(
        select(&paths, &parse("bandwidth,latency"), 3).taken,
        [1, 2, 0]
    );
}

#[test]
fn disjoint_paths_are_chosen_by_the_rank_given() {
    let mut paths = paths(&["1 1>1 2 2>1 4", "1 1>1 2 3>1 3 2>2 4", "1 9>1 5 1>3 4"]);
    paths[0].metadata.latency = vec![Some(ms(10)); 3];
    paths[1].metadata.latency = vec![Some(ms(1)); 5];
    paths[2].metadata.latency = vec![Some(ms(20)); 3];
    assert_eq!(select(&paths, &Select::disjoint(), 3).taken, [0, 2]);
    let selection = select(&paths, &parse("latency,disjoint"), 3);
    assert_eq!(selection.taken, [1, 2]);
    assert_eq!(
        selection.decisions[1].to_string(),
        "taken: shares no interface: 5 ms announced"
    );
}

#[test]
fn a_degree_adds_paths_that_share_few_interfaces() {
    let paths = paths(&[
        "1 1>1 2 2>1 4",
        "1 1>1 2 3>1 3 2>2 4",
        "1 2>1 5 2>3 4",
        "1 1>1 2 4>1 6 2>1 5 2>3 4",
    ]);
    assert_eq!(select(&paths, &parse("disjoint"), 4).taken, [0, 2]);
    assert_eq!(select(&paths, &parse("disjoint:1"), 4).taken, [0, 2]);
    let selection = select(&paths, &parse("disjoint:2"), 4);
    assert_eq!(selection.taken, [0, 2, 1]);
    let with = paths[0].fingerprint().short();
    let said = reasons(&selection);
    assert_eq!(
        said[1],
        format!(
            "taken: shares 2 interfaces (1-ff00:0:1#1, …) with path {with}, least overlap available"
        )
    );
    assert!(
        said[3].starts_with("left: shares 5 interfaces"),
        "{}",
        said[3]
    );
    assert!(said[3].ends_with(", more than 2"), "{}", said[3]);
    assert_eq!(
        select(&paths, &parse("disjoint:any"), 4).taken,
        [0, 2, 1, 3]
    );
    assert_eq!(select(&paths, &parse("disjoint:any"), 3).taken, [0, 2, 1]);
}

#[test]
fn carbon_is_taken_from_the_table_then_from_notes() {
    let mut paths = paths(&["1 1>1 2 2>1 4", "1 2>1 3 2>2 4", "1 3>1 5 2>3 4"]);
    let table = "1-ff00:0:1: 10\n\"1-ff00:0:2#1\": 1.5\n\"1-ff00:0:2#2\": 2.5\n1-ff00:0:4: 0\n";
    let table: Carbon = table.parse().unwrap();
    let note = |text: &str| vec![String::new(), text.to_owned(), String::new()];
    paths[1].metadata.notes = note("green; carbon=3, really");
    paths[2].metadata.notes = note("carbon=-3");
    let selection = select(&paths, &parse("carbon").with_carbon(&table), 1);
    assert_eq!(
        reasons(&selection),
        [
            "left: limit of 1 path reached: carbon 14 g/GB: 10 from 1-ff00:0:1 (file), \
             4 from 1-ff00:0:2 (file), 0 from 1-ff00:0:4 (file)",
            "taken: best remaining by carbon: carbon 13 g/GB: 10 from 1-ff00:0:1 (file), \
             3 from 1-ff00:0:3 (note), 0 from 1-ff00:0:4 (file)",
            "left: limit of 1 path reached: carbon more than 10 g/GB: 10 from 1-ff00:0:1 (file), \
             0 from 1-ff00:0:4 (file), nothing known of 1-ff00:0:5",
        ]
    );
    let all = select(&paths, &parse("carbon").with_carbon(&table), 3);
    assert_eq!(all.taken, [1, 0, 2]);
}

#[test]
fn carbon_tables_are_checked() {
    let json: Carbon = r#"{"1-ff00:0:1": 10, "1-ff00:0:1#2": 0.5}"#.parse().unwrap();
    assert_eq!(Ok(json), "1-ff00:0:1: 10\n1-ff00:0:1#2: 0.5".parse());
    for (text, hint) in [
        ("[1]", "not a table of carbon values"),
        ("1-ff00:0:1: much", "not a table of carbon values"),
        ("1-ff00:0:1: -1", "'1-ff00:0:1'"),
        ("1-ff00:0:1: .nan", "'1-ff00:0:1'"),
        ("nowhere: 1", "'nowhere'"),
        ("0-0: 1", "'0-0'"),
    ] {
        let error = text.parse::<Carbon>().unwrap_err().to_string();
        assert!(
            error.contains(hint) && !error.contains('\n'),
            "{text}: {error}"
        );
    }
}

#[test]
fn spread_keeps_every_as_below_its_share() {
    let paths = paths(&["1 1>1 2 2>1 4", "1 2>1 3 2>2 4", "1 3>1 5 2>3 4"]);
    let selection = select(&paths, &parse("spread:50%"), 3);
    assert_eq!(selection.taken.len(), 2);
    assert_eq!(selection.shares, Some(vec![0.5; 2]));
    let selection = select(&paths, &parse("spread:40%"), 3);
    assert_eq!(selection.taken.len(), 3);
    let said = reasons(&selection);
    assert!(
        said[0].starts_with("taken: carries 33.3 %: 3 hops; most is over 1-ff00:0:"),
        "{}",
        said[0]
    );
    let selection = select(&paths, &parse("spread:20%"), 3);
    assert_eq!(selection.taken.len(), 3);
    assert!(reasons(&selection)[0].contains("20 % cannot be kept"));
    assert_eq!(select(&paths, &parse("spread:40%"), 0).shares, Some(vec![]));
}

#[test]
fn a_path_without_ases_between_its_ends_carries_all() {
    let paths = paths(&["1 1>1 2 2>1 4", "1 2>9 4"]);
    let selection = select(&paths, &parse("spread:1%"), 2);
    assert_eq!(selection.taken, [1]);
    assert_eq!(selection.shares, Some(vec![1.0]));
    assert!(reasons(&selection)[0].contains("1 path spread enough"));
}

/// Paths of which some announce a latency, one of a few values, so that many are equal.
fn timed_paths(most: usize) -> impl Generator<Value = Vec<Path>> {
    let latency = prop::option::of(0..4_u64);
    let paths = some_paths(most);
    (paths, prop::collection::vec(latency, most)).prop_map(|(mut paths, latencies)| {
        let mut seen = HashSet::new();
        paths.retain(|path| seen.insert(path.fingerprint()));
        for (path, latency) in paths.iter_mut().zip(latencies) {
            path.metadata.latency = vec![latency.map(ms); path.interfaces.len() - 1];
        }
        paths
    })
}

fn any_select() -> impl Generator<Value = Select> {
    let ranks = prop::sample::subsequence(vec!["shortest", "latency", "bandwidth", "carbon"], 1..4);
    let picks = vec![
        "",
        "disjoint",
        "disjoint:2",
        "disjoint:any",
        "spread:30%",
        "spread:60%",
    ];
    (ranks.prop_shuffle(), prop::sample::select(picks)).prop_map(|(mut all, pick)| {
        all.extend((!pick.is_empty()).then_some(pick));
        parse(&all.join(","))
    })
}

fn subsets(count: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..1_u32 << count).map(move |set| (0..count).filter(|one| set >> one & 1 == 1).collect())
}

proptest! {
    #[test]
    fn every_combination_is_sound_in_any_input_order(
        (paths, shuffled) in timed_paths(12).prop_flat_map(|paths| {
            (Just(paths.clone()), Just(paths).prop_shuffle())
        }),
        chosen in any_select(),
        max in 0..6_usize,
    ) {
        let one = select(&paths, &chosen, max);
        let other = select(&shuffled, &chosen, max);
        let named = |paths: &[Path], selection: &Selection| -> Vec<_> {
            selection.taken.iter().map(|&i| paths[i].fingerprint()).collect()
        };
        prop_assert_eq!(named(&paths, &one), named(&shuffled, &other));
        prop_assert_eq!(&one.shares, &other.shares);
        prop_assert!(one.taken.len() <= max);
        prop_assert_eq!(one.taken.is_empty(), paths.is_empty() || max == 0);
        for (index, decision) in one.decisions.iter().enumerate() {
            let taken = one.taken.contains(&index);
            prop_assert_eq!(taken, decision.verdict == Verdict::Taken);
        }
        if let Some(shares) = &one.shares {
            prop_assert_eq!(shares.len(), one.taken.len());
            let sum: f64 = shares.iter().sum();
            prop_assert!(shares.is_empty() || (sum - 1.0).abs() < 1e-9);
            prop_assert!(shares.iter().all(|share| (0.0..=1.0 + 1e-9).contains(share)));
        }
    }

    #[test]
    fn no_larger_or_faster_disjoint_set_is_missed(paths in timed_paths(11), max in 0..5_usize) {
        let selection = select(&paths, &parse("latency,disjoint"), max);
        let cost = |set: &[usize]| {
            let latency = |i: &usize| paths[*i].latency();
            let unknown = set.iter().filter(|i| latency(i).is_none()).count();
            let sum: Duration = set.iter().filter_map(latency).sum();
            (std::cmp::Reverse(set.len()), unknown, sum, total_links(&paths, set))
        };
        let best = subsets(paths.len()).filter(|set| {
            let apart = |one: usize, other: usize| {
                one == other || !share(&paths[one], &paths[other], &selection.ignored)
            };
            set.len() <= max && set.iter().all(|&one| set.iter().all(|&other| apart(one, other)))
        });
        prop_assert_eq!(Some(cost(&selection.taken)), best.map(|set| cost(&set)).min());
    }

    #[test]
    fn a_degree_is_never_exceeded_nor_room_left_unused(
        paths in timed_paths(12),
        most in 1..5_usize,
        max in 0..8_usize,
    ) {
        let strict = select(&paths, &Select::disjoint(), max);
        let selection = select(&paths, &parse(&format!("disjoint:{most}")), max);
        prop_assert!(selection.taken.starts_with(&strict.taken));
        let shared = |index: usize, taken: &[usize]| {
            let counted = paths[index].interfaces.iter().filter(|i| !strict.ignored.contains(i));
            counted
                .filter(|i| taken.iter().any(|&one| paths[one].interfaces.contains(i)))
                .count()
        };
        for (at, &index) in selection.taken.iter().enumerate().skip(strict.taken.len()) {
            let before = &selection.taken[..at];
            prop_assert!(shared(index, before) <= most);
            for other in (0..paths.len()).filter(|other| !before.contains(other)) {
                prop_assert!(shared(index, before) <= shared(other, before));
            }
        }
        if selection.taken.len() < max {
            for other in (0..paths.len()).filter(|other| !selection.taken.contains(other)) {
                prop_assert!(shared(other, &selection.taken) > most);
            }
        }
    }

    #[test]
    fn any_text_is_parsed_or_rejected(
        text in "[a-z:,%0-9]{0,20}|(latency|disjoint|spread)(:[0-9]{1,5}%?)?",
    ) {
        if let Ok(read) = text.parse::<Select>() {
            prop_assert_eq!(read.to_string().parse::<Select>().unwrap(), read);
        }
    }

    #[test]
    fn any_table_is_parsed_or_rejected(text in "\\PC{0,40}|1-ff00:0:[0-9#]{1,5}: [0-9e.-]{1,6}") {
        if let Err(error) = text.parse::<Carbon>() {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }
}
