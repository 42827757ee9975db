//! Programs that run in an AS of a lab.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::process::{Command, Stdio};

use hawser_lab::Lab;
use hawser_topology::IsdAsn;
use tokio::process::{Child, Command as AsyncCommand};

use crate::error::{During, ExperimentError};

/// Starts a program in an AS; it is killed when the result is dropped.
pub fn start(lab: &Lab, isd_as: IsdAsn, command: Command) -> Result<Child, ExperimentError> {
    let name = name(&command);
    let command = lab.command(isd_as, command);
    AsyncCommand::from(command.map_err(ExperimentError::step)?)
        .kill_on_drop(true)
        .spawn()
        .during(format_args!("starting {name}"))
}

/// Runs a program in an AS to its end and returns its standard output. Its standard error is that
/// of this process, or `messages`.
pub async fn output(
    lab: &Lab,
    isd_as: IsdAsn,
    mut command: Command,
    messages: Option<Messages>,
) -> Result<String, ExperimentError> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let name = name(&command);
    let output = start(lab, isd_as, command)?.wait_with_output().await;
    let output = output.during(format_args!("running {name}"))?;
    if !output.status.success() {
        let why = messages.map_or_else(|| output.status.to_string(), Messages::into_last);
        return Err(ExperimentError::Step(format!("{name} failed: {why}")));
    }
    String::from_utf8(output.stdout).during(format_args!("reading the output of {name}"))
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

/// What a program writes to standard error, in a file.
pub struct Messages(File);

impl Messages {
    /// Those of a command that is to be started.
    pub fn of(command: &mut Command) -> Result<Self, ExperimentError> {
        let file = tempfile::tempfile().during("making a file for messages")?;
        command.stderr(file.try_clone().during("making a file for messages")?);
        Ok(Self(file))
    }

    /// The last line, without the program's name.
    pub fn into_last(mut self) -> String {
        let mut text = String::new();
        if let Err(error) = self.0.seek(SeekFrom::Start(0)) {
            return format!("its messages cannot be read: {error}");
        }
        if let Err(error) = self.0.read_to_string(&mut text) {
            return format!("its messages cannot be read: {error}");
        }
        let line = text.trim_end().lines().next_back();
        let line = line.unwrap_or("it printed no message");
        line.strip_prefix("hawser: ").unwrap_or(line).to_owned()
    }
}
