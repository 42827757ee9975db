//! scionproto's examples on the network of its tests, and properties of all policies.

mod acl;
mod document;
mod network;

use std::sync::Arc;

use hawser_address::IsdAsn;

use self::network::paths;
use super::*;
use crate::Path;

/// The only policy of a document.
fn policy(document: &str) -> Policy {
    let policies = Policies::parse(document).unwrap_or_else(|error| panic!("{document}: {error}"));
    policies.only().unwrap().clone()
}

/// How many of the paths from one AS to another a policy keeps.
fn kept(policy: &Policy, (src, dst): (&str, &str)) -> usize {
    let judged = policy.filter(&paths(src, dst));
    judged.iter().filter(|one| one.is_ok()).count()
}

/// Why a policy leaves paths, for each one that it leaves.
fn reasons(policy: &Policy, paths: &[Arc<Path>]) -> Vec<String> {
    let judged = policy.filter(paths).into_iter();
    let reasons = judged.filter_map(|one| match one {
        Err(reason) => Some(reason.to_string()),
        Ok(_) => None,
    });
    reasons.collect()
}

const TO_211: (&str, &str) = ("2-ff00:0:212", "2-ff00:0:211");
const TO_222: (&str, &str) = ("1-ff00:0:122", "2-ff00:0:222");
const TO_220: (&str, &str) = ("1-ff00:0:110", "2-ff00:0:220");

#[test]
fn an_empty_policy_keeps_all_paths() {
    assert_eq!(kept(&Policy::new(), TO_211), 2);
    assert_eq!(kept(&policy("p: {}"), TO_211), 2);
    assert_eq!(Policy::new().filter::<Arc<Path>>(&[]), []);
    let judged = Policy::new().filter(&paths(TO_211.0, TO_211.1));
    assert_eq!(judged, vec![Ok(None); 2]);
}

/// `TestOptionsEval`.
#[test]
fn the_heaviest_options_that_keep_a_path_decide() {
    let not = |isd_as: &str| format!("{{acl: ['- {isd_as}', '+']}}");
    let narrow = "{acl: ['- 1-ff00:0:110', '- 1-ff00:0:120', '- 1-ff00:0:111#2823', '+']}";
    let (all, none) = ("{acl: ['+ 0']}", "{acl: ['-']}");
    let (not_120, not_210) = (&*not("1-ff00:0:120"), &*not("2-ff00:0:210"));
    for (options, between, expected, weight) in [
        (&[(0, all)][..], TO_211, 2, 0),
        (&[(0, all), (1, none)], TO_211, 2, 0),
        (&[(0, all), (1, narrow)], TO_222, 1, 1),
        (&[(0, not_120), (0, not_210)], TO_220, 3, 0),
        (&[(1, not_120), (0, not_210)], TO_220, 1, 1),
        (&[(1, not_120), (10, not_210)], TO_220, 2, 10),
        (&[(-1, all), (-2, none)], TO_211, 2, -1),
    ] {
        let options = options.iter();
        let options: Vec<String> = options
            .map(|(weight, policy)| format!("{{weight: {weight}, policy: {policy}}}"))
            .collect();
        let text = format!("p: {{options: [{}]}}", options.join(", "));
        let policy = policy(&text);
        assert_eq!(kept(&policy, between), expected, "{text}");
        let weight = Some(weight);
        let kept = policy
            .filter(&paths(between.0, between.1))
            .into_iter()
            .flatten();
        for found in kept {
            assert_eq!(found, weight, "{text}");
        }
    }
}

#[test]
fn options_narrow_down_what_the_policy_keeps() {
    let policy = policy(
        "p: {acl: ['- 2-ff00:0:210', '+'], options: [
            {weight: 2, policy: {acl: ['- 1-ff00:0:120', '+']}},
            {weight: 1, policy: {options: [{policy: {sequence: '0* 1-ff00:0:120#3122,0 0*'}}]}},
            {policy: {sequence: '0*'}}]}",
    );
    let paths = paths(TO_220.0, TO_220.1);
    // Two paths lead over 1-ff00:0:120, by two interfaces: none enters it by interface 3122.
    assert_eq!(kept(&policy, TO_220), 2);
    assert_eq!(
        reasons(&policy, &paths),
        ["policy: acl entry \"- 2-ff00:0:210\" at 2-ff00:0:210#2111"]
    );
}

