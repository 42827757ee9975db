//! Commands and flags that had another name: they are refused by a line that has the new one.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

use super::mistake::expecting;

/// Commands by their old names, and what to write now.
pub const COMMANDS: [(&str, &str); 6] = [
    ("join", "as join"),
    ("limit serve", "coordinator --limits-only"),
    ("map", "shim map"),
    ("perf send", "perf ADDR"),
    ("perf serve", "perf --server"),
    ("serve", "daemon"),
];

/// A flag, or an argument, that had another name.
pub struct Flag {
    /// The commands that had it.
    pub commands: &'static [&'static str],
    /// The name that it had; of an argument, its name in the help.
    pub old: &'static str,
    /// What to write now.
    pub new: &'static str,
}

const fn flag(commands: &'static [&'static str], old: &'static str, new: &'static str) -> Flag {
    Flag { commands, old, new }
}

/// Commands that take a number of paths.
const PATHS: &[&str] = &["fetch", "get", "paths", "run", "send", "shim up"];

/// All flags and arguments that had another name.
pub const FLAGS: [Flag; 20] = [
    flag(&["as join"], "--dir", "--state"),
    flag(&["as join"], "--once", "--unpack"),
    flag(&["bench", "bench bulk-congested"], "--variant", "--only"),
    flag(&["bench limit"], "--links", "--link-counts"),
    flag(&["bench limit"], "--rate", "--limit"),
    flag(&["bench limit"], "--samples", "--readings"),
    flag(&["fetch", "get", "seed", "send"], "--verbose", "--explain"),
    flag(&["lab capture", "simulate"], "--duration", "--time"),
    flag(&["lab up"], "--owner", "--pid"),
    flag(&["limit apply", "limit reset"], "-n", "--dry-run"),
    flag(&["limit apply", "limit watch"], "--rate", "--limit"),
    flag(&["limit show"], "-w", "--watch"),
    flag(PATHS, "--max-connections-per-peer", "--paths"),
    flag(PATHS, "--max-paths", "--paths"),
    flag(&["run", "shim up"], "--file", "--map"),
    flag(&["send"], "-o", "--owner"),
    flag(
        &["shim map add", "shim map list", "shim map remove"],
        "--file",
        "--map",
    ),
    flag(&["shim up"], "--serve", "--expose"),
    flag(&["shim up"], "--serve-network", "--expose-network"),
    flag(&["simulate"], "--seed", "--random-seed"),
];

/// What to write in place of the command that these arguments name, if it had another name.
pub fn command(args: &[OsString]) -> Option<String> {
    let words: Option<Vec<&str>> = args
        .iter()
        .skip(1)
        .take(3)
        .map(|arg| arg.to_str())
        .collect();
    let words = words?;
    let words = match words[..] {
        ["help", ..] => &words[1..],
        _ => &words[..],
    };
    let is_meant = |old: &str| {
        old.split(' ')
            .eq(words.iter().copied().take(old.split(' ').count()))
    };
    let (old, new) = COMMANDS.into_iter().find(|(old, _)| is_meant(old))?;
    Some(is_now(old, new))
}

/// What to write in place of the flag that `error` is about, if it had another name.
pub fn argument(error: &Error, args: &[OsString], program: &Command) -> Option<String> {
    let given = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(given)) if error.kind() == ErrorKind::UnknownArgument => given,
        _ => return None,
    };
    let command = expecting(program, args).1.join(" ");
    let is_meant = |flag: &&Flag| {
        let is_argument = !flag.old.starts_with('-') && !given.starts_with('-');
        flag.commands.contains(&command.as_str()) && (is_argument || flag.old == given)
    };
    let flag = FLAGS.iter().find(is_meant)?;
    Some(is_now(
        &format!("{command} {}", flag.old),
        &format!("{command} {}", flag.new),
    ))
}

fn is_now(old: &str, new: &str) -> String {
    format!("`hawser {old}` is now `hawser {new}`")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::{Cli, Refused, read};

    /// What the program says to these arguments.
    fn refused(line: &str) -> String {
        let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        match read(&args) {
            Err(Refused::Renamed(text) | Refused::Mistaken(text)) => text,
            Err(Refused::Wrong(error)) => panic!("{line}: {error}"),
            Ok(_) => panic!("{line} is taken"),
        }
    }

    /// The command of this name.
    fn find<'a>(program: &'a Command, name: &str) -> Option<&'a Command> {
        name.split(' ')
            .try_fold(program, |command, name| command.find_subcommand(name))
    }

    #[test]
    fn every_old_command_is_refused_with_the_new_one() {
        let program = Cli::command();
        for (old, new) in COMMANDS {
            let text = format!("`hawser {old}` is now `hawser {new}`");
            for more in ["", " --help", " -h", " list --json", " x"] {
                assert_eq!(refused(&format!("hawser {old}{more}")), text);
            }
            assert_eq!(refused(&format!("hawser help {old}")), text);
            assert!(find(&program, old).is_none(), "{old} is still a command");
            let words = new
                .split(' ')
                .filter(|word| word.starts_with(char::is_lowercase));
            let command = words.collect::<Vec<_>>().join(" ");
            assert!(find(&program, &command).is_some(), "{new}");
        }
    }

    #[test]
    fn every_old_flag_is_refused_with_the_new_one() {
        let mut program = Cli::command();
        program.build();
        for flag in &FLAGS {
            for name in flag.commands {
                let text = format!(
                    "`hawser {name} {}` is now `hawser {name} {}`",
                    flag.old, flag.new
                );
                assert_eq!(refused(&format!("hawser {name} {}", flag.old)), text);
                if flag.old.starts_with("--") {
                    assert_eq!(refused(&format!("hawser {name} {}=1", flag.old)), text);
                }
                let command = find(&program, name).unwrap();
                let has = |wanted: &str| {
                    let mut all = command.get_arguments();
                    all.any(|arg| {
                        let long = arg.get_long().map(|long| format!("--{long}"));
                        let short = arg.get_short().map(|short| format!("-{short}"));
                        [long, short].into_iter().flatten().any(|one| one == wanted)
                    })
                };
                assert!(!has(flag.old), "{name} {}", flag.old);
                let new = flag.new.split(' ').next().unwrap();
                assert!(has(new), "{name} {new}");
            }
        }
    }
}
