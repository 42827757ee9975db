//! `hawser`: the command line.
//!
//! Thin: reads arguments, calls the crates, and prints their results.
//!
//! Exit codes: 0 done, 1 the job failed, 2 wrong use, 3 (`send`, `fetch`) done but for some of the
//! files. Commands named after one of `scion`'s have its codes: 1 for a bad report, 2 without a
//! report.

mod cli;
mod cmd;
mod failure;
mod format;
mod map;
mod out;
mod output;
mod paint;
mod screen;
mod svg;

use std::process::ExitCode;
use std::sync::Mutex;

use hawser_lab::BoundedLog;

use self::cli::Cli;
use crate::out::{errln, plain};

fn main() -> ExitCode {
    hawser_kernel::names::look_up_without_plugins();
    let ran = Cli::read().and_then(|cli| {
        start_log();
        cli.command.run()
    });
    match ran {
        Ok(code) => code,
        Err(failure) => {
            // A file's name may be in it, which may have any characters.
            let text = failure.to_string();
            let lines: Vec<String> = text.lines().map(plain).collect();
            errln!("hawser: {}", lines.join("\n"));
            failure.exit_code()
        }
    }
}

/// Writes logs to standard error; `RUST_LOG` selects them as usual: `LEVEL` or `TARGET=LEVEL`,
/// separated by commas. A lab's processes write to files, which are kept small.
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
