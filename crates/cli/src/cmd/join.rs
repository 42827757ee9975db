//! `hawser as join`: one AS on this machine, from the archive of its coordinator.

mod report;

use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Subcommand;
use hawser_bundle::{Bundle, LARGEST_ARCHIVE, Role};
use hawser_http::Listener;
use hawser_kernel::bind::Refused;
use hawser_limit::{Enforcer, KernelEnforcer, Limiter, Limits, Scope};
use hawser_node::{Event, Folder, Health, Options};
use hawser_topology::{IsdAsn, as_folder};
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinSet;
use tokio::time::sleep;

use self::report::{Joined, show};
use super::{files, folders, init, print, process};
use crate::failure::{Doing, Failure};

/// How long it is held back that a service ended.
const HOLD: Duration = Duration::from_millis(200);

#[derive(Subcommand)]
pub enum AsCommand {
    /// Run one AS on this machine, from the archive of its coordinator
    Join(JoinArgs),
}

#[derive(clap::Args)]
pub struct JoinArgs {
    /// The archive of the AS, a tar.gz that its coordinator gives its owner
    #[arg(value_name = "ARCHIVE")]
    pub archive: PathBuf,
    /// The folder of the AS, which may be that of an earlier version of it; for root
    /// /var/lib/hawser/as/AS, else hawser/as/AS in $XDG_DATA_HOME or ~/.local/share, when not given
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// The segments of the network where no coordinator sends them: a file, or a folder of its
    /// parts, as `lab export` writes them; read again when they change
    #[arg(long, value_name = "PATH")]
    pub segments: Option<PathBuf>,
    /// Answer HTTP at this address: /live while this runs, /ready while all links are up and there are
    /// paths; 503 and what is missing otherwise
    #[arg(long, value_name = "ADDR", value_parser = probed_at)]
    pub listen: Option<SocketAddr>,
    /// Unpack the archive, and end without running the AS
    #[arg(long)]
    pub unpack: bool,
    /// Print JSON: what was joined, then one line for each event
    #[arg(long)]
    pub json: bool,
}

/// Runs `hawser as`.
pub fn run(command: AsCommand) -> Result<ExitCode, Failure> {
    match command {
        // It starts processes, and does not know those of others.
        AsCommand::Join(args) if !args.unpack && init::is_init() => init::run(),
        AsCommand::Join(args) => join(args).map(|()| ExitCode::SUCCESS),
    }
}

/// Reads an address at which probes are answered.
fn probed_at(text: &str) -> Result<SocketAddr, String> {
    let wrong = |_| "write IP:PORT, for example 0.0.0.0:8080".to_owned();
    text.parse().map_err(wrong)
}

/// The socket on which probes are answered, which is bound before the AS is announced.
async fn bind_health(address: SocketAddr) -> Result<Listener, Failure> {
    let listener = Listener::bind(address, None).await;
    listener.map_err(|error| {
        let refused = Refused::tcp(address, &error);
        Failure::job(format_args!("cannot listen at {address}: {refused}"))
    })
}

/// Answers probes, without end.
async fn serve_health(listener: Listener, health: Health) {
    let read = move || {
        let health = health.clone();
        async move {
            let report = health.read().await;
            (report.ready, report)
        }
    };
    listener.serve_health(read).await;
}

fn join(args: JoinArgs) -> Result<(), Failure> {
    let JoinArgs {
        archive,
        state,
        segments,
        listen,
        unpack,
        json,
    } = args;
    files::check_input(&archive)?;
    let segments = match segments {
        Some(path) => {
            files::check_input(&path)?;
            // Services have other working folders.
            Some(std::path::absolute(&path).doing(path.display())?)
        }
        None => None,
    };
    let bundle = read(&archive)?;
    let (manifest, _) = bundle.check().doing(archive.display())?;
    let dir = match state {
        Some(dir) => dir,
        None => default_dir(manifest.isd_as)?,
    };
    let (folder, installed) = Folder::join(&dir, &bundle)?;
    // A newer version may be there already.
    let current = folder.current()?.unwrap_or(bundle);
    let paths = segments.clone().unwrap_or_else(|| folder.segments());
    let joined = Joined::new(&current, folder.path(), installed, paths)?;
    let announce = || match json {
        true => print::json(&joined),
        false => {
            joined.print();
            Ok(())
        }
    };
    if unpack {
        return announce();
    }
    let runtime = process::small_runtime()?;
    let stop = runtime.block_on(async { process::interrupted() })?;
    let listener = match listen {
        Some(address) => Some(runtime.block_on(bind_health(address))?),
        None => None,
    };
    let (reporter, health) = hawser_node::health();
    announce()?;
    let limits: Option<Arc<dyn Enforcer<String>>> = match current.manifest()?.role {
        Role::AttachmentPoint => {
            let (limiter, all_others) = (Limiter::open()?, Limits::default());
            let limits = KernelEnforcer::new(limiter, Scope::OwnDevices, all_others);
            Some(Arc::new(limits))
        }
        Role::User => None,
    };
    let options = Options {
        program: process::program()?,
        limits,
        segments,
        health: Some(reporter),
    };
    runtime.block_on(async {
        process::survive_hangup()?;
        let mut servers = JoinSet::new();
        if let Some(listener) = listener {
            servers.spawn(serve_health(listener, health));
        }
        // A few for each service that ends, which is begun again after a pause.
        let (sender, mut events) = unbounded_channel();
        let running = hawser_node::run(folder, options, sender, stop);
        tokio::pin!(running);
        // That a service ended may be why all ends: then it is said once.
        let mut held: Option<Event> = None;
        let ended = loop {
            tokio::select! {
                biased;
                Some(event) = events.recv() => {
                    if let Some(held) = held.take() {
                        show(&held, json)?;
                    }
                    match event {
                        Event::Ended { .. } => held = Some(event),
                        event => show(&event, json)?,
                    }
                }
                ended = &mut running => break ended,
                () = sleep(HOLD), if held.is_some() => {
                    if let Some(held) = held.take() {
                        show(&held, json)?;
                    }
                }
            }
        };
        while let Ok(event) = events.try_recv() {
            let is_reason = ended.is_err() && matches!(event, Event::Ended { .. });
            if !is_reason {
                show(&event, json)?;
            }
        }
        Ok(ended?)
    })
}

/// Reads an archive.
fn read(path: &Path) -> Result<Bundle, Failure> {
    let mut bytes = Vec::new();
    // One more byte shows that it is too long.
    let file = File::open(path);
    let read = file.and_then(|file| file.take(LARGEST_ARCHIVE + 1).read_to_end(&mut bytes));
    read.doing(path.display())?;
    Bundle::unpack(&bytes).doing(path.display())
}

/// The folder of an AS when none is named.
fn default_dir(isd_as: IsdAsn) -> Result<PathBuf, Failure> {
    Ok(folders::state("as")?.join(as_folder(isd_as)))
}
