//! Runs carriers on courses.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_torrent::CreateOptions;

use super::carrier::Carrier;
use super::course::Course;
use super::table::{Row, Table};
use crate::content::Content;
use crate::error::ExperimentError;
use crate::experiment::select;
use crate::run::Load;
use crate::scratch::Scratch;
use crate::stage::{Carried, Server, Stage};

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

/// Progress of a measurement.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// The network of a course is up.
    Course(&'a Course),
    /// A carrier has run.
    Run {
        /// The number of the repetition, from 1.
        turn: u16,
        /// The carrier.
        carrier: Carrier,
        /// Its goodput in Gbit/s.
        gbit: f64,
    },
    /// A carrier cannot run.
    Failed {
        /// The carrier.
        carrier: Carrier,
        /// Why.
        why: &'a str,
    },
}

/// A course with its servers.
struct Ready<'a> {
    stage: Stage,
    course: &'a Course,
    matrix: &'a Matrix,
    load: &'a Load,
    folder: &'a Path,
    /// The server for SCION packets and QUIC, if one is needed.
    perf: Option<Server>,
    /// The seeders for IP peers and for SCION peers, if needed.
    seeders: [Vec<Server>; 2],
}

impl Matrix {
    /// Measures each carrier on each course, one run of each in turn. A carrier that fails leaves a
    /// row that says why.
    ///
    /// # Errors
    /// [`ExperimentError::Step`] if a network or a server does not come up, or a file cannot be
    /// written.
    pub async fn run(
        &self,
        observe: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Table, ExperimentError> {
        let folder = Scratch::in_memory(2 * self.bytes)?;
        let load = self.load(folder.path())?;
        let mut rows = Vec::new();
        for course in &self.courses {
            let ready = self.ready(course, &load, folder.path()).await?;
            observe(Progress::Course(course));
            rows.extend(ready.rows(observe).await);
            ready.stage.take_down()?;
        }
        Ok(Table {
            experiment: "throughput",
            repeat: self.repeat,
            seconds: self.time.as_secs_f64(),
            bytes: self.bytes,
            rows,
        })
    }

    fn load(&self, folder: &Path) -> Result<Load, ExperimentError> {
        let content = Content::generate(folder, self.bytes)?;
        Load::new(content, folder, &CreateOptions::default(), &mut |_, _| {})
    }

    fn needs(&self, needed: impl Fn(Carrier) -> bool) -> bool {
        self.carriers.iter().any(|carrier| needed(*carrier))
    }

    /// Brings the network of a course up, with the servers that its carriers need.
    async fn ready<'a>(
        &'a self,
        course: &'a Course,
        load: &'a Load,
        folder: &'a Path,
    ) -> Result<Ready<'a>, ExperimentError> {
        let (_, to) = course.ends()?;
        let (from, _) = course.ends()?;
        let network = course.network()?;
        let stage = Stage::set(&network, "throughput", &self.program, !course.offload)?;
        let mut perf = None;
        if self.needs(|carrier| matches!(carrier, Carrier::Scion | Carrier::Quic)) {
            perf = Some(stage.serve_perf(to, false).await?);
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
                let seeder = stage.seed(from, torrent, content, over_ip).await?;
                seeders[usize::from(!over_ip)].push(seeder);
            }
        }
        Ok(Ready {
            stage,
            course,
            matrix: self,
            load,
            folder,
            perf,
            seeders,
        })
    }
}

impl Ready<'_> {
    /// Runs all carriers that fit the course.
    async fn rows(&self, observe: &mut dyn FnMut(Progress<'_>)) -> Vec<Row> {
        let carriers = self.matrix.carriers.iter().copied();
        let carriers = carriers.filter(|carrier| carrier.fits(self.course));
        let mut results: Vec<(Carrier, Vec<Carried>, Option<String>)> = carriers
            .map(|carrier| (carrier, Vec::new(), None))
            .collect();
        for turn in 1..=self.matrix.repeat {
            for (carrier, runs, failure) in &mut results {
                let carrier = *carrier;
                if failure.is_some() {
                    continue;
                }
                match self.carry(carrier).await {
                    Ok(run) => {
                        let gbit = run.gbit();
                        observe(Progress::Run {
                            turn,
                            carrier,
                            gbit,
                        });
                        runs.push(run);
                    }
                    Err(error) => {
                        let why = error.to_string();
                        observe(Progress::Failed { carrier, why: &why });
                        *failure = Some(why);
                    }
                }
            }
        }
        let rows = results.into_iter();
        rows.map(|(carrier, runs, failure)| Row::new(*self.course, carrier, &runs, failure))
            .collect()
    }

    async fn carry(&self, carrier: Carrier) -> Result<Carried, ExperimentError> {
        let (from, to) = self.course.ends()?;
        let time = self.matrix.time;
        let payload = self.course.udp_payload();
        match carrier {
            Carrier::Udp => self.stage.plain((from, to), "udp", payload, time).await,
            Carrier::Tls => self.stage.plain((from, to), "tls", payload, time).await,
            Carrier::Tcp => self.stage.iperf3(from, to, time).await,
            Carrier::Scion => self.perf(&["--raw", "none"]).await,
            Carrier::Quic => self.perf(&[]).await,
            Carrier::TorrentIp => self.download(&self.seeders[0], Vec::new()).await,
            Carrier::Torrent(paths) => {
                let args = select("shortest", paths.into());
                self.download(&self.seeders[1], args).await
            }
        }
    }

    async fn perf(&self, args: &[&str]) -> Result<Carried, ExperimentError> {
        let server = self.perf.as_ref();
        let server = server.ok_or_else(|| ExperimentError::step("there is no server"))?;
        let (from, time) = (self.course.ends()?.0, self.matrix.time);
        self.stage.perf(from, server, time, args).await
    }

    async fn download(
        &self,
        seeders: &[Server],
        args: Vec<String>,
    ) -> Result<Carried, ExperimentError> {
        let to = self.course.ends()?.1;
        let download = (to, args, &*self.load.torrent, seeders);
        self.stage.downloads(&[download], self.folder).await
    }
}