#[test]
fn reasons_name_the_rule_that_denies_a_path() {
    let local: Vec<Arc<Path>> = paths("2-ff00:0:212", "2-ff00:0:212");
    let to_211 = paths(TO_211.0, TO_211.1);
    let to_220 = paths(TO_220.0, TO_220.1);
    for (text, paths, expected) in [
        (
            "p: {acl: ['- 2-ff00:0:211#2325', '+']}",
            &to_211,
            &["policy: acl entry \"- 2-ff00:0:211#2325\" at 2-ff00:0:211#2325"][..],
        ),
        (
            "p: {sequence: '0 2-ff00:0:211#2325'}",
            &to_211,
            &["policy: does not follow the sequence '0 2-ff00:0:211#2325'"],
        ),
        (
            "p: {local_isd_ases: [1-1]}",
            &to_211,
            &["policy: 2-ff00:0:212 is not among the local ISD-ASes"; 2],
        ),
        (
            "p: {local_isd_ases: ['2-ff00:0:212']}",
            &local,
            &["policy: it stays inside 2-ff00:0:212"],
        ),
        (
            "p: {remote_isd_ases: [{isd_as: 0-0}]}",
            &local,
            &["policy: it stays inside 2-ff00:0:212"],
        ),
        (
            "p: {remote_isd_ases: [{isd_as: 1-0}]}",
            &to_211,
            &["policy: 2-ff00:0:211 is not among the remote ISD-ASes"; 2],
        ),
        (
            "p: {remote_isd_ases: [{isd_as: 2-0, reject: true}]}",
            &to_211,
            &["policy: remote ISD-AS 2-0 is rejected"; 2],
        ),
        (
            "p: {options: [{weight: 5, policy: {acl: ['- 1-ff00:0:120', '+']}}, {policy: {}}]}",
            &to_220,
            &["policy: an option of weight 5 has paths"; 2],
        ),
        (
            "p: {options: [{weight: 5, policy: {acl: ['-']}}, {policy: {sequence: 0 0}}]}",
            &to_211[..1].to_vec(),
            &[],
        ),
        (
            "p: {options: [{weight: 5, policy: {acl: ['-']}}, {policy: {sequence: '0 1'}}]}",
            &to_211[..1].to_vec(),
            &["policy: in the option of weight 0: does not follow the sequence '0 1'"],
        ),
    ] {
        assert_eq!(reasons(&policy(text), paths), expected, "{text}");
    }
}

