//! A demo as a picture: the network with the paths of each run, and the paper's results beside ours
//! as bars.

use hawser_experiments::{DemoReport, DemoRun, DownloadExperiment, PathUse, Variant};
use hawser_path::Interface;

use crate::format;
use crate::map::{Graph, Picture};
use crate::svg::Svg;

/// Width of the column of one run, in pixels.
const COLUMN: f64 = 480.0;
const MARGIN: f64 = 24.0;
/// Top of the maps, in pixels.
const MAPS: f64 = 92.0;
/// Height of a line of text, in pixels.
const ROW: f64 = 20.0;
/// Height of a bar, in pixels.
const BAR: f64 = 22.0;
/// Left edge of the bars in a column, and length of the longest, in pixels.
const BARS: (f64, f64) = (64.0, 290.0);

const STYLE: &str = "
  .use { fill: none; stroke-linecap: round; stroke-opacity: 0.55; }
  .use0, .key0 { stroke: #0072b2; stroke-width: 13; }
  .use1, .key1 { stroke: #e69f00; stroke-width: 7; }
  .head1 { font-size: 18px; font-weight: bold; }
  .head2 { font-size: 15px; font-weight: bold; }
  .small { font-size: 12.5px; fill: #3b4853; }
  .ours { fill: #009e73; }
  .paper { fill: #b8c2cb; }
  .ceiling { stroke: #24303a; stroke-width: 1.5; stroke-dasharray: 4 3; }
";

/// Draws a demo; returns an SVG document.
pub fn draw(demo: &DownloadExperiment, report: &DemoReport) -> String {
    let runs = || report.runs.iter().zip(&demo.variants);
    let values = runs().flat_map(|(run, variant)| {
        let ceiling = run.ceiling_mbit.unwrap_or_default();
        [
            run.goodput_mbit,
            ceiling,
            variant.paper_mbit.unwrap_or_default(),
        ]
    });
    let scale = BARS.1 / values.fold(1e-9, f64::max);
    let (mut columns, mut height) = (String::new(), 0.0_f64);
    for (index, (run, variant)) in runs().enumerate() {
        let (column, bottom) = column(run, variant, scale);
        let left = MARGIN + index as f64 * COLUMN;
        columns += &format!("<g transform=\"translate({left:.0} 0)\">\n{column}</g>\n");
        height = height.max(bottom);
    }
    let width = 2.0 * MARGIN + COLUMN * report.runs.len() as f64;
    let height = height + 2.0 * ROW;
    let mut svg = Svg::default();
    svg.text("head1", (MARGIN, 32.0), &heading(demo, report));
    svg.0 += &columns;
    let source = format!("paper: {}", demo.about);
    svg.text("small", (MARGIN, height - 14.0), &source);
    svg.document(width, height, &[Picture::STYLE, STYLE].concat())
}

/// `32.0 MiB from 1-ff00:0:4 to 1-ff00:0:1; disjoint / shortest: 2.86 (paper: 3.25)`.
fn heading(demo: &DownloadExperiment, report: &DemoReport) -> String {
    let content = content(demo, report.bytes);
    match ratio(demo, report) {
        Some((ratio, paper)) => format!("{content}; {ratio} {paper}"),
        None => content,
    }
}

/// `32.0 MiB from 1-ff00:0:4 to 1-ff00:0:1`.
pub fn content(demo: &DownloadExperiment, bytes: u64) -> String {
    let bytes = format::bytes(bytes);
    match demo.ends() {
        Some((from, to)) => format!("{bytes} from {from} to {to}"),
        None => bytes,
    }
}

/// `disjoint / shortest: 2.86`, and `(paper: 3.25)`; `None` unless two variants were run.
pub fn ratio(demo: &DownloadExperiment, report: &DemoReport) -> Option<(String, String)> {
    let ([first, second], Some(paper)) = (&report.runs[..], demo.paper_ratio) else {
        return None;
    };
    let ratio = second.goodput_mbit / first.goodput_mbit;
    let ratio = format!("{} / {}: {ratio:.2}", second.select, first.select);
    Some((ratio, format!("(paper: {paper:.2})")))
}

/// The column of one run, and the height at which it ends.
fn column(run: &DemoRun, variant: &Variant, scale: f64) -> (String, f64) {
    let graph = Graph::planned(&run.select, &variant.network);
    let links: Vec<Vec<usize>> = run.paths.iter().map(|path| links(path, variant)).collect();
    let map = Picture::of(&graph, &links, (0.0, 0.0));
    let zoom = ((COLUMN - MARGIN) / map.width).min(1.0);
    let mut svg = Svg::default();
    let title = format!("{}: {:.1} s", run.select, run.seconds);
    svg.text("head2", (0.0, MAPS - 24.0), &title);
    svg.line(format_args!(
        "<g transform=\"translate(0 {MAPS}) scale({zoom:.3})\">\n{}</g>",
        map.body
    ));
    let mut y = MAPS + map.height * zoom + ROW;
    for (index, path) in run.paths.iter().enumerate() {
        let at = y - 4.0;
        svg.line(format_args!(
            r#"<path class="use key{index}" d="M8,{at:.1}h28"/>"#
        ));
        let carried = format!("{}, {}", format::hops(path.hops), format::bytes(path.bytes));
        svg.text("small", (BARS.0, y), &carried);
        y += ROW;
    }
    y += ROW / 2.0;
    let top = y - 4.0;
    let bars = [
        ("hawser", "ours", Some(run.goodput_mbit)),
        ("paper", "paper", variant.paper_mbit),
    ];
    for (name, class, mbit) in bars {
        let Some(mbit) = mbit else {
            continue;
        };
        let base = y + BAR - 7.0;
        svg.text("small", (0.0, base), name);
        let (left, length) = (BARS.0, mbit * scale);
        svg.line(format_args!(
            r#"<rect class="{class}" x="{left:.0}" y="{y:.1}" width="{length:.1}" height="{BAR}"/>"#
        ));
        // Right of the ceiling's line, too.
        let reach = run.ceiling_mbit.unwrap_or_default().max(mbit);
        svg.text(
            "small",
            (left + reach * scale + 8.0, base),
            &format::mbit(mbit),
        );
        y += BAR + 5.0;
    }
    if let Some(ceiling) = run.ceiling_mbit {
        let (x, end) = (BARS.0 + ceiling * scale, y + 2.0);
        svg.line(format_args!(
            r#"<path class="ceiling" d="M{x:.1},{top:.1}V{end:.1}"/>"#
        ));
        let words = format!("limits less headers: {}", format::mbit(ceiling));
        svg.text("small", (BARS.0, y + 14.0), &words);
        y += ROW;
    }
    (svg.0, y)
}

/// The indices of the links that a path crosses.
fn links(path: &PathUse, variant: &Variant) -> Vec<usize> {
    let interfaces = path.interfaces.iter().filter_map(|text| text.parse().ok());
    let crossed = interfaces.filter_map(|interface: Interface| {
        let link = variant.network.link_at(interface.isd_as, interface.id);
        link.map(|(index, _)| index)
    });
    let mut crossed: Vec<usize> = crossed.collect();
    // A path names both ends of each link.
    crossed.dedup();
    crossed
}

#[cfg(test)]
mod tests {
    use hawser_experiments::demo;

    use super::*;

    #[test]
    fn the_network_the_paths_and_all_bars_are_drawn() {
        let demo = demo("fig7a").unwrap();
        let path = |interfaces: &[&str]| PathUse {
            fingerprint: "ab".repeat(32),
            hops: interfaces.len() / 2 + 1,
            bytes: 1 << 20,
            interfaces: interfaces.iter().map(|one| (*one).to_owned()).collect(),
        };
        let direct = [
            "1-ff00:0:1#1",
            "1-ff00:0:2#1",
            "1-ff00:0:2#2",
            "1-ff00:0:4#1",
        ];
        let run = |select: &str, goodput_mbit, paths| DemoRun {
            select: select.to_owned(),
            seconds: 10.0,
            goodput_mbit,
            ceiling_mbit: Some(goodput_mbit * 1.1),
            paths,
        };
        let report = DemoReport {
            topology: "fig7a",
            bytes: 32 << 20,
            sha256_ok: true,
            runs: vec![
                run("shortest", 8.5, vec![path(&direct), path(&direct[..2])]),
                run("disjoint", 25.5, vec![path(&direct)]),
            ],
            iperf3_tcp_mbit: None,
        };
        let svg = draw(&demo, &report);
        let count = |what: &str| svg.matches(what).count();
        assert_eq!(count("class=\"use use0\""), 4);
        assert_eq!(count("class=\"use use1\""), 1);
        assert_eq!(count("class=\"name\""), 14);
        assert_eq!((count("class=\"ours\""), count("class=\"paper\"")), (2, 2));
        for words in [
            "8.5 Mbit/s",
            "26.0 Mbit/s",
            "disjoint / shortest: 3.00",
            "3.25",
            "Fig. 8",
        ] {
            assert!(svg.contains(words), "{words}");
        }
        assert!(!svg.contains("NaN"));
    }
}
