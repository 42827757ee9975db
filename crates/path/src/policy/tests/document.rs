use proptest::prelude::*;

use super::*;

fn error(document: &str) -> PolicyError {
    match Policies::parse(document) {
        Ok(policies) => panic!("{document}: {policies:?}"),
        Err(error) => {
            assert_eq!(error.to_string().lines().count(), 1, "{error}");
            error
        }
    }
}

/// Asserts that the policy `name` of a document equals the only policy of `plain`.
fn same(document: &str, name: &str, plain: &str) {
    let policies = Policies::parse(document).unwrap_or_else(|error| panic!("{document}: {error}"));
    assert_eq!(policies.policy(name).unwrap(), &policy(plain), "{document}");
}

const YAML: &str = "
fast:
  extends: [base]
  acl:
  - '- 2-ff00:0:210'
  - + 1
  - '-'
  options:
  - policy:
      sequence: 0* 1-ff00:0:110#2 0*
  - weight: 3
    policy:
      extends:
      - base
base:
  sequence: '0+'
  local_isd_ases: [1-ff00:0:110, 64-123]
  remote_isd_ases:
  - isd_as: 2-0
    reject: true
  - isd_as: 0-0
";

/// `TestPolicyJsonConversion`, and the two forms of a document.
#[test]
fn json_and_lists_of_policies_are_read_like_yaml() {
    let json = r#"{
        "base": {
            "sequence": "0+",
            "local_isd_ases": ["1-ff00:0:110", "64-123"],
            "remote_isd_ases": [{"isd_as": "2-0", "reject": true}, {"isd_as": "0-0"}]
        },
        "fast": {
            "extends": ["base"],
            "acl": ["- 2-ff00:0:210", "+ 1", "-"],
            "options": [
                {"policy": {"sequence": "0* 1-ff00:0:110#2 0*"}},
                {"weight": 3, "policy": {"extends": ["base"]}}
            ]
        }
    }"#;
    let yaml = Policies::parse(YAML).unwrap();
    assert_eq!(Policies::parse(json).unwrap(), yaml);
    let list = "[{base: {acl: ['+']}}, {other: {extends: [base]}}]";
    let mapping = "{base: {acl: ['+']}, other: {extends: [base]}}";
    assert_eq!(Policies::parse(list), Policies::parse(mapping));
    // The heavier option comes first.
    assert_eq!(yaml.policy("fast").unwrap().options[0].weight, 3);
}

