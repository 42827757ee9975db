//! Names of users and labels: readable, and no two users' look alike.

use crate::error::ChangeError;

/// Letters of other scripts that look like a Latin one in common fonts, each beside it (a part of
/// the list of Unicode Technical Standard 39).
const LOOK_ALIKES: [(&str, char); 19] = [
    ("аα", 'a'),
    ("вβ", 'b'),
    ("сϲ", 'c'),
    ("ԁ", 'd'),
    ("еε", 'e'),
    ("һнη", 'h'),
    ("јϳ", 'j'),
    ("кκ", 'k'),
    ("мμ", 'm'),
    ("п", 'n'),
    ("оοσ0", 'o'),
    ("рρ", 'p'),
    ("г", 'r'),
    ("ѕ", 's'),
    ("тτ", 't'),
    ("υ", 'u'),
    ("ѵν", 'v'),
    ("хχ", 'x'),
    ("уγ", 'y'),
];

/// What looks like a lower-case L.
const STROKES: &str = "l1i|іιı!";

/// Checks a name or label: 1 to 64 characters, none of which ends a line or hides.
pub(super) fn check_name(what: &str, name: &str) -> Result<(), ChangeError> {
    let length = name.chars().count();
    let odd = name.chars().any(|c| c.is_control() || is_hidden(c));
    if !(1..=64).contains(&length) || name.trim() != name || odd {
        return Err(ChangeError::Invalid(format!(
            "{name:?} cannot be {what}: give 1 to 64 characters, without control characters, \
             invisible ones, and spaces around"
        )));
    }
    Ok(())
}

/// Whether people would take two names for the same.
pub(super) fn look_alike(one: &str, other: &str) -> bool {
    appearance(one) == appearance(other)
}

/// A name without what people do not tell apart.
fn appearance(name: &str) -> String {
    let plain = |c: char| {
        if STROKES.contains(c) {
            return 'l';
        }
        let similar = LOOK_ALIKES.iter().find(|(odd, _)| odd.contains(c));
        similar.map_or(c, |(_, latin)| *latin)
    };
    let plain: String = name
        .chars()
        .flat_map(char::to_lowercase)
        .map(plain)
        .collect();
    plain.replace("rn", "m")
}

/// Whether a character has no shape of its own, changes the order of others, or is a space that
/// looks like another.
fn is_hidden(c: char) -> bool {
    let spaces = c != ' ' && c.is_whitespace();
    spaces
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_are_recognized() {
        for (one, other) in [
            ("alice", "Alice"),
            ("alice", "аlice"),
            ("alice", "a1ice"),
            ("alice", "aIice"),
            ("bob", "b0b"),
            ("ПЕТР", "петр"),
            ("modern", "modem"),
        ] {
            assert!(look_alike(one, other), "{one:?} {other:?}");
        }
        for (one, other) in [
            ("alice", "alice2"),
            ("anna", "hanna"),
            ("zoë", "zoe"),
            ("a b", "ab"),
        ] {
            assert!(!look_alike(one, other), "{one:?} {other:?}");
        }
    }

    #[test]
    fn hidden_characters_are_refused() {
        for name in [
            "ali\u{200b}ce",
            "\u{202e}ecila",
            "a\u{a0}b",
            "a\u{ad}b",
            "a\tb",
            " a",
            "",
        ] {
            assert!(check_name("a name", name).is_err(), "{name:?}");
        }
        for name in ["alice", "Zoë Müller", "Пётр", "田中", "o'neill@example.org"] {
            assert!(check_name("a name", name).is_ok(), "{name:?}");
        }
    }
}
