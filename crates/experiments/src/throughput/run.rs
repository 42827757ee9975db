//! Runs carriers on courses.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_torrent::CreateOptions;
use serde_json::json;

use super::carrier::Carrier;
use super::course::Course;
use super::figure;
use super::per_gigabyte::PerGigabyte;
use crate::bed::{Carried, Fetch, Server, Shared, TestBed};
use crate::content::{Content, Load};
use crate::error::ExperimentError;
use crate::experiment::select;
use crate::scratch::Scratch;
use crate::shape::{Columns, Experiment, Figure, Format, Observe, Results, Row, Section, Table};

/// What is measured.
#[derive(Debug, Clone)]
pub struct Matrix {
    /// The path of the `hawser` program.
    pub program: PathBuf,
    /// Where bytes move.
    pub courses: Vec<Course>,
    /// What moves them.
    pub carriers: Vec<Carrier>,
    /// Number of runs of each.
    pub repeat: u16,
    /// How long carriers send, at least a second; BitTorrent transfers [`Matrix::bytes`] instead.
    pub time: Duration,
    /// Bytes that BitTorrent transfers.
    pub bytes: u64,
}

/// What all runs on a course share.
#[derive(Debug)]
pub struct Servers {
    course: Course,
    load: Load,
    /// The server for SCION packets and QUIC, if one is needed.
    perf: Option<Server>,
    /// The seeders for IP peers and for SCION peers, if needed.
    seeders: [Vec<Server>; 2],
}

impl Experiment for Matrix {
    type Place = Course;
    type Bed = Shared<Servers>;
    type Case = Carrier;
    type Run = Carried;

    fn turns(&self) -> u16 {
        self.repeat
    }

    fn places(&self) -> Vec<Course> {
        self.courses.clone()
    }

    fn heading(&self, course: &Course) -> Option<String> {
        Some(course.to_string())
    }

    /// All carriers that fit the course.
    fn cases(&self, course: &Course) -> Vec<Carrier> {
        let carriers = self.carriers.iter().copied();
        carriers.filter(|carrier| carrier.fits(course)).collect()
    }

    /// Brings the network of a course up, with the servers that its carriers need.
    async fn set_up(&self, course: &Course, _: Observe<'_>) -> Result<Self::Bed, ExperimentError> {
        let (from, to) = course.ends()?;
        let folder = Scratch::in_memory(2 * self.bytes)?;
        let load = self.load(folder.path())?;
        let (network, no_offload) = (course.network()?, !course.offload);
        let bed = TestBed::up(network, "throughput", &self.program, no_offload, folder)?;
        let mut perf = None;
        if self.needs(|carrier| matches!(carrier, Carrier::Scion | Carrier::Quic)) {
            perf = Some(bed.serve_perf(to, false).await?);
        }
        let mut seeders = [Vec::new(), Vec::new()];
        let (torrent, content) = (&load.torrent, &load.content.path);
        for over_ip in [true, false] {
            let needed = |carrier| match carrier {
                Carrier::TorrentIp => over_ip,
                Carrier::Torrent(_) => !over_ip,
                _ => false,
            };
            if self.needs(needed) {
                let seeder = bed.seed(from, torrent, content, over_ip).await?;
                seeders[usize::from(!over_ip)].push(seeder);
            }
        }
        Ok(bed.with(Servers {
            course: *course,
            load,
            perf,
            seeders,
        }))
    }

    async fn measure(
        &self,
        bed: &Self::Bed,
        carrier: &Carrier,
    ) -> Result<Carried, ExperimentError> {
        let (servers, time) = (&bed.servers, self.time);
        let (from, to) = servers.course.ends()?;
        let payload = servers.course.udp_payload();
        let perf = servers.perf.as_ref();
        let perf = perf.ok_or_else(|| ExperimentError::step("there is no server"));
        let (seeders, args) = match *carrier {
            Carrier::Udp => return bed.plain((from, to), "udp", payload, time).await,
            Carrier::Tls => return bed.plain((from, to), "tls", payload, time).await,
            Carrier::Tcp => return bed.iperf3(from, to, time).await,
            Carrier::Scion => return bed.perf(from, perf?, time, &["--raw", "none"]).await,
            Carrier::Quic => return bed.perf(from, perf?, time, &[]).await,
            Carrier::TorrentIp => (&servers.seeders[0], Vec::new()),
            Carrier::Torrent(paths) => (&servers.seeders[1], select("shortest", paths.into())),
        };
        let seeder = seeders.first();
        let fetch = Fetch {
            to,
            args,
            torrent: &servers.load.torrent,
            seeder: seeder.ok_or_else(|| ExperimentError::step("there is no seeder"))?,
        };
        let meter = Server::meter(seeders);
        bed.downloads(&[fetch], &meter, bed.folder()).await
    }

