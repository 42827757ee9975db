//! The network of this host, its routers and paths, and the destination.

use std::net::IpAddr;
use std::time::Duration;

use hawser_endhost::ping::next_hop;
use hawser_endhost::probe::{Probe, Status, probe};
use hawser_endhost::requests::Requests;
use hawser_endhost::{Endhost, IsdAsn, Path};
use hawser_keys::Known as KnownHosts;
use hawser_topology::AsDir;
use tokio::time::timeout;

use super::{Options, routers, sockets};
use crate::facts::{Destination, Echo, Facts, Joined, Known, Network, Offer};

/// Most paths that are probed.
const MAX_PROBED: usize = 32;

pub(super) async fn gather(options: &Options) -> Facts {
    let mut facts = Facts::default();
    let limit = options.timeout;
    let bootstrap = match &options.bootstrap {
        Ok(bootstrap) => bootstrap,
        Err(failed) => {
            facts.joined = Joined::NotFetched(failed.clone());
            facts.sockets = sockets::alone(options.listen);
            return facts;
        }
    };
    let host = match timeout(limit, Endhost::bootstrap(bootstrap)).await {
        Ok(Ok(host)) => host,
        failed => {
            facts.joined = match failed {
                Ok(Err(error)) => Joined::No(error),
                _ => Joined::TimedOut(limit),
            };
            facts.sockets = sockets::alone(options.listen);
            return facts;
        }
    };
    facts.joined = Joined::Yes(Network {
        source: host.source_name(),
        isd_as: host.local_as(),
        mtu: host.local_mtu(),
        ports: host.port_range(),
    });
    let config = options.config_dir();
    // A file that cannot be read matters only if it is the source, which then fails.
    let configured = AsDir::new(config).topology().ok();
    facts.configured_as = configured.map(|file| (config.join("topology.json"), file.isd_as));
    facts.sockets = sockets::gather(&host, options.listen);
    let offered = offer(&host, options).await;
    let mut paths = Vec::new();
    match offered {
        Some(Ok((offer, found))) => (facts.offer, paths) = (Some(offer), found),
        Some(Err(what)) => facts.late.push((what, limit)),
        None => {}
    }
    let (routers, destination) = tokio::join!(
        routers::gather(&host, &paths, limit),
        destination(&host, options, &paths),
    );
    (facts.routers, facts.destination) = (routers, destination);
    facts
}

/// What paths are offered to the destination, or to the core ASes of the ISD, and the paths; `None`
/// if the destination is in this AS.
async fn offer(
    host: &Endhost,
    options: &Options,
) -> Option<Result<(Offer, Vec<Path>), &'static str>> {
    let local = host.local_as();
    let core = IsdAsn::from_u64(local.to_u64() >> 48 << 48);
    let (to, needed) = match options.destination {
        Some((isd_as, _)) if isd_as == local => return None,
        Some((isd_as, _)) => (isd_as, true),
        None => (core, !host.is_core()),
    };
    let Ok(found) = timeout(options.timeout, host.offered_paths(to)).await else {
        return Some(Err("paths"));
    };
    let times = |path: &Path| {
        let made = hawser_packet::path::originated(path.raw());
        (made.unwrap_or_default(), path.expiry())
    };
    let (paths, found) = match found {
        Ok(found) => (Ok(found.iter().map(times).collect()), found),
        Err(error) => (Err(error), Vec::new()),
    };
    Some(Ok((Offer { to, needed, paths }, found)))
}

async fn destination(host: &Endhost, options: &Options, paths: &[Path]) -> Option<Destination> {
    let (isd_as, ip) = options.destination?;
    let local = isd_as == host.local_as();
    let within = [Path::within(isd_as, host.local_mtu())];
    let paths = if local { &within } else { paths };
    let paths = &paths[..paths.len().min(MAX_PROBED)];
    let third = options.timeout / 3;
    let probes = probe(host, paths, third).await;
    let is_alive = |status: &Status| matches!(status, Status::Alive(_));
    let mut alive = paths
        .iter()
        .zip(&probes)
        .filter(|(_, one)| is_alive(&one.status));
    let first = alive.next().map(|(path, _)| path);
    let count = alive.count() + usize::from(first.is_some());
    // Without a usable address, nothing was asked.
    let was_asked = |probe: &&Probe| !matches!(probe.status, Status::Unknown(_));
    let asked = probes.iter().filter(was_asked).count();
    let host = match ip {
        None => None,
        Some(ip) => {
            let echo = match first {
                None => Echo::NotAsked,
                Some(path) => echo(host, path, ip, third).await,
            };
            Some((ip, echo, known(isd_as, ip)))
        }
    };
    Some(Destination {
        isd_as,
        alive: (count, asked),
        host,
    })
}

async fn echo(host: &Endhost, path: &Path, ip: IpAddr, limit: Duration) -> Echo {
    let requests = match Requests::bind(host, None, next_hop(path, ip)) {
        Ok(requests) => requests,
        Err(error) => return Echo::Failed(error.to_string()),
    };
    match requests.echo(ip, path, 0, limit).await {
        Ok(_) => Echo::Answered,
        Err(error) => Echo::Failed(error.to_string()),
    }
}

fn known(isd_as: IsdAsn, ip: IpAddr) -> Known {
    let Ok(folder) = hawser_keys::folder() else {
        return Known::Unreadable;
    };
    let file = folder.join(KnownHosts::FILE);
    match KnownHosts::new(&file).knows_host(isd_as, ip) {
        Ok(true) => Known::Yes,
        Ok(false) => Known::No(file),
        Err(_) => Known::Unreadable,
    }
}
