//! `hawser`: the command line.
//!
//! Thin: it reads arguments, calls the crates, and prints what they return.
//!
//! Exit codes: 0 done, 1 the job failed, 2 wrong use. Commands named after one of `scion`'s have its
//! codes: 1 when the report is bad, 2 when they cannot report.

mod cli;
mod cmd;
mod failure;
mod format;
mod map;
mod out;
mod output;
mod paint;
mod screen;

use std::process::ExitCode;
use std::sync::Mutex;

use hawser_lab::BoundedLog;

use self::cli::{Cli, Command};
use self::failure::Failure;
use crate::out::errln;

fn main() -> ExitCode {
    let cli = Cli::read();
    start_log();
    match run(cli.command) {
        Ok(code) => code,
        Err(failure) => {
            errln!("hawser: {failure}");
            failure.exit_code()
        }
    }
}

fn run(command: Command) -> Result<ExitCode, Failure> {
    let done = |()| ExitCode::SUCCESS;
    match command {
        Command::Paths(args) => cmd::paths::run(args).map_err(Failure::like_scion),
        Command::Ping(args) => cmd::ping::run(args).map_err(Failure::like_scion),
        Command::Traceroute(args) => cmd::traceroute::run(args).map_err(Failure::like_scion),
        Command::Torrent(args) => cmd::torrent::run(args).map(done),
        Command::Seed(args) => cmd::seed::run(args).map(done),
        Command::Get(args) => cmd::get::run(args).map(done),
        Command::Lab(args) => cmd::lab::run(args),
        Command::Demo(args) => cmd::demo::run(args).map(done),
        Command::Bench(args) => cmd::bench::run(args).map(done),
        Command::Simulate(args) => cmd::simulate::run(args).map(done),
        Command::Router(args) => cmd::service::router(args).map(done),
        Command::Control(args) => cmd::service::control(args).map(done),
        Command::Completions(args) => cmd::completions::run(args).map(done),
        Command::Man(args) => cmd::man::run(args).map(done),
        Command::Internal(args) => Ok(cmd::service::internal(args)),
    }
}

/// Logs go to standard error; `RUST_LOG` chooses them as usual: `LEVEL` or `TARGET=LEVEL`, several
/// separated by commas. Those of a lab's processes go to files, which are kept small.
fn start_log() {
    use tracing_subscriber::filter::{LevelFilter, Targets};
    use tracing_subscriber::fmt;
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::util::SubscriberInitExt;

    let filter = match std::env::var("RUST_LOG")
        .as_deref()
        .unwrap_or("error")
        .parse()
    {
        Ok(filter) => filter,
        Err(error) => {
            errln!("RUST_LOG: {error}: errors alone are logged");
            Targets::new().with_default(LevelFilter::ERROR)
        }
    };
    let log = fmt::layer().with_ansi(paint::Paint::stderr().is_on());
    let all = tracing_subscriber::registry().with(filter);
    match BoundedLog::of_this_process() {
        Some(file) => all.with(log.with_writer(Mutex::new(file))).init(),
        None => all.with(log.with_writer(|| screen::LogWriter)).init(),
    }
}
