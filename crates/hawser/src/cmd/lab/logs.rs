//! `hawser lab logs`: what the processes of a lab have to say.

use std::time::Duration;

use hawser_lab::{LogLine, LogSource, Logs};

use super::open::open;
use crate::cli::LogsArgs;
use crate::failure::{Doing, Failure};
use crate::out::{errln, outln, plain};
use crate::paint::Paint;

/// How often logs are read while they are followed.
const INTERVAL: Duration = Duration::from_millis(200);

/// Prints the logs.
pub fn run(args: &LogsArgs) -> Result<(), Failure> {
    let lab = open(&args.lab.name)?;
    let mut logs = lab.logs(args.isd_as).map_err(Failure::job)?;
    if logs.sources().is_empty() {
        return Err(Failure::job(
            "the lab runs no service of this AS itself: its logs are wherever you run them",
        ));
    }
    let printer = Printer::new(&logs, args.json);
    printer.print(logs.read(args.tail).map_err(Failure::job)?)?;
    if !args.follow {
        return Ok(());
    }
    loop {
        // Checked first, so that the last lines are printed too.
        let gone = !lab.dir().exists();
        printer.print(logs.read(None).map_err(Failure::job)?)?;
        if gone {
            errln!("lab {} is down", lab.name());
            return Ok(());
        }
        std::thread::sleep(INTERVAL);
    }
}

/// Prints lines with the service that wrote them.
struct Printer {
    /// Of each source.
    prefixes: Vec<String>,
    sources: Vec<LogSource>,
    json: bool,
}

impl Printer {
    fn new(logs: &Logs, json: bool) -> Self {
        let paint = Paint::new(false);
        let names: Vec<String> = logs.sources().iter().map(name).collect();
        let width = names.iter().map(String::len).max().unwrap_or(0);
        Self {
            prefixes: names
                .iter()
                .map(|name| paint.key(format_args!("{name:<width$} |")))
                .collect(),
            sources: logs.sources().to_vec(),
            json,
        }
    }

    fn print(&self, lines: Vec<LogLine>) -> Result<(), Failure> {
        for line in lines {
            if !self.json {
                outln!("{} {}", self.prefixes[line.source], plain(&line.text));
                continue;
            }
            let source = &self.sources[line.source];
            let object = serde_json::json!({
                "isd_as": source.isd_as.map(|isd_as| isd_as.to_string()),
                "service": source.service,
                "time": (!line.time.is_empty()).then_some(&line.time),
                "text": line.text,
            });
            outln!("{}", serde_json::to_string(&object).doing("writing JSON")?);
        }
        Ok(())
    }
}

fn name(source: &LogSource) -> String {
    match source.isd_as {
        Some(isd_as) => format!("{isd_as} {}", source.service),
        None => source.service.clone(),
    }
}
