//! Tables: sections of rows, each an object and a line of text.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use super::columns::{Columns, Format};
use super::{Experiment, Results, Row};

/// What an experiment has measured: the object that `--json` prints, and the text without.
#[derive(Debug, Default)]
pub struct Table {
    /// The experiment's name.
    pub experiment: &'static str,
    /// What holds for all runs, by its name in JSON.
    pub facts: Vec<(&'static str, Value)>,
    /// Lines of text before the sections.
    pub about: Vec<String>,
    /// The rows.
    pub sections: Vec<Section>,
    /// Lines of text after the sections.
    pub notes: Vec<String>,
}

/// Rows of one kind.
#[derive(Debug)]
pub struct Section {
    key: &'static str,
    /// The key of the first row, if it is not one of the others in JSON.
    first: Option<&'static str>,
    title: Option<String>,
    titles: Vec<(&'static str, Format)>,
    lines: Vec<Line>,
    objects: Vec<Object>,
}

#[derive(Debug)]
enum Line {
    Heading(String),
    Cells {
        cells: Vec<String>,
        failure: Option<String>,
        /// Whether nothing was measured.
        empty: bool,
    },
}

#[derive(Debug)]
struct Object(Vec<(&'static str, Value)>);

impl Section {
    /// A section of any rows.
    pub fn new<T>(
        key: &'static str,
        title: &str,
        rows: impl IntoIterator<Item = T>,
        columns: &Columns<T>,
    ) -> Self {
        let mut section = Self::empty(key, columns);
        section.title = Some(title.to_owned());
        for row in rows {
            section.push(&row, columns, None);
        }
        section
    }

    /// A row for each case at each place; `failure` says why there are fewer runs than requested.
    pub fn of<'a, E: Experiment>(
        key: &'static str,
        experiment: &E,
        results: &'a Results<E>,
        columns: &Columns<Row<'a, E>>,
    ) -> Self {
        let mut section = Self::empty(key, columns);
        for (place, rows) in results.rows() {
            let heading = experiment.heading(place).map(Line::Heading);
            section.lines.extend(heading);
            for row in rows {
                let failure = (row.series.missing(), row.series.failure.as_deref());
                section.push(&row, columns, Some(failure));
            }
        }
        section
    }

    /// Gives it a line of text above its rows.
    #[must_use]
    pub fn titled(self, title: impl Into<String>) -> Self {
        let title = Some(title.into());
        Self { title, ..self }
    }

    /// Gives the first row a key of its own in JSON.
    #[must_use]
    pub fn with_first(self, key: &'static str) -> Self {
        let first = Some(key);
        Self { first, ..self }
    }

    fn empty<T>(key: &'static str, columns: &Columns<T>) -> Self {
        Self {
            key,
            first: None,
            title: None,
            titles: columns.0.iter().filter_map(|column| column.print).collect(),
            lines: Vec::new(),
            objects: Vec::new(),
        }
    }

    /// Adds a row with why nothing was measured, and why less than requested.
    fn push<T>(
        &mut self,
        row: &T,
        columns: &Columns<T>,
        failure: Option<(Option<&str>, Option<&str>)>,
    ) {
        let (mut object, mut cells) = (Vec::new(), Vec::new());
        for column in &columns.0 {
            let value = (column.value)(row);
            cells.extend(column.print.map(|(_, format)| format.of(&value)));
            object.extend(column.key.map(|key| (key, value)));
        }
        let (missing, why) = failure.unwrap_or_default();
        if failure.is_some() {
            object.push(("failure", why.into()));
        }
        self.objects.push(Object(object));
        self.lines.push(Line::Cells {
            cells,
            failure: missing.or(why).map(str::to_owned),
            empty: missing.is_some(),
        });
    }

    /// The widths of the printed columns.
    fn widths(&self) -> Vec<usize> {
        let titles = self.titles.iter().enumerate();
        let widths = titles.map(|(index, (title, format))| {
            let cells = self.lines.iter().filter_map(|line| match line {
                // What was not measured has nothing in this column.
                Line::Cells { empty: true, .. } if *format != Format::Name => None,
                Line::Cells { cells, .. } => Some(cells[index].chars().count()),
                Line::Heading(_) => None,
            });
            cells.fold(title.chars().count(), usize::max)
        });
        widths.collect()
    }
}

impl fmt::Display for Section {
    /// Prints nothing without rows.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lines.is_empty() {
            return Ok(());
        }
        let widths = self.widths();
        let line = |cells: &[&str], only_names: bool, more: &str| {
            let padded = cells.iter().zip(&self.titles).zip(&widths);
            let padded =
                padded.filter(|((_, (_, format)), _)| !only_names || *format == Format::Name);
            let padded = padded.map(|((cell, (_, format)), width)| format.pad(cell, *width));
            let text = padded.collect::<Vec<_>>().join("  ") + "  " + more;
            text.trim_end().to_owned()
        };
        if let Some(title) = &self.title {
            writeln!(f, "{title}")?;
        }
        let titles: Vec<&str> = self.titles.iter().map(|(title, _)| *title).collect();
        let headed = matches!(self.lines.first(), Some(Line::Heading(_)));
        if !headed {
            writeln!(f, "{}", line(&titles, false, ""))?;
        }
        for one in &self.lines {
            match one {
                Line::Heading(heading) => {
                    writeln!(f, "{heading}")?;
                    writeln!(f, "  {}", line(&titles, false, ""))?;
                }
                Line::Cells {
                    cells,
                    failure,
                    empty,
                } => {
                    let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
                    let failure = failure.as_deref().unwrap_or_default();
                    let more = match empty {
                        true => format!("left out: {failure}"),
                        false => failure.to_owned(),
                    };
                    let indent = if headed { "  " } else { "" };
                    writeln!(f, "{indent}{}", line(&cells, *empty, &more))?;
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.about
            .iter()
            .try_for_each(|line| writeln!(f, "{line}"))?;
        self.sections.iter().try_for_each(|one| one.fmt(f))?;
        self.notes.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("experiment", self.experiment)?;
        for (key, value) in &self.facts {
            map.serialize_entry(key, value)?;
        }
        for section in &self.sections {
            let mut rows = &section.objects[..];
            if let Some((key, (first, others))) = section.first.zip(rows.split_first()) {
                map.serialize_entry(key, first)?;
                rows = others;
            }
            map.serialize_entry(section.key, rows)?;
        }
        map.end()
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let entries = self.0.iter().map(|(key, value)| (key, value));
        to.collect_map(entries)
    }
}
