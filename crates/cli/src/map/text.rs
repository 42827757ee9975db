//! The map as text: each AS with its links.

use hawser_topology::LinkKind;

use super::graph::{Edge, Graph, Tip};
use crate::out::plain;
use crate::paint::Paint;

/// Columns of a link's line, before they are aligned.
type Row = [String; 7];

/// The map, with each link at both of its ASes.
pub fn map(graph: &Graph, paint: Paint) -> String {
    let mut links: Vec<Vec<(u16, Row)>> = vec![Vec::new(); graph.ases.len()];
    for edge in &graph.links {
        for (near, far, is_a) in [(&edge.a, &edge.b, true), (&edge.b, &edge.a, false)] {
            links[near.node].push((near.interface, row(edge, near, far, is_a)));
        }
    }
    let widths = widths(&links);
    let mut text = graph.title() + "\n";
    for (node, mut links) in graph.ases.iter().zip(links) {
        let core = if node.core { " core" } else { "" };
        let mut line = format!("\n{}{core}  {}", paint.key(&node.isd_as), node.host);
        if let Some(note) = &node.note {
            line += &format!("  {}", plain(note));
        }
        text += line.trim_end();
        text.push('\n');
        links.sort_by_key(|(interface, _)| *interface);
        let last = links.len().saturating_sub(1);
        for (i, (_, row)) in links.iter().enumerate() {
            let branch = paint.link(if i == last { "└" } else { "├" });
            let line = format!(" {branch} {}", aligned(row, &widths, paint));
            text += line.trim_end();
            text.push('\n');
        }
    }
    text
}

fn row(edge: &Edge, near: &Tip, far: &Tip, is_a: bool) -> Row {
    let kind = match (edge.kind, is_a) {
        (LinkKind::Core, _) => "core",
        (LinkKind::Peer, _) => "peer",
        (LinkKind::Child, true) => "child",
        (LinkKind::Child, false) => "parent",
    };
    [
        format!("#{}", near.interface),
        kind.to_owned(),
        format!("{}#{}", far.isd_as, far.interface),
        edge.state.to_owned(),
        edge.rate().unwrap_or_else(|| "no limit".to_owned()),
        edge.delay().unwrap_or_default(),
        edge.loss().unwrap_or_default(),
    ]
}

fn widths(links: &[Vec<(u16, Row)>]) -> [usize; 7] {
    let mut widths = [0; 7];
    for (_, row) in links.iter().flatten() {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    widths
}

fn aligned(row: &Row, widths: &[usize; 7], paint: Paint) -> String {
    let cells = row.iter().zip(widths).enumerate();
    let cells = cells.map(|(column, (cell, &width))| match (column, cell.as_str()) {
        (3, "up") => paint.good(format_args!("{cell:<width$}")),
        (3, _) => paint.bad(format_args!("{cell:<width$}")),
        (4, _) => format!("{cell:>width$}"),
        _ => format!("{cell:<width$}"),
    });
    cells.collect::<Vec<_>>().join("  ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hawser_topology::Network;

    use super::*;
    use crate::map::graph::testing;

    #[test]
    fn each_as_has_its_links_with_state_and_rate() {
        let mut graph = testing::graph(&Network::ready("fig9").unwrap());
        graph.links[2].state = "down";
        graph.links[2].shape.delay = Duration::from_millis(20);
        graph.links[2].shape.jitter = Duration::from_millis(2);
        graph.links[2].shape.loss = 0.001;
        let text = map(&graph, Paint::none());
        let expected = "\
lab test: 5 ASes, 6 links, 1 down

1-ff00:0:1  10.0.1.1  A
 ├ #1  parent  1-ff00:0:2#1  up    100 Mbit/s
 └ #2  parent  1-ff00:0:3#1  up    100 Mbit/s

1-ff00:0:2 core  10.0.1.1  B
 ├ #1  child   1-ff00:0:1#1  up    100 Mbit/s
 ├ #2  child   1-ff00:0:4#1  up    100 Mbit/s
 └ #3  child   1-ff00:0:5#1  down   10 Mbit/s  20ms ±2ms  0.1% lost
";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn large_maps_stay_narrow() {
        for graph in testing::graphs() {
            let text = map(&graph, Paint::none());
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(80), "{widest:?}");
            let lines = text.lines().count();
            assert_eq!(lines, 1 + 2 * graph.ases.len() + 2 * graph.links.len());
        }
    }
}
