//! Random bytes for everything that reads keys from outside: files, arguments, elements.

use hawser_fuzz::fuzz;

use crate::spake2::{ELEMENT, Pending, Role, decode, encode, scalar};
use crate::{Code, CodeError, Identity, PeerKey, allowed, file, known};

const KEYS: [PeerKey; 2] = [PeerKey([1; 32]), PeerKey([0xfe; 32])];

/// Lines of files, each with a comment, as bytes.
fn files(lines: &[&str]) -> Vec<Vec<u8>> {
    let text = |line: &&str| {
        let lines = KEYS.map(|key| line.replace("KEY", &key.to_string()));
        format!("# of site B\n\n{} alice@b\r\n\t{}", lines[0], lines[1])
    };
    lines.iter().map(text).map(String::into_bytes).collect()
}

#[test]
fn any_file_of_allowed_keys_is_read_or_refused() {
    fuzz(&files(&["KEY", "  KEY", "command=\"ls\" KEY"]), |input| {
        let text = String::from_utf8_lossy(input);
        match file::lines(&text, allowed::parse) {
            Ok(entries) => entries.iter().for_each(|(line, key)| {
                let line = text.lines().nth(line - 1).unwrap();
                assert!(line.trim_start().starts_with(&key.to_string()), "{line:?}");
            }),
            Err((line, reason)) => assert!((1..=text.lines().count()).contains(&line), "{reason}"),
        }
    });
}

#[test]
fn any_file_of_known_hosts_is_read_or_refused() {
    let lines = [
        "1-ff00:0:110,10.0.0.1 KEY",
        "1-ff00:0:110,[10.0.0.2]:31000 KEY",
        "64-2:0:0,fd00::1\tKEY",
        "2-ff00:0:211,[fd00::1]:1 KEY",
    ];
    fuzz(&files(&lines), |input| {
        let text = String::from_utf8_lossy(input);
        match file::lines(&text, known::parse) {
            Ok(entries) => entries.iter().for_each(|(line, (host, key))| {
                let line = text.lines().nth(line - 1).unwrap();
                assert!(line.contains(&key.to_string()), "{line:?}");
                let printed = format!("{host} {key}");
                let again = known::parse(&printed).map(|(host, key)| format!("{host} {key}"));
                assert_eq!(again, Ok(printed));
            }),
            Err((line, reason)) => assert!((1..=text.lines().count()).contains(&line), "{reason}"),
        }
    });
}

#[test]
fn any_code_is_read_or_refused() {
    let codes = ["k7q-m3f-xdn", "000-000-000", "O0o iIl L1-1"];
    let mut valid: Vec<_> = codes.map(|code| code.as_bytes().to_vec()).into();
    valid.extend((0..20).map(|_| Code::generate().unwrap().to_string().into_bytes()));
    fuzz(&valid, |input| {
        let text = String::from_utf8_lossy(input);
        match text.parse::<Code>() {
            Ok(code) => {
                let again: Code = code.to_string().parse().unwrap();
                assert_eq!(again.as_bytes(), code.as_bytes());
            }
            Err(CodeError::Form(refused) | CodeError::Mistyped(refused)) => {
                assert_eq!(refused, text);
            }
        }
    });
}

#[test]
fn any_key_file_is_read_or_refused() {
    let valid: Vec<_> = (0..10)
        .map(|_| Identity::generate().unwrap().to_pem().into_bytes())
        .collect();
    fuzz(&valid, |input| {
        let text = String::from_utf8_lossy(input);
        // The key that is read need not be one of those: any 32 bytes are one.
        if let Ok(identity) = Identity::from_pkcs8_pem(&text) {
            let again = Identity::from_pkcs8_pem(&identity.to_pem()).unwrap();
            assert_eq!(again.key(), identity.key());
        }
    });
}

#[test]
fn any_element_is_decoded_or_refused() {
    let number = |seed: u8| scalar(&std::array::from_fn(|i| seed.wrapping_mul(i as u8)));
    let element = |seed: u8| Pending::new(Role::A, number(seed), number(seed ^ 0x55)).element();
    let mut valid: Vec<_> = (1..20).map(|seed| element(seed).to_vec()).collect();
    // The identity, and points of other forms.
    valid.extend([vec![0], vec![0; ELEMENT], valid[0][..33].to_vec()]);
    fuzz(&valid, |input| {
        if let Some(point) = decode(input) {
            assert_eq!(encode(&point)[..], *input);
        }
    });
}
