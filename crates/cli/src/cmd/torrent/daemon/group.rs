//! `hawser torrent group`: the bandwidth groups of the daemon.

use hawser_client::Method;
use hawser_client::http::body::{About, DaemonChange, Group, GroupChange, RateLimit};
use serde::Serialize;

use super::RemoteArgs;
use crate::cmd::process;
use crate::cmd::quantity::{RateArg, rate_or_none};
use crate::failure::Failure;
use crate::format;
use crate::out::{outln, plain};

/// Where the groups are in the API.
const DAEMON: &str = "/api/v1/daemon";

#[derive(clap::Args)]
pub struct GroupArgs {
    /// The group to change, which is made if it is not there
    #[arg(requires = "changes")]
    name: Option<String>,
    #[command(flatten)]
    changes: ChangeArgs,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(clap::Args)]
#[group(id = "changes", multiple = true)]
struct ChangeArgs {
    /// Receive at most this much content per second, all its torrents together: 10mbit, or none
    #[arg(long, value_name = "RATE", value_parser = rate_or_none, requires = "name")]
    limit_down: Option<RateArg>,
    /// Send at most this much content per second, all its torrents together: 10mbit, or none
    #[arg(long, value_name = "RATE", value_parser = rate_or_none, requires = "name")]
    limit_up: Option<RateArg>,
    /// Let the limits of all torrents not hold for it
    #[arg(long, conflicts_with = "not_exempt", requires = "name")]
    exempt: bool,
    /// Let the limits of all torrents hold for it, too
    #[arg(long, requires = "name")]
    not_exempt: bool,
}

/// Whether something is to be exempt, by two flags; `None` where it stays.
pub fn exempt(is: bool, is_not: bool) -> Option<bool> {
    (is || is_not).then_some(is)
}

/// The groups, as they are printed.
#[derive(Serialize)]
struct Groups {
    groups: Vec<Group>,
}

/// Runs `hawser torrent group`.
pub fn run(args: &GroupArgs) -> Result<(), Failure> {
    let about: About = process::small_runtime()?.block_on(async {
        let remote = args.remote.find().await?;
        let Some(name) = &args.name else {
            return Ok::<_, Failure>(remote.ask(Method::GET, DAEMON).await?);
        };
        let changes = &args.changes;
        let change = GroupChange {
            name: name.clone(),
            download_rate: changes.limit_down.map(|rate| rate.0.into()),
            upload_rate: changes.limit_up.map(|rate| rate.0.into()),
            exempt: exempt(changes.exempt, changes.not_exempt),
        };
        let change = DaemonChange {
            groups: vec![change],
            ..DaemonChange::default()
        };
        Ok(remote.send(Method::PATCH, DAEMON, &change).await?)
    })?;
    let groups = Groups {
        groups: about.groups,
    };
    args.remote.print(&groups, |groups| print(&groups.groups))
}

/// Prints the groups for people.
fn print(groups: &[Group]) {
    if groups.is_empty() {
        outln!("no groups: make one with hawser torrent group NAME --limit-down RATE");
        return;
    }
    let rate = |limit: RateLimit| match limit {
        RateLimit::Number(bits) => format::rate(bits as f64),
        RateLimit::Word(_) => "unlimited".to_owned(),
    };
    outln!("{:>12}  {:>12}  {:6}  name", "down", "up", "exempt");
    for group in groups {
        outln!(
            "{:>12}  {:>12}  {:6}  {}",
            rate(group.download_rate),
            rate(group.upload_rate),
            if group.exempt { "yes" } else { "no" },
            plain(&group.name)
        );
    }
}
