//! One run of a carrier.

use std::net::{IpAddr, SocketAddr};

use futures_util::future::try_join_all;

use super::{ANSWER, Ends, LINKS, Mptcp, Servers};
use crate::bed::{Server, Shared, ShimPair, ShimPath, TestBed};
use crate::ceiling::{PathCost, SCION_HEADERS};
use crate::error::ExperimentError;
use crate::mptcp::carrier::MptcpCarrier;
use crate::mptcp::case::{Connection, MptcpCase, MptcpRun};
use crate::mptcp::headers::HeaderRow;

/// The port of the receiver that takes data.
const DATA: u16 = 5001;
/// Connections after the first whose set-up is measured in a run.
const LATER_CONNECTIONS: u16 = 5;
/// Least share of an equal part that a path must have carried to count as used.
const MIN_USED_SHARE: f64 = 0.1;

/// The network with its servers.
pub(super) struct Runner<'a> {
    mptcp: &'a Mptcp,
    bed: &'a TestBed,
    ends: Ends,
    quic: &'a [Server],
}

/// What a carrier sent; rates in Mbit/s.
struct Sent {
    goodput: f64,
    throughput: f64,
    cost: PathCost,
    path_bytes: usize,
    set_up: Vec<(Connection, f64)>,
}

impl<'a> Runner<'a> {
    pub fn new(mptcp: &'a Mptcp, bed: &'a Shared<Servers>) -> Self {
        Self {
            mptcp,
            bed,
            ends: bed.servers.ends,
            quic: &bed.servers.quic,
        }
    }

    pub async fn record(&self, case: MptcpCase) -> Result<MptcpRun, ExperimentError> {
        let MptcpCase { carrier, paths } = case;
        let sent = match carrier {
            MptcpCarrier::Mptcp | MptcpCarrier::Streams => self.through_shim(case).await?,
            MptcpCarrier::Quic => self.quic(paths).await?,
            MptcpCarrier::Tcp => self.tcp().await?,
        };
        Ok(MptcpRun {
            goodput: sent.goodput,
            throughput: sent.throughput,
            ceiling: f64::from(paths) * self.mptcp.rate as f64 * sent.cost.efficiency() / 1e6,
            headers: HeaderRow::new(carrier, &sent.cost, sent.path_bytes),
            set_up: sent.set_up,
        })
    }

    /// Brings the shims up for one run.
    async fn through_shim(&self, case: MptcpCase) -> Result<Sent, ExperimentError> {
        let Ends {
            sender, receiver, ..
        } = self.ends;
        let name = match case.carrier {
            MptcpCarrier::Streams => "quic",
            _ => "mptcp",
        };
        let fixed = ["--any-server", "--carrier", name, "--select", "shortest"];
        let fixed = fixed.map(str::to_owned).into_iter();
        let fixed = fixed.chain(["--paths".to_owned(), case.paths.to_string()]);
        // The paths of all carriers are those of the first links.
        let left = (case.paths + 1..=LINKS).map(|link| format!("- {receiver}#{link}"));
        let acl = left.chain(["+".to_owned()]);
        let acl = acl.flat_map(|entry| ["--acl".to_owned(), entry]);
        let ports = [DATA, ANSWER];
        let shims = self
            .bed
            .shims_up((sender, receiver), &ports, fixed.chain(acl).collect(), &[]);
        let shims = shims.await?;
        let sent = self.over(&shims, case).await?;
        shims.down().await?;
        Ok(sent)
    }

    async fn over(&self, shims: &ShimPair<'_>, case: MptcpCase) -> Result<Sent, ExperimentError> {
        let mapped = ShimPair::MAPPED;
        let set_up = self.set_up(mapped, Some(Connection::First)).await?;
        let (goodput, throughput) = self.send_tcp(Some(mapped)).await?;
        let used = shims.paths().await?;
        let mtu = self.bed.network.links.iter().map(|link| link.mtu).min();
        let mtu = mtu.ok_or_else(|| ExperimentError::step("the network has no links"))?;
        let datagram = check_paths(&used, case.paths)?;
        let path_bytes = usize::from(mtu).saturating_sub(SCION_HEADERS + datagram);
        Ok(Sent {
            goodput,
            throughput,
            cost: match case.carrier {
                MptcpCarrier::Streams => PathCost::quic(mtu, path_bytes),
                _ => PathCost::mptcp(mtu, path_bytes),
            },
            path_bytes,
            set_up,
        })
    }

    async fn tcp(&self) -> Result<Sent, ExperimentError> {
        let address = self.bed.host(self.ends.receiver)?;
        let set_up = self.set_up(address, None).await?;
        let (goodput, throughput) = self.send_tcp(None).await?;
        let cost = PathCost::tcp(&self.bed.network, self.ends.sender, self.ends.receiver);
        Ok(Sent {
            goodput,
            throughput,
            cost: cost.ok_or_else(|| ExperimentError::step("plain IP has no route"))?,
            path_bytes: 0,
            set_up,
        })
    }

    async fn quic(&self, paths: u8) -> Result<Sent, ExperimentError> {
        let before = self.bytes()?;
        let sends = self
            .quic
            .iter()
            .zip(1..=paths)
            .map(|(server, link)| async move {
                let sequence = format!("0* {}#{link}", self.ends.receiver);
                let over = (server, sequence.as_str());
                self.bed
                    .quic_over(self.ends.sender, over, self.mptcp.time)
                    .await
            });
        let sent = try_join_all(sends).await?;
        let frames = self.bytes()? - before;
        let first = sent.first();
        let first = first.ok_or_else(|| ExperimentError::step("no path was used"))?;
        let seconds = sent.iter().map(|one| one.seconds).sum::<f64>() / sent.len() as f64;
        Ok(Sent {
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
        let times = self
            .bed
            .set_up(self.ends.sender, to, 1 + LATER_CONNECTIONS)
            .await?;
        let which = first
            .into_iter()
            .chain(std::iter::repeat(Connection::Later));
        Ok(which
            .zip(times.iter().map(|one| one.answered * 1e3))
            .collect())
    }

    /// Lets the TCP program send. Returns goodput and throughput in Mbit/s.
    async fn send_tcp(&self, through: Option<IpAddr>) -> Result<(f64, f64), ExperimentError> {
        let listen = SocketAddr::new(self.bed.host(self.ends.receiver)?, DATA);
        let destination = through.map(|ip| SocketAddr::new(ip, DATA));
        let ends = (self.ends.sender, self.ends.receiver);
        let before = self.bytes()?;
        let carried = self
            .bed
            .plain_to(ends, ("tcp", 0), (listen, destination), self.mptcp.time);
        let carried = carried.await?;
        let frames = self.bytes()? - before;
        let mbit = |bytes: u64| bytes as f64 * 8e-6 / carried.seconds.max(1e-9);
        Ok((mbit(carried.bytes), mbit(frames)))
    }

    /// Bytes of frames on the limited links so far.
    fn bytes(&self) -> Result<u64, ExperimentError> {
        self.bed.limited_bytes(self.ends.middle, self.ends.receiver)
    }
}

/// Checks that all paths were used. Returns the size of their largest datagrams.
fn check_paths(all: &[ShimPath], paths: u8) -> Result<usize, ExperimentError> {
    let carried = |path: &ShimPath| path.sent_bytes + path.stream_bytes;
    let bytes: u64 = all.iter().map(carried).sum();
    let least = MIN_USED_SHARE * bytes as f64 / f64::from(paths);
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
}
