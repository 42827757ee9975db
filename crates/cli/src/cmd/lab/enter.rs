//! `hawser lab exec` and `hawser lab shell`: a command or a shell on a host of an AS.

use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal};
use std::path::Path;
use std::process::{Command, ExitCode};

use hawser_lab::{Lab, LabError};
use hawser_topology::IsdAsn;

use super::name::LabName;
use crate::cmd::address::one_as;
use crate::failure::Failure;
use crate::out::errln;

#[derive(clap::Args)]
pub struct ExecArgs {
    /// The AS, for example 1-ff00:0:110
    #[arg(value_parser = one_as)]
    isd_as: IsdAsn,
    /// The host of the AS, if not its first: one of `lab add host`
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// The command and its arguments
    #[arg(last = true, required = true)]
    command: Vec<String>,
    #[command(flatten)]
    lab: LabName,
}

#[derive(clap::Args)]
pub struct ShellArgs {
    /// The AS, for example 1-ff00:0:110
    #[arg(value_name = "AS", value_parser = one_as)]
    isd_as: IsdAsn,
    /// The host of the AS, if not its first: one of `lab add host`
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    #[command(flatten)]
    lab: LabName,
}

/// Replaces this process by the command inside an AS; returns only on failure.
pub fn exec(args: ExecArgs) -> Result<ExitCode, Failure> {
    let mut words = args.command.into_iter();
    let program = words
        .next()
        .ok_or_else(|| Failure::usage("lab exec: give a command after --"))?;
    let mut command = Command::new(program);
    command.args(words);
    let host = args.host.as_deref();
    become_command(&args.lab.open()?, (args.isd_as, host), command)
}

/// Replaces this process by the user's shell inside an AS; returns only on failure.
pub fn shell(args: &ShellArgs) -> Result<ExitCode, Failure> {
    let (lab, isd_as) = (args.lab.open()?, args.isd_as);
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
    let shell = shell.unwrap_or_else(|| OsString::from("/bin/sh"));
    let mut command = Command::new(&shell);
    command
        .env("HAWSER_LAB", lab.name())
        .env("HAWSER_AS", isd_as.to_string());
    if std::io::stdin().is_terminal() {
        command.envs(prompt(Path::new(&shell), isd_as));
        if let Some(host) = lab.host(isd_as)? {
            errln!(
                "a shell on {isd_as},{host} in lab {}: `exit` leaves it",
                lab.name()
            );
        }
    }
    become_command(&lab, (isd_as, args.host.as_deref()), command)
}

/// The exit codes are those of a shell for a command that it cannot run: 127 if it does not exist,
/// 126 if it may not be run.
fn become_command(
    lab: &Lab,
    (isd_as, host): (IsdAsn, Option<&str>),
    command: Command,
) -> Result<ExitCode, Failure> {
    let Err(error) = lab.exec(isd_as, host, command);
    let code = match &error {
        LabError::Run { source, .. } if source.kind() == ErrorKind::NotFound => 127,
        LabError::Run { .. } => 126,
        _ => return Err(error.into()),
    };
    errln!("hawser: {error}");
    Ok(ExitCode::from(code))
}

/// Variables that make a shell show its AS in the prompt.
fn prompt(shell: &Path, isd_as: IsdAsn) -> Vec<(&'static str, String)> {
    match shell.file_name().and_then(|name| name.to_str()) {
        // Bash's start-up files set the prompt; this command runs once after them.
        Some("bash") => vec![(
            "PROMPT_COMMAND",
            format!("PS1=\"({isd_as}) $PS1\"; unset PROMPT_COMMAND"),
        )],
        Some("sh" | "dash" | "ash" | "ksh" | "mksh") => vec![("PS1", format!("({isd_as}) $ "))],
        // Others (zsh, fish) do not read the prompt from their environment; their files can use
        // HAWSER_AS.
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bash_adds_the_as_to_its_prompt() {
        let isd_as: IsdAsn = "1-ff00:0:110".parse().unwrap();
        let (name, value) = prompt(Path::new("/bin/bash"), isd_as).remove(0);
        let script = "PS1='x$ '; eval \"$PROMPT_COMMAND\"; echo \"$PS1${PROMPT_COMMAND-none}\"";
        let mut bash = Command::new("bash");
        let Ok(output) = bash.args(["-c", script]).env(name, value).output() else {
            eprintln!("skipped: no bash here");
            return;
        };
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "(1-ff00:0:110) x$ none\n"
        );
        assert!(prompt(Path::new("/usr/bin/fish"), isd_as).is_empty());
    }
}