/// `TestSequenceEval`, the part about policies; the rest is in the tests of sequences.
#[test]
fn sequences_of_scionproto_keep_as_many_paths_as_there() {
    let (to_131, to_132, to_110) = ("1-ff00:0:131", "1-ff00:0:132", "1-ff00:0:110");
    let inside = ("2-ff00:0:212", "2-ff00:0:212");
    let from_211 = ("2-ff00:0:211", "2-ff00:0:220");
    let from_133 = |dst| ("1-ff00:0:133", dst);
    for (sequence, between, expected) in [
        ("0-0#0", inside, 0),
        ("0*", inside, 1),
        ("1-ff00:0:110#1,2*", inside, 1),
        ("0* 0*", inside, 1),
        ("0* 0?", inside, 1),
        ("0+", inside, 0),
        ("0-0#0", TO_211, 0),
        ("0-0#0 0-0#0", TO_211, 2),
        (
            "0-0#0 0-0#0 0-0#0 0-0#0",
            ("1-ff00:0:122", "2-ff00:0:220"),
            2,
        ),
        ("1-ff00:0:133#1019 1-ff00:0:132#1910", from_133(to_132), 1),
        ("0 1-ff00:0:132#1910,1916 0", from_133(to_131), 1),
        ("0 1-ff00:0:132#0,1916 0", from_133(to_131), 1),
        (
            "1-ff00:0:122#1815 1-ff00:0:121#1518,1530 1-ff00:0:120#3015,3122 \
             2-ff00:0:220#2231,2224 2-ff00:0:221#2422",
            ("1-ff00:0:122", "2-ff00:0:221"),
            1,
        ),
        (
            "1-ff00:0:133#1018 1-ff00:0:122#1810,1815 1-ff00:0:121#0,1530 \
             1-ff00:0:120#3015,2911 1-ff00:0:110#1129",
            from_133(to_110),
            1,
        ),
        (
            "1-ff00:0:133#1018 1-ff00:0:122#1810,1815 1-ff00:0:121#1530,0 \
             1-ff00:0:120#3015,2911 1-ff00:0:110#1129",
            from_133(to_110),
            0,
        ),
        (
            "1-ff00:0:133#1018 1-ff00:0:122#0,1815 1-ff00:0:121#0,1530 \
             1-ff00:0:120#3015,0 1-ff00:0:110#1129",
            from_133(to_110),
            1,
        ),
        (
            "1-ff00:0:133#0 1 0-0#0 1-ff00:0:120#0 1-ff00:0:110#1129",
            from_133(to_110),
            1,
        ),
        (
            "1-ff00:0:133#0 1-0#0 0-0#0 1-0#0 1-ff00:0:110#0",
            from_133(to_110),
            2,
        ),
        ("", TO_211, 2),
        ("0*", TO_211, 2),
        ("0 0 0*", TO_211, 2),
        ("0+", TO_211, 2),
        ("0 0 0+", TO_211, 0),
        ("0 0 0?", TO_211, 2),
        ("0 0?", TO_211, 2),
        ("0?", TO_211, 0),
        ("0 0 0", from_211, 3),
        ("0 0", from_211, 0),
        ("0 2-ff00:0:221 0", from_211, 1),
        ("0 (2-ff00:0:221 | 2-ff00:0:210) 0", from_211, 3),
        ("0 (2-ff00:0:221 |64-12345) 0", from_211, 1),
        ("0 2-ff00:0:221|64-12345 0", from_211, 1),
        ("0 0 0 ?  ", from_211, 3),
        ("(0 0)?", from_211, 0),
        ("0 1-ff00:0:132#1910 0", from_133(to_131), 1),
        ("0 1-ff00:0:132#1916 0", from_133(to_131), 1),
        ("0 1-ff00:0:132#1917 0", from_133(to_131), 0),
        ("0 1-ff00:0:132#1910,0 0", from_133(to_131), 1),
    ] {
        let policy = Policy::new().with_sequence(sequence.parse().unwrap());
        assert_eq!(kept(&policy, between), expected, "{sequence}");
    }
}

/// `TestLocalISDASEval`.
#[test]
fn paths_begin_in_local_isd_ases() {
    let ends = ["2-ff00:0:212", "2-ff00:0:220"];
    let mut paths: Vec<Arc<Path>> = network::paths(ends[0], ends[1]);
    paths.extend(network::paths(ends[1], ends[0]));
    paths.extend(network::paths(ends[1], ends[1]));
    for (allowed, expected) in [
        ("2-ff00:0:212", 6),
        ("2-ff00:0:220", 6),
        ("2-ff00:0:212, 2-ff00:0:220", 12),
        ("2-ff00:0:212, 2-ff00:0:220, 1-ff00:0:220", 12),
        ("", 0),
    ] {
        let allowed: Vec<String> = allowed
            .split_terminator(", ")
            .map(|one| format!("\"{one}\""))
            .collect();
        let policy = policy(&format!("p: {{local_isd_ases: [{}]}}", allowed.join(",")));
        assert_eq!(
            paths.len() - reasons(&policy, &paths).len(),
            expected,
            "{allowed:?}"
        );
    }
}

/// `TestRemoteISDASEval`.
#[test]
fn paths_end_in_remote_isd_ases() {
    let mut all = Vec::new();
    for dst in ["1-ff00:0:110", "2-ff00:0:212", "2-ff00:0:220"] {
        all.extend(paths("2-ff00:0:210", dst));
    }
    for (rules, expected) in [
        ("", 0),
        ("{isd_as: 0-0}", 6),
        ("{}", 6),
        ("{reject: true}", 0),
        ("{isd_as: 2-0}", 5),
        ("{isd_as: '0-ff00:0:212'}", 4),
        ("{isd_as: 1-0}, {isd_as: '2-ff00:0:220'}", 2),
        ("{isd_as: 1-0, reject: true}, {isd_as: 0-0}", 5),
        ("{isd_as: 0-0}, {isd_as: 1-0, reject: true}", 6),
    ] {
        let policy = policy(&format!("p: {{remote_isd_ases: [{rules}]}}"));
        assert_eq!(
            all.len() - reasons(&policy, &all).len(),
            expected,
            "{rules}"
        );
    }
}
