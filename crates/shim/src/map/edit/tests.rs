use proptest::prelude::*;

use super::*;

fn entry(destination: &str) -> Entry {
    Entry::new(destination.parse().unwrap(), "1-ff00:0:4".parse().unwrap())
}

#[test]
fn an_entry_is_added_after_the_last_one() {
    let line = "\"10.1.0.0/16\" = \"1-ff00:0:4\"";
    for (before, after) in [
        (String::new(), format!("[destinations]\n{line}\n")),
        (NEW_FILE.to_owned(), format!("{NEW_FILE}{line}\n")),
        (
            "# note".to_owned(),
            format!("# note\n\n[destinations]\n{line}\n"),
        ),
        (
            "# note\n".to_owned(),
            format!("# note\n\n[destinations]\n{line}\n"),
        ),
        (
            "[destinations] # all\n# a\na = \"1-ff00:0:5\" # b\n\n# end\n".to_owned(),
            format!("[destinations] # all\n# a\na = \"1-ff00:0:5\" # b\n{line}\n\n# end\n"),
        ),
        (
            "[destinations]\na = \"1-ff00:0:5\"".to_owned(),
            format!("[destinations]\na = \"1-ff00:0:5\"\n{line}"),
        ),
        (
            "[destinations]\r\na = \"1-ff00:0:5\"\r\n".to_owned(),
            format!("[destinations]\r\na = \"1-ff00:0:5\"\r\n{line}\r\n"),
        ),
    ] {
        assert_eq!(add(&before, &entry("10.1.0.0/16")), Ok(after));
    }
}

#[test]
fn comments_and_other_lines_stay() {
    let text =
        "[destinations]\n# of a\na = \"1-ff00:0:5\" # b\nb = { to = \"1-ff00:0:6\", paths = 2 }\n";
    assert_eq!(
        remove(text, &"A.".parse().unwrap()).unwrap(),
        "[destinations]\n# of a\nb = { to = \"1-ff00:0:6\", paths = 2 }\n"
    );
    assert_eq!(
        remove(text, &"b".parse().unwrap()).unwrap(),
        "[destinations]\n# of a\na = \"1-ff00:0:5\" # b\n"
    );
}

#[test]
fn what_is_there_is_not_added_and_what_is_not_there_is_not_removed() {
    let text = "[destinations]\n\"10.0.0.1/32\" = \"1-ff00:0:5\"\n";
    let error = add(text, &entry("10.0.0.1")).unwrap_err().to_string();
    assert_eq!(
        error,
        "`10.0.0.1` exists in line 2, mapped to 1-ff00:0:5: remove it first"
    );
    let error = remove(text, &"10.0.0.0/24".parse().unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "`10.0.0.0/24` is not mapped");
    let error = add("[destinations]\na = 1", &entry("10.0.0.1")).unwrap_err();
    assert!(
        error.to_string().starts_with("line 2: `a` has no target"),
        "{error}"
    );
}

/// Lines that a map may have, numbered so that no destination is in it twice.
fn map_text() -> impl Strategy<Value = String> {
    let lines = prop_oneof![
        Just("# a comment"),
        Just(""),
        Just("  "),
        Just("\"10.0.N.0/24\" = \"1-ff00:0:4\""),
        Just("  \"nN.example\"   =  '1-ff00:0:4,10.0.0.1'   # note"),
        Just("\"fd00::N\" = { to = \"1-ff00:0:4\", comment = \"é [x]\\n\" } # more"),
        Just("\"10.1.N.0/24:22\" = {\n  to = \"1-ff00:0:4\", # lines\n  paths = 3,\n}"),
    ];
    let header = prop_oneof![
        Just("[destinations]"),
        Just("# top\n\n [destinations] # header")
    ];
    (
        header,
        proptest::collection::vec(lines, 0..12),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(header, lines, crlf, end)| {
            let lines = lines.iter().enumerate();
            let lines = lines.map(|(n, line)| line.replace('N', &n.to_string()));
            let lines: Vec<String> = std::iter::once(header.to_owned()).chain(lines).collect();
            let text = lines.join("\n") + if end { "\n" } else { "" };
            if crlf {
                text.replace('\n', "\r\n")
            } else {
                text
            }
        })
}

proptest! {
    #[test]
    fn what_is_added_and_removed_leaves_the_text_as_it_was(text in map_text(), comment: Option<String>) {
        let mut entry = entry("192.0.2.0/24");
        entry.comment = comment;
        let added = add(&text, &entry).unwrap();
        let (parsed, errors) = parse_spans(&added);
        prop_assert!(errors.is_empty(), "{:?}", errors);
        let (before, _) = parse_spans(&text);
        prop_assert_eq!(parsed.entries.len(), before.entries.len() + 1);
        prop_assert_eq!(remove(&added, &entry.destination), Ok(text));
    }

    #[test]
    fn each_entry_can_be_removed(text in map_text()) {
        let (parsed, _) = parse_spans(&text);
        let mut rest = text.clone();
        for (index, entry) in parsed.entries.iter().enumerate() {
            rest = remove(&rest, &entry.destination).unwrap();
            let (left, errors) = parse_spans(&rest);
            prop_assert!(errors.is_empty(), "{:?}", errors);
            prop_assert_eq!(left.entries.len(), parsed.entries.len() - index - 1);
            let notes = |text: &str| text.matches("# a comment").count();
            prop_assert_eq!(notes(&rest), notes(&text));
        }
    }
}
