//! `hawser get` on a terminal.

use std::cell::Cell;

use crate::peer::{self, Allowance, Content};
use crate::pty::{Terminal, masked};

/// Whether a drawing is as every one must be: no row is repeated, wrapped or lost, and the line
/// printed before is followed only by the bar and the peers.
fn is_right(rows: &[String], columns: usize) -> bool {
    let Some(before) = rows.iter().position(|row| row == "before") else {
        return false;
    };
    let bar = rows.iter().position(|row| row.starts_with("data.b"));
    if bar != Some(before + 1) {
        return false;
    }
    let peers = &rows[before + 2..];
    let are_peers = peers.iter().enumerate().all(|(index, row)| {
        let more = row.trim_start().starts_with("and ") && row.ends_with(" more");
        let address = row.split_whitespace().next();
        let mut others = peers[index + 1..].iter();
        let is_repeated = others.any(|other| other.split_whitespace().next() == address);
        (row.starts_with("  127.0.0.1:") || more) && !is_repeated
    });
    let mut drawn = rows[before + 1..].iter();
    are_peers && drawn.all(|row| row.chars().count() < columns)
}

/// Asserts that a drawing [`is_right`].
fn check(rows: &[String], columns: usize) {
    assert!(is_right(rows, columns), "{columns} columns: {rows:#?}");
}

/// The number before `%` in the bar.
fn percent(rows: &[String]) -> Option<u32> {
    let bar = rows.iter().find(|row| row.starts_with("data.b"))?;
    let before = bar.split(" %").next()?;
    before.split_whitespace().next_back()?.parse().ok()
}

/// Runs a download from two peers, on a terminal that has these widths one after the other, and
/// returns the last screen.
fn download(widths: &[u16]) -> Vec<String> {
    let content = Content::new(200);
    let allowance = Allowance::default();
    let peers = [(); 2].map(|()| peer::start(&content, &allowance));
    let mut terminal = Terminal::start(peer::get(&content, &peers), widths[0], 24);
    let each = content.bytes.len() / (16 << 10) / (widths.len() + 1);
    for (turn, width) in widths.iter().enumerate() {
        terminal.resize(*width, 24);
        allowance.add(each);
        let wanted = (90 * (turn + 1) / (widths.len() + 1)) as u32;
        let mut right = 0;
        terminal.until("progress", |rows| {
            // Drawings that the program made before it saw the new width may be wrong, and on a
            // busy machine there are many of them. Those after them are all right.
            right = match is_right(rows, (*width).into()) {
                true => right + 1,
                false => 0,
            };
            right > 5 && percent(rows) >= Some(wanted)
        });
    }
    allowance.add(usize::MAX);
    let width = usize::from(*widths.last().unwrap());
    let status = terminal.end(|rows| check(rows, width));
    let rows = terminal.rows();
    assert!(status.success(), "{rows:#?}");
    assert!(content.is_there());
    rows
}

/// The recorded screen, without the bars.
const RECORDED: [&str; 4] = [
    "before",
    "data.bin: # MiB fetched in # s, # Mbit/s",
    "  #:# # MiB taken: plain IP, one way only",
    "  #:# # MiB taken: plain IP, one way only",
];

/// The last screen of a download. How much of it each peer has sent is up to chance, and so is its
/// unit.
fn recorded(widths: &[u16]) -> Vec<String> {
    let rows = masked(&download(widths)).into_iter();
    rows.map(|row| {
        row.replace("# KiB taken", "# MiB taken")
            .replace("# B taken", "# MiB taken")
    })
    .collect()
}

#[test]
fn the_last_screen_is_the_recorded_one() {
    for width in [80, 120] {
        assert_eq!(recorded(&[width]), RECORDED, "{width} columns");
    }
}

#[test]
fn resizing_leaves_nothing_behind() {
    assert_eq!(recorded(&[120, 50, 80]), RECORDED);
    assert_eq!(recorded(&[80, 120, 30, 100]), RECORDED);
}

#[test]
fn peers_beyond_the_last_row_are_counted() {
    let content = Content::new(64);
    let allowance = Allowance::default();
    let peers = [(); 6].map(|()| peer::start(&content, &allowance));
    let mut terminal = Terminal::start(peer::get(&content, &peers), 80, 24);
    let lines = |rows: &[String]| rows.iter().filter(|row| row.starts_with("  127.")).count();
    allowance.add(8);
    terminal.until("all peers", |rows| {
        check(rows, 80);
        lines(rows) == 6
    });
    terminal.resize(80, 5);
    terminal.until("a count", |rows| {
        lines(rows) == 2 && rows.last().is_some_and(|row| row == "  and 4 more")
    });
    terminal.resize(80, 24);
    terminal.until("all peers again", |rows| lines(rows) == 6);
    allowance.add(usize::MAX);
    assert!(terminal.end(|_| {}).success());
    let rows = terminal.rows();
    assert_eq!(lines(&rows), rows.len() - 2, "{rows:#?}");
    assert!(rows[1].starts_with("data.bin: "), "{rows:#?}");
}

#[test]
fn log_lines_are_above_the_bars() {
    let content = Content::new(64);
    // The other peer sends nothing until the wrong data is found: it could send all of it before.
    let [allowance, wrong] = [(); 2].map(|()| Allowance::default());
    let peers = [
        peer::start(&content, &allowance),
        peer::start_wrong(&content, &wrong, &Allowance::default()),
    ];
    wrong.add(usize::MAX);
    let mut command = peer::get(&content, &peers);
    command.env("RUST_LOG", "hawser_torrent=warn");
    let mut terminal = Terminal::start(command, 120, 50);
    let logged = |rows: &[String]| rows.iter().filter(|row| row.contains(" WARN ")).count();
    let most = Cell::new(0);
    let ordered = |rows: &[String]| {
        let bar = rows.iter().position(|row| row.starts_with("data.b"));
        let last = rows.iter().rposition(|row| row.contains(" WARN "));
        if let (Some(bar), Some(last)) = (bar, last) {
            assert!(last < bar, "{rows:#?}");
        }
        assert!(logged(rows) >= most.get(), "a line was lost: {rows:#?}");
        most.set(logged(rows));
    };
    terminal.until("a log line", |rows| {
        ordered(rows);
        logged(rows) > 0
    });
    allowance.add(usize::MAX);
    assert!(terminal.end(ordered).success());
    let rows = terminal.rows();
    assert!(
        content.is_there() && logged(&rows) >= most.get(),
        "{rows:#?}"
    );
    assert!(
        rows.iter().any(|row| row.starts_with("data.bin: ")),
        "{rows:#?}"
    );
}
