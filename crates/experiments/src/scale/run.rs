//! Runs the cases.

use std::path::PathBuf;

use hawser_torrent::CreateOptions;

use super::case::{Axis, Case};
use super::table::{Row, Table};
use crate::content::Content;
use crate::error::{During, ExperimentError};
use crate::experiment::{Download, select};
use crate::run::Load;
use crate::scratch::Scratch;
use crate::stage::{Carried, Stage};
use crate::throughput::Course;

/// Two hosts behind a border router each, with Ethernet's MTU and offloads.
const COURSE: Course = Course::new(2, 1500, true);

/// What is measured.
#[derive(Debug, Clone)]
pub struct Scale {
    /// The path of the `hawser` program.
    pub program: PathBuf,
    /// The respects in which downloads differ from the base case.
    pub axes: Vec<Axis>,
    /// The case from which all others differ in one respect.
    pub base: Case,
    /// Whether the whole range of each is measured.
    pub all: bool,
    /// Number of runs of each case.
    pub repeat: u16,
}

/// Progress of a measurement.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// A case has run.
    Run {
        /// The number of the repetition, from 1.
        turn: u16,
        /// The axis and the value on it; `None` for the base case.
        case: Option<(Axis, u64)>,
        /// Its goodput in Gbit/s.
        gbit: f64,
    },
    /// A case cannot run.
    Failed {
        /// The axis and the value on it; `None` for the base case.
        case: Option<(Axis, u64)>,
        /// Why.
        why: &'a str,
    },
}

/// A case and its runs.
struct Measured {
    at: Option<(Axis, u64)>,
    case: Case,
    runs: Vec<Carried>,
    failure: Option<String>,
}

impl Scale {
    /// Measures the base case and the others, one run of each in turn. A case that fails leaves a
    /// row that says why.
    pub async fn run(&self, observe: &mut dyn FnMut(Progress<'_>)) -> Table {
        let base = Measured {
            at: None,
            case: self.base,
            runs: Vec::new(),
            failure: None,
        };
        let mut all = vec![base];
        for &axis in &self.axes {
            let values = axis.values(self.all).iter();
            let cases = values.map(|&value| Measured {
                at: Some((axis, value)),
                case: axis.case(self.base, value),
                runs: Vec::new(),
                failure: None,
            });
            all.extend(cases.filter(|measured| measured.case != self.base));
        }
        for turn in 1..=self.repeat {
            for measured in all.iter_mut().filter(|one| one.failure.is_none()) {
                let case = measured.at;
                match self.measure(&measured.case).await {
                    Ok(run) => {
                        let gbit = run.gbit();
                        observe(Progress::Run { turn, case, gbit });
                        measured.runs.push(run);
                    }
                    Err(error) => {
                        let why = error.to_string();
                        observe(Progress::Failed { case, why: &why });
                        measured.failure = Some(why);
                    }
                }
            }
        }
        let mut rows = all.into_iter().map(|one| {
            let axis = one.at.map(|(axis, _)| axis);
            Row::new(axis, one.case, &one.runs, one.failure)
        });
        let base = rows.next();
        let base = base.unwrap_or_else(|| Row::new(None, self.base, &[], None));
        Table::new(self.repeat, base, rows.collect())
    }

    /// Runs the downloads of a case once, on a network of their own.
    async fn measure(&self, case: &Case) -> Result<Carried, ExperimentError> {
        let (from, to) = COURSE.ends()?;
        // Each file exists twice: seeded, and downloaded.
        let folder = Scratch::in_memory(2 * case.bytes)?;
        let mut stage = Stage::set(&COURSE.network()?, "scale", &self.program, !COURSE.offload)?;
        let options = CreateOptions {
            piece_length: Some(u32::try_from(case.piece).during("the piece length")?),
            ..CreateOptions::default()
        };
        let (mut loads, mut downloads) = (Vec::new(), Vec::new());
        for number in 0..case.torrents {
            // Different torrents have different sizes, hence names.
            let bytes = case.bytes / case.torrents + number;
            let content = Content::generate(folder.path(), bytes)?;
            loads.push(Load::new(content, folder.path(), &options, |_, _| {})?);
        }
        for load in &loads {
            let first = stage.seeders();
            let mut args = select("shortest", case.paths as u16);
            for peer in 0..case.peers {
                let seed = stage.seed(from, &load.torrent, &load.content.path, false);
                let address = seed.await?;
                // The download itself names its first seeder.
                if peer > 0 {
                    args.extend(["--peer".to_owned(), address]);
                }
            }
            let download = Download {
                isd_as: to,
                seeder: first,
                args,
            };
            downloads.push((download, &*load.torrent));
        }
        let carried = stage.downloads(&downloads, folder.path()).await?;
        stage.take_down()?;
        Ok(carried)
    }
}
