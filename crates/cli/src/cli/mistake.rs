//! Mistakes in arguments that clap does not recognize.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

/// Most typing errors in a command for which a suggestion is made: letters added, left out,
/// replaced, or swapped with the next.
const MAX_TYPING_ERRORS: usize = 2;

/// Joins a value that begins like a negative number to the option before it: `--rate -5mbit` to
/// `--rate=-5mbit`. No option begins with a digit, so the meaning is certain, and the error is that
/// of the option.
pub fn join_negative_values(args: Vec<OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::with_capacity(args.len());
    let mut args = args.into_iter();
    for arg in args.by_ref() {
        if arg == "--" {
            joined.push(arg);
            break;
        }
        let negative = arg.to_str().is_some_and(|text| {
            let digit = text.strip_prefix('-').and_then(|text| text.chars().next());
            digit.is_some_and(|digit| digit.is_ascii_digit())
        });
        match joined.last_mut().filter(|last| negative && is_option(last)) {
            Some(last) => {
                last.push("=");
                last.push(arg);
            }
            None => joined.push(arg),
        }
    }
    joined.extend(args);
    joined
}

/// Whether an argument is an option without its value.
fn is_option(arg: &OsString) -> bool {
    let text = arg.to_str().unwrap_or_default();
    let name = text.strip_prefix("--").or_else(|| text.strip_prefix('-'));
    name.is_some_and(|name| {
        name.starts_with(|c: char| c.is_ascii_alphabetic()) && !name.contains('=')
    })
}

/// Adds the command that was probably meant if clap suggests none. Clap compares prefixes, and so
/// misses commands with swapped letters.
pub fn suggest_command(mut error: Error, args: &[OsString], program: &Command) -> Error {
    let typed = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(typed)) if error.kind() == ErrorKind::InvalidSubcommand => {
            typed.clone()
        }
        _ => return error,
    };
    if error.get(ContextKind::SuggestedSubcommand).is_none() {
        let names = expecting(program, args).0.get_subcommands();
        let names = names.filter(|command| !command.is_hide_set());
        let near = names.map(|command| {
            let name = command.get_name();
            (strsim::damerau_levenshtein(&typed, name), name)
        });
        if let Some((_, name)) = near.filter(|(wrong, _)| *wrong <= MAX_TYPING_ERRORS).min() {
            let name = ContextValue::Strings(vec![name.to_owned()]);
            error.insert(ContextKind::SuggestedSubcommand, name);
        }
    }
    error
}

/// The command that these arguments are for, and its names from the program on.
pub fn expecting<'a>(root: &'a Command, args: &[OsString]) -> (&'a Command, Vec<&'a str>) {
    let (mut command, mut names) = (root, Vec::new());
    for arg in args.iter().skip(1) {
        match command.find_subcommand(arg) {
            Some(found) => command = found,
            None => break,
        }
        names.push(command.get_name());
    }
    (command, names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_that_look_negative_are_joined() {
        for (given, wanted) in [
            ("get x -n -1", "get x -n=-1"),
            (
                "set 1#1 --rate -5mbit --down",
                "set 1#1 --rate=-5mbit --down",
            ),
            ("get x --peer a -o b", "get x --peer a -o b"),
            ("seed -1 --rate=2 -3", "seed -1 --rate=2 -3"),
            ("exec 1 -- head -n -1", "exec 1 -- head -n -1"),
        ] {
            let args = given.split(' ').map(OsString::from).collect();
            let wanted: Vec<OsString> = wanted.split(' ').map(OsString::from).collect();
            assert_eq!(join_negative_values(args), wanted);
        }
    }
}
