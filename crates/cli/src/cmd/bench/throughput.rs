//! `hawser bench throughput`: means of transfer compared, on several courses.

use std::time::Duration;

use hawser_experiments::shape::{Choice, choice};
use hawser_experiments::throughput::{Carrier, Course, Matrix};

use super::args::{ResultArgs, at_least, measure};
use crate::cmd::process;
use crate::cmd::quantity::size;
use crate::failure::Failure;

#[derive(clap::Args)]
pub struct ThroughputArgs {
    /// Measure these only
    ///
    /// udp, tcp (iperf3), tls and torrent-ip over plain IP; scion (packets), quic, torrent-1,
    /// torrent-2, torrent-4 and torrent-8 (paths) over SCION.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = choice::<Carrier>)]
    only: Vec<Carrier>,
    /// Border routers between the hosts: 0 for two hosts of one AS, or 2 to 8, since each AS has one
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = routers)]
    routers: Vec<u8>,
    /// Largest IP packets, in bytes: 1500, 9000
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1300..=9000))]
    mtu: Vec<u16>,
    /// Make every packet cross the network by itself, as `lab up --no-offload` does
    #[arg(long)]
    no_offload: bool,
    /// Measure 0, 2 and 4 routers with both MTUs, with and without offloads: half an hour
    #[arg(long, conflicts_with_all = ["routers", "mtu", "no_offload"])]
    all: bool,
    /// Run each this many times
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
    /// How long each sends
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = at_least(1))]
    time: Duration,
    /// What BitTorrent transfers in this time, in memory
    #[arg(long, value_name = "N", default_value = "500MB", value_parser = size)]
    size: u64,
    #[command(flatten)]
    result: ResultArgs,
}

/// Reads a number of border routers.
fn routers(text: &str) -> Result<u8, String> {
    match text.parse() {
        Ok(count @ (0 | 2..=8)) => Ok(count),
        Ok(1) => Err("a path between two ASes crosses at least 2 border routers".to_owned()),
        _ => Err("write 0, or 2 to 8".to_owned()),
    }
}

impl ThroughputArgs {
    /// The requested courses: without a request those that show most.
    fn courses(&self) -> Vec<Course> {
        let some = |given: &[u8], default: &[u8]| match given {
            [] => default.to_vec(),
            given => given.to_vec(),
        };
        let (routers, mtus, offloads) = if self.all {
            let both = &[true, false][..];
            (Course::ROUTERS.to_vec(), Course::MTUS.to_vec(), both)
        } else if self.routers.is_empty() && self.mtu.is_empty() && !self.no_offload {
            return Course::TELLING.to_vec();
        } else {
            let mtus = match &self.mtu[..] {
                [] => vec![1500],
                given => given.to_vec(),
            };
            let offload = if self.no_offload { &[false] } else { &[true] };
            (some(&self.routers, &[2]), mtus, &offload[..])
        };
        let mut courses = Vec::new();
        for &routers in &routers {
            for &mtu in &mtus {
                courses.extend(offloads.iter().map(|on| Course::new(routers, mtu, *on)));
            }
        }
        courses
    }
}

/// Runs `hawser bench throughput`, and always takes its networks down.
pub fn run(args: ThroughputArgs) -> Result<(), Failure> {
    let matrix = Matrix {
        program: process::program()?,
        courses: args.courses(),
        carriers: Carrier::chosen(&args.only),
        repeat: args.repeat,
        time: args.time,
        bytes: args.size,
    };
    measure(&matrix, &args.result)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: ThroughputArgs,
    }

    fn courses(args: &[&str]) -> Vec<String> {
        let args = ["throughput"].iter().chain(args);
        let command = Command::try_parse_from(args).unwrap();
        let courses = command.args.courses().into_iter();
        courses.map(|course| course.to_string()).collect()
    }

    #[test]
    fn courses_are_those_requested() {
        assert_eq!(courses(&[]).len(), Course::TELLING.len());
        assert_eq!(courses(&["--all"]).len(), 12);
        assert_eq!(courses(&["--routers", "0,4"]).len(), 2);
        let one = ["--mtu", "9000", "--no-offload"];
        assert_eq!(courses(&one), ["2 routers, MTU 9000, offloads off"]);
    }

    #[test]
    fn one_router_is_refused_with_the_reason() {
        assert!(routers("1").unwrap_err().contains("at least 2"));
        assert!(routers("9").is_err());
        assert_eq!(routers("0"), Ok(0));
    }
}
