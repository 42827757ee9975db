//! `hawser lab export`: a network as files for Kubernetes, podman or containerlab.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use hawser_export::{ExportError, Exported, Hosts, Options, Requests, Target, export};
use hawser_topology::rough_duration;

use crate::cmd::{files, print};
use crate::failure::{Doing, Failure};
use crate::out::{errln, outln};

/// The image that `hawser image` makes.
const BASE: &str = crate::cmd::image::NAME;
/// The image that the exported recipe makes of it, for containerlab.
const WITH_IP: &str = concat!("localhost/hawser-ip:", env!("CARGO_PKG_VERSION"));

#[derive(clap::Args)]
pub struct ExportArgs {
    /// A .topo file, or a ready topology: fig4, fig7a, fig9
    #[arg(value_name = "FILE")]
    topology: String,
    /// The program that runs the network
    #[arg(long, value_name = "PROGRAM")]
    to: Program,
    /// The folder to write to; of an earlier export there, what differs is changed
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// The machines that run the network by containerlab: a name and an IP address on each line of this
    /// file; one machine when not given
    #[arg(long, value_name = "FILE")]
    hosts: Option<PathBuf>,
    /// The image that runs each AS [default: localhost/hawser:VERSION, as `hawser image` makes it,
    /// or for containerlab localhost/hawser-ip:VERSION, of the Dockerfile that is written too]
    #[arg(long, value_name = "NAME")]
    image: Option<String>,
    /// The name of the namespace, of podman's network, or of the lab
    #[arg(long, value_name = "NAME", default_value = "hawser")]
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Program {
    Kubernetes,
    Podman,
    Containerlab,
}

/// Writes the files, and says what was done.
pub fn run(args: ExportArgs) -> Result<(), Failure> {
    let network = files::topology(&args.topology)?;
    let hosts = match &args.hosts {
        Some(file) => {
            files::check_input(file)?;
            let text = files::read_text(file).doing(file.display())?;
            let hosts = Hosts::parse(&text);
            Some(hosts.map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?)
        }
        None => None,
    };
    let (to, image) = match args.to {
        Program::Kubernetes | Program::Podman if hosts.is_some() => {
            return Err(failure(ExportError::UnusedHosts));
        }
        Program::Kubernetes => (Target::Kubernetes, BASE),
        Program::Podman => (Target::Podman, BASE),
        Program::Containerlab => (Target::Containerlab(hosts), WITH_IP),
    };
    let options = Options {
        to,
        name: args.name,
        image: args.image.unwrap_or_else(|| image.to_owned()),
        base: BASE.to_owned(),
    };
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = since.map_or(0, |since| since.as_secs());
    let exported = export(&network, &options, &args.output, now).map_err(failure)?;
    if args.json {
        return print::json(&exported);
    }
    outln!(
        "{} ASes and {} links in {}: {} files written, {} removed, {} as they were",
        exported.ases,
        exported.links,
        args.output.display(),
        exported.written,
        exported.removed,
        exported.unchanged
    );
    show(&exported, now);
    Ok(())
}

/// Prints the sizes, the links between hosts, new keys, when the segments expire, and the notes.
fn show(exported: &Exported, now: u64) {
    let size = exported.bytes as f64 / f64::from(1 << 20);
    match exported.requests {
        Some(Requests {
            cpu_millis,
            memory_mib,
        }) => outln!(
            "{size:.1} MiB of files; the pods request {:.2} processors and {:.2} GiB of memory",
            cpu_millis as f64 / 1000.0,
            memory_mib as f64 / 1024.0
        ),
        None => outln!("{size:.1} MiB of files"),
    }
    if exported.links_between_hosts > 0 {
        outln!("{} links are between hosts", exported.links_between_hosts);
    }
    if exported.new_keys > 0 {
        outln!(
            "{} ASes have new keys, and start with them, again if they run",
            exported.new_keys
        );
    }
    if !exported.gone.is_empty() {
        outln!(
            "no longer in the network: {}; what runs of them is still to be removed",
            exported.gone.join(", ")
        );
    }
    let left = exported.segments_expire.saturating_sub(now);
    outln!(
        "{} path segments, which expire in {}: repeat this within half of that, README.md says how",
        exported.segments,
        rough_duration(left)
    );
    for note in &exported.notes {
        errln!("hawser: {note}");
    }
}

fn failure(error: ExportError) -> Failure {
    match error.is_wrong_use() {
        true => Failure::usage(error),
        false => error.into(),
    }
}
