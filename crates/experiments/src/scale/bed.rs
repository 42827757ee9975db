//! What cases run on, and how each kind of work is measured.

use std::time::Duration;

use futures_util::future::try_join_all;
use hawser_topology::IsdAsn;
use hawser_torrent::CreateOptions;

use super::axis::{MB, Work};
use super::case::{Case, Shape};
use super::{COURSE, Scale};
use crate::bed::{Carried, Fetch, Server, ShimPair, TestBed};
use crate::clients::Host;
use crate::content::{Content, Load};
use crate::error::{During, ExperimentError};
use crate::experiment::select;
use crate::scratch::Scratch;
use crate::shape::Bed;
use crate::window::{Ended, ended, window};

/// Least bytes of a bulk transfer: with less, looking up paths and shaking hands is most of it.
const LEAST: u64 = 8 * MB;
/// The first port of the receivers behind the shim.
const PORT: u16 = 5001;

/// What cases run on.
#[derive(Debug)]
pub enum ScaleBed {
    /// A network of its own.
    Network(TestBed),
    /// This host.
    Host(Host),
}

impl Bed for ScaleBed {
    async fn take_down(self) -> Result<(), ExperimentError> {
        match self {
            Self::Network(bed) => bed.take_down().await,
            Self::Host(host) => host.take_down().await,
        }
    }
}

impl ScaleBed {
    /// Sets up what a kind of work needs.
    pub fn set_up(scale: &Scale, work: Work) -> Result<Self, ExperimentError> {
        if work == Work::Tcp {
            let size = (scale.bytes, Some(Case::base(scale.bytes).downloads.piece));
            return Ok(Self::Host(Host::prepare(&scale.program, size, None)?));
        }
        let (network, folder) = (COURSE.network()?, Scratch::create()?);
        let bed = TestBed::up(network, "scale", &scale.program, !COURSE.offload, folder)?;
        Ok(Self::Network(bed))
    }

    /// Runs a case once.
    pub async fn measure(&self, scale: &Scale, case: &Case) -> Result<Carried, ExperimentError> {
        let bed = match self {
            Self::Host(host) => return over_tcp(host, scale, case).await,
            Self::Network(bed) => bed,
        };
        let ends = COURSE.ends()?;
        match case.axis.map_or(Work::Downloads, super::Axis::work) {
            Work::Flows => flows(bed, ends, (case.value, scale.time)).await,
            Work::Senders => senders(bed, ends, case.value, scale.bytes).await,
            Work::Connections => connections(bed, ends, (case.value, scale.time)).await,
            Work::Downloads | Work::Tcp => downloads(bed, ends, &case.downloads).await,
        }
    }
}

/// Downloads at once, with seeders of their own.
async fn downloads(
    bed: &TestBed,
    (from, to): (IsdAsn, IsdAsn),
    shape: &Shape,
) -> Result<Carried, ExperimentError> {
    // Each file exists twice: seeded, and downloaded.
    let folder = Scratch::in_memory(2 * shape.bytes)?;
    let options = CreateOptions {
        piece_length: Some(u32::try_from(shape.piece).during("the piece length")?),
        ..CreateOptions::default()
    };
    let (mut loads, mut seeders) = (Vec::new(), Vec::new());
    for number in 0..shape.torrents {
        // Different torrents have different sizes, hence names.
        let bytes = shape.bytes / (shape.torrents * shape.leechers) + number;
        let content = Content::generate(folder.path(), bytes)?;
        let load = Load::new(content, folder.path(), &options, |_, _| {})?;
        for _ in 0..shape.peers {
            let files = (&*load.torrent, &*load.content.path);
            seeders.push(bed.seed_to(from, files, shape.leechers).await?);
        }
        loads.push(load);
    }
    let of_torrents = loads.iter().zip(seeders.chunks(shape.peers as usize));
    let fetches = of_torrents.flat_map(|(load, seeders)| {
        let mut args = select("shortest", shape.paths as u16);
        // The download itself names its first seeder, and finds no other leecher.
        for seeder in &seeders[1..] {
            args.extend(["--peer".to_owned(), seeder.address().to_owned()]);
        }
        args.extend(["--find", "none"].map(str::to_owned));
        let fetch = Fetch {
            to,
            args,
            torrent: &load.torrent,
            seeder: &seeders[0],
        };
        std::iter::repeat_n(fetch, shape.leechers as usize)
    });
    let fetches: Vec<_> = fetches.collect();
    let meter = Server::meter(&seeders);
    bed.downloads(&fetches, &meter, folder.path()).await
}

