//! `hawser lab shell`: a shell on a host of an AS.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;
use std::process::{Command, ExitCode};

use hawser_lab::{Lab, LabError};
use hawser_topology::IsdAsn;

use crate::out::errln;

/// Becomes the user's shell inside an AS; returns only when that cannot be run.
pub fn run(lab: &Lab, isd_as: IsdAsn) -> Result<ExitCode, LabError> {
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
    let shell = shell.unwrap_or_else(|| OsString::from("/bin/sh"));
    let mut command = Command::new(&shell);
    command
        .env("HAWSER_LAB", lab.name())
        .env("HAWSER_AS", isd_as.to_string());
    let terminal = std::io::stdin().is_terminal();
    if terminal {
        for (name, value) in prompt(Path::new(&shell), isd_as) {
            command.env(name, value);
        }
        if let Some(host) = lab.host(isd_as)? {
            errln!(
                "a shell on {isd_as},{host} in lab {}: `exit` leaves it",
                lab.name()
            );
        }
    }
    match lab.exec(isd_as, command)? {}
}

/// The variables by which a shell shows in its prompt where it is.
fn prompt(shell: &Path, isd_as: IsdAsn) -> Vec<(&'static str, String)> {
    match shell.file_name().and_then(|name| name.to_str()) {
        // Its start-up files set the prompt: this is run after them, once.
        Some("bash") => vec![(
            "PROMPT_COMMAND",
            format!("PS1=\"({isd_as}) $PS1\"; unset PROMPT_COMMAND"),
        )],
        Some("sh" | "dash" | "ash" | "ksh" | "mksh") => vec![("PS1", format!("({isd_as}) $ "))],
        // Others (zsh, fish) read none from their environment; HAWSER_AS is there for theirs.
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bash_shows_the_as_after_its_own_prompt_is_set() {
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
