//! The configuration file: defaults for flags of commands.
//!
//! A table has the name of a command (`[get]`, `[lab.up]`), a key that of a flag. Before arguments
//! are parsed, what the file has for their command is put among them; clap then judges both alike.

mod file;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

use self::file::Setting;
use crate::cmd::{daemon, folders};
use crate::failure::{Doing, Failure};
use crate::out::{errln, plain};

/// The variable that names the file, if the flag does not.
const VARIABLE: &str = "HAWSER_CONFIG";

/// The command with a configuration of its own.
const DAEMON: &str = "daemon";

/// Flags, and the variables that mean the same and come before the file.
const ENVIRONMENT: [(&[&str], &[&str]); 2] = [
    (
        &["sciond", "config-dir", "bootstrap"],
        &["SCION_DAEMON", "SCION_DAEMON_ADDRESS"],
    ),
    (&["local"], &["SCION_LOCAL_ADDR"]),
];

/// The table of the daemon's configuration with defaults of its flags, and flags that say nothing about torrents,
/// each with its place there.
const TORRENTS: &str = "torrents";
const ELSEWHERE: [(&str, &str); 8] = [
    ("listen", "`listen` below [http]"),
    ("state", "`state` above all sections"),
    ("sciond", "`sciond` below [network]"),
    ("config-dir", "`config_dir` below [network]"),
    ("bootstrap", "`bootstrap` below [network]"),
    ("local", "`local` below [network]"),
    ("config", "it as a flag"),
    ("check", "it as a flag"),
];

/// The arguments with those of the configuration files.
#[derive(Debug)]
pub struct Configured {
    pub args: Vec<OsString>,
    /// What of the files is among the arguments, each with its file.
    used: Vec<(PathBuf, Setting)>,
}

impl Configured {
    /// Adds what the configuration file has for the command in `args`, if there is a file.
    ///
    /// # Errors
    /// Wrong use, when the file cannot be read or is wrong in any place.
    pub fn read(args: Vec<OsString>, program: fn() -> Command) -> Result<Self, Failure> {
        let (file, is_there) = file(&args);
        let mut configured = Self {
            args,
            used: Vec::new(),
        };
        // It is about fewer commands, and comes before the file of all.
        if configured.args.iter().any(|arg| arg == DAEMON) {
            configured.read_daemon(&program())?;
        }
        if is_there {
            configured.read_file(&file, &program())?;
        }
        Ok(configured)
    }

    fn read_file(&mut self, file: &Path, program: &Command) -> Result<(), Failure> {
        // Of errors, `--help` and the like alone are reported, and come before the file.
        let lenient = program.clone().ignore_errors(true);
        let Ok(given) = lenient.try_get_matches_from(&self.args) else {
            return Ok(());
        };
        let name = file.display();
        let action = format!("cannot read the configuration file {name}");
        let text = std::fs::read_to_string(file).doing(&action);
        let text = text.map_err(Failure::usage)?;
        let settings = file::parse(&text, program);
        let settings = settings.map_err(|wrong| Failure::usage(format!("{name}:{wrong}")))?;
        self.add(file, settings, &given, program, is_in_environment);
        Ok(())
    }

    /// Adds the flags about torrents of the daemon's configuration, if that is the command. The command itself
    /// reads, and judges, all else in that file.
    fn read_daemon(&mut self, program: &Command) -> Result<(), Failure> {
        let lenient = program.clone().ignore_errors(true);
        let Ok(given) = lenient.try_get_matches_from(&self.args) else {
            return Ok(());
        };
        let Some((DAEMON, flags)) = given.subcommand() else {
            return Ok(());
        };
        let named = flags.get_one::<PathBuf>("config").cloned();
        let Ok(file) = named.map_or_else(daemon::usual, Ok) else {
            return Ok(());
        };
        let Ok(text) = std::fs::read_to_string(&file) else {
            return Ok(());
        };
        let settings = file::parse_section(&text, TORRENTS, &[DAEMON], &ELSEWHERE, program);
        let name = file.display();
        let settings = settings.map_err(|wrong| Failure::usage(format!("{name}:{wrong}")))?;
        self.add(&file, settings, &given, program, is_in_environment);
        Ok(())
    }

