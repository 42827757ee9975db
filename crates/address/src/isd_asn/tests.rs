use proptest::prelude::*;

use super::*;

#[test]
fn numbers_are_printed_and_parsed_as_by_scionproto() {
    // pkg/addr/isdas_test.go, and the wiki's "ISD and AS numbering".
    for (number, text) in [
        (0, "0-0"),
        (0x0001_0000_0000_0000, "1-0"),
        (0x0000_0000_0000_0001, "0-1"),
        (0x0001_0000_0000_0001, "1-1"),
        (0x0040_0000_0000_022f, "64-559"),
        (0x0001_0000_0000_ffff, "1-65535"),
        (0x0001_0000_ffff_ffff, "1-4294967295"),
        (0x0001_0001_0000_0000, "1-1:0:0"),
        (0x0001_0001_fcd1_0001, "1-1:fcd1:1"),
        (0x0001_ff00_0000_0110, "1-ff00:0:110"),
        (0x0004_ff00_0001_000f, "4-ff00:1:f"),
        (0xffff_ffff_ffff_ffff, "65535-ffff:ffff:ffff"),
    ] {
        let isd_as = IsdAsn(number);
        assert_eq!(isd_as.to_string(), text);
        assert_eq!(format!("{isd_as:?}"), text);
        assert_eq!(text.parse(), Ok(isd_as));
        assert_eq!(isd_as.to_be_bytes(), number.to_be_bytes());
    }
}

#[test]
fn other_forms_of_a_number_are_accepted() {
    for (text, printed) in [
        ("1-0:0:0", "1-0"),
        ("1-0:0:1", "1-1"),
        ("1-0:ffff:ffff", "1-4294967295"),
        ("1-FF00:0:1a", "1-ff00:0:1a"),
        ("01-ff00:0000:00000110", "1-ff00:0:110"),
        ("1-000000000000000001", "1-1"),
    ] {
        assert_eq!(text.parse::<IsdAsn>().unwrap().to_string(), printed);
    }
}

#[test]
fn an_error_names_the_part_that_is_wrong() {
    let isd = |part: &str| IdentifierError::Isd(part.into());
    let asn = |part: &str| IdentifierError::Asn(part.into());
    for (text, expected) in [
        ("-1", isd("")),
        ("a-1", isd("a")),
        ("+1-1", isd("+1")),
        ("1_0-1", isd("1_0")),
        ("65536-1", isd("65536")),
        ("\u{0661}-1", isd("\u{0661}")),
        ("1-", asn("")),
        ("1-+1", asn("+1")),
        ("1-a", asn("a")),
        ("1-4294967296", asn("4294967296")),
        ("1-:", asn(":")),
        ("1-0:0", asn("0:0")),
        ("1-0:0:", asn("0:0:")),
        ("1-:0:0", asn(":0:0")),
        ("1-0:0:0:", asn("0:0:0:")),
        ("1-0:0:0:0", asn("0:0:0:0")),
        ("1-10000:0:0", asn("10000:0:0")),
        ("1-0:0:10000", asn("0:0:10000")),
        ("1-0:0x0:0", asn("0:0x0:0")),
        ("1-0:+1:0", asn("0:+1:0")),
        ("1-ff00_0_110", asn("ff00_0_110")),
        ("1-ff00:0: 110", asn("ff00:0: 110")),
    ] {
        assert_eq!(text.parse::<IsdAsn>(), Err(expected), "{text}");
    }
    for text in ["", "1", "ff00:0:110", "1-1-1", "--", "1--1"] {
        let error = IdentifierError::IsdAsn(text.into());
        assert_eq!(text.parse::<IsdAsn>(), Err(error));
    }
}

#[test]
fn a_wildcard_matches_any() {
    let isd_as = |text: &str| text.parse::<IsdAsn>().unwrap();
    let all = ["1-ff00:0:110", "1-ff00:0:111", "2-ff00:0:110"].map(isd_as);
    for (wanted, matched) in [
        ("0-0", [true, true, true]),
        ("1-0", [true, true, false]),
        ("0-ff00:0:110", [true, false, true]),
        ("1-ff00:0:110", [true, false, false]),
    ] {
        let wanted = isd_as(wanted);
        assert_eq!(all.map(|one| wanted.matches(one)), matched, "{wanted}");
        assert_eq!(all.map(|one| one.matches(wanted)), matched, "{wanted}");
        assert_eq!(wanted.is_wildcard(), wanted != all[0]);
    }
}

#[test]
fn serde_uses_the_text() {
    let isd_as: IsdAsn = "1-ff00:0:110".parse().unwrap();
    assert_eq!(serde_json::to_string(&isd_as).unwrap(), "\"1-ff00:0:110\"");
    let map = std::collections::BTreeMap::from([(isd_as, 7)]);
    let json = serde_json::to_string(&map).unwrap();
    assert_eq!(json, "{\"1-ff00:0:110\":7}");
    let read: std::collections::BTreeMap<IsdAsn, u8> = serde_json::from_str(&json).unwrap();
    assert_eq!(read, map);
    for (json, reason) in [
        ("\"1-x\"", "`x` is not an AS"),
        ("1", "expected an ISD-AS, as in 1-ff00:0:110"),
    ] {
        let error = serde_json::from_str::<IsdAsn>(json).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
}

proptest! {
    #[test]
    fn printed_numbers_are_parsed_unchanged(number: u64) {
        let isd_as = IsdAsn::from(number);
        prop_assert_eq!(u64::from(isd_as), number);
        prop_assert_eq!(isd_as.to_string().parse(), Ok(isd_as));
        prop_assert_eq!(isd_as.asn().to_string().parse(), Ok(isd_as.asn()));
        prop_assert_eq!(isd_as.isd().to_string().parse(), Ok(isd_as.isd()));
        prop_assert_eq!(IsdAsn::new(isd_as.isd(), isd_as.asn()), isd_as);
        let read: IsdAsn = serde_json::from_str(&serde_json::to_string(&isd_as).unwrap()).unwrap();
        prop_assert_eq!(read, isd_as);
    }

    #[test]
    fn an_as_has_48_bits(number: u64) {
        let fits = number < 1 << 48;
        prop_assert_eq!(Asn::new(number).map(Asn::to_u64), fits.then_some(number));
        let low = number & 0xffff_ffff_ffff;
        prop_assert_eq!(Asn::new(low).map(Asn::to_u64), Some(low));
    }

    /// What is accepted is, but for capitals and zeros, one of the two printed forms.
    #[test]
    fn any_text_is_read_or_refused(text in "[0-9]{0,6}-?[0-9a-fA-F:+_-]{0,18}|\\PC{0,30}") {
        if let Ok(isd_as) = text.parse::<IsdAsn>() {
            let (isd, asn) = text.split_once('-').unwrap();
            prop_assert_eq!(isd.parse::<u16>().unwrap(), isd_as.isd().to_u16());
            let value = match asn.split(':').collect::<Vec<_>>()[..] {
                [number] => number.parse::<u32>().unwrap().into(),
                [a, b, c] => [a, b, c].iter().fold(0, |value, group| {
                    value << 16 | u64::from(u16::from_str_radix(group, 16).unwrap())
                }),
                _ => unreachable!("{text}"),
            };
            prop_assert_eq!(value, isd_as.asn().to_u64());
            prop_assert!(!text.contains(['+', '_']));
        }
    }
}
