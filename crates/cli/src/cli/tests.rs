use std::collections::{BTreeMap, BTreeSet};

use clap::{Arg, Command};
use hawser_experiments::CATALOG;

use super::*;

/// Most columns of help: those of a terminal as it is opened.
const MAX_COLUMNS: usize = 80;
/// Most lines of `-h`: a terminal has 24 as it is opened, and `bench` alone needs more.
const MAX_LINES: usize = 30;

#[test]
fn the_arguments_are_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn get_accepts_the_arguments_of_every_experiment() {
    for entry in CATALOG {
        let experiment = entry.experiment(1.0).unwrap();
        for variant in &experiment.variants {
            for download in &variant.downloads {
                let peer = "1-ff00:0:1,10.0.0.1:1";
                let get = ["hawser", "get", "x.torrent", "--peer", peer];
                let args = download.args.iter().map(String::as_str);
                if let Err(error) = Cli::try_parse_from(get.into_iter().chain(args)) {
                    panic!("{}, {}: {error}", experiment.name, variant.name);
                }
            }
        }
    }
}

/// All commands that help shows, and the program, by their names.
fn commands() -> Vec<(String, Command)> {
    fn collect(name: &str, command: &Command, all: &mut Vec<(String, Command)>) {
        all.push((name.to_owned(), command.clone()));
        let below = command.get_subcommands();
        for one in below.filter(|one| !one.is_hide_set() && one.get_name() != "help") {
            collect(&format!("{name} {}", one.get_name()), one, all);
        }
    }
    let mut program = groups::grouped(Cli::command()).term_width(MAX_COLUMNS);
    program.build();
    let mut all = Vec::new();
    collect("hawser", &program, &mut all);
    all
}

#[test]
fn the_help_of_every_command_fits_a_screen() {
    let mut wrong = Vec::new();
    for (name, mut command) in commands() {
        let short = command.render_help().to_string();
        let lines = short.lines().count();
        if lines > MAX_LINES {
            wrong.push(format!("{name} -h has {lines} lines"));
        }
        // The whole help may be longer, not wider.
        for text in [short, command.render_long_help().to_string()] {
            let wide = text
                .lines()
                .filter(|line| line.chars().count() > MAX_COLUMNS);
            wrong.extend(wide.map(|line| format!("{name}: {line}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The meaning of flags whose value is written in more than one way.
const FORMS: [(&str, &[&str]); 2] = [
    // Where output goes: a file, or a folder for several.
    ("--output", &["DIR", "FILE"]),
    ("--plot", &["DIR", "FILE"]),
];

/// Letters that commands have from other programs, whose users expect them there, and whose meaning
/// elsewhere is another.
const BORROWED: [(&str, &str); 5] = [
    ("hawser lab capture", "csw"),
    ("hawser limit", "lrsbp"),
    ("hawser perf", "s"),
    ("hawser ping", "cs"),
    ("hawser torrent create", "acpsw"),
];

/// What kind of value a flag takes, lists of it aside: `N` also for `N,...` and `[IF=]N`.
fn value(arg: &Arg) -> String {
    let takes = arg.get_action().takes_values();
    let names = arg.get_value_names().filter(|_| takes).unwrap_or_default();
    let name = names.first().map_or("", |name| name.as_str());
    let name = name.rsplit_once(']').map_or(name, |(_, name)| name);
    let name = name.strip_suffix(",...").unwrap_or(name);
    name.to_owned()
}

#[test]
fn a_flag_takes_the_same_everywhere() {
    let mut values: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (_, command) in commands() {
        for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            if let Some(long) = arg.get_long() {
                values
                    .entry(format!("--{long}"))
                    .or_default()
                    .insert(value(arg));
            }
        }
    }
    values.retain(
        |flag, values| match FORMS.iter().find(|(name, _)| name == flag) {
            Some((_, forms)) => !values.iter().eq(*forms),
            None => values.len() > 1,
        },
    );
    assert!(values.is_empty(), "{values:?}");
}

#[test]
fn a_letter_stands_for_the_same_flag_everywhere() {
    let mut letters: BTreeMap<char, BTreeMap<String, String>> = BTreeMap::new();
    for (name, command) in commands() {
        let borrowed = BORROWED.iter().find(|(of, _)| *of == name);
        let borrowed = borrowed.map_or("", |(_, letters)| letters);
        for arg in command.get_arguments() {
            let Some(letter) = arg.get_short() else {
                continue;
            };
            if !borrowed.contains(letter) {
                let long = arg.get_long().unwrap_or_default().to_owned();
                letters
                    .entry(letter)
                    .or_default()
                    .insert(long, name.clone());
            }
        }
        for letter in borrowed.chars() {
            let mut letters = command.get_arguments().filter_map(Arg::get_short);
            assert!(letters.any(|one| one == letter), "{name} has no -{letter}");
        }
    }
    // A number of things: of paths, or of lines.
    let numbers = letters.remove(&'n').unwrap();
    assert!(numbers.keys().eq(["paths", "tail"]), "{numbers:?}");
    letters.retain(|_, longs| longs.len() > 1);
    assert!(letters.is_empty(), "{letters:?}");
}
