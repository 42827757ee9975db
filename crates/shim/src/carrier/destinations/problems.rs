//! What is wrong with the map, reported when that changes.

use std::collections::BTreeSet;
use std::path::Path;

use crate::map::{Fault, Problem};

/// Something about the map that was not so before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::carrier) enum News {
    /// It cannot be used, or an entry of it.
    Error(String),
    /// A name has no addresses now.
    Warning(String),
    /// It has some again.
    Recovery(String),
}

/// What was reported. A problem is another one if its destination or its fault is, wherever it stands
/// in the file.
#[derive(Debug, Clone, Default)]
pub(super) struct Problems {
    /// Why the file could not be read the last time.
    unreadable: Option<String>,
    /// Faults of entries.
    entries: Vec<Problem>,
    /// Names without addresses.
    names: BTreeSet<String>,
}

impl Problems {
    /// The file cannot be read, for this reason. What was wrong with its entries still is.
    pub(super) fn on_unreadable(&mut self, reason: String) -> Option<News> {
        let is_new = self.unreadable.as_ref() != Some(&reason);
        self.unreadable = Some(reason.clone());
        is_new.then_some(News::Error(reason))
    }

    /// The file at `path` was read, and its names resolved; these problems are all that there are.
    pub(super) fn on_read(&mut self, problems: Vec<Problem>, path: &Path) -> Vec<News> {
        self.unreadable = None;
        let describe = |problem: &Problem| match problem.line {
            0 => format!("`{}` {}", problem.destination, problem.fault),
            _ => format!("{}: {problem}", path.display()),
        };
        let is_name =
            |problem: &Problem| matches!(problem.fault, Fault::NoAddress(_) | Fault::Former(_));
        let (names, entries): (Vec<_>, Vec<_>) = problems.into_iter().partition(is_name);
        let mut news = Vec::new();
        for problem in &entries {
            let mut known = self.entries.iter();
            let same = |one: &Problem| {
                (&one.destination, &one.fault) == (&problem.destination, &problem.fault)
            };
            if !known.any(same) {
                news.push(News::Error(describe(problem)));
            }
        }
        self.entries = entries;
        let unresolved = names.iter().map(|problem| problem.destination.clone());
        let unresolved: BTreeSet<String> = unresolved.collect();
        for problem in &names {
            if !self.names.contains(&problem.destination) {
                news.push(News::Warning(describe(problem)));
            }
        }
        let recovered = self.names.difference(&unresolved);
        news.extend(recovered.map(|name| {
            News::Recovery(format!(
                "`{name}` has addresses again, or is no longer mapped"
            ))
        }));
        self.names = unresolved;
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(line: usize, fault: Fault) -> Problem {
        let entry = crate::map::Entry {
            line,
            ..crate::map::Entry::new("db.example".parse().unwrap(), "1-ff00:0:4".parse().unwrap())
        };
        Problem::new(&entry, fault)
    }

    #[test]
    fn a_name_without_addresses_is_reported_once_until_it_has_some() {
        let mut problems = Problems::default();
        let mut read = |all: Vec<Problem>| problems.on_read(all, Path::new("map.toml"));
        let none = |why: &str| Fault::NoAddress(why.to_owned());
        let first = read(vec![problem(2, none("no answer"))]);
        assert!(matches!(&first[..], [News::Warning(text)] if text.contains("db.example")));
        // Whatever else of the map changes, and however the resolver fails.
        assert_eq!(read(vec![problem(3, none("no answer"))]), []);
        assert_eq!(read(vec![problem(3, none("try again"))]), []);
        assert_eq!(
            read(vec![problem(3, Fault::Former("try again".into()))]),
            []
        );
        let recovered = read(Vec::new());
        assert!(matches!(&recovered[..], [News::Recovery(text)] if text.contains("db.example")));
        assert_eq!(read(Vec::new()), []);
        assert_eq!(read(vec![problem(3, none("no answer"))]).len(), 1);
    }

    #[test]
    fn an_unreadable_file_does_not_make_old_problems_new() {
        let mut problems = Problems::default();
        let path = Path::new("map.toml");
        let faulty = || {
            let target = "1-ff00:0:4,10.0.0.1".parse().unwrap();
            vec![problem(2, Fault::ThisHost(target))]
        };
        assert!(matches!(
            problems.on_read(faulty(), path)[..],
            [News::Error(_)]
        ));
        assert!(problems.on_unreadable("line 7".to_owned()).is_some());
        assert!(problems.on_unreadable("line 7".to_owned()).is_none());
        assert_eq!(problems.on_read(faulty(), path), []);
        assert!(problems.on_unreadable("line 7".to_owned()).is_some());
    }
}
