//! Names in shell commands.

use std::borrow::Cow;

/// A name as a word of a shell command: the kernel allows all characters but `/`, `:` and spaces in the
/// names of devices.
pub(crate) fn quoted(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '@' | '+');
    match !name.is_empty() && name.chars().all(is_plain) {
        true => Cow::Borrowed(name),
        false => Cow::Owned(format!("'{}'", name.replace('\'', "'\\''"))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_shell_reads_a_quoted_name_as_one_word(name in "[^\0]{0,15}") {
            let command = format!("printf %s {}", quoted(&name));
            let output = std::process::Command::new("sh").args(["-c", &command]).output().unwrap();
            prop_assert_eq!(String::from_utf8(output.stdout).unwrap(), name);
        }
    }

    #[test]
    fn usual_names_stay_as_they_are() {
        for name in ["eth0", "enp0s31f6", "veth.7@x", "br-lan"] {
            assert_eq!(quoted(name), name);
        }
        assert_eq!(quoted("a;reboot"), "'a;reboot'");
    }
}
