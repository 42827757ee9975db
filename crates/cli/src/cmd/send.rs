//! `hawser send`: send files to other hosts over several paths at once.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hawser_bulk::Request;
use hawser_bulk::content::{Source, scan};

use super::bulk::spool::Spool;
use super::bulk::{self, ClientArgs, Job, Place};
use super::network::HostArgs;
use super::{headings, quantity};
use crate::failure::Failure;
use crate::format;
use crate::out::{errln, outln, plain};

#[derive(clap::Args)]
pub struct SendArgs {
    /// Files, folders, or - for standard input; last the server
    ///
    /// Or several servers, each as `hawser receive` prints it, with a path in its folder or without:
    /// 1-ff00:0:111,10.0.2.1:31000/data.
    #[arg(value_name = "FILE... DST[/PATH]...", required = true, num_args = 1..)]
    pub args: Vec<PathBuf>,
    /// Send this many zeros instead of files, to measure all but the disk
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, help_heading = headings::RARE, hide_short_help = true)]
    pub zeros: Option<u64>,
    /// Say what would be sent, and send nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub client: ClientArgs,
    #[command(flatten)]
    pub host: HostArgs,
}

/// Runs `hawser send`.
pub fn run(args: SendArgs) -> Result<(), Failure> {
    let (mut files, places) = split(&args)?;
    // Until all is sent.
    let spool = match &files[..] {
        [one] if is_stdin(one) && args.dry_run => {
            let text = "standard input is read when it is sent: leave --dry-run out";
            return Err(Failure::usage(text));
        }
        [one] if is_stdin(one) => Some(Spool::new()?),
        all if all.len() > 1 && all.iter().any(|one| is_stdin(one)) => {
            let text = "- stands for standard input: name no file beside it";
            return Err(Failure::usage(text));
        }
        _ => None,
    };
    if let Some(spool) = &spool {
        files = vec![spool.read_stdin()?];
    }
    let content = match args.zeros {
        Some(bytes) => Source::zeros(bytes)?,
        None => {
            let scan = scan(&files, args.client.files.scan_options())?;
            for warning in &scan.warnings {
                errln!("hawser: {}", plain(&warning.to_string()));
            }
            Source::open(scan)
        }
    };
    let manifest = content.manifest();
    let (bytes, count) = (manifest.length(), manifest.entries().len());
    if args.dry_run {
        let limit = args.client.limit.map(format::limit);
        let limit = limit.map_or(String::new(), |rate| format!(", limited to {rate}"));
        for place in &places {
            let bytes = format::bytes(bytes);
            outln!("{bytes} in {count} entries to {place}{limit}");
        }
        return Ok(());
    }
    let name = match (args.zeros, &files[..]) {
        (Some(_), _) => "zeros".to_owned(),
        (None, _) if spool.is_some() => "standard input".to_owned(),
        (None, [one]) => plain(&one.display().to_string()),
        (None, all) => format!("{} arguments", all.len()),
    };
    let content = Arc::new(content);
    let job = |place: Place| Job {
        request: Request::Send {
            content: Arc::clone(&content),
            name: place.name.clone(),
        },
        name: name.clone(),
        place,
    };
    let jobs = places.into_iter().map(job).collect();
    bulk::run(&args.client, &args.host, jobs, "sent")
}

/// Whether an argument stands for standard input.
fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// The files, and the destinations after them.
fn split(args: &SendArgs) -> Result<(Vec<PathBuf>, Vec<Place>), Failure> {
    let read = |arg: &PathBuf| arg.to_string_lossy().parse::<Place>();
    let first = args.args.iter().rposition(|arg| read(arg).is_err());
    let (files, places) = args.args.split_at(first.map_or(0, |last| last + 1));
    let places: Result<Vec<_>, _> = places.iter().map(read).collect();
    let places = places.map_err(Failure::usage)?;
    if places.is_empty() {
        // The last argument is not one: its error says how one is written.
        let last = args.args.last().map(read).transpose();
        last.map_err(Failure::usage)?;
        return Err(Failure::usage("name files and a destination"));
    }
    let servers: HashSet<_> = places.iter().map(|place| place.server).collect();
    if servers.len() < places.len() {
        return Err(Failure::usage("a server is named twice: name each once"));
    }
    if places.len() > 1 && args.client.code.is_some() {
        return Err(Failure::usage(
            "a code is for one transfer: name one destination with --code",
        ));
    }
    match (files.is_empty(), args.zeros) {
        (true, None) => Err(Failure::usage(
            "name what to send before the destination: hawser send FILE... DST[/PATH]",
        )),
        (false, Some(_)) => Err(Failure::usage(
            "--zeros takes the place of files: name none",
        )),
        _ => Ok((files.to_vec(), places)),
    }
}
