use proptest::prelude::*;

use super::*;

fn written(value: &Owned) -> Vec<u8> {
    borrowed(value).encode()
}

fn borrowed(value: &Owned) -> Value<'_> {
    match value {
        Owned::Int(n) => Value::Int(*n),
        Owned::Bytes(b) => Value::Bytes(b),
        Owned::List(l) => Value::List(l.iter().map(borrowed).collect()),
        Owned::Dict(d) => Value::dict(d.iter().map(|(k, v)| (k, Some(borrowed(v))))),
    }
}

fn same(value: &Value<'_>, owned: &Owned) -> bool {
    match (value, owned) {
        (Value::Int(a), Owned::Int(b)) => a == b,
        (Value::Bytes(a), Owned::Bytes(b)) => *a == b.as_slice(),
        (Value::List(a), Owned::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Dict(a), Owned::Dict(b)) => {
            a.entries.len() == b.len()
                && a.entries
                    .iter()
                    .zip(b)
                    .all(|((ak, av), (bk, bv))| *ak == bk.as_slice() && same(av, bv))
        }
        _ => false,
    }
}

#[derive(Debug, Clone)]
enum Owned {
    Int(i64),
    Bytes(Vec<u8>),
    List(Vec<Self>),
    Dict(std::collections::BTreeMap<Vec<u8>, Self>),
}

fn any_value() -> impl Strategy<Value = Owned> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Owned::Int),
        proptest::collection::vec(any::<u8>(), 0..20).prop_map(Owned::Bytes),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Owned::List),
            proptest::collection::btree_map(
                proptest::collection::vec(any::<u8>(), 0..6),
                inner,
                0..6
            )
            .prop_map(Owned::Dict),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(value in any_value()) {
        let bytes = written(&value);
        let read = parse(&bytes);
        prop_assert!(read.is_ok_and(|read| same(&read, &value)));
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
        let _ = parse_tolerant(&bytes);
    }

    #[test]
    fn what_is_canonical_is_read_alike_both_ways(text in "[ilde0-9:-]{0,60}") {
        let tolerant = parse_tolerant(text.as_bytes());
        if let Ok(strict) = parse(text.as_bytes()) {
            prop_assert_eq!(tolerant, Ok(strict));
        }
    }

    #[test]
    fn bytes_after_the_end_change_nothing(
        value in any_value(),
        after in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let mut bytes = written(&value);
        bytes.extend(after);
        let read = parse_tolerant(&bytes);
        prop_assert!(read.is_ok_and(|read| same(&read, &value)));
    }

    #[test]
    fn every_proper_prefix_is_refused(value in any_value(), cut in any::<prop::sample::Index>()) {
        let bytes = written(&value);
        let cut = &bytes[..cut.index(bytes.len())];
        prop_assert!(parse(cut).is_err());
        prop_assert!(parse_tolerant(cut).is_err());
    }
}

#[test]
fn only_the_canonical_form_is_read() {
    for bad in [
        "i-0e",
        "i01e",
        "ie",
        "i-e",
        "i9223372036854775808e",
        "01:a",
        "-1:a",
        "d1:bi1e1:ai1ee",
        "d1:ai1e1:ai1ee",
        "di1ei1ee",
        "i1ei1e",
        "x",
        "",
        "l",
        "2:a",
        "i 1e",
        "99999999999999999999:",
    ] {
        assert!(parse(bad.as_bytes()).is_err(), "{bad} was read");
    }
    assert_eq!(parse(b"i-9223372036854775808e"), Ok(Value::Int(i64::MIN)));
}

#[test]
fn other_forms_are_read_as_the_world_writes_them() {
    let int = |text: &str| match parse_tolerant(text.as_bytes()) {
        Ok(Value::Int(number)) => Some(number),
        _ => None,
    };
    assert_eq!(int("i-0e"), Some(0));
    assert_eq!(int("i007e"), Some(7));
    assert_eq!(int("i18446744073709551615e"), Some(i64::MAX));
    assert_eq!(int("i-99999999999999999999e"), Some(i64::MIN));
    assert_eq!(int("i1e\n"), Some(1));
    assert_eq!(parse_tolerant(b"003:abc"), Ok(Value::Bytes(&b"abc"[..])));
    let text = b"d1:bi1e1:ai2e1:bi3ee";
    let Ok(Value::Dict(dict)) = parse_tolerant(text) else {
        panic!("not read")
    };
    assert_eq!(dict.int("a"), Some(2));
    // As in libtorrent, the first one counts.
    assert_eq!(dict.int("b"), Some(1));
    assert_eq!(dict.raw, &text[..]);
    for bad in [
        "ie", "i-e", "i--1e", "i1", "di1ei1ee", "-1:a", "d1:ae", "x", "e", "",
    ] {
        assert!(parse_tolerant(bad.as_bytes()).is_err(), "{bad} was read");
    }
}

#[test]
fn deep_nesting_is_refused_instead_of_overflowing_the_stack() {
    let deep = "l".repeat(100_000);
    assert!(matches!(
        parse(deep.as_bytes()),
        Err(BencodeError::TooComplex(_))
    ));
    assert!(matches!(
        parse_tolerant(deep.as_bytes()),
        Err(BencodeError::TooComplex(_))
    ));
}

#[test]
fn a_dictionary_knows_the_bytes_it_was_read_from() {
    let text = b"d1:ai7e4:infod1:xi1eee";
    let Ok(Value::Dict(dict)) = parse(text) else {
        panic!("not read")
    };
    assert_eq!(dict.raw, text);
    assert_eq!(dict.dict("info").unwrap().raw, b"d1:xi1ee");
}

#[test]
fn any_bytes_are_read_or_refused() {
    let valid = ["d4:infod6:lengthi1ee5:peersl1:ai-1eee", "li0e0:de", "i9e"];
    let valid = valid.map(|text| text.as_bytes().to_vec());
    hawser_fuzz::fuzz(&valid, |input| {
        let tolerant = parse_tolerant(input);
        if let Ok(value) = parse(input) {
            assert_eq!(value.encode(), input);
            assert_eq!(tolerant, Ok(value));
        }
    });
}
