//! `hawser lab logs`: the logs of a lab's processes.

use std::time::Duration;

use hawser_lab::{LogLine, LogSource};
use hawser_topology::IsdAsn;

use super::name::LabName;
use crate::cmd::address::one_as;
use crate::cmd::print;
use crate::failure::Failure;
use crate::out::{errln, outln, plain};
use crate::paint::Paint;

/// Interval at which logs are read while they are followed.
const INTERVAL: Duration = Duration::from_millis(200);

#[derive(clap::Args)]
pub struct LogsArgs {
    /// Of this AS only, for example 1-ff00:0:110
    #[arg(value_name = "AS", value_parser = one_as)]
    isd_as: Option<IsdAsn>,
    /// Print new lines until the lab is taken down
    #[arg(long, short)]
    follow: bool,
    /// Only the last LINES lines of each log
    #[arg(long, short = 'n', value_name = "LINES")]
    tail: Option<usize>,
    /// Print a JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    lab: LabName,
}

/// Prints the logs, each line with the service that wrote it.
pub fn run(args: &LogsArgs) -> Result<(), Failure> {
    let lab = args.lab.open()?;
    let mut logs = lab.logs(args.isd_as)?;
    let sources = logs.sources().to_vec();
    if sources.is_empty() {
        return Err(Failure::job(
            "the lab runs no service of this AS itself: its logs are wherever you run them",
        ));
    }
    let names: Vec<String> = sources.iter().map(name).collect();
    let width = names.iter().map(String::len).max().unwrap_or(0);
    let paint = Paint::new(false);
    let print = |line: LogLine| {
        let source = &sources[line.source];
        if args.json {
            return print::json(&serde_json::json!({
                "isd_as": source.isd_as.map(|isd_as| isd_as.to_string()),
                "service": source.service,
                "time": (!line.time.is_empty()).then_some(&line.time),
                "text": line.text,
            }));
        }
        let prefix = paint.key(format_args!("{:<width$} |", names[line.source]));
        outln!("{prefix} {}", plain(&line.text));
        Ok(())
    };
    logs.read(args.tail)?.into_iter().try_for_each(print)?;
    if !args.follow {
        return Ok(());
    }
    loop {
        // Checked before reading, so that the last lines are printed, too.
        let gone = !lab.dir().exists();
        logs.read(None)?.into_iter().try_for_each(print)?;
        if gone {
            errln!("lab {} is down", lab.name());
            return Ok(());
        }
        std::thread::sleep(INTERVAL);
    }
}

fn name(source: &LogSource) -> String {
    match source.isd_as {
        Some(isd_as) => format!("{isd_as} {}", source.service),
        None => source.service.clone(),
    }
}
