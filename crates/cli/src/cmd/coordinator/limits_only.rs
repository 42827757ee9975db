//! `hawser coordinator --limits-only`: limits of this machine's links, set on a page and by an API.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hawser_coordinator::{
    Actor, ChangeError, Coordinator, Limits, NewAttachmentPoint, NewLink, NewUserAs,
    enforce_locally,
};
use hawser_limit::{KernelEnforcer, Limit, Limiter, Remote, Scope};
use hawser_limit_file::{LimitsError, Link, LinkFile};
use hawser_topology::IsdAsn;
use hawser_web::App;

use crate::cmd::limit::{ReplaceArgs, topology};
use crate::cmd::pages::PagesArgs;
use crate::cmd::process;
use crate::cmd::quantity::{RateArg, limit_or_none};
use crate::failure::{Doing, Failure};
use crate::out::outln;

/// The one attachment point: this machine, whatever AS it is of.
const HERE: IsdAsn = IsdAsn::WILDCARD;

/// What there is without a network of its own.
#[derive(clap::Args)]
pub struct LimitsOnlyArgs {
    /// The file of links that the first start begins with: its rates become the links' maxima
    #[arg(
        long,
        value_name = "FILE",
        requires = "limits_only",
        hide_short_help = true
    )]
    links: Option<PathBuf>,
    /// Find the links that the file names by interface in the topology.json of an AS
    #[arg(
        long,
        value_name = "TOPOLOGY",
        requires = "links",
        hide_short_help = true
    )]
    from: Option<PathBuf>,
    /// The limit of all other traffic together on the devices of links, as long as this runs; none
    /// when not given
    #[arg(long, value_name = "RATE", value_parser = limit_or_none, requires = "limits_only", hide_short_help = true)]
    default: Option<RateArg>,
    #[command(flatten)]
    replace: ReplaceArgs,
}

/// Serves until this process gets SIGINT or SIGTERM. The limits stay in force then.
pub fn run(args: &LimitsOnlyArgs, pages: &PagesArgs, folder: &Path) -> Result<(), Failure> {
    let default = args.default.and_then(|RateArg(rate)| rate);
    let default = default.map(Limit::new).map(hawser_limit::Limits::both);
    let limiter = Limiter::open()?.with_replace(args.replace.replace);
    let kernel = KernelEnforcer::new(limiter, Scope::AllDevices, default.unwrap_or_default());
    // What is wrong with the file is said before anything is made.
    let links = links(args)?;
    process::runtime()?.block_on(async {
        // The same of the address.
        let listener = pages.bind().await?;
        let coordinator = pages.open(folder)?;
        begin(&coordinator, links, args.links.as_deref())?;
        let app = App::new(coordinator.clone(), pages.options("Link limits"));
        let enforcing = enforce_locally(coordinator, HERE, Arc::new(kernel));
        pages.serve(listener, app, enforcing).await
    })
}

/// The links of the file that is named, if one is.
fn links(args: &LimitsOnlyArgs) -> Result<Option<Vec<(Link, Remote)>>, Failure> {
    let Some(path) = &args.links else {
        return Ok(None);
    };
    let file = LinkFile::read(path)?;
    // The state has no place for it: the next start would not know it.
    if file.default.is_some() && args.default.is_none() {
        return Err(Failure::usage(format_args!(
            "{}: say the limit of all other traffic with --default, at each start, or none: the file \
             counts at the first one only",
            path.display()
        )));
    }
    let topology = args.from.as_deref().map(topology).transpose()?;
    let links = file.links.into_iter().map(|link| {
        let remote = link.remote(topology.as_ref())?;
        Ok((link, remote))
    });
    let links: Result<Vec<_>, LimitsError> = links.collect();
    Ok(Some(links.doing(path.display())?))
}

/// Makes the attachment point at the first start, with these links.
fn begin(
    coordinator: &Coordinator,
    links: Option<Vec<(Link, Remote)>>,
    file: Option<&Path>,
) -> Result<(), Failure> {
    let file = file.map_or_else(String::new, |file| file.display().to_string());
    if coordinator.state().attachment_points.contains_key(&HERE) {
        return match links {
            Some(_) => Err(Failure::usage(format_args!(
                "--links {file}: links are there already: change them on the page, or start with another --state"
            ))),
            None => Ok(()),
        };
    }
    let count = links.as_ref().map(Vec::len);
    import(coordinator, links.unwrap_or_default()).doing(&file)?;
    if let Some(count) = count {
        outln!("{count} links from {file}");
    }
    Ok(())
}

/// Adds the links, then the attachment point that shows that all are there.
fn import(coordinator: &Coordinator, links: Vec<(Link, Remote)>) -> Result<(), ChangeError> {
    let program = Actor::program();
    let here = NewAttachmentPoint {
        isd_as: HERE,
        label: "this machine".to_owned(),
        place: None,
        addresses: Vec::new(),
        first_port: 50_000,
        device: None,
    };
    let mut ases = Vec::new();
    let mut new = Vec::new();
    for ((link, remote), number) in links.into_iter().zip(1..) {
        // Files of links number ASes as they like.
        let isd_as = IsdAsn::from_u64(number);
        let label = link.entry.trim_start_matches("entry ").trim_matches('"');
        let label = match label.bytes().all(|byte| byte.is_ascii_digit()) {
            true => format!("AS {label}"),
            false => label.chars().take(64).collect(),
        };
        ases.push(NewUserAs {
            isd_as,
            owner: None,
            label,
            place: None,
            addresses: Vec::new(),
            first_port: 50_000,
        });
        new.push(NewLink {
            attachment_point: HERE,
            user_as: isd_as,
            ip: Some(remote.address),
            port: remote.port,
            device: link.device,
            // At most an hour.
            queue_us: link.queue.map(|queue| queue.as_micros() as u64),
            delay_us: 0,
            jitter_us: 0,
            loss: 0.0,
            maximum: Limits {
                egress: link.rates.egress,
                ingress: link.rates.ingress,
            },
            limit: Limits::default(),
        });
    }
    coordinator.add_all(&program, here, ases, new)
}
