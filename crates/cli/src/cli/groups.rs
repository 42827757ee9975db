//! The commands in groups, as the help of the program shows them.

use clap::Command;

/// The groups, and their commands.
const GROUPS: [(&str, &[&str]); 9] = [
    (
        "A host",
        &["paths", "ping", "traceroute", "key", "doctor", "perf"],
    ),
    ("BitTorrent", &["get", "seed", "torrent", "tracker"]),
    ("Files", &["send", "receive", "fetch"]),
    ("TCP programs", &["run", "shim"]),
    ("Service of a host", &["daemon"]),
    ("Networks", &["lab", "demo", "bench", "simulate"]),
    ("An AS", &["as", "router", "control"]),
    ("Operators", &["limit", "coordinator"]),
    ("This program", &["image", "completions", "man", "help"]),
];

/// The help of the program. The groups take the place of `{subcommands}`.
const TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}{after-help}

Options:
{options}";

/// The program with its commands in groups: `-h` names them, `--help` says what each does.
pub fn grouped(program: Command) -> Command {
    let mut names = "Commands:".to_owned();
    let mut described = String::new();
    for (group, commands) in GROUPS {
        names += &format!("\n  {group:<19}{}", commands.join(" "));
        described += &format!("{group}:\n");
        for name in commands {
            let about = match program.find_subcommand(name) {
                Some(command) => command.get_about().map(ToString::to_string),
                None => Some("Print the help of a command".to_owned()),
            };
            described += &format!("  {name:<13}{}\n", about.unwrap_or_default());
        }
        described += "\n";
    }
    names += "\n\nWhat each does: hawser help. Help of one: hawser help COMMAND.";
    program
        .help_template(TEMPLATE)
        .after_help(names)
        .after_long_help(described.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_command_is_in_one_group() {
        let program = Cli::command();
        let commands = program.get_subcommands();
        let shown = commands.filter(|command| !command.is_hide_set());
        let mut shown: Vec<&str> = shown.map(Command::get_name).chain(["help"]).collect();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, shown);
    }
}
