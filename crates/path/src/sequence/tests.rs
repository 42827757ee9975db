use proptest::prelude::*;

use hawser_address::IsdAsn;

use super::*;
use crate::Metadata;

/// The path over these interfaces, as in `1-ff00:0:111#1 1-ff00:0:110#2`.
fn path(over: &str) -> Path {
    let interfaces: Vec<crate::Interface> = over
        .split_whitespace()
        .map(|one| one.parse().unwrap())
        .collect();
    let here = "1-ff00:0:111".parse().unwrap();
    let src = interfaces.first().map_or(here, |first| first.isd_as);
    let dst = interfaces.last().map_or(here, |last| last.isd_as);
    Path::new(src, dst, interfaces, Metadata::default()).unwrap()
}

fn sequence(text: &str) -> Sequence {
    text.parse().unwrap()
}

/// A path that leaves 1-ff00:0:111 by 1, crosses 1-ff00:0:110 from 2 to 3, and enters 2-64512 by 4.
const THREE: &str = "1-ff00:0:111#1 1-ff00:0:110#2 1-ff00:0:110#3 2-64512#4";

#[test]
fn sequences_that_match_a_path_of_three_ases() {
    for text in [
        "",
        "0 0 0",
        "0*",
        "0+",
        "000",
        " 0\t0\r\n0 ",
        "0 0 0 0?",
        "(0 0)? 0",
        "(0 (0))(0)",
        "1+ 2",
        "1 1 2",
        "1 0 2-64512",
        "0-0 0-0#0 0-0#0,0",
        "0 0-ff00:0:110 0",
        "0 1-ff00:0:110#2 0",
        "0 1-ff00:0:110#3 0",
        "0 1-FF00:0:110#2,3 0",
        "0 1-ff00:0:110#2,0 0",
        "0 1-ff00:0:110#0,3 0",
        "0-0#1 0*",
        "0* 0-0#4",
        "0* 0-0#4,0",
        "0 2|1 0",
        "0 (7-1 | 1-ff00:0:110) 0",
        "9* 1+ 9? 2-64512#4+",
        "(1|2)+",
        "(0 0 0)+",
        "0??+ 0**+ 0",
    ] {
        assert!(sequence(text).matches(&path(THREE)), "{text}");
    }
}

#[test]
fn sequences_that_do_not_match_a_path_of_three_ases() {
    for text in [
        "0",
        "0 0",
        "0 0 0 0",
        "00",
        "(0 0)?",
        "(0 0)+",
        "1+",
        "2 1 1",
        "0 1-ff00:0:110#1 0",
        "0 1-ff00:0:110#3,2 0",
        "0 1-ff00:0:110#3,0 0",
        "0 1-ff00:0:110#0,2 0",
        "1-ff00:0:111#1,0 0*",
        "0 2|3 0",
        // `|` binds tighter than concatenation.
        "1 1 2 | 3 4",
    ] {
        assert!(!sequence(text).matches(&path(THREE)), "{text}");
    }
}

#[test]
fn a_path_inside_an_as_matches_only_optional_items() {
    for (text, passes) in [
        ("", true),
        ("0*", true),
        ("0* 0?", true),
        ("1-ff00:0:110#1,2*", true),
        ("0", false),
        ("0+", false),
        ("0-0#0", false),
    ] {
        assert_eq!(sequence(text).matches(&path("")), passes, "{text}");
    }
}

#[test]
fn errors_give_the_byte_offset() {
    for (text, at) in [
        (" ", 1),
        ("1#0", 1),
        ("0-0-0#0", 3),
        ("0#0#0", 1),
        ("1-ff00:0:110#1#2", 14),
        ("1-ff00:0", 1),
        ("1-", 1),
        ("1-x", 1),
        ("0 |", 3),
        ("| 0", 0),
        ("*", 0),
        ("(0", 2),
        ("0)", 1),
        ("()", 1),
        ("0 & 0", 2),
        ("0 ä", 2),
        ("1-ff00:0:110#", 13),
        ("1-ff00:0:110#1,", 15),
        ("65536", 0),
        ("1-1#65536", 4),
        ("1-fffff:0:1", 1),
    ] {
        match text.parse::<Sequence>() {
            Err(SequenceError::Syntax { at: found, .. }) => assert_eq!(found, at, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    let long = "(".repeat(2000);
    assert!(matches!(
        long.parse::<Sequence>(),
        Err(SequenceError::TooLong { tokens: 2000 })
    ));
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_rejected(text in "[0-9a-f:#,?+*|() -]{0,60}|\\PC{0,40}") {
        if let Ok(sequence) = text.parse::<Sequence>() {
            let _ = sequence.matches(&path(THREE));
            prop_assert_eq!(sequence.to_string(), text);
        }
    }

    #[test]
    fn matching_deep_patterns_terminates(signs in "[?+*]{0,900}") {
        let deep = format!("{}0{}", "(0*".repeat(90), ")+".repeat(90));
        for text in [format!("0{signs}"), deep] {
            sequence(&text).matches(&path(THREE));
        }
    }

    /// The sequence that `hawser paths` prints for a path matches that path.
    #[test]
    fn a_path_follows_its_own_sequence(
        ids in prop::collection::vec(1u16.., 2..12), number in 1u64..1 << 48,
    ) {
        let ids = &ids[..ids.len() / 2 * 2];
        let over: Vec<String> = ids
            .iter()
            .enumerate()
            .map(|(at, id)| {
                let isd_as = IsdAsn((number + (at as u64).div_ceil(2)) % ((1 << 48) - 1) + 1 + (1 << 48));
                format!("{isd_as}#{id}")
            })
            .collect();
        let path = path(&over.join(" "));
        prop_assert!(sequence(&path.sequence()).matches(&path), "{}", path.sequence());
    }
}
