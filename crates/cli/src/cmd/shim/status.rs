//! `hawser shim status`.

mod text;

use std::io::{self, IsTerminal};
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use hawser_shim::status::StatusReport;

use self::text::Shown;
use super::place::ShimName;
use super::{NameArgs, report};
use crate::cmd::watch::WatchArgs;
use crate::cmd::{print, process};
use crate::failure::Failure;
use crate::out::outln;
use crate::paint::Paint;
use crate::screen::Live;

/// Time between the two readings by which rates are known.
const READ: Duration = Duration::from_millis(250);

#[derive(clap::Args)]
pub struct StatusArgs {
    #[command(flatten)]
    name: NameArgs,
    /// Print JSON: one line, or one for each reading
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    watch: WatchArgs,
    /// Show why each path was taken or left
    #[arg(long, short = 'v')]
    explain: bool,
}

/// Runs `hawser shim status`. The exit code is 1 if the shim is not up.
pub fn run(args: &StatusArgs) -> Result<ExitCode, Failure> {
    let name = &args.name.name;
    let before = report::read(name)?;
    if let Some(every) = args.watch.watch {
        let runtime = process::small_runtime()?;
        return runtime.block_on(watch(args, name, every, before));
    }
    std::thread::sleep(READ);
    let status = report::read(name)?.with_rates(&before);
    args.print(&status)?;
    Ok(match status.up {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Shows the status until SIGINT or SIGTERM: in place on a terminal.
async fn watch(
    args: &StatusArgs,
    name: &ShimName,
    every: Duration,
    mut before: StatusReport,
) -> Result<ExitCode, Failure> {
    let in_place = !args.json && io::stdout().is_terminal();
    let mut live = if in_place { Live::start() } else { None };
    let mut wait = READ.min(every);
    let mut interrupted = pin!(process::interrupted()?);
    loop {
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = &mut interrupted => {
                if live.take().is_some() {
                    args.print(&before)?;
                }
                return Ok(ExitCode::SUCCESS);
            }
        }
        wait = every;
        let status = report::read(name)?.with_rates(&before);
        match &mut live {
            Some(live) => live.draw(|_| args.lines(&status, Paint::stderr())),
            None => {
                args.print(&status)?;
                if !args.json {
                    outln!("");
                }
            }
        }
        before = status;
    }
}

impl StatusArgs {
    fn lines(&self, status: &StatusReport, paint: Paint) -> Vec<String> {
        let shown = Shown {
            explain: self.explain,
            now_ms: text::now_ms(),
        };
        text::lines(status, &shown, paint)
    }

    fn print(&self, status: &StatusReport) -> Result<(), Failure> {
        if self.json {
            return print::json(status);
        }
        for line in self.lines(status, Paint::new(false)) {
            outln!("{line}");
        }
        Ok(())
    }
}
