//! Runs carriers over numbers of paths.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::try_join_all;
use hawser_topology::{IsdAsn, Network};

use super::carrier::MptcpCarrier;
use super::headers::HeaderRow;
use super::table::{Connection, Measured, MptcpRow, MptcpTable, SetUpRow};
use crate::bulk::check::check_round_trip;
use crate::ceiling::{PathCost, SCION_HEADERS};
use crate::error::{During, ExperimentError};
use crate::experiment::isd_as;
use crate::network::{LinkSpec, fan};
use crate::report::median;
use crate::scratch::Scratch;
use crate::stage::{Server, Shim, ShimOptions, ShimPath, Stage};

/// Links with a limit: as many paths.
const LINKS: u8 = 8;
/// Where programs find the receiver through the shim: an address that nobody has (RFC 5737), so that
/// nothing reaches it past the shim.
const MAPPED: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
/// The ports of the receiver: of what takes data, and of what answers.
const DATA: u16 = 5001;
const ANSWER: u16 = 5002;
/// Connections after the first whose set-up is measured in a run.
const LATER: u16 = 5;
/// Least share of an equal part that a path must have carried to count as used.
const USED: f64 = 0.1;

/// What is measured.
#[derive(Debug, Clone)]
pub struct Mptcp {
    /// The path of the `hawser` program.
    pub program: PathBuf,
    /// What carries the bytes, in the order in which they take turns.
    pub carriers: Vec<MptcpCarrier>,
    /// Numbers of paths, 1 to 8.
    pub paths: Vec<u8>,
    /// The limit of each path's link, in bit/s.
    pub rate: u64,
    /// The delay of each path's link, in each direction.
    pub delay: Duration,
    /// How long each carrier sends.
    pub time: Duration,
    /// Number of runs of each.
    pub repeat: u16,
}

/// Progress of a measurement.
#[derive(Debug)]
#[non_exhaustive]
pub enum MptcpProgress<'a> {
    /// A carrier has run.
    Run {
        /// The number of the repetition, from 1.
        turn: u16,
        /// The carrier.
        carrier: MptcpCarrier,
        /// The number of paths.
        paths: u8,
        /// Its goodput in Mbit/s.
        mbit: f64,
        /// The same by what headers leave.
        share: f64,
    },
    /// A carrier cannot run.
    Failed {
        /// The carrier.
        carrier: MptcpCarrier,
        /// The number of paths.
        paths: u8,
        /// Why.
        why: &'a str,
    },
}

/// The ASes of the network.
#[derive(Clone, Copy)]
struct Ends {
    sender: IsdAsn,
    /// Where the limited links begin.
    middle: IsdAsn,
    receiver: IsdAsn,
}

/// The network with its servers.
struct Ready<'a> {
    mptcp: &'a Mptcp,
    stage: &'a Stage,
    network: &'a Network,
    ends: Ends,
    folder: &'a Path,
    /// Servers for QUIC, one for each path.
    quic: Vec<Server>,
}

/// A row that is being measured.
struct Case {
    carrier: MptcpCarrier,
    paths: u8,
    runs: Vec<Measured>,
    failure: Option<String>,
}

/// What one run shows.
struct Recorded {
    /// In Mbit/s.
    goodput: f64,
    throughput: f64,
    cost: PathCost,
    path_bytes: usize,
    /// How long connections took, in milliseconds.
    set_up: Vec<(Connection, f64)>,
}

