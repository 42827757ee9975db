//! The logs of a lab's supervisor and services.

mod bounded;
mod tail;

use std::path::PathBuf;

use hawser_topology::{FileError, IsdAsn};

pub(crate) use self::bounded::LOG_FILE;
pub use self::bounded::{BoundedLog, LOG_LIMIT};
use self::tail::Tail;
use crate::Lab;
use crate::error::LabError;

/// One log of a lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSource {
    /// The AS; `None` for the supervisor's log.
    pub isd_as: Option<IsdAsn>,
    /// The service that writes the log: `router`, or the router's name if the AS has several,
    /// `control`, or `supervisor`.
    pub service: String,
    /// The file. Earlier lines are in the file of the same name with `.1` appended.
    pub path: PathBuf,
}

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Index of the source in [`Logs::sources`].
    pub source: usize,
    /// Its time in UTC, as in RFC 3339. A line without a time has that of the previous line; empty
    /// if no previous line has one.
    pub time: String,
    /// The line without its line end.
    pub text: String,
}

/// A reader of some logs of a lab, which follows them as they grow.
#[derive(Debug)]
pub struct Logs {
    sources: Vec<LogSource>,
    tails: Vec<Tail>,
}

impl Lab {
    /// The logs of an AS's services, or of the supervisor and all ASes. Services that the user runs
    /// have no log in the lab.
    ///
    /// # Errors
    /// When there is no such AS, or the state of the lab cannot be read.
    pub fn logs(&self, isd_as: Option<IsdAsn>) -> Result<Logs, LabError> {
        let state = self.dir.read_state()?;
        let mut sources = Vec::new();
        let ases = match isd_as {
            Some(isd_as) => {
                let at = state.require(isd_as)?;
                &state.ases[at..=at]
            }
            None => {
                sources.push(LogSource {
                    isd_as: None,
                    service: "supervisor".to_owned(),
                    path: self.dir.log(),
                });
                &state.ases[..]
            }
        };
        for as_ in ases {
            let dir = self.dir.as_dir(as_.isd_as);
            sources.extend(as_.services().into_iter().map(|service| LogSource {
                isd_as: Some(as_.isd_as),
                service: as_.short_name(service).to_owned(),
                path: as_.log(&dir, service),
            }));
        }
        Ok(Logs::new(sources))
    }
}

impl Logs {
    fn new(sources: Vec<LogSource>) -> Self {
        let tails = sources.iter().map(|s| Tail::new(&s.path)).collect();
        Self { sources, tails }
    }

    /// The logs, in the order of the network.
    pub fn sources(&self) -> &[LogSource] {
        &self.sources
    }

    /// The lines that were written since the last call, or all existing lines on the first call,
    /// sorted by time. Returns at most the last `most` lines of each log.
    ///
    /// # Errors
    /// When a log exists and cannot be read.
    pub fn read(&mut self, most: Option<usize>) -> Result<Vec<LogLine>, FileError> {
        let mut all = Vec::new();
        for (source, tail) in self.tails.iter_mut().enumerate() {
            let path = &self.sources[source].path;
            let lines = tail.read().map_err(FileError::at(path))?;
            let skip = most.map_or(0, |most| lines.len().saturating_sub(most));
            all.extend(lines.into_iter().skip(skip).map(|(time, text)| LogLine {
                source,
                time,
                text,
            }));
        }
        // The sort is stable, so lines of one log keep their order.
        all.sort_by(|a, b| a.time.cmp(&b.time));
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_sorted_by_time() {
        let folder = tempfile::tempdir().unwrap();
        let source = |service: &str, text: &str| {
            let path = folder.path().join(service);
            std::fs::write(&path, text).unwrap();
            LogSource {
                isd_as: None,
                service: service.to_owned(),
                path,
            }
        };
        let at = |second: u32| format!("2026-01-01T00:00:{second:02}.000000Z  INFO x:");
        let (one, two) = (
            format!("{} a\n{} b\nwent on\n", at(1), at(4)),
            format!("{} c\n{} d\n{} e\n", at(2), at(4), at(9)),
        );
        let sources = vec![source("one", &one), source("two", &two)];
        let ends = |lines: Vec<LogLine>| -> Vec<String> {
            let end = |line: LogLine| line.text.rsplit(' ').next().unwrap().to_owned();
            lines.into_iter().map(end).collect()
        };
        let mut logs = Logs::new(sources.clone());
        assert_eq!(
            ends(logs.read(None).unwrap()),
            ["a", "c", "b", "on", "d", "e"]
        );
        assert!(logs.read(None).unwrap().is_empty());
        let last = Logs::new(sources).read(Some(1)).unwrap();
        assert_eq!((last[0].source, last[0].text.as_str()), (0, "went on"));
        assert_eq!(ends(last), ["on", "e"]);
    }
}