/// `TestExtends`.
#[test]
fn what_a_policy_does_not_set_comes_from_the_last_it_extends() {
    let one = "sequence: 1-ff00:0:133#1019 1-ff00:0:132#1910";
    let two = "sequence: 1-ff00:0:133#1010 1-ff00:0:132#1911";
    let acl = "acl: ['+ 0-0#0']";
    let option = format!("options: [{{weight: 1, policy: {{{acl}}}}}]");
    for (document, plain) in [
        (
            format!("t: {{extends: [a]}}\na: {{{acl}}}"),
            format!("t: {{{acl}}}"),
        ),
        (
            format!("t: {{extends: [a]}}\na: {{{option}}}"),
            format!("t: {{{option}}}"),
        ),
        (
            format!("t: {{extends: [a]}}\na: {{{acl}, {one}}}"),
            format!("t: {{{acl}, {one}}}"),
        ),
        (
            format!("t: {{{two}, extends: [b]}}\nb: {{{acl}}}\na: {{{one}}}"),
            format!("t: {{{acl}, {two}}}"),
        ),
        (
            format!("t: {{extends: [a, b, c]}}\na: {{{one}}}\nb: {{{one}}}\nc: {{{two}}}"),
            format!("t: {{{two}}}"),
        ),
        (
            format!("t: {{extends: [a, b]}}\na: {{{acl}, {one}}}\nb: {{{two}}}"),
            format!("t: {{{acl}, {two}}}"),
        ),
        (
            format!("t: {{extends: [a]}}\na: {{extends: [b]}}\nb: {{extends: [c]}}\nc: {{{one}}}"),
            format!("t: {{{one}}}"),
        ),
        (
            format!(
                "t: {{extends: [c]}}\nc: {{{one}, extends: [b]}}\nb: {{extends: [a]}}\na: {{{two}}}"
            ),
            format!("t: {{{one}}}"),
        ),
        (
            format!(
                "t: {{extends: [f]}}\nc: {{{one}, extends: [b]}}\nb: {{extends: [a]}}\n\
                 f: {{extends: [c]}}\na: {{{two}}}"
            ),
            format!("t: {{{one}}}"),
        ),
        // An empty sequence and an empty list of ISD-ASes are set; an empty list of options is not.
        (
            format!(
                "t: {{sequence: '', local_isd_ases: [], options: [], extends: [a]}}\na: {{{one}, local_isd_ases: [1-1], {option}}}"
            ),
            format!("t: {{sequence: '', local_isd_ases: [], {option}}}"),
        ),
        (
            "t: {extends: [a]}\na: {local_isd_ases: [1-1], remote_isd_ases: [{isd_as: 2-0}]}"
                .to_owned(),
            "t: {local_isd_ases: [1-1], remote_isd_ases: [{isd_as: 2-0}]}".to_owned(),
        ),
        // Extending one policy over several others is no cycle.
        (
            format!(
                "t: {{extends: [a, b]}}\na: {{extends: [c]}}\nb: {{extends: [c]}}\nc: {{{one}}}"
            ),
            format!("t: {{{one}}}"),
        ),
        // The policy of an option can extend another.
        (
            format!("t: {{options: [{{policy: {{extends: [a]}}}}]}}\na: {{{acl}}}"),
            format!("t: {{options: [{{weight: 0, policy: {{{acl}}}}}]}}"),
        ),
    ] {
        same(&document, "t", &plain);
    }
}

#[test]
fn invalid_extends_are_rejected() {
    let missing = error("t: {extends: [a]}\na: {extends: [nowhere]}");
    assert_eq!(
        missing.to_string(),
        "policy \"a\" extends \"nowhere\", which is not in the document: there is \"a\", \"t\""
    );
    for (document, message) in [
        ("t: {extends: [t]}", "policy \"t\" extends itself through t"),
        (
            "a: {extends: [b]}\nb: {extends: [a]}",
            "policy \"a\" extends itself through b, a",
        ),
        (
            "z: {extends: [a]}\na: {options: [{policy: {extends: [a]}}]}",
            "policy \"a\" extends itself through a",
        ),
    ] {
        assert_eq!(error(document).to_string(), message);
    }
    // In both orders of names: policies are resolved from either end of a long chain.
    for down in [true, false] {
        let chain = |length: usize| {
            let name = |at: usize| if down { at } else { 99 - at };
            let mut document = format!("n{:02}: {{}}\n", name(0));
            for at in 1..length {
                document += &format!("n{:02}: {{extends: [n{:02}]}}\n", name(at), name(at - 1));
            }
            document
        };
        assert!(Policies::parse(&chain(32)).is_ok());
        let error = error(&chain(33)).to_string();
        assert!(error.contains("more than 32 steps"), "{error}");
    }
}

#[test]
fn a_short_document_does_not_make_a_huge_policy() {
    let mut document = "n0: {sequence: 0 0}\n".to_owned();
    for at in 1..20 {
        let option = format!("{{policy: {{extends: [n{}]}}}}", at - 1);
        document += &format!("n{at}: {{options: [{option}, {option}]}}\n");
    }
    let error = error(&document).to_string();
    assert!(error.contains("at most 10000 are applied"), "{error}");
}

