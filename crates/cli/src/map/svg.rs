//! The map as a picture.

use std::fmt::Write;

use hawser_topology::LinkKind;

use super::drawing::{Drawing, LINE, TEXT_SIZE, lines, shown_note, text_width, tip_text};
use super::geometry::{Curve, Point, Rect};
use super::graph::{Edge, Graph, Node};
use super::labels::{self, Labelled, Places};
use crate::svg::Svg;

const MARGIN: f64 = 34.0;
const TITLE: f64 = 44.0;
const LEGEND: f64 = 34.0;

const STYLE: &str = "
  text { font-family: 'DejaVu Sans', Verdana, Helvetica, Arial, sans-serif; fill: #24303a; }
  .title { font-size: 14px; }
  .name { font-size: 12px; font-weight: bold; text-anchor: middle; }
  .note { font-size: 10.5px; fill: #5c6a76; text-anchor: middle; }
  .label { font-size: 10.5px; fill: #3b4853; text-anchor: middle; }
  .bad { fill: #b03a2e; font-weight: bold; }
  .tip { font-size: 9.5px; fill: #6a7783; text-anchor: middle; }
  .legend { font-size: 10.5px; fill: #5c6a76; }
  .halo { fill: #ffffff; fill-opacity: 0.92; }
  .as { fill: #f6f7f8; stroke: #9aa7b2; stroke-width: 1.2; }
  .as.core { fill: #dce7f1; stroke: #4a6a88; stroke-width: 1.8; }
  .link { fill: none; stroke: #8a98a4; stroke-width: 1.5; }
  .link.core { stroke: #4a6a88; stroke-width: 2.2; }
  .link.peer { stroke-dasharray: 1.5 4; stroke-linecap: round; stroke-width: 2; }
  .link.down { stroke: #c0392b; stroke-dasharray: 7 5; }
  .link.mute { stroke: #c78a1e; stroke-dasharray: 7 5; }
  .head { fill: #8a98a4; }
";

/// A picture without title and legend, to be placed in a document.
pub struct Picture {
    /// Width, in pixels.
    pub width: f64,
    /// Height, in pixels.
    pub height: f64,
    /// The elements, which need [`Picture::STYLE`].
    pub body: String,
}

impl Picture {
    /// The style sheet of the elements.
    pub const STYLE: &'static str = STYLE;

    /// The map of a network, below and to the right of `corner`. Each of `paths`, given by the
    /// indices of its links, is drawn along those links with the style class `use0`, `use1` and so
    /// on.
    pub fn of(graph: &Graph, paths: &[Vec<usize>], corner: (f64, f64)) -> Self {
        let drawing = Drawing::of(graph, Point::new(corner.0, corner.1));
        let mut svg = Map::default();
        for (index, path) in paths.iter().enumerate() {
            let links = path.iter().filter_map(|&link| drawing.links.get(link));
            for link in links {
                let along = path_data(&link.curve);
                let used = format_args!(r#"<path class="use use{index}" d="{along}"/>"#);
                svg.0.line(used);
            }
        }
        for (link, drawn) in graph.links.iter().zip(&drawing.links) {
            svg.link(link, &drawn.curve, &drawing.boxes[link.b.node]);
        }
        for (node, rect) in graph.ases.iter().zip(&drawing.boxes) {
            svg.node(node, *rect);
        }
        let drawn = drawing.links.iter().zip(&drawing.places);
        for (link, (drawn, places)) in graph.links.iter().zip(drawn) {
            svg.texts(link, places, drawn);
        }
        Self {
            width: drawing.size.x,
            height: drawing.size.y,
            body: svg.0.0,
        }
    }
}

/// Draws the map as an SVG document.
pub fn draw(graph: &Graph) -> String {
    let map = Picture::of(graph, &[], (MARGIN, TITLE + MARGIN / 2.0));
    let legend = legend(graph);
    let width = (map.width + 2.0 * MARGIN)
        .max(legend.0)
        .max(text_width(&graph.title(), 14.0) + 2.0 * MARGIN);
    let height = map.height + TITLE + MARGIN + LEGEND;
    let mut svg = Svg::default();
    svg.text("title", (MARGIN, 28.0), &graph.title());
    svg.0 += &map.body;
    svg.line(format_args!(
        r#"<g transform="translate({MARGIN:.0} {:.1})">{}</g>"#,
        height - LEGEND / 2.0 - 6.0,
        legend.1
    ));
    svg.document(width, height, STYLE)
}

/// The legend of the signs in the map, with its width.
fn legend(graph: &Graph) -> (f64, String) {
    let ases = |core| graph.ases.iter().any(|a| a.core == core);
    let kinds = |kind| graph.links.iter().any(|link| link.kind == kind);
    let states = |state| graph.links.iter().any(|link| link.state == state);
    let line = |class: &str| format!(r#"<path class="link {class}" d="M0,-4h26"/>"#);
    let square = |class: &str| {
        format!(r#"<rect class="as {class}" y="-10" width="22" height="12" rx="3"/>"#)
    };
    let child = line("") + r#"<path class="head" d="M28,-4l-8,-3.5v7z"/>"#;
    let mute = "up, but its routers do not hear each other";
    let signs = [
        (ases(true), square("core"), "core AS"),
        (ases(false), square(""), "AS"),
        (kinds(LinkKind::Core), line("core"), "core link"),
        (kinds(LinkKind::Child), child, "parent to child"),
        (kinds(LinkKind::Peer), line("peer"), "peering"),
        (states("down"), line("down"), "down"),
        (states("mute"), line("mute"), mute),
    ];
    let mut text = String::new();
    let mut x = 0.0;
    for (_, sign, words) in signs.into_iter().filter(|sign| sign.0) {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            r#"<g transform="translate({x:.0} 0)">{sign}<text class="legend" x="34">{words}</text></g>"#
        );
        x += 34.0 + text_width(words, TEXT_SIZE) + 22.0;
    }
    (x + 2.0 * MARGIN, text)
}

/// A map that is being drawn.
#[derive(Default)]
struct Map(Svg);

impl Map {
    fn link(&mut self, link: &Edge, curve: &Curve, child: &Rect) {
        let kind = match link.kind {
            LinkKind::Core => "core",
            LinkKind::Child => "child",
            LinkKind::Peer => "peer",
        };
        let (state, along) = (link.state, path_data(curve));
        let [a, b] = [&link.a, &link.b].map(|tip| format!("{}#{}", tip.isd_as, tip.interface));
        self.0.line(format_args!(
            r#"<path class="link {kind} {state}" d="{along}"><title>{a} - {b}</title></path>"#
        ));
        if link.kind == LinkKind::Child {
            let back = curve.reversed();
            let t = back.leaves(*child);
            let tip = back.at(t);
            let direction = tip.sub(back.at(t + 0.03)).unit();
            let (foot, aside) = (tip.sub(direction.times(8.0)), direction.turned().times(3.5));
            let [one, other] = [foot.add(aside), foot.sub(aside)];
            self.0.line(format_args!(
                r#"<path class="head" d="M{tip}L{one}L{other}z"/>"#
            ));
        }
    }

    fn node(&mut self, node: &Node, rect: Rect) {
        let place = rect.centre();
        let class = if node.core { "as core" } else { "as" };
        self.rect(class, rect, r#" rx="6""#);
        match &node.note {
            Some(note) => {
                self.text("name", place, -3.0, &node.isd_as);
                self.text("note", place, 12.0, &shown_note(note));
            }
            None => self.text("name", place, 4.3, &node.isd_as),
        }
    }

    fn texts(&mut self, link: &Edge, places: &Places, sized: &Labelled) {
        for ((tip, at), width) in [&link.a, &link.b].iter().zip(places.tips).zip(sized.tips) {
            // Clears the background of the text.
            self.rect("halo", Rect::around(at, width, labels::TIP_HEIGHT), "");
            self.text("tip", at, 3.4, &tip_text(tip.interface));
        }
        let Some((width, height)) = sized.label else {
            return;
        };
        let rect = Rect::around(places.label, width, height);
        self.rect("halo", rect, "");
        for (i, line) in lines(link).iter().enumerate() {
            let class = match line.as_str() {
                "down" | "mute" => "label bad",
                _ => "label",
            };
            let y = rect.low.y + LINE * (i as f64 + 1.0) - 2.5;
            self.0.text(class, (places.label.x, y), line);
        }
    }

    fn text(&mut self, class: &str, at: Point, down: f64, text: &str) {
        self.0.text(class, (at.x, at.y + down), text);
    }

    fn rect(&mut self, class: &str, rect: Rect, more: &str) {
        let (Point { x, y }, size) = (rect.low, rect.size());
        self.0.line(format_args!(
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{:.1}" height="{:.1}"{more}/>"#,
            size.x, size.y
        ));
    }
}

/// A curve in the format of the attribute `d`.
fn path_data(Curve { from, bend, to }: &Curve) -> String {
    format!("M{from} Q{bend} {to}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::graph::testing;

    #[test]
    fn every_as_and_interface_is_drawn() {
        for graph in testing::graphs() {
            let svg = draw(&graph);
            // The largest takes seconds.
            assert!(graph.ases.len() > 30 || svg == draw(&graph));
            let count = |what: &str| svg.matches(what).count();
            assert_eq!(count("class=\"name\""), graph.ases.len());
            assert_eq!(count("class=\"tip\""), 2 * graph.links.len());
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn links_that_are_down_are_marked() {
        let mut graphs = testing::graphs();
        let graph = &mut graphs[0];
        assert!(!draw(graph).contains("class=\"label bad\""));
        graph.links[1].state = "down";
        graph.ases[0].note = Some("<&\u{1}>".to_owned());
        let svg = draw(graph);
        assert_eq!(svg.matches("class=\"link core down\"").count(), 1);
        assert_eq!(svg.matches(">down<").count(), 2);
        assert!(svg.contains(">&lt;&amp;&gt;<"), "{svg}");
    }
}