impl Mptcp {
    /// Runs each carrier with each number of paths, one run of each in turn. What fails leaves a row
    /// that says why.
    ///
    /// # Errors
    /// [`ExperimentError::Step`] if the network or a server does not come up, or plain IP has another
    /// round trip than the links.
    pub async fn run(
        &self,
        observe: &mut dyn FnMut(MptcpProgress<'_>),
    ) -> Result<MptcpTable, ExperimentError> {
        let folder = Scratch::create()?;
        let link = LinkSpec::new(self.rate as f64 / 1e6, self.delay.as_secs_f64() * 1e3);
        let network = fan(LINKS, link)?;
        let ends = Ends {
            sender: isd_as("1-ff00:0:111")?,
            middle: isd_as("1-ff00:0:112")?,
            receiver: isd_as("1-ff00:0:110")?,
        };
        let stage = Stage::set(&network, "mptcp", &self.program, false)?;
        if self.carriers.contains(&MptcpCarrier::Tcp) {
            let round_trip = stage.plain_round_trip(ends.sender, ends.receiver).await?;
            check_round_trip(round_trip, 2 * self.delay)?;
        }
        let _answers = stage.serve_answers(ends.receiver, ANSWER).await?;
        let mut quic = Vec::new();
        if self.carriers.contains(&MptcpCarrier::Quic) {
            for _ in 0..self.paths.iter().copied().max().unwrap_or(0) {
                quic.push(stage.serve_perf(ends.receiver, false).await?);
            }
        }
        let table = self.table(&stage, (&network, ends), (folder.path(), quic), observe);
        let table = table.await?;
        stage.take_down()?;
        Ok(table)
    }

    /// Measures on a network with its servers.
    async fn table(
        &self,
        stage: &Stage,
        (network, ends): (&Network, Ends),
        (folder, quic): (&Path, Vec<Server>),
        observe: &mut dyn FnMut(MptcpProgress<'_>),
    ) -> Result<MptcpTable, ExperimentError> {
        let ready = Ready {
            mptcp: self,
            stage,
            network,
            ends,
            folder,
            quic,
        };
        let served = ready.serve().await;
        let table = ready.table(served.as_ref().err(), observe).await;
        match served {
            Ok(Some(shim)) => shim.down().await.map(|()| table),
            _ => Ok(table),
        }
    }
}

impl<'a> Ready<'a> {
    /// Brings the shim of the receiver up, if a carrier needs it.
    async fn serve(&self) -> Result<Option<Shim<'a>>, ExperimentError> {
        if !self.mptcp.carriers.iter().any(|one| one.is_shim()) {
            return Ok(None);
        }
        let map = self.folder.join("empty.toml");
        fs::write(&map, "").during("writing a map")?;
        let address = self.stage.address(self.ends.receiver)?;
        let served =
            [DATA, ANSWER].map(|port| format!("{port}={}", SocketAddr::new(address, port)));
        let options = ShimOptions {
            isd_as: self.ends.receiver,
            map: &map,
            key: &self.folder.join("receiver.key"),
            args: ["--allow-any", "--serve", &served.join(",")]
                .map(str::to_owned)
                .into(),
        };
        self.stage.shim_up(&options).await.map(Some)
    }

    async fn table(
        &self,
        unserved: Option<&ExperimentError>,
        observe: &mut dyn FnMut(MptcpProgress<'_>),
    ) -> MptcpTable {
        let mut cases = self.cases();
        if let Some(error) = unserved {
            for case in cases.iter_mut().filter(|case| case.carrier.is_shim()) {
                case.fail(error, observe);
            }
        }
        let mut headers: BTreeMap<MptcpCarrier, HeaderRow> = BTreeMap::new();
        let mut set_up: Vec<(MptcpCarrier, Connection, f64)> = Vec::new();
        for turn in 1..=self.mptcp.repeat {
            for case in cases.iter_mut().filter(|case| case.failure.is_none()) {
                let (carrier, paths) = (case.carrier, case.paths);
                match self.record(carrier, paths).await {
                    Ok(run) => {
                        let ceiling = self.ceiling(&run.cost, paths);
                        case.runs.push(Measured {
                            turn,
                            goodput: run.goodput,
                            throughput: run.throughput,
                            ceiling,
                        });
                        observe(MptcpProgress::Run {
                            turn,
                            carrier,
                            paths,
                            mbit: run.goodput,
                            share: run.goodput / ceiling,
                        });
                        let row = HeaderRow::new(carrier, &run.cost, run.path_bytes);
                        headers.insert(carrier, row);
                        let times = run.set_up.into_iter();
                        set_up.extend(times.map(|(which, ms)| (carrier, which, ms)));
                    }
                    Err(error) => case.fail(&error, observe),
                }
            }
        }
        let quic = |paths| {
            let mut found = cases.iter();
            let name = (MptcpCarrier::Quic, paths);
            let found = found.find(|case| (case.carrier, case.paths) == name);
            found.map_or(&[][..], |case| &case.runs)
        };
        let rows = cases.iter().map(|case| {
            let name = (case.carrier, case.paths);
            let quic = [quic(case.paths), quic(1)];
            MptcpRow::new(name, &case.runs, quic, case.failure.clone())
        });
        let rate_mbit = self.mptcp.rate as f64 / 1e6;
        let round_trip_ms = 2e3 * self.mptcp.delay.as_secs_f64();
        MptcpTable {
            experiment: "mptcp",
            about: format!(
                "002, Performance evaluation: in SCIONLab there; links of {rate_mbit} Mbit/s and \
                 {round_trip_ms} ms here"
            ),
            rate_mbit,
            round_trip_ms,
            seconds: self.mptcp.time.as_secs_f64(),
            repeat: self.mptcp.repeat,
            rows: rows.collect(),
            headers: headers.into_values().collect(),
            set_up: set_up_rows(&set_up),
        }
    }

    /// The cases, in the order in which they take turns: carriers over the same paths one after the
    /// other.
    fn cases(&self) -> Vec<Case> {
        let cases = self.mptcp.paths.iter().flat_map(|&paths| {
            let carriers = self.mptcp.carriers.iter();
            let carriers = carriers.filter(move |carrier| carrier.takes(paths));
            carriers.map(move |&carrier| Case {
                carrier,
                paths,
                runs: Vec::new(),
                failure: None,
            })
        });
        cases.collect()
    }

    /// What the limits of this number of links leave, in Mbit/s.
    fn ceiling(&self, cost: &PathCost, paths: u8) -> f64 {
        f64::from(paths) * self.mptcp.rate as f64 * cost.efficiency() / 1e6
    }

    async fn record(&self, carrier: MptcpCarrier, paths: u8) -> Result<Recorded, ExperimentError> {
        match carrier {
            MptcpCarrier::Mptcp | MptcpCarrier::Streams => self.through_shim(carrier, paths).await,
            MptcpCarrier::Quic => self.quic(paths).await,
            MptcpCarrier::Tcp => self.tcp().await,
        }
    }

    /// Brings the sender's shim up for one run.
    async fn through_shim(
        &self,
        carrier: MptcpCarrier,
        paths: u8,
    ) -> Result<Recorded, ExperimentError> {
        let map = self.folder.join("map.toml");
        let receiver = (self.ends.receiver, self.stage.address(self.ends.receiver)?);
        let text = format!(
            "[destinations]\n\"{MAPPED}\" = \"{},{}\"\n",
            receiver.0, receiver.1
        );
        fs::write(&map, text).during("writing a map")?;
        // The paths of all carriers are those of the first links.
        let left = (paths + 1..=LINKS).map(|link| format!("- {}#{link}", self.ends.receiver));
        let acl = left.chain(["+".to_owned()]);
        let acl = acl.flat_map(|entry| ["--acl".to_owned(), entry]);
        let name = match carrier {
            MptcpCarrier::Streams => "quic",
            _ => "mptcp",
        };
        let fixed = [
            "--any-server",
            "--carrier",
            name,
            "--select",
            "shortest",
            "--paths",
        ];
        let fixed = fixed.map(str::to_owned).into_iter();
        let fixed = fixed.chain([paths.to_string()]);
        let options = ShimOptions {
            isd_as: self.ends.sender,
            map: &map,
            key: &self.folder.join("sender.key"),
            args: fixed.chain(acl).collect(),
        };
        let shim = self.stage.shim_up(&options).await?;
        let recorded = self.over(&shim, carrier, paths).await?;
        shim.down().await?;
        Ok(recorded)
    }

    async fn over(
        &self,
        shim: &Shim<'_>,
        carrier: MptcpCarrier,
        paths: u8,
    ) -> Result<Recorded, ExperimentError> {
        let set_up = self.set_up(MAPPED, Some(Connection::First)).await?;
        let (goodput, throughput) = self.send_tcp(Some(MAPPED)).await?;
        let used = shim.paths().await?;
        let mtu = self.network.links.iter().map(|link| link.mtu).min();
        let mtu = mtu.ok_or_else(|| ExperimentError::step("the network has no links"))?;
        let datagram = check_paths(&used, paths)?;
        let path_bytes = usize::from(mtu).saturating_sub(SCION_HEADERS + datagram);
        Ok(Recorded {
            goodput,
            throughput,
            cost: match carrier {
                MptcpCarrier::Streams => PathCost::quic(mtu, path_bytes),
                _ => PathCost::mptcp(mtu, path_bytes),
            },
            path_bytes,
            set_up,
        })
    }

    async fn tcp(&self) -> Result<Recorded, ExperimentError> {
        let set_up = self
            .set_up(self.stage.address(self.ends.receiver)?, None)
            .await?;
        let (goodput, throughput) = self.send_tcp(None).await?;
        let cost = PathCost::tcp(self.network, self.ends.sender, self.ends.receiver);
        Ok(Recorded {
            goodput,
            throughput,
            cost: cost.ok_or_else(|| ExperimentError::step("plain IP has no route"))?,
            path_bytes: 0,
            set_up,
        })
    }

    async fn quic(&self, paths: u8) -> Result<Recorded, ExperimentError> {
        let before = self.bytes()?;
        let sends = self
            .quic
            .iter()
            .zip(1..=paths)
            .map(|(server, link)| async move {
                let sequence = format!("0* {}#{link}", self.ends.receiver);
                let over = (server, sequence.as_str());
                self.stage
                    .quic_over(self.ends.sender, over, self.mptcp.time)
                    .await
            });
        let sent = try_join_all(sends).await?;
        let frames = self.bytes()? - before;
        let first = sent.first();
        let first = first.ok_or_else(|| ExperimentError::step("no path was used"))?;
        let seconds = sent.iter().map(|one| one.seconds).sum::<f64>() / sent.len() as f64;
        Ok(Recorded {
            goodput: sent.iter().map(|one| one.goodput_mbit).sum(),
            throughput: frames as f64 * 8e-6 / seconds.max(1e-9),
            cost: PathCost::quic(first.path_mtu, first.path_bytes),
            path_bytes: first.path_bytes,
            set_up: Vec::new(),
        })
    }

    /// How long connections to the server at `to` take, in milliseconds. The first one may differ from
    /// the others.
    async fn set_up(
        &self,
        to: IpAddr,
        first: Option<Connection>,
    ) -> Result<Vec<(Connection, f64)>, ExperimentError> {
        let to = SocketAddr::new(to, ANSWER);
        let times = self.stage.set_up(self.ends.sender, to, 1 + LATER).await?;
        let which = first
            .into_iter()
            .chain(std::iter::repeat(Connection::Later));
        Ok(which
            .zip(times.iter().map(|one| one.answered * 1e3))
            .collect())
    }

    /// Lets the TCP program send. Returns goodput and throughput in Mbit/s.
    async fn send_tcp(&self, through: Option<IpAddr>) -> Result<(f64, f64), ExperimentError> {
        let listen = SocketAddr::new(self.stage.address(self.ends.receiver)?, DATA);
        let destination = through.map(|ip| SocketAddr::new(ip, DATA));
        let ends = (self.ends.sender, self.ends.receiver);
        let before = self.bytes()?;
        let carried = self
            .stage
            .plain_to(ends, ("tcp", 0), (listen, destination), self.mptcp.time);
        let carried = carried.await?;
        let frames = self.bytes()? - before;
        let mbit = |bytes: u64| bytes as f64 * 8e-6 / carried.seconds.max(1e-9);
        Ok((mbit(carried.bytes), mbit(frames)))
    }

    /// Bytes of frames on the limited links so far.
    fn bytes(&self) -> Result<u64, ExperimentError> {
        self.stage
            .limited_bytes(self.ends.middle, self.ends.receiver)
    }
}

impl Case {
    fn fail(&mut self, error: &ExperimentError, observe: &mut dyn FnMut(MptcpProgress<'_>)) {
        let why = error.to_string();
        observe(MptcpProgress::Failed {
            carrier: self.carrier,
            paths: self.paths,
            why: &why,
        });
        self.failure = Some(why);
    }
}

/// Checks that all paths were used. Returns the size of their largest datagrams.
fn check_paths(all: &[ShimPath], paths: u8) -> Result<usize, ExperimentError> {
    let carried = |path: &ShimPath| path.sent_bytes + path.stream_bytes;
    let bytes: u64 = all.iter().map(carried).sum();
    let least = USED * bytes as f64 / f64::from(paths);
    let used = all.iter().filter(|path| carried(path) as f64 > least);
    let (count, datagram) = used.fold((0, usize::MAX), |(count, least), path| {
        (count + 1, least.min(path.datagram_bytes))
    });
    match count == usize::from(paths) {
        true => Ok(datagram),
        false => Err(ExperimentError::Step(format!(
            "the shim used {count} of {paths} paths"
        ))),
    }
}

/// Sums up how long connections took.
fn set_up_rows(all: &[(MptcpCarrier, Connection, f64)]) -> Vec<SetUpRow> {
    let of = |carrier, connection| -> Vec<f64> {
        let same = all
            .iter()
            .filter(|one| (one.0, one.1) == (carrier, connection));
        same.map(|one| one.2).collect()
    };
    let plain = of(MptcpCarrier::Tcp, Connection::Later);
    let plain = (!plain.is_empty()).then(|| median(&plain));
    let names = MptcpCarrier::ALL.into_iter().flat_map(|carrier| {
        [Connection::First, Connection::Later].map(|connection| (carrier, connection))
    });
    let rows = names.filter_map(|name| {
        let times = of(name.0, name.1);
        let compared = plain.filter(|_| name.0 != MptcpCarrier::Tcp);
        (!times.is_empty()).then(|| SetUpRow::new(name, times, compared))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_paths_are_noticed() {
        let path = |sent_bytes| ShimPath {
            datagram_bytes: 1380,
            sent_bytes,
            stream_bytes: 0,
        };
        assert_eq!(check_paths(&[path(500), path(400)], 2).unwrap(), 1380);
        let error = check_paths(&[path(900), path(5)], 2).unwrap_err();
        assert_eq!(error.to_string(), "the shim used 1 of 2 paths");
        assert!(check_paths(&[], 1).is_err());
    }

    #[test]
    fn set_up_has_a_row_for_first_and_later_connections() {
        let (mptcp, tcp) = (MptcpCarrier::Mptcp, MptcpCarrier::Tcp);
        let rows = set_up_rows(&[
            (mptcp, Connection::First, 65.0),
            (mptcp, Connection::Later, 42.0),
            (tcp, Connection::Later, 40.0),
        ]);
        let rows: Vec<_> = rows.iter().map(|row| (row.ms, row.more_ms)).collect();
        assert_eq!(rows, [(65.0, Some(25.0)), (42.0, Some(2.0)), (40.0, None)]);
    }
}
