//! Which files of a torrent are downloaded, and in which order.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use hawser_bulk::content::{Pattern, PatternError};
use hawser_torrent::metainfo::File;
use hawser_torrent::{Metainfo, PieceOrder, Priority, Selection};

use crate::cmd::headings;
use crate::failure::Failure;
use crate::out::plain;

/// Where the numbers and names of files are shown.
const SHOWN: &str = "`hawser torrent show` lists the files of a .torrent file";

/// Which files of a torrent are downloaded, and in which order.
#[derive(clap::Args)]
pub struct SelectionArgs {
    /// Only these files, by number or pattern: 1,3-5 or '*.iso,docs/'
    ///
    /// The numbers are those of `hawser torrent show`, the patterns are as those of --exclude, with ?
    /// in place of a comma. May be given several times.
    #[arg(long, value_name = "FILES", value_delimiter = ',')]
    pub files: Vec<Files>,
    /// Leave out files like this: *.nfo, extras/, /docs/b.txt; may be given several times
    #[arg(long, value_name = "PATTERN", help_heading = headings::FILES, hide_short_help = true)]
    pub exclude: Vec<Pattern>,
    /// Fetch the content from its beginning to its end, not the rarest pieces first
    #[arg(long, help_heading = headings::FILES, hide_short_help = true)]
    pub sequential: bool,
}

/// Some of the files of a torrent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Files {
    /// Those with numbers from the first to the last, counted from 1.
    Numbers(usize, usize),
    /// Those with names like this, and what is in such folders.
    Like(Pattern),
}

impl FromStr for Files {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !is_number(first) || !is_number(last) {
            let pattern = text.parse().map(Self::Like);
            return pattern.map_err(|error: PatternError| error.to_string());
        }
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) if 0 < first && first <= last => Ok(Self::Numbers(first, last)),
            _ => Err(format!(
                "{text:?} is no number of a file: they count from 1, and a range is written 3-5"
            )),
        }
    }
}

impl SelectionArgs {
    /// Whether some files are left out.
    pub fn is_partial(&self) -> bool {
        !self.files.is_empty() || !self.exclude.is_empty()
    }

    /// The selection of files of a torrent.
    ///
    /// # Errors
    /// If a number or pattern stands for no file, or no file is left.
    pub fn selection(&self, metainfo: &Metainfo) -> Result<Selection, Failure> {
        let order = match self.sequential {
            true => PieceOrder::Sequential,
            false => PieceOrder::RarestFirst,
        };
        if !self.is_partial() {
            return Ok(Selection::all().with_order(order));
        }
        // In the order of their numbers: padding has none.
        let files = metainfo.files.iter().enumerate();
        let files: Vec<(usize, &File)> = files.filter(|(_, file)| !file.padding).collect();
        let paths = files.iter().map(|(_, file)| inner(metainfo, file));
        let listed = Listed {
            name: &metainfo.name,
            paths: paths.collect(),
            shown: SHOWN,
        };
        let mut chosen = vec![self.files.is_empty(); files.len()];
        for some in &self.files {
            listed.set(&mut chosen, "--files", some, true)?;
        }
        for pattern in &self.exclude {
            let some = Files::Like(pattern.clone());
            listed.set(&mut chosen, "--exclude", &some, false)?;
        }
        if !chosen.contains(&true) {
            let name = plain(&metainfo.name);
            return Err(Failure::usage(format!(
                "no file of {name} is left to download: leave out an --exclude, or name more \
                 --files: {SHOWN}"
            )));
        }
        let chosen = files.iter().zip(chosen).filter(|(_, chosen)| *chosen);
        let selection = chosen.fold(Selection::none(), |selection, ((index, _), _)| {
            selection.with_file(*index, Priority::Normal)
        });
        Ok(selection.with_order(order))
    }
}

/// The files of a torrent, which have numbers from 1 on.
pub struct Listed<'a> {
    /// The name of the torrent.
    pub name: &'a str,
    /// Their paths in the torrent, in the order of their numbers.
    pub paths: Vec<PathBuf>,
    /// Where the numbers and names are shown.
    pub shown: &'static str,
}

