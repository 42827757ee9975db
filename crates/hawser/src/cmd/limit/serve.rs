//! `hawser limit serve`: limits of this machine's links, set on a page and by an API.

use std::path::PathBuf;
use std::sync::Arc;

use hawser_coordinator::{
    Actor, ChangeError, Coordinator, Limits, NewAttachmentPoint, NewLink, NewUserAs,
    enforce_locally,
};
use hawser_limit::{LimitError, Remote};
use hawser_limit_file::{LimitsError, Link, LinkFile};
use hawser_topology::IsdAsn;
use hawser_web::App;

use super::kernel::Kernel;
use super::wanted::{ReplaceArgs, topology};
use crate::cmd::pages::{PagesArgs, state_folder};
use crate::cmd::process;
use crate::cmd::quantity::{RateArg, limit_or_none};
use crate::failure::{Doing, Failure};
use crate::out::outln;

/// The one attachment point: this machine, whatever AS it is of.
const HERE: IsdAsn = IsdAsn::WILDCARD;

#[derive(clap::Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pages: PagesArgs,
    /// The folder of links, limits, users and changes; for root /var/lib/hawser/limit, else
    /// hawser/limit in $XDG_DATA_HOME or ~/.local/share, when not given
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// The file of links that the first start begins with: its rates become the links' maxima
    #[arg(long, value_name = "FILE")]
    links: Option<PathBuf>,
    /// Find the links that the file names by interface in the topology.json of an AS
    #[arg(long, value_name = "TOPOLOGY", requires = "links")]
    from: Option<PathBuf>,
    /// The limit of all other traffic together on the devices of links, as long as this runs; none
    /// when not given
    #[arg(long, value_name = "RATE", value_parser = limit_or_none)]
    default: Option<RateArg>,
    #[command(flatten)]
    replace: ReplaceArgs,
}

/// Serves until this process is told to end. The limits stay in force then.
pub fn run(args: &ServeArgs) -> Result<(), Failure> {
    let default = args.default.and_then(|RateArg(rate)| rate);
    let kernel = Kernel::open(args.replace.replace, default)?;
    let folder = match &args.state {
        Some(folder) => folder.clone(),
        None => state_folder("limit")?,
    };
    process::runtime()?.block_on(async {
        // What is wrong with the address is said before anything is made.
        let listener = args.pages.bind().await?;
        let coordinator = args.pages.open(&folder)?;
        begin(&coordinator, args)?;
        let app = App::new(coordinator.clone(), args.pages.options("Link limits"));
        let enforcing = enforce_locally(coordinator, HERE, Arc::new(kernel));
        args.pages.serve(listener, app, enforcing).await
    })
}

/// Makes the attachment point at the first start, with the links of a file.
fn begin(coordinator: &Coordinator, args: &ServeArgs) -> Result<(), Failure> {
    let has_begun = coordinator.state().attachment_points.contains_key(&HERE);
    let Some(path) = &args.links else {
        return match has_begun {
            true => Ok(()),
            false => Ok(import(coordinator, Vec::new())?),
        };
    };
    let shown = path.display().to_string();
    if has_begun {
        return Err(Failure::usage(format_args!(
            "--links {shown}: links are there already: change them on the page, or start with another --state"
        )));
    }
    let file = LinkFile::read(path)?;
    // The state has no place for it: the next start would not know it.
    if file.default.is_some() && args.default.is_none() {
        return Err(Failure::usage(format_args!(
            "{shown}: say the limit of all other traffic with --default, at each start, or none: the file \
             counts at the first one only"
        )));
    }
    let topology = args.from.as_deref().map(topology).transpose()?;
    let links = file.links.into_iter().map(|link| {
        let remote = link.remote(topology.as_ref())?;
        Ok((link, remote))
    });
    let links: Result<Vec<_>, LimitsError<LimitError>> = links.collect();
    let links = links.doing(&shown)?;
    let count = links.len();
    import(coordinator, links).doing(&shown)?;
    outln!("{count} links from {shown}");
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
            maximum: Limits {
                egress: link.rates.egress,
                ingress: link.rates.ingress,
            },
            limit: Limits::default(),
        });
    }
    coordinator.add_all(&program, here, ases, new)
}
