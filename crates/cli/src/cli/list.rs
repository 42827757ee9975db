//! Lists separated by commas of which an entry is empty: clap reports that a value is empty, and not
//! which, nor what to write.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};

use super::mistake::expecting;

/// What to write in place of a list with an empty entry, if that is the error.
pub fn empty_entry(error: &Error, args: &[OsString], program: &Command) -> Option<String> {
    let is_value = matches!(
        error.kind(),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation
    );
    let (Some(ContextValue::String(value)), Some(ContextValue::String(name))) = (
        error.get(ContextKind::InvalidValue),
        error.get(ContextKind::InvalidArg),
    ) else {
        return None;
    };
    if !is_value || !value.is_empty() {
        return None;
    }
    let mut known = expecting(program, args).0.get_arguments();
    let arg = known.find(|arg| arg.to_string() == *name)?;
    let delimiter = arg.get_value_delimiter()?;
    let flag = format!("--{}", arg.get_long()?);
    let given = given(arg, &flag, delimiter, args);
    let entries: Vec<_> = given
        .split(delimiter)
        .filter(|entry| !entry.is_empty())
        .collect();
    Some(match entries[..] {
        [] => format!("{flag}: the list is empty: name at least one entry, or leave {flag} out"),
        _ => {
            let list = entries.join(&delimiter.to_string());
            format!("{flag} {given}: an entry of the list is empty: write {flag} {list}")
        }
    })
}

/// The first list of this flag with an empty entry; empty if none is found.
fn given(arg: &Arg, flag: &str, delimiter: char, args: &[OsString]) -> String {
    let short = arg.get_short().map(|short| format!("-{short}"));
    let is_flag = |text: &str| text == flag || Some(text) == short.as_deref();
    let mut before = "";
    for text in args.iter().filter_map(|arg| arg.to_str()) {
        let list = match text.split_once('=') {
            Some((name, list)) if is_flag(name) => Some(list),
            _ => is_flag(before).then_some(text),
        };
        if let Some(list) = list.filter(|list| list.split(delimiter).any(str::is_empty)) {
            return list.to_owned();
        }
        before = text;
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use clap::builder::NonEmptyStringValueParser;
    use clap::{ArgAction, value_parser};

    use super::*;

    fn report(line: &str) -> Option<String> {
        let list = |name| {
            let list = Arg::new(name).long(name).action(ArgAction::Append);
            list.value_delimiter(',')
        };
        let mut program = Command::new("hawser").subcommand(
            Command::new("bench")
                .arg(
                    list("numbers")
                        .short('n')
                        .value_parser(value_parser!(u8).range(1..=8)),
                )
                .arg(list("only").value_parser(NonEmptyStringValueParser::new()))
                .arg(
                    Arg::new("one")
                        .long("one")
                        .value_parser(value_parser!(u8).range(1..=8)),
                ),
        );
        let args: Vec<_> = line.split(' ').map(OsString::from).collect();
        let error = program.try_get_matches_from_mut(&args).unwrap_err();
        empty_entry(&error, &args, &program)
    }

    #[test]
    fn an_empty_entry_is_named_with_what_to_write() {
        for (given, wanted) in [
            ("--numbers 1,,2", "--numbers 1,2"),
            ("--numbers=,1,2", "--numbers 1,2"),
            ("--numbers 3 -n 1,2,", "--numbers 1,2"),
            ("--only a,,b", "--only a,b"),
        ] {
            let text = report(&format!("hawser bench {given}")).unwrap();
            let end = format!(": an entry of the list is empty: write {wanted}");
            assert!(text.ends_with(&end), "{given}: {text}");
        }
        for given in ["--only ,", "--only="] {
            let text = report(&format!("hawser bench {given}")).unwrap();
            assert!(text.starts_with("--only: the list is empty"), "{text}");
        }
    }

    #[test]
    fn other_mistakes_keep_their_text() {
        for given in ["--numbers 1,9", "--numbers 1,x", "--one=", "--two 1,,2"] {
            assert_eq!(report(&format!("hawser bench {given}")), None, "{given}");
        }
    }
}
