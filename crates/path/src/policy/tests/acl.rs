use proptest::prelude::*;

use super::*;
use crate::{Interface, Metadata};

fn entry(text: &str) -> AclEntry {
    text.parse().unwrap()
}

/// `TestNewACL`, `TestUnmarshal`: which lists are ACLs.
#[test]
fn only_the_last_entry_is_a_default() {
    let acl = |entries: &[&str]| {
        Acl::new(entries.iter().map(|text| entry(text)).collect()).map(|acl| acl.to_string())
    };
    assert_eq!(acl(&[]), Err(AclError::NoDefault));
    assert_eq!(acl(&["+ 1-0#0"]), Err(AclError::NoDefault));
    assert_eq!(acl(&["+ 42"]), Err(AclError::NoDefault));
    assert_eq!(acl(&["+"]).unwrap(), "+");
    assert_eq!(acl(&["+ 1-0#0", "- 0-0#0"]).unwrap(), "+ 1; -");
    assert_eq!(acl(&["+ 42", "-"]).unwrap(), "+ 42; -");
    for (entries, default, extra) in [
        (&["-", "+ 27"][..], "-", "+ 27"),
        (&["+ 42", "-", "+ 27", "- 30"], "-", "+ 27"),
        (&["+ 0-0#0,0", "+"], "+", "+"),
    ] {
        let (default, extra) = (entry(default), entry(extra));
        assert_eq!(acl(entries), Err(AclError::Extra { default, extra }));
    }
    let many = vec![entry("- 1"); 10_001];
    assert_eq!(Acl::new(many), Err(AclError::TooLong { entries: 10_001 }));
}

/// `TestNewHopPredicate`, `TestHopPredicateString`, `TestACLEntryLoadFromString`.
#[test]
fn entries_are_printed_without_redundant_zeros() {
    for (text, printed) in [
        ("+", "+"),
        ("-", "-"),
        ("+ 0", "+"),
        ("- 0", "-"),
        ("+ 0-0#0", "+"),
        ("+ 0-0#0,0", "+"),
        ("+ 1", "+ 1"),
        ("+ 1-0", "+ 1"),
        ("+ 1-0#0", "+ 1"),
        ("+ 1-0#0,0", "+ 1"),
        ("+ 1-2", "+ 1-2"),
        ("+ 0-1#0", "+ 0-1"),
        ("+ 0-1#2", "+ 0-1#2"),
        ("+ 0-1", "+ 0-1"),
        ("- 1-2#3", "- 1-2#3"),
        ("- 1-2#3,4", "- 1-2#3,4"),
        ("- 1-2#3,0", "- 1-2#3,0"),
        ("- 1-2#0,4", "- 1-2#0,4"),
        ("- 1-FF00:0:110#7", "- 1-ff00:0:110#7"),
    ] {
        assert_eq!(entry(text).to_string(), printed, "{text}");
        assert_eq!(entry(printed), entry(text));
    }
}

#[test]
fn invalid_entries_are_rejected() {
    for text in [
        "",
        " ",
        "1",
        "* 0",
        "+ 0 0",
        "+  0",
        " + 0",
        "+ ",
        "+0",
        "+ 1-0#1",
        "+ 1-0#1,3",
        "+ 0-0#0,3",
        "+ 1-2#3,4,5",
        "+ 1-1-0",
        "+ 1#2",
        "+ 1#0",
        "+ 1,2",
        "+ 1-1#0#",
        "+ 1-1#e",
        "+ 1-1#",
        "+ 1-2#1,3a",
        "+ 1-2#1,",
        "+ 1-12323433243534#0",
        "+ 1123212-23#0",
        "+ +1",
        "+ 1-+2",
        "+ 1-ff00:0:+1",
        "+ 1-1#+1",
        "+ 1-1#65536",
        "+ -1",
        "+ 1-ff00:0",
    ] {
        let error = text.parse::<AclEntry>().unwrap_err();
        assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
    }
}