    /// Adds the settings of the command in `given`, what the arguments are without them.
    fn add(
        &mut self,
        file: &Path,
        settings: Vec<Setting>,
        given: &ArgMatches,
        program: &Command,
        is_in_environment: impl Fn(&str) -> bool,
    ) {
        let (mut command, mut given) = (program, given);
        // Behind the name of the program, and the flag that names the file.
        let mut at = 1 + config_flag(&self.args).map_or(0, |(_, length)| length);
        let mut path = Vec::new();
        while let Some((name, below)) = given.subcommand() {
            let found = command.find_subcommand(name);
            let ahead = self.args[at..].iter().position(|arg| arg == name);
            let (Some(found), Some(ahead)) = (found, ahead) else {
                return;
            };
            at += ahead + 1;
            path.push(name);
            (command, given) = (found, below);
        }
        for setting in settings {
            let is_flag = |arg: &&Arg| arg.get_long() == Some(&setting.flag);
            let arg = command.get_arguments().find(is_flag);
            if let Some(arg) = arg.filter(|_| setting.command == path)
                && !is_in_environment(&setting.flag)
                && !excluded(arg, given, command)
            {
                self.args.splice(at..at, setting.args());
                self.used.push((file.to_owned(), setting));
            }
        }
    }

    /// Says which arguments that an error names are the file's.
    pub fn explain(&self, error: &str) {
        let named = |setting: &Setting| error.contains(&format!("--{}", setting.flag));
        for (file, setting) in self.used.iter().filter(|(_, setting)| named(setting)) {
            let file = plain(&file.display().to_string());
            let args = setting.args();
            let args: Vec<_> = args
                .iter()
                .map(|arg| plain(&arg.to_string_lossy()))
                .collect();
            errln!("{file}:{}: {}", setting.line, args.join(" "));
        }
    }
}

/// Whether a flag of a command is given, or another with which it cannot be used.
fn excluded(flag: &Arg, given: &ArgMatches, command: &Command) -> bool {
    let excludes = |one: &Arg, other: &Arg| {
        let excluded = command.get_arg_conflicts_with(one);
        excluded.iter().any(|arg| arg.get_id() == other.get_id())
    };
    let is_given = |arg: &&Arg| {
        let source = given.value_source(arg.get_id().as_str());
        source == Some(ValueSource::CommandLine)
    };
    let mut given = command.get_arguments().filter(is_given);
    given.any(|other| other == flag || excludes(other, flag) || excludes(flag, other))
}

/// The file, and whether it must be read: one that is named must, the usual one if it is there.
fn file(args: &[OsString]) -> (PathBuf, bool) {
    let named = config_flag(args).map(|(file, _)| file);
    let named = named.or_else(|| std::env::var_os(VARIABLE).map(PathBuf::from));
    match (named, folders::config()) {
        (Some(file), _) => (file, true),
        (None, Ok(folder)) => {
            let file = folder.join("config.toml");
            let is_there = file.exists();
            (file, is_there)
        }
        // There is no home.
        (None, Err(_)) => (PathBuf::new(), false),
    }
}

/// Whether a variable is set that means the same as a flag.
fn is_in_environment(flag: &str) -> bool {
    let variables = ENVIRONMENT
        .iter()
        .filter(|(flags, _)| flags.contains(&flag));
    let mut values = variables
        .flat_map(|(_, names)| *names)
        .filter_map(std::env::var_os);
    values.any(|value| !value.is_empty())
}

