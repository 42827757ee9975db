//! `hawser shim map list`.

use console::measure_text_width;
use hawser_shim::map::{Addresses, Entry, Local, Map};
use serde::Serialize;

use super::MapFileArgs;
use crate::cmd::print;
use crate::failure::Failure;
use crate::out::{outln, plain};

/// An entry, for programs.
#[derive(Serialize)]
struct Report<'a> {
    destination: String,
    target: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    paths: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<&'a str>,
    /// The destination of the entry that would count without this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    instead_of: Option<String>,
    line: usize,
}

/// Prints the entries in the order of the file.
pub fn run(file: &MapFileArgs, json: bool) -> Result<(), Failure> {
    let file = file.read()?;
    // Names are not resolved, and what this host is does not count: the list shows the file.
    let (map, _) = Map::new(file.entries(), &Addresses::default(), &Local::default());
    let reports: Vec<Report<'_>> = map.entries().iter().map(|e| report(e, &map)).collect();
    if json {
        return print::pretty_json(&reports);
    }
    if reports.is_empty() {
        outln!("{} has no entries", file.path().display());
        return Ok(());
    }
    for line in table(&reports) {
        outln!("{line}");
    }
    Ok(())
}

fn report<'a>(entry: &'a Entry, map: &Map) -> Report<'a> {
    let next = map.next(entry);
    Report {
        destination: entry.destination.to_string(),
        target: entry.target.to_string(),
        paths: entry.paths.map(Into::into),
        policy: entry.policy.as_deref(),
        comment: entry.comment.as_deref(),
        instead_of: next.map(|next| next.destination.to_string()),
        line: entry.line,
    }
}

/// The lines of the table: columns as wide as their texts, those without any left out.
fn table(reports: &[Report<'_>]) -> Vec<String> {
    let head = [
        "DESTINATION",
        "TARGET",
        "PATHS",
        "POLICY",
        "COMMENT",
        "INSTEAD OF",
    ];
    let rows = reports.iter().map(|report| {
        let text = |text: Option<&str>| plain(text.unwrap_or_default());
        [
            report.destination.clone(),
            report.target.clone(),
            report
                .paths
                .map_or_else(String::new, |paths| paths.to_string()),
            text(report.policy),
            text(report.comment),
            text(report.instead_of.as_deref()),
        ]
    });
    let rows: Vec<[String; 6]> = rows.collect();
    let widths = head.iter().enumerate().map(|(column, head)| {
        let texts = rows.iter().map(|row| measure_text_width(&row[column]));
        match texts.max() {
            None | Some(0) => 0,
            Some(width) => width.max(head.len()),
        }
    });
    let widths: Vec<usize> = widths.collect();
    let line = |cells: &[String; 6]| {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(&widths).filter(|(_, width)| **width > 0) {
            let gap = width - measure_text_width(cell).min(*width) + 2;
            line += cell;
            line += &" ".repeat(gap);
        }
        line.trim_end().to_owned()
    };
    let head = line(&head.map(str::to_owned));
    std::iter::once(head).chain(rows.iter().map(line)).collect()
}
