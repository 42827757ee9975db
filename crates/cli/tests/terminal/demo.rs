//! `hawser demo` on a terminal.

use std::process::Command;

use crate::peer;
use crate::pty::{Terminal, masked};

/// The recorded screen.
const RECORDED: [&str; 17] = [
    "fig#a: # MiB from #-ff#:#:# to #-ff#:#:#",
    "network up",
    "seeding at #-ff#:#:#,#:#",
    "download: shortest",
    "  # Mbit/s",
    "download: disjoint",
    "  # Mbit/s",
    "",
    "paths time goodput ceiling reached paper",
    "shortest # s # Mbit/s # Mbit/s # % # Mbit/s",
    "  PATH # hops # MiB",
    "  PATH # hops # MiB",
    "disjoint # s # Mbit/s # Mbit/s # % # Mbit/s",
    "  PATH # hops # MiB",
    "  PATH # hops # MiB",
    "disjoint / shortest: # (paper: #)",
    "",
];

#[test]
fn the_screen_is_the_recorded_one() {
    for columns in [80, 120] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hawser"));
        command.args(["demo", "--size", "4MiB"]);
        peer::plain(&mut command);
        let mut terminal = Terminal::start(command, columns, 40);
        let mut bars = 0;
        let status = terminal.end(|rows| {
            let all = format!("{rows:#?}");
            let bar = rows.iter().filter(|row| row.contains(".bin  "));
            assert!(bar.count() <= 1, "{all}");
            assert!(
                rows.iter().all(|row| !row.contains("path-level peer")),
                "{all}"
            );
            let wide = rows.iter().find(|row| row.chars().count() > columns.into());
            assert_eq!(wide, None, "{all}");
            bars += 1;
        });
        let rows = terminal.rows();
        if rows
            .iter()
            .any(|row| row.contains("user namespaces are not allowed here"))
        {
            eprintln!("skipped: {rows:?}");
            return;
        }
        assert!(status.success() && bars > 0, "{rows:#?}");
        // Fingerprints contain letters, too.
        let named = |row: &String| match row.strip_prefix("  ").and_then(|row| row.split_once("  "))
        {
            Some((path, rest)) if path.len() == 8 => format!("  PATH {rest}"),
            _ => row.clone(),
        };
        let rows: Vec<String> = rows.iter().map(named).collect();
        let masked = masked(&rows);
        let (table, end) = masked.split_at(16);
        assert_eq!(table, &RECORDED[..16], "{columns} columns");
        assert!(end[0].starts_with("paper: Gartner et al., Multipath BitTorrent"));
        assert_eq!(end.last().unwrap(), "file: identical (SHA-#)");
        for row in &rows {
            assert!(row.chars().count() <= columns.into(), "{row}");
        }
    }
}
