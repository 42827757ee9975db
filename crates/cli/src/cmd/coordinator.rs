//! `hawser coordinator`: a network whose ASes join from archives.

mod limits_only;

use std::path::PathBuf;

use hawser_coordinator::{Access, Configurations};
use hawser_web::{App, AppOptions};

use self::limits_only::LimitsOnlyArgs;
use super::folders;
use super::pages::PagesArgs;
use super::{headings, process};
use crate::failure::{Doing, Failure};

#[derive(clap::Args)]
#[command(mut_arg("replace", |arg| arg.requires("limits_only").hide_short_help(true)))]
pub struct CoordinatorArgs {
    /// The folder of the state and of all keys; for root /var/lib/hawser/coordinator, with
    /// --limits-only /var/lib/hawser/limit, else hawser/coordinator or hawser/limit in
    /// $XDG_DATA_HOME or ~/.local/share, when not given
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Keep no network: have users set the limits of this machine's links on a page, up to what an
    /// administrator allows
    #[arg(long, conflicts_with_all = ["url", "url_ca", "allow_plain_http"])]
    limits_only: bool,
    #[command(flatten)]
    pages: PagesArgs,
    #[command(flatten, next_help_heading = "With --limits-only")]
    limits: LimitsOnlyArgs,
    /// The URL by which the machines of ASes reach this, as their archives have it; the one of
    /// --listen when not given
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The file with the certificates, in PEM, by which these machines verify this; those that
    /// their systems trust when not given
    #[arg(long, value_name = "FILE", help_heading = headings::RARE, hide_short_help = true)]
    url_ca: Option<PathBuf>,
    /// Send archives, which have private keys, without TLS as well: to others than this host they are
    /// refused without this, unless --behind-proxy says https
    #[arg(long, help_heading = headings::RARE, hide_short_help = true)]
    allow_plain_http: bool,
}

/// Serves until this process gets SIGINT or SIGTERM.
pub fn run(args: &CoordinatorArgs) -> Result<(), Failure> {
    let folder = match &args.state {
        Some(folder) => folder.clone(),
        None if args.limits_only => folders::state("limit")?,
        None => folders::state("coordinator")?,
    };
    if args.limits_only {
        return limits_only::run(&args.limits, &args.pages, &folder);
    }
    let ca = args.url_ca.as_deref().map(|path| {
        let text = std::fs::read_to_string(path);
        text.doing(path.display())
    });
    let ca = ca.transpose()?;
    process::runtime()?.block_on(async {
        // What is wrong with the address is said before anything is made.
        let listener = args.pages.bind().await?;
        let url = match &args.url {
            Some(url) => url.clone(),
            None => args.pages.url(&listener)?,
        };
        let coordinator = args.pages.open(&folder)?;
        let configurations = Configurations::open(coordinator, &folder, Access { url, ca })?;
        let options = AppOptions {
            may_send_keys_unencrypted: args.allow_plain_http,
            ..args.pages.options("Coordinator")
        };
        let app = App::with_configurations(configurations, options);
        args.pages
            .serve(listener, app, std::future::pending())
            .await
    })
}