/// QUIC streams at once, each between two processes of its own.
async fn flows(
    bed: &TestBed,
    (from, to): (IsdAsn, IsdAsn),
    (count, time): (u64, Duration),
) -> Result<Carried, ExperimentError> {
    let servers = try_join_all((0..count).map(|_| bed.serve_perf(to, false))).await?;
    let routers = bed.meter_routers()?;
    let sends = servers
        .iter()
        .map(|to| ended(bed.perf(from, to, time, &[])));
    let carried = try_join_all(sends).await?;
    Ok(together(&carried, routers.used()))
}

/// Bulk transfers at once into one server.
async fn senders(
    bed: &TestBed,
    (from, to): (IsdAsn, IsdAsn),
    count: u64,
    bytes: u64,
) -> Result<Carried, ExperimentError> {
    let server = [bed.receive_bulk(to).await?];
    let (routers, receiver) = (bed.meter_routers()?, Server::meter(&server));
    let size = ((bytes / count).max(LEAST), 1);
    let sends = (0..count).map(|_| ended(bed.send_bulk(from, &server[0], size)));
    let all = try_join_all(sends).await?;
    let seconds = window(&all, |report| report.seconds);
    let reports = || all.iter().map(|transfer| &transfer.it);
    Ok(Carried {
        bytes: reports().map(|report| report.bytes).sum(),
        seconds,
        sender: reports().map(|report| report.cpu_seconds).sum(),
        receiver: receiver.total(),
        routers: routers.used(),
        paths: 1,
        memory: None,
    })
}

/// TCP connections at once through a shim at either end, whose processor time is that of the
/// programs, too.
async fn connections(
    bed: &TestBed,
    ends: (IsdAsn, IsdAsn),
    (count, time): (u64, Duration),
) -> Result<Carried, ExperimentError> {
    let count = u16::try_from(count).during("the number of connections")?;
    let ports: Vec<u16> = (PORT..PORT + count).collect();
    let args = ["--any-server", "--select", "shortest", "--paths", "1"];
    let shims = bed.shims_up(ends, &ports, args.map(str::to_owned).into(), &[]);
    let shims = shims.await?;
    let (routers, meters) = (bed.meter_routers()?, shims.meters());
    let host = bed.host(ends.1)?;
    let sends = ports.iter().map(|&port| {
        let addresses = [host, ShimPair::MAPPED].map(|ip| (ip, port).into());
        let [listen, destination] = addresses;
        ended(bed.plain_to(ends, ("tcp", 0), (listen, Some(destination)), time))
    });
    let mut carried = together(&try_join_all(sends).await?, routers.used());
    let [sender, receiver] = meters.map(|meter| meter.total());
    shims.down().await?;
    carried.sender += sender;
    carried.receiver += receiver;
    Ok(carried)
}

/// One download over TCP on this host.
async fn over_tcp(host: &Host, scale: &Scale, case: &Case) -> Result<Carried, ExperimentError> {
    let client = case.client.unwrap_or(crate::clients::Client::Hawser);
    if client.version(&scale.program).is_none() {
        return Err(ExperimentError::Missing(client.remedy()));
    }
    let run = host.run(client, case.value).await?;
    let gigabytes = scale.bytes as f64 / 1e9;
    Ok(Carried {
        bytes: scale.bytes,
        seconds: gigabytes * 8.0 / run.gbit,
        sender: run.seeder_cpu_per_gb * gigabytes,
        receiver: run.leecher_cpu_per_gb * gigabytes,
        routers: Vec::new(),
        paths: 1,
        memory: Some(run.memory),
    })
}

/// Several transfers at once as one, with what the routers have used for all.
fn together(all: &[Ended<Carried>], routers: Vec<f64>) -> Carried {
    let each = || all.iter().map(|transfer| &transfer.it);
    Carried {
        bytes: each().map(|one| one.bytes).sum(),
        seconds: window(all, |one| one.seconds),
        sender: each().map(|one| one.sender).sum(),
        receiver: each().map(|one| one.receiver).sum(),
        routers,
        paths: 1,
        memory: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn transfers_at_once_are_added_up() {
        let one = async |seconds| {
            ended(async move {
                Ok::<_, ()>(Carried {
                    bytes: 1_000_000_000,
                    seconds,
                    sender: 1.0,
                    receiver: 2.0,
                    routers: vec![9.0],
                    paths: 1,
                    memory: None,
                })
            })
            .await
            .unwrap()
        };
        let both = together(&[one(1.0).await, one(2.0).await], vec![0.5]);
        assert_eq!(both.bytes, 2_000_000_000);
        assert_eq!((both.sender, both.receiver), (2.0, 4.0));
        assert_eq!(both.routers, [0.5]);
        assert!(both.seconds >= 2.0);
    }
}