impl Listed<'_> {
    /// Sets whether some of the files, which are the argument of `flag`, are chosen.
    ///
    /// # Errors
    /// If that stands for no file.
    pub fn set(
        &self,
        chosen: &mut [bool],
        flag: &str,
        some: &Files,
        to: bool,
    ) -> Result<(), Failure> {
        let (name, shown) = (plain(self.name), self.shown);
        match some {
            Files::Numbers(first, last) => {
                let numbered = chosen.get_mut(first - 1..*last).ok_or_else(|| {
                    let (count, number) = (self.paths.len(), first.max(last));
                    Failure::usage(format!(
                        "{flag} {number}: {name} has {}: {shown}",
                        match count {
                            1 => "one file, number 1".to_owned(),
                            _ => format!("{count} files, numbers 1 to {count}"),
                        }
                    ))
                })?;
                numbered.fill(to);
            }
            Files::Like(pattern) => {
                let mut is_any = false;
                for (chosen, path) in chosen.iter_mut().zip(&self.paths) {
                    if matches(pattern, path) {
                        (*chosen, is_any) = (to, true);
                    }
                }
                if !is_any {
                    let pattern = plain(pattern.text());
                    return Err(Failure::usage(format!(
                        "{flag} {pattern}: no file of {name} is like this: {shown}"
                    )));
                }
            }
        }
        Ok(())
    }
}

/// The path of a file in its torrent, without the torrent's name if that is a folder.
fn inner(metainfo: &Metainfo, file: &File) -> PathBuf {
    let components = file.path.components();
    components.skip(usize::from(metainfo.multi_file)).collect()
}

/// Whether a pattern stands for a file, or for a folder that it is in.
fn matches(pattern: &Pattern, path: &Path) -> bool {
    let mut folders = path.ancestors().skip(1);
    pattern.matches(path, false)
        || folders.any(|folder| folder.file_name().is_some() && pattern.matches(folder, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that are selected of `a.iso`, padding, `docs/b.txt`, `docs/more/c.iso`.
    fn selected(files: &[&str], exclude: &[&str]) -> Result<Vec<usize>, String> {
        let entry = |attr: &str, path: &str| format!("d{attr}6:lengthi4e4:pathl{path}ee");
        let files_of = [
            entry("", "5:a.iso"),
            entry("4:attr1:p", "4:.pad"),
            entry("", "4:docs5:b.txt"),
            entry("", "4:docs4:more5:c.iso"),
        ];
        let text = format!(
            "d4:infod5:filesl{}e4:name3:set12:piece lengthi16384e6:pieces20:{}ee",
            files_of.concat(),
            "a".repeat(20)
        );
        let metainfo = Metainfo::parse(text.as_bytes()).unwrap();
        let args = SelectionArgs {
            files: files.iter().map(|text| text.parse().unwrap()).collect(),
            exclude: exclude.iter().map(|text| text.parse().unwrap()).collect(),
            sequential: true,
        };
        let selection = args
            .selection(&metainfo)
            .map_err(|error| error.to_string())?;
        assert_eq!(selection.order(), PieceOrder::Sequential);
        let numbered = [(0, 1), (2, 2), (3, 3)].into_iter();
        let chosen = numbered.filter(|(index, _)| selection.has(*index));
        Ok(chosen.map(|(_, number)| number).collect())
    }

    #[test]
    fn files_are_selected_by_number_and_pattern() {
        for (files, exclude, expected) in [
            (&[][..], &[][..], &[1, 2, 3][..]),
            (&["1"], &[], &[1]),
            (&["2-3"], &[], &[2, 3]),
            (&["1", "3"], &[], &[1, 3]),
            (&["*.iso"], &[], &[1, 3]),
            (&["/*.iso"], &[], &[1]),
            (&["docs/"], &[], &[2, 3]),
            (&["docs"], &["more/"], &[2]),
            (&["docs/b.txt"], &[], &[2]),
            (&[], &["*.iso"], &[2]),
            (&["1-3"], &["a.*", "c.*"], &[2]),
        ] {
            let found = selected(files, exclude);
            assert_eq!(found.as_deref(), Ok(expected), "{files:?} {exclude:?}");
        }
    }

    #[test]
    fn what_stands_for_no_file_is_refused() {
        for (files, exclude, words) in [
            (&["4"][..], &[][..], &["--files 4", "1 to 3"][..]),
            (&["2-9"], &[], &["--files 9", "1 to 3"]),
            (&["*.txt", "*.pdf"], &[], &["--files *.pdf", "torrent show"]),
            // Padding has no name.
            (&[".pad"], &[], &["--files .pad"]),
            (&[], &["*.pdf"], &["--exclude *.pdf", "torrent show"]),
            (&["1"], &["*.iso"], &["no file", "--exclude"]),
        ] {
            let error = selected(files, exclude).unwrap_err();
            for word in words {
                assert!(error.contains(word), "{word} is not in: {error}");
            }
        }
        for wrong in ["0", "0-2", "3-2", "99999999999999999999", "", "[a"] {
            assert!(wrong.parse::<Files>().is_err(), "{wrong:?} was accepted");
        }
        assert!(matches!("1-x".parse(), Ok(Files::Like(_))));
    }
}