    fn summary(&self, run: &Carried) -> String {
        format!("{:.2} Gbit/s", run.gbit())
    }

    fn table(&self, results: &Results<Self>) -> Table {
        Table {
            experiment: "throughput",
            facts: vec![
                ("repeat", self.repeat.into()),
                ("seconds", self.time.as_secs_f64().into()),
                ("bytes", self.bytes.into()),
            ],
            sections: vec![Section::of("rows", self, results, &columns())],
            ..Table::default()
        }
    }

    fn plot(&self, results: &Results<Self>) -> Result<Vec<Figure>, ExperimentError> {
        figure::draw(self.repeat, results).map(Figure::only)
    }
}

impl Matrix {
    fn load(&self, folder: &Path) -> Result<Load, ExperimentError> {
        let content = Content::generate(folder, self.bytes)?;
        Load::new(content, folder, &CreateOptions::default(), &mut |_, _| {})
    }

    fn needs(&self, needed: impl Fn(Carrier) -> bool) -> bool {
        self.carriers.iter().any(|carrier| needed(*carrier))
    }
}

fn columns<'a>() -> Columns<Row<'a, Matrix>> {
    use Format::Number;
    Columns::<Row<'a, Matrix>>::new()
        .json("routers", |row| row.place.routers)
        .json("mtu", |row| row.place.mtu)
        .json("offload", |row| row.place.offload)
        .case("carrier")
        .values("runs_gbit", Carried::gbit)
        .runs()
        .median("gbit", "Gbit/s", Number(2), Carried::gbit)
        .spread("spread", Carried::gbit)
        .json("cpu_per_gb", |row| json!(PerGigabyte::of(&row.series.runs)))
        .median(None, "CPU s/GB: sender", Number(2), |run| {
            run.per_gb(run.sender)
        })
        .median(None, "receiver", Number(2), |run| run.per_gb(run.receiver))
        .median(None, "routers", Number(2), |run| {
            run.per_gb(run.routers.iter().sum())
        })
        .text("all", Number(2), |row| {
            PerGigabyte::of(&row.series.runs).map(|cpu| cpu.all)
        })
        .json("paths", |row| {
            let paths = row.series.runs.iter().map(|run| run.paths);
            paths.max().unwrap_or(0)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Series;

    #[test]
    fn rows_have_medians_and_say_what_is_missing() {
        let run = |seconds: f64| Carried {
            bytes: 500_000_000,
            seconds,
            sender: 0.5,
            receiver: 1.0,
            routers: vec![0.1],
            paths: 2,
            memory: None,
        };
        let matrix = Matrix {
            program: PathBuf::new(),
            courses: vec![Course::TELLING[0]],
            carriers: vec![Carrier::Torrent(2), Carrier::Tcp],
            repeat: 3,
            time: Duration::from_secs(1),
            bytes: 1,
        };
        let series = |case, runs, failure| Series {
            case,
            runs,
            failure,
        };
        let all = vec![
            series(
                Carrier::Torrent(2),
                vec![run(1.0), run(2.0), run(4.0)],
                None,
            ),
            series(Carrier::Tcp, vec![], Some("install iperf3".to_owned())),
        ];
        let places = vec![(Course::TELLING[0], all)];
        let table = matrix.table(&Results { places });
        let json = serde_json::to_value(&table).unwrap();
        let row = &json["rows"][0];
        assert_eq!(
            (&row["carrier"], &row["mtu"]),
            (&json!("torrent-2"), &json!(1500))
        );
        assert_eq!((&row["gbit"], &row["spread"]), (&json!(2.0), &json!(1.5)));
        assert_eq!(
            (&row["paths"], &row["cpu_per_gb"]["receiver"]),
            (&json!(2), &json!(2.0))
        );
        let row = &json["rows"][1];
        assert_eq!(
            (&row["gbit"], &row["cpu_per_gb"]),
            (&json!(null), &json!(null))
        );
        let text = table.to_string();
        assert!(
            text.contains("  tcp        left out: install iperf3\n"),
            "{text}"
        );
    }
}
