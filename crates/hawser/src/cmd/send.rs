//! `hawser send`: send files to another host over several paths at once.

use std::path::PathBuf;
use std::sync::Arc;

use hawser_bulk::Request;
use hawser_bulk::content::{ScanOptions, Source, scan};

use super::bulk::{self, ClientArgs, Place};
use super::network::HostArgs;
use super::quantity;
use crate::failure::Failure;
use crate::format;
use crate::out::{errln, outln, plain};

#[derive(clap::Args)]
pub struct SendArgs {
    /// Files and folders, and last the server as `hawser receive` prints it, with a path in its folder
    /// or without: 1-ff00:0:111,10.0.2.1:31000/data
    #[arg(value_name = "FILE... DST[/PATH]", required = true, num_args = 1..)]
    pub args: Vec<PathBuf>,
    /// Send this many zeros instead of files, to measure all but the disk
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    pub zeros: Option<u64>,
    /// Say what would be sent, and send nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub client: ClientArgs,
    #[command(flatten, next_help_heading = "This host")]
    pub host: HostArgs,
}

/// Runs `hawser send`.
pub fn run(args: SendArgs) -> Result<(), Failure> {
    let (place, files) = split(&args)?;
    let content = match args.zeros {
        Some(bytes) => Source::zeros(bytes)?,
        None => {
            let scan = scan(&files, ScanOptions::default())?;
            for warning in &scan.warnings {
                errln!("hawser: {}", plain(&warning.to_string()));
            }
            Source::open(scan)
        }
    };
    let manifest = content.manifest();
    let (bytes, count) = (manifest.length(), manifest.entries().len());
    if args.dry_run {
        outln!(
            "{} in {count} entries to {}",
            format::bytes(bytes),
            place.server
        );
        return Ok(());
    }
    let name = match (args.zeros, &files[..]) {
        (Some(_), _) => "zeros".to_owned(),
        (None, [one]) => plain(&one.display().to_string()),
        (None, all) => format!("{} arguments", all.len()),
    };
    let request = Request::Send {
        content: Arc::new(content),
        name: place.name.clone(),
    };
    bulk::run(&args.client, &args.host, &place, (request, &name, "sent"))
}

/// The destination, and the files before it.
fn split(args: &SendArgs) -> Result<(Place, Vec<PathBuf>), Failure> {
    let Some((last, files)) = args.args.split_last() else {
        return Err(Failure::usage("name files and a destination"));
    };
    let place = last.to_string_lossy().parse().map_err(Failure::usage)?;
    match (files.is_empty(), args.zeros) {
        (true, None) => Err(Failure::usage(
            "name what to send before the destination: hawser send FILE... DST[/PATH]",
        )),
        (false, Some(_)) => Err(Failure::usage(
            "--zeros takes the place of files: name none",
        )),
        _ => Ok((place, files.to_vec())),
    }
}
