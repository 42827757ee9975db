//! `hawser fetch`: fetch files that another host shares, over several paths at once.

use std::path::PathBuf;

use hawser_bulk::{Destination, Request};

use super::bulk::{self, ClientArgs, Job, Place};
use super::headings;
use super::network::HostArgs;
use crate::failure::Failure;
use crate::out::plain;

#[derive(clap::Args)]
pub struct FetchArgs {
    /// The server, and what of its shared folder is wanted: 1-ff00:0:111,10.0.2.1:31000/data
    #[arg(value_name = "DST/PATH")]
    pub place: Place,
    /// The folder to write to
    #[arg(long, short, value_name = "DIR", default_value = ".")]
    pub output: PathBuf,
    /// Verify everything and write nothing, to measure all but the disk
    #[arg(long, conflicts_with = "output", help_heading = headings::RARE, hide_short_help = true)]
    pub discard: bool,
    #[command(flatten)]
    pub client: ClientArgs,
    #[command(flatten)]
    pub host: HostArgs,
}

/// Runs `hawser fetch`.
pub fn run(args: FetchArgs) -> Result<(), Failure> {
    let destination = match args.discard {
        true => Destination::Discard,
        false => Destination::Folder {
            root: args.output.clone(),
            name: PathBuf::new(),
        },
    };
    let request = Request::Fetch {
        name: args.place.name.clone(),
        destination,
    };
    let job = Job {
        name: plain(&args.place.name),
        place: args.place,
        request,
    };
    bulk::run(&args.client, &args.host, vec![job], "fetched")
}