/// The value of `--config` behind the name of the program, and how many arguments it takes.
fn config_flag(args: &[OsString]) -> Option<(PathBuf, usize)> {
    let first = args.get(1)?.to_str()?;
    match first.strip_prefix("--config=") {
        Some(file) => Some((Path::new(file).to_owned(), 1)),
        None if first == "--config" => Some((PathBuf::from(args.get(2)?), 2)),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    /// The arguments with those of a file, when the environment has some of the flags.
    fn configured(text: &str, args: &str, environment: &[&str]) -> String {
        let program = Cli::command();
        let mut configured = Configured {
            args: args.split(' ').map(OsString::from).collect(),
            used: Vec::new(),
        };
        let lenient = program.clone().ignore_errors(true);
        let given = lenient.try_get_matches_from(&configured.args).unwrap();
        let settings = file::parse(text, &program).unwrap();
        let is_in_environment = |flag: &str| environment.contains(&flag);
        configured.add(Path::new(""), settings, &given, &program, is_in_environment);
        let args = configured.args.into_iter().skip(1);
        let args: Vec<String> = args.map(|arg| arg.into_string().unwrap()).collect();
        args.join(" ")
    }

    fn assert_becomes(text: &str, args: &str, wanted: &str) {
        assert_eq!(configured(text, args, &[]), wanted, "{text}");
    }

    #[test]
    fn settings_stand_behind_their_command() {
        assert_becomes(
            "[get]\ntime-slot = 500\nexplain = true\nforce = false",
            "hawser get x.torrent",
            "get --time-slot=500 --explain x.torrent",
        );
        assert_becomes(
            "[torrent.create]\nforce = true",
            "hawser get x.torrent",
            "get x.torrent",
        );
        assert_becomes(
            "[lab.up]\nname = 'mine'\n[get]\nforce = true",
            "hawser --config lab lab up fig4",
            "--config lab lab up --name=mine fig4",
        );
        let peers = "[get]\npeer = ['1-ff00:0:1,10.0.0.1:1', '10.0.0.1:2']";
        let wanted = "get --peer=1-ff00:0:1,10.0.0.1:1 --peer=10.0.0.1:2 x.torrent";
        assert_becomes(peers, "hawser get x.torrent", wanted);
    }

    #[test]
    fn arguments_and_what_they_exclude_come_before_settings() {
        let slots = "[get]\ntime-slot = 500";
        for args in ["get --time-slot 700 x", "get x --time-slot=700"] {
            assert_becomes(slots, &format!("hawser {args}"), args);
        }
        let network = "[get]\nbootstrap = 'http://10.0.0.1'";
        let (one, other) = ("get x --sciond 10.0.0.1:1", "get x --config-dir y");
        assert_becomes(network, &format!("hawser {one}"), one);
        assert_becomes(network, &format!("hawser {other}"), other);
        let network = "[get]\nsciond = '10.0.0.1:1'";
        let args = "get x --bootstrap http://10.0.0.1";
        assert_becomes(network, &format!("hawser {args}"), args);
    }

    #[test]
    fn the_environment_comes_before_settings() {
        let text = "[paths]\nsciond = '10.0.0.1:1'\njson = true";
        let args = "hawser paths 1-ff00:0:1";
        let without = configured(text, args, &[]);
        assert_eq!(without, "paths --sciond=10.0.0.1:1 --json 1-ff00:0:1");
        let with = configured(text, args, &["sciond", "bootstrap"]);
        assert_eq!(with, "paths --json 1-ff00:0:1");
    }

    #[test]
    fn flags_about_torrents_are_read_from_the_daemons_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("daemon.toml");
        let read = |text: &str| {
            std::fs::write(&file, text).unwrap();
            let args = ["hawser", "--config", "/dev/null", "daemon", "--seeds", "9"];
            let args = args.map(OsString::from).to_vec();
            let args = [args, vec!["--config".into(), file.clone().into()]].concat();
            let read = Configured::read(args, Cli::command);
            read.map(|configured| configured.args)
                .map_err(|error| error.to_string())
        };
        let text = "[users.a]\n[torrents]\ntcp = 'none'\nseeds = 1\nno-scion = true\n";
        let args: Vec<String> = read(text)
            .unwrap()
            .into_iter()
            .map(|arg| arg.into_string().unwrap())
            .collect();
        assert_eq!(args[4..6], ["--tcp=none", "--no-scion"]);
        assert_eq!(args[6..8], ["--seeds", "9"]);
        for (text, wanted) in [
            (
                "\n[torrents]\nseds = 1",
                "daemon.toml:3: hawser daemon has no flag --seds: did you mean seeds?",
            ),
            (
                "[torrents]\nlisten = 'a'",
                "listen does not belong below [torrents]: write `listen` below [http]",
            ),
            ("torrents = 1", "daemon.toml:1: torrents takes a table"),
            ("[torrents]\ntcp = ", "daemon.toml:2: "),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_wrong_in_a_file_is_named_with_its_line_and_remedy() {
        for (text, wanted) in [
            (
                "[get]\n\nexplan = true",
                "3: hawser get has no flag --explan: did you mean explain?",
            ),
            (
                "[get]\nfrobnicate = 1",
                "2: hawser get has no flag --frobnicate: hawser get --help shows those that it has",
            ),
            (
                "[gte]\nforce = true",
                "1: there is no command hawser gte: did you mean get?",
            ),
            (
                "[lab.frobnicate]",
                "1: there is no command hawser lab frobnicate: hawser lab --help shows those that there are",
            ),
            (
                "[internal]",
                "1: there is no command hawser internal: hawser --help shows those that there are",
            ),
            (
                "force = true",
                "1: force belongs to no command: put it below [COMMAND], such as [get]",
            ),
            ("[get]\nforce = 'yes'", "2: force takes true or false"),
            (
                "[get]\ntime-slot = [1, 2]",
                "2: time-slot takes one value, no list",
            ),
            (
                "[get]\npeer = [[1]]",
                "2: peer takes a list of texts or numbers",
            ),
            (
                "[get]\ntime-slot = 2026-11-27",
                "2: time-slot takes a text, a number, or true or false",
            ),
        ] {
            let wrong = file::parse(text, &Cli::command()).unwrap_err();
            assert_eq!(wrong.to_string(), wanted);
        }
        let wrong = file::parse("[get]\nforce = ", &Cli::command()).unwrap_err();
        assert!(wrong.to_string().starts_with("2: "), "{wrong}");
    }
}