/// `TestACLEval`.
#[test]
fn every_interface_must_be_allowed_by_the_first_entry_that_matches_it() {
    let from_133 = ("1-ff00:0:133", "2-ff00:0:222");
    let from_130 = ("1-ff00:0:130", "2-ff00:0:220");
    for (text, between, expected) in [
        ("+ 0-0#0", TO_211, 2),
        ("+ 2-0#0; -", TO_211, 2),
        ("+ 2-ff00:0:212#0; + 2-ff00:0:211#0; -", TO_211, 2),
        ("+ 2-ff00:0:212#0; -", TO_211, 0),
        ("- 1-ff00:0:110#0; - 1-ff00:0:120#0; +", from_133, 2),
        (
            "- 1-ff00:0:110; - 1-ff00:0:120; - 1-ff00:0:111#2823; +",
            from_133,
            1,
        ),
        (
            "+ 1-ff00:0:120#0; + 1-ff00:0:130#0; - 1-0#0; +",
            from_130,
            2,
        ),
        (
            "- 1-0#0; + 1-ff00:0:130#0; + 1-ff00:0:120#0; +",
            from_130,
            0,
        ),
        ("-", from_130, 0),
        // A path inside an AS crosses no interface that could be denied.
        ("-", ("2-ff00:0:212", "2-ff00:0:212"), 1),
    ] {
        let policy = Policy::new().with_acl(text.parse().unwrap());
        assert_eq!(kept(&policy, between), expected, "{text}");
    }
}

#[test]
fn of_two_interfaces_the_first_is_ingress_and_the_second_egress() {
    // The path enters 1-ff00:0:132 by 1910 and leaves it by 1916.
    let between = ("1-ff00:0:133", "1-ff00:0:131");
    for (interfaces, denied) in [
        ("1910", true),
        ("1916", true),
        ("1910,0", true),
        ("0,1916", true),
        ("1910,1916", true),
        // One of them is enough: each interface is matched alone.
        ("1910,7", true),
        // As in scionproto's program: 0 matches any interface in that direction.
        ("7,0", true),
        ("0,7", true),
        ("1916,1910", false),
        ("7,1910", false),
        ("7", false),
    ] {
        let text = format!("- 1-ff00:0:132#{interfaces}; +");
        let policy = Policy::new().with_acl(text.parse().unwrap());
        assert_eq!(kept(&policy, between), usize::from(!denied), "{text}");
    }
}

/// A predicate as numbers: ISD, AS, and one or two interfaces.
type Model = (u16, u64, Vec<u16>);

fn predicate() -> impl Strategy<Value = Model> {
    let interfaces = prop::collection::vec(0u16..3, 1..3);
    (0u16..3, 0u64..3, interfaces).prop_map(|(isd, asn, mut interfaces)| {
        if asn == 0 {
            interfaces = vec![0];
        }
        (isd, asn, interfaces)
    })
}

