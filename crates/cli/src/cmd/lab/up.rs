//! `hawser lab up`: brings a network up.

use std::time::Duration;

use hawser_lab::{Lab, Options, Resources, UpProgress};
use hawser_topology::{As, IsdAsn, Network};
use serde_json::json;

use super::name::LabName;
use super::{MIN_FOR_PROGRESS, status};
use crate::cmd::address::one_as;
use crate::cmd::quantity::lifetime;
use crate::cmd::{files, headings, process};
use crate::failure::Failure;
use crate::format;
use crate::out::{errln, outln};

#[derive(clap::Args)]
pub struct UpArgs {
    /// A .topo file, or a ready topology: fig4, fig7a, fig9
    #[arg(value_name = "FILE")]
    topology: String,
    /// Leave the border routers of this AS to be run by hand, in `lab exec`; `all` for every
    /// AS; may be given several times
    #[arg(long, value_name = "AS", value_parser = some_as, help_heading = headings::RARE, hide_short_help = true)]
    no_router: Vec<SomeAs>,
    /// Leave the control service and daemon of this AS to be run by hand, as --no-router does
    #[arg(long, value_name = "AS", value_parser = some_as, help_heading = headings::RARE, hide_short_help = true)]
    no_control: Vec<SomeAs>,
    /// How long path segments live, 2s to 24h; 6h when not given
    #[arg(long, value_name = "TIME", value_parser = lifetime, help_heading = headings::RARE, hide_short_help = true)]
    segment_lifetime: Option<Duration>,
    /// Take the network down when this process ends, however it ends: `--pid $$` in a script
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Make every packet cross links and loopback by itself, as over network cards without
    /// segmentation offload; otherwise up to 64 KiB of packets cross as one
    #[arg(long)]
    no_offload: bool,
    /// Let border routers answer packets above the MTU of a link with "packet too big"; otherwise
    /// they forward them, in fragments
    #[arg(long, help_heading = headings::RARE, hide_short_help = true)]
    enforce_mtu: bool,
    /// Answer no echo requests (UDP 30041) in the ASes of --no-control, where a dispatcher run by
    /// hand does; otherwise their border routers answer
    #[arg(long, help_heading = headings::RARE, hide_short_help = true)]
    no_echo: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    lab: LabName,
}

/// One AS, or every AS of the network (`None`).
#[derive(Clone, Copy)]
struct SomeAs(Option<IsdAsn>);

fn some_as(text: &str) -> Result<SomeAs, String> {
    if text == "all" {
        return Ok(SomeAs(None));
    }
    let isd_as = one_as(text).map(|isd_as| SomeAs(Some(isd_as)));
    isd_as.map_err(|error| format!("{error}, or all"))
}

/// The named ASes.
fn ases(network: &Network, named: &[SomeAs]) -> Vec<IsdAsn> {
    let named: Option<Vec<IsdAsn>> = named.iter().map(|some| some.0).collect();
    named.unwrap_or_else(|| network.ases.iter().map(|a| a.isd_as).collect())
}

/// Says what is done next, if that takes long.
fn show(network: &Network, step: UpProgress) {
    let (ases, links) = (network.ases.len(), network.links.len());
    if ases < MIN_FOR_PROGRESS {
        return;
    }
    match step {
        UpProgress::Writing => {
            let memory = format::bytes(Resources::needed(network).memory);
            errln!(
                "hawser: making the keys and configurations of {ases} ASes, which use about {memory} of memory"
            );
        }
        UpProgress::Building => errln!("hawser: building {ases} ASes and {links} links"),
        UpProgress::Starting => errln!("hawser: starting the services of {ases} ASes"),
        UpProgress::Waiting => errln!("hawser: waiting until all answer, and all links are up"),
        _ => {}
    }
}

/// Warns of a lab that is too much for this machine.
fn warn(network: &Network) {
    let (needed, available) = (Resources::needed(network), Resources::available());
    let ases = network.ases.len();
    if needed.memory > available.memory {
        let (needed, available) = (
            format::bytes(needed.memory),
            format::bytes(available.memory),
        );
        errln!(
            "hawser: {ases} ASes need about {needed} of memory, and {available} are available: the kernel may end some of their services; leave ASes out, or free memory"
        );
    }
    if needed.threads > available.threads {
        errln!(
            "hawser: {ases} ASes need about {} threads, and {} are allowed: raise kernel.threads-max and kernel.pid_max (sysctl), or pids.max of the control group",
            needed.threads,
            available.threads
        );
    }
}

/// Brings the network up, and prints its hosts.
pub fn run(args: UpArgs) -> Result<(), Failure> {
    let network = &files::topology(&args.topology)?;
    warn(network);
    let options = Options {
        name: args.lab.name,
        program: process::program()?,
        no_router: ases(network, &args.no_router),
        no_control: ases(network, &args.no_control),
        segment_lifetime: args.segment_lifetime,
        owner: args.pid,
        no_offload: args.no_offload,
        enforce_mtu: args.enforce_mtu,
        no_echo: args.no_echo,
    };
    let up = Lab::up_with(network, &options, |step| show(network, step))?;
    let lab = &up.lab;
    if up.cleared {
        errln!(
            "hawser: the earlier lab {} had lost its supervisor: what was left of it was cleared away",
            lab.name()
        );
    }
    let hosts = lab.hosts()?;
    let host = |a: &As| {
        hosts
            .get(&a.isd_as)
            .map_or_else(String::new, ToString::to_string)
    };
    if args.json {
        let ases = network.ases.iter().map(|a| {
            json!({"isd_as": a.isd_as.to_string(), "core": a.core, "host": host(a), "note": a.note})
        });
        let object = json!({
            "name": lab.name(),
            "dir": lab.dir(),
            "links": network.links.len(),
            "ases": ases.collect::<Vec<_>>(),
        });
        outln!("{object:#}");
        return Ok(());
    }
    outln!(
        "lab {} is up: {} ASes, {} links",
        lab.name(),
        network.ases.len(),
        network.links.len()
    );
    for a in &network.ases {
        let host = host(a);
        let note = a.note.as_deref().unwrap_or_default();
        outln!("  {:<18} {host:<16} {note}", a.isd_as.to_string());
    }
    if status::is_emulated(network.links.iter().map(|link| &link.shape)) {
        outln!("{}", status::PLAIN_IP.trim_end());
    }
    match up.dead_links.is_empty() {
        true => Ok(()),
        false => Err(Failure::job(format!(
            "{} of {} links did not come up: {}; the lab stays, see `hawser lab status --name {}`",
            up.dead_links.len(),
            network.links.len(),
            up.dead_links.join(", "),
            lab.name()
        ))),
    }
}
