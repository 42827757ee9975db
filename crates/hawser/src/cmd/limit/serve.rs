//! `hawser limit serve`: limits of this machine's links, set on a page and by an API.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hawser_coordinator::{
    Actor, ChangeError, Coordinator, Limits, NewAttachmentPoint, NewLink, NewUserAs,
    enforce_locally,
};
use hawser_limit_file::{Link, LinkFile, Place};
use hawser_topology::IsdAsn;
use hawser_web::App;

use super::kernel::Kernel;
use super::wanted::ReplaceArgs;
use crate::cmd::pages::{PagesArgs, state_folder};
use crate::cmd::process;
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
    #[command(flatten)]
    replace: ReplaceArgs,
}

/// Serves until this process is told to end. The limits stay in force then.
pub fn run(args: &ServeArgs) -> Result<(), Failure> {
    let kernel = Kernel::open(args.replace.replace)?;
    let folder = match &args.state {
        Some(folder) => folder.clone(),
        None => state_folder("limit")?,
    };
    process::runtime()?.block_on(async {
        // What is wrong with the address is said before anything is made.
        let listener = args.pages.bind().await?;
        let coordinator = args.pages.open(&folder)?;
        begin(&coordinator, args.links.as_deref())?;
        let app = App::new(coordinator.clone(), args.pages.options("Link limits"));
        let enforcing = enforce_locally(coordinator, HERE, Arc::new(kernel));
        args.pages.serve(listener, app, enforcing).await
    })
}

/// Makes the attachment point at the first start, with the links of a file.
fn begin(coordinator: &Coordinator, file: Option<&Path>) -> Result<(), Failure> {
    if coordinator.state().attachment_points.contains_key(&HERE) {
        return match file {
            Some(file) => Err(Failure::usage(format_args!(
                "--links {}: links are there already: change them on the page, or start with another --state",
                file.display()
            ))),
            None => Ok(()),
        };
    }
    let links = file.map(LinkFile::read).transpose()?.unwrap_or_default();
    if let (Some(file), Some(_)) = (file, links.default) {
        return Err(Failure::job(format_args!(
            "{}: a limit of all other traffic is not supported here yet: remove it, or use `hawser limit watch`",
            file.display()
        )));
    }
    let count = links.links.len();
    let imported = import(coordinator, links.links);
    imported.doing(file.map_or_else(String::new, |file| file.display().to_string()))?;
    if let Some(file) = file {
        outln!("{count} links from {}", file.display());
    }
    Ok(())
}

/// Adds the links, then the attachment point that shows that all are there.
fn import(coordinator: &Coordinator, links: Vec<Link>) -> Result<(), ChangeError> {
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
    for (link, number) in links.into_iter().zip(1..) {
        let (ip, port) = match link.place {
            Place::Address(ip, port) => (ip, port),
            Place::Interface(interface) => {
                let reason = format!(
                    "{}: interface {interface} is not supported here yet: give the far end's address",
                    link.entry
                );
                return Err(ChangeError::Invalid(reason));
            }
        };
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
            ip: Some(ip),
            port,
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