/// A path over ASes and interfaces with small numbers, so that predicates match some of them.
fn path() -> impl Strategy<Value = Arc<Path>> {
    let hop = (1u16..3, 1u64..3, 1u16..3, 1u16..3);
    prop::collection::vec(hop, 2..5).prop_map(|hops| {
        let isd_as = |isd: u16, asn: u64| -> IsdAsn { format!("{isd}-{asn}").parse().unwrap() };
        let mut over = Vec::new();
        for (isd, asn, ingress, egress) in &hops {
            for id in [*ingress, *egress] {
                let isd_as = isd_as(*isd, *asn);
                over.push(Interface { isd_as, id });
            }
        }
        // A path neither enters its first AS nor leaves its last one.
        let over = over[1..over.len() - 1].to_vec();
        let (src, dst) = (over[0].isd_as, over[over.len() - 1].isd_as);
        Arc::new(Path::new(src, dst, over, Metadata::default()).unwrap())
    })
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_rejected(
        text in "[+-] [0-9a-f:#,+-]{0,24}|[-+;0-9# ,]{0,24}|\\PC{0,24}",
    ) {
        if let Ok(entry) = text.parse::<AclEntry>() {
            prop_assert_eq!(entry.to_string().parse(), Ok(entry));
        }
        if let Ok(acl) = text.parse::<Acl>() {
            prop_assert_eq!(acl.to_string().parse(), Ok(acl));
        }
    }

    /// Compares each interface with each entry, as scionproto's document describes it.
    #[test]
    fn decides_as_a_plain_model_does(
        entries in prop::collection::vec((any::<bool>(), predicate()), 0..6),
        default: bool,
        paths in prop::collection::vec(path(), 0..8),
    ) {
        let entries: Vec<_> = entries.into_iter().filter(|(_, (isd, asn, _))| (*isd, *asn) != (0, 0)).collect();
        let sign = |allow: bool| if allow { "+" } else { "-" };
        let mut lines: Vec<String> = entries.iter().map(|(allow, (isd, asn, interfaces))| {
            let ids: Vec<String> = interfaces.iter().map(u16::to_string).collect();
            format!("{} {isd}-{asn}#{}", sign(*allow), ids.join(","))
        }).collect();
        lines.push(sign(default).to_owned());
        let acl: Acl = lines.join(";").parse().unwrap();

        let allowed = |path: &Path| path.interfaces.iter().enumerate().all(|(at, interface)| {
            for (allow, (isd, asn, ids)) in &entries {
                let id = if at % 2 == 1 { ids[0] } else { ids[ids.len() - 1] };
                if (*isd == 0 || *isd == interface.isd_as.isd().to_u16())
                    && (*asn == 0 || *asn == interface.isd_as.asn().to_u64())
                    && (id == 0 || id == interface.id)
                {
                    return *allow;
                }
            }
            default
        });
        let judged = Policy::new().with_acl(acl.clone()).filter(&paths);
        prop_assert_eq!(judged.len(), paths.len());
        for (judged, path) in judged.into_iter().zip(&paths) {
            prop_assert_eq!(judged == Ok(None), allowed(path));
            prop_assert_eq!(acl.allows(path), allowed(path));
        }
    }

    /// Options together keep what each keeps alone, down to the greatest weight that keeps any
    /// path.
    #[test]
    fn options_decide_as_a_plain_model_does(
        options in prop::collection::vec((-2i64..3, predicate()), 1..5),
        paths in prop::collection::vec(path(), 0..8),
    ) {
        let lines: Vec<String> = options.iter().map(|(weight, (isd, asn, ids))| {
            let ids: Vec<String> = ids.iter().map(u16::to_string).collect();
            format!("{{weight: {weight}, policy: {{acl: ['- {isd}-{asn}#{}'{}]}}}}", ids.join(","),
                if (*isd, *asn) == (0, 0) { "" } else { ", '+'" })
        }).collect();
        let whole = policy(&format!("p: {{options: [{}]}}", lines.join(", ")));
        let singles: Vec<Vec<bool>> = options.iter().map(|(_, (isd, asn, ids))| {
            let ids: Vec<String> = ids.iter().map(u16::to_string).collect();
            let text = format!("- {isd}-{asn}#{}{}", ids.join(","),
                if (*isd, *asn) == (0, 0) { "" } else { ";+" });
            let acl: Acl = text.parse().unwrap();
            paths.iter().map(|path| acl.allows(path)).collect()
        }).collect();
        let best = options.iter().zip(&singles)
            .filter(|(_, kept)| kept.contains(&true))
            .map(|((weight, _), _)| *weight)
            .max();
        for (at, judged) in whole.filter(&paths).into_iter().enumerate() {
            let keeps = options.iter().zip(&singles)
                .any(|((weight, _), kept)| Some(*weight) == best && kept[at]);
            match judged {
                Ok(weight) => prop_assert!(keeps && weight == best),
                Err(reason) => {
                    prop_assert!(!keeps);
                    prop_assert!(reason.to_string().starts_with("policy: "), "{}", reason);
                }
            }
        }
    }
}