#[test]
fn errors_are_one_line_that_names_the_fault() {
    for (document, parts) in [
        ("", &["not a policy document"][..]),
        ("{}", &["no policy in it"]),
        ("[]", &["no policy in it"]),
        ("p: [", &["not a policy document"]),
        ("p: {acls: []}", &["acls"]),
        ("p: {mtu: 1000}", &["mtu"]),
        ("p: {options: [{wieght: 1, policy: {}}]}", &["wieght"]),
        ("p: {options: [{weight: 1}]}", &["policy"]),
        (
            "p: {options: [{weight: x, policy: {}}]}",
            &["not a policy document"],
        ),
        (
            "p: {options: [{weight: 9223372036854775808, policy: {}}]}",
            &["not a policy document"],
        ),
        ("p: {remote_isd_ases: [{isdas: 1-0}]}", &["isdas"]),
        ("p: {acl: []}", &["\"p\"", "no default"]),
        ("p: {acl: ['+ 42']}", &["\"p\"", "no default"]),
        ("p: {acl: ['-', '+ 27']}", &["\"p\"", "\"+ 27\""]),
        ("p: {acl: ['* 0', '+']}", &["\"p\"", "\"* 0\""]),
        ("p:\n  acl:\n  - - 2\n  - +", &["quotes"]),
        ("p: {sequence: 0-0-0#0}", &["\"p\"", "0-0-0#0"]),
        (
            "p: {options: [{policy: {sequence: '('}}]}",
            &["\"p\"", "'('"],
        ),
        ("p: {local_isd_ases: [here]}", &["\"p\"", "\"here\""]),
        ("p: {remote_isd_ases: [{isd_as: 1}]}", &["\"p\"", "\"1\""]),
        ("p: {}\np: {}", &["p"]),
        ("[{p: {}}, {p: {}}]", &["two policies are called \"p\""]),
        ("just text", &["not a policy document"]),
    ] {
        let error = error(document).to_string();
        for part in parts {
            assert!(error.contains(part), "{document}: {error}");
        }
    }
    let large = format!("p: {{}} #{}", "x".repeat(256 * 1024));
    assert!(matches!(error(&large), PolicyError::TooLarge { .. }));
}

#[test]
fn policies_are_found_by_name() {
    let several = Policies::parse("a: {}\nb: {acl: ['-']}").unwrap();
    assert_eq!(several.policy("a").unwrap(), &Policy::new());
    let unknown = several.policy("c").unwrap_err().to_string();
    assert_eq!(unknown, "no policy is called \"c\": there is \"a\", \"b\"");
    let none = several.only().unwrap_err().to_string();
    assert_eq!(
        none,
        "the document has several policies: name one: there is \"a\", \"b\""
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_text_is_parsed_or_rejected(
        text in "\\PC{0,60}|[\\[\\]{}:,'\"a \n&*+-]{0,60}",
        at in 0usize..400,
    ) {
        let mut broken = YAML.to_owned();
        let at = at.min(broken.len());
        broken.insert_str(at, &text);
        for text in [text, broken] {
            if let Err(error) = Policies::parse(&text) {
                prop_assert_eq!(error.to_string().lines().count(), 1, "{}", error);
            }
        }
    }

    /// Any graph of `extends` is resolved or rejected, and resolving it terminates.
    #[test]
    fn any_graph_of_policies_is_resolved_or_rejected(
        extends in prop::collection::vec(prop::collection::vec(0usize..8, 0..4), 1..8),
        option: bool,
    ) {
        let mut document = String::new();
        for (at, extends) in extends.iter().enumerate() {
            let names: Vec<String> = extends.iter().map(|name| format!("n{name}")).collect();
            let extends = format!("extends: [{}]", names.join(", "));
            document += &match option {
                true => format!("n{at}: {{sequence: '0*', options: [{{policy: {{{extends}}}}}]}}\n"),
                false => format!("n{at}: {{{extends}}}\n"),
            };
        }
        match Policies::parse(&document) {
            Ok(policies) => {
                for at in 0..extends.len() {
                    let policy = policies.policy(&format!("n{at}")).unwrap();
                    prop_assert_eq!(kept(policy, TO_211), 2);
                }
            }
            Err(error) => prop_assert!(error.to_string().contains(" extends "), "{}", error),
        }
    }
}
