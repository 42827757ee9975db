//! Which of the paths to a destination are taken, and why.

use serde::Serialize;

use crate::{Decision, Interface, Path, Policy, Rank, Reason, Select, Verdict, select};

/// The result of [`explain`].
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// Indices of all paths: first those taken, best first; then those left, by rank; then those
    /// that were not compared, in input order.
    pub order: Vec<usize>,
    /// One per path, in input order.
    pub explanations: Vec<Explanation>,
    /// The interfaces ignored in the comparison, because every path has to use them.
    pub ignored: Vec<Interface>,
}

/// The decision about one path, and the values it ranks by.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// Whether it is taken or left.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
    /// Its rank among the compared paths, from 1; null if it was not compared.
    pub rank: Option<usize>,
    /// The values it ranks by, in order of precedence.
    pub values: Vec<Rank>,
    /// The share of the bytes that it must carry, from 0 to 1; null if the strategies set none.
    pub share: Option<f64>,
}

/// Applies the policies one after another, then [`select()`], and explains for each path to a
/// destination whether it is taken.
pub fn explain<P: AsRef<Path>>(
    paths: &[P],
    policies: &[Policy],
    chosen: &Select,
    max: usize,
) -> Explained {
    let paths: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
    let unranked = |decision: Decision| Explanation {
        verdict: decision.verdict,
        reason: decision.reason,
        rank: None,
        values: Vec::new(),
        share: None,
    };
    // Paths that no step below decides about are copies of others.
    let mut explanations = vec![unranked(Decision::left(Reason::Copy)); paths.len()];
    let mut kept: Vec<usize> = (0..paths.len()).collect();
    for policy in policies {
        let judged = policy.filter(&kept.iter().map(|&at| paths[at]).collect::<Vec<_>>());
        let mut judged = judged.into_iter();
        kept.retain(|&at| {
            let refused = judged.next().and_then(Result::err);
            if let Some(reason) = refused.clone() {
                explanations[at] = unranked(Decision::left(reason));
            }
            refused.is_none()
        });
    }
    let open: Vec<&Path> = kept.iter().map(|&at| paths[at]).collect();
    let selection = select(&open, chosen, max);
    for (&at, decision) in kept.iter().zip(selection.decisions) {
        explanations[at] = unranked(decision);
    }
    let mut order: Vec<usize> = selection.taken.iter().map(|&one| kept[one]).collect();
    for (&at, share) in order.iter().zip(selection.shares.iter().flatten()) {
        explanations[at].share = Some(*share);
    }
    for (rank, ranked) in (1..).zip(selection.ranking) {
        let at = kept[ranked.index];
        explanations[at].rank = Some(rank);
        explanations[at].values = ranked.values;
        if explanations[at].verdict != Verdict::Taken {
            order.push(at);
        }
    }
    order.extend((0..paths.len()).filter(|&at| explanations[at].rank.is_none()));
    Explained {
        order,
        explanations,
        ignored: selection.ignored,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::testing::paths;

    // ASes A to G have the numbers 1 to 7; the paths lead from D to A (001, Fig. 7a).
    const FIG_7A: [&str; 3] = [
        "4 3>2 7 1>2 6 1>2 5 1>2 1",
        "4 2>2 3 1>3 2 1>1 1",
        "4 1>2 2 1>1 1",
    ];

    fn acl(entries: &str) -> Policy {
        Policy::new().with_acl(entries.parse().unwrap())
    }

    #[test]
    fn paths_are_ordered_by_rank_and_each_has_a_reason() {
        let paths = paths(&FIG_7A);
        let explained = explain(&paths, &[], &Select::disjoint(), 4);
        assert_eq!(explained.order, [2, 0, 1]);
        let said = explained.explanations.iter();
        let said: Vec<_> = said.map(|one| (one.verdict, one.rank)).collect();
        assert_eq!(
            said,
            [
                (Verdict::Taken, Some(3)),
                (Verdict::Left, Some(2)),
                (Verdict::Taken, Some(1))
            ]
        );
        let short = paths[2].fingerprint().short();
        assert_eq!(
            serde_json::to_value(&explained.explanations[1]).unwrap(),
            json!({
                "verdict": "left",
                "reason": format!("shares 1-ff00:0:2#1 with path {short}"),
                "rank": 2,
                "values": [{
                    "strategy": "shortest",
                    "known": true,
                    "value": "4 hops",
                    "amount": 4.0,
                    "unit": "hops",
                }],
                "share": null,
            })
        );
    }

    #[test]
    fn paths_denied_by_a_policy_are_not_compared() {
        let paths = paths(&FIG_7A);
        let policies = [acl("- 1-ff00:0:3; +"), acl("- 1-ff00:0:7; +")];
        let explained = explain(&paths, &policies, &"latency".parse().unwrap(), 4);
        assert_eq!(explained.order, [2, 0, 1]);
        let [long, middle, short] = &explained.explanations[..] else {
            panic!("{explained:?}");
        };
        for (one, entry) in [(long, "1-ff00:0:7"), (middle, "1-ff00:0:3")] {
            assert_eq!((one.verdict, one.rank), (Verdict::Left, None));
            let reason = one.reason.to_string();
            assert!(reason.starts_with("policy: acl entry"), "{reason}");
            assert!(reason.contains(entry), "{reason}");
        }
        assert_eq!((short.verdict, short.rank), (Verdict::Taken, Some(1)));
        let values: Vec<_> = short.values.iter().map(|one| &one.text[..]).collect();
        assert_eq!(values, ["latency not announced", "3 hops"]);
    }

    #[test]
    fn carbon_lists_its_parts_and_spread_its_shares() {
        let mut paths = paths(&["1 1>1 2 2>1 4", "1 2>1 3 2>2 4"]);
        paths[0].metadata.notes = vec![String::new(), "carbon=2.5".into(), String::new()];
        let table = "1-ff00:0:1: 10\n1-ff00:0:4: 1".parse().unwrap();
        let chosen: Select = "carbon,spread:50%".parse().unwrap();
        let explained = explain(&paths, &[], &chosen.with_carbon(&table), 4);
        assert_eq!(explained.order, [0, 1]);
        let json = serde_json::to_value(&explained.explanations).unwrap();
        assert_eq!(json[0]["share"], 0.5);
        assert_eq!(
            json[0]["values"][0],
            json!({
                "strategy": "carbon",
                "known": true,
                "value": "carbon 13.5 g/GB: 10 from 1-ff00:0:1 (file), \
                          2.5 from 1-ff00:0:2 (note), 1 from 1-ff00:0:4 (file)",
                "amount": 13.5,
                "unit": "g/GB",
                "parts": [
                    {"isd_as": "1-ff00:0:1", "amount": 10.0, "source": "file"},
                    {"isd_as": "1-ff00:0:2", "amount": 2.5, "source": "note"},
                    {"isd_as": "1-ff00:0:4", "amount": 1.0, "source": "file"},
                ],
            })
        );
        let unknown = &json[1]["values"][0];
        assert_eq!(
            (&unknown["known"], &unknown["amount"]),
            (&json!(false), &json!(11.0))
        );
        assert_eq!(
            unknown["parts"][1],
            json!({"isd_as": "1-ff00:0:3", "amount": null, "source": null})
        );
        assert_eq!(json[1]["rank"], 2);
    }

    #[test]
    fn copies_of_a_path_are_left() {
        let paths = paths(&[FIG_7A[0], FIG_7A[0], FIG_7A[1]]);
        let explained = explain(&paths, &[], &Select::shortest(), 4);
        assert_eq!(explained.order, [2, 0, 1]);
        assert_eq!(explained.explanations[1].reason, Reason::Copy);
    }

    proptest! {
        #[test]
        fn every_path_is_explained_once_and_ranks_are_consecutive(
            chosen in prop::collection::vec(0..3_usize, 0..9),
            select in prop::sample::select(vec![
                "shortest", "disjoint", "latency,disjoint:2", "spread:40%", "carbon,bandwidth",
            ]),
            max in 0..4_usize,
            denied in 1..8_u8,
        ) {
            let texts: Vec<_> = chosen.into_iter().map(|one| FIG_7A[one]).collect();
            let paths = paths(&texts);
            let policy = acl(&format!("- 1-ff00:0:{denied}; +"));
            let explained = explain(&paths, &[policy], &select.parse().unwrap(), max);
            let mut order = explained.order.clone();
            order.sort_unstable();
            prop_assert!(order.into_iter().eq(0..paths.len()));
            let ordered = explained.order.iter().map(|&at| &explained.explanations[at]);
            let taken: Vec<_> = ordered.clone().map(|one| one.verdict == Verdict::Taken).collect();
            let first_left = taken.iter().position(|taken| !taken).unwrap_or(taken.len());
            prop_assert!(first_left <= max && !taken[first_left..].contains(&true));
            let mut ranks: Vec<_> = ordered.clone().filter_map(|one| one.rank).collect();
            ranks.sort_unstable();
            prop_assert!(ranks.iter().copied().eq(1..=ranks.len()));
            for one in ordered {
                prop_assert_eq!(one.rank.is_some(), !one.values.is_empty());
                prop_assert!(!one.reason.to_string().is_empty());
            }
        }
    }
}
