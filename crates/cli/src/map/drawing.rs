//! The layout of a map on a page: boxes, lines, and places of texts.

use super::geometry::{Curve, Point, Rect};
use super::graph::{Edge, Graph};
use super::labels::{self, Labelled, Places};
use super::layout;

/// Heights of letters, in pixels.
const NAME_SIZE: f64 = 12.0;
pub const TEXT_SIZE: f64 = 10.5;
const TIP_SIZE: f64 = 9.5;
/// Width of a letter divided by its height; fonts differ.
const LETTER: f64 = 0.6;
/// Distance between the lines of a label, in pixels.
pub const LINE: f64 = 13.0;
/// Most letters of a note that are shown.
const NOTE: usize = 24;
/// Most times that a map is stretched to make room for its texts, and the factor; large maps take
/// time.
const TRIES: usize = 12;
const STRETCH: f64 = 1.06;
const TEXTS: usize = 3000;
/// Distance between links that join the same two ASes, in pixels.
const PARALLEL: f64 = 44.0;

/// The places of all elements of a map.
#[derive(Default)]
pub struct Drawing {
    /// The box of each AS.
    pub boxes: Vec<Rect>,
    /// The line of each link, and the sizes of its texts.
    pub links: Vec<Labelled>,
    /// The centres of each link's texts.
    pub places: Vec<Places>,
    /// Width and height of the drawing.
    pub size: Point,
}

impl Drawing {
    /// Lays a network out to the right of and below `corner`, as densely as its texts allow.
    pub fn of(graph: &Graph, corner: Point) -> Self {
        let boxed = box_size(graph);
        let ends: Vec<_> = graph.links.iter().map(|l| (l.a.node, l.b.node)).collect();
        let core: Vec<bool> = graph.ases.iter().map(|a| a.core).collect();
        let sizes: Vec<_> = graph.links.iter().map(|l| label_size(&lines(l))).collect();
        let most = |of: fn((f64, f64)) -> f64| {
            let sizes = sizes.iter().flatten().copied();
            sizes.map(of).fold(0.0, f64::max)
        };
        let mut places = layout::place(&layout::Network {
            links: &ends,
            core: &core,
            width: boxed.0,
            height: boxed.1,
            label: (most(|size| size.0), most(|size| size.1)),
        });
        let tries = (TEXTS / (1 + ends.len())).clamp(1, TRIES);
        let mut best: Option<(usize, Self)> = None;
        for _ in 0..tries {
            let (covering, drawing) = Self::with(graph, &ends, &sizes, &places, boxed, corner);
            if best.as_ref().is_none_or(|(least, _)| covering < *least) {
                best = Some((covering, drawing));
            }
            if covering == 0 {
                break;
            }
            places = places.into_iter().map(|at| at.times(STRETCH)).collect();
        }
        best.map_or_else(Self::default, |(_, drawing)| drawing)
    }

    /// The drawing with the ASes at `places`, and the number of texts that overlap something else.
    fn with(
        graph: &Graph,
        ends: &[(usize, usize)],
        sizes: &[Option<(f64, f64)>],
        places: &[Point],
        (width, height): (f64, f64),
        corner: Point,
    ) -> (usize, Self) {
        let curves = curves(ends, places);
        // Curves may reach beyond the boxes.
        let boxed = |at: Point| Rect::around(at, width, height);
        let bends = curves.iter().map(|c| Rect::around(c.at(0.5), 90.0, 40.0));
        let all = places.iter().map(|&at| boxed(at)).chain(bends);
        let outer = all.reduce(Rect::both).unwrap_or(boxed(Point::default()));
        let shift = corner.sub(outer.low);
        let boxes: Vec<Rect> = places.iter().map(|at| boxed(at.add(shift))).collect();
        let tip = |interface| text_width(&tip_text(interface), TIP_SIZE) + 3.0;
        let links = graph.links.iter().zip(curves).zip(sizes);
        let links = links.map(|((link, curve), label)| Labelled {
            curve: curve.moved(shift),
            label: *label,
            tips: [tip(link.a.interface), tip(link.b.interface)],
        });
        let links: Vec<Labelled> = links.collect();
        let (places, covering) = labels::place(&links, &boxes, ends);
        let drawing = Self {
            places,
            boxes,
            links,
            size: outer.size(),
        };
        (covering, drawing)
    }
}

/// The size of all boxes, given by the longest text in any of them.
fn box_size(graph: &Graph) -> (f64, f64) {
    let texts = graph.ases.iter().flat_map(|a| {
        let note = a.note.as_deref().map(shown_note);
        let note = note.map_or(0.0, |note| text_width(&note, TEXT_SIZE));
        [text_width(&a.isd_as, NAME_SIZE) * 1.1, note]
    });
    let noted = graph.ases.iter().any(|a| a.note.is_some());
    (
        texts.fold(70.0, f64::max) + 18.0,
        if noted { 40.0 } else { 28.0 },
    )
}

/// An upper estimate of the width of a text.
pub fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * LETTER
}

/// A note, cut short.
pub fn shown_note(note: &str) -> String {
    match note.chars().count() > NOTE {
        true => note.chars().take(NOTE - 1).chain(['…']).collect(),
        false => note.to_owned(),
    }
}

/// The number of an interface.
pub fn tip_text(interface: u16) -> String {
    format!("#{interface}")
}

/// The lines of the label at the middle of a link.
pub fn lines(link: &Edge) -> Vec<String> {
    let state = (link.state != "up").then(|| link.state.to_owned());
    let lines = [link.rate(), link.delay(), link.loss(), state];
    lines.into_iter().flatten().collect()
}

fn label_size(lines: &[String]) -> Option<(f64, f64)> {
    let widths = lines.iter().map(|line| text_width(line, TEXT_SIZE));
    let width = widths.reduce(f64::max)?;
    Some((width + 4.0, LINE * lines.len() as f64 + 2.0))
}

/// The lines of the links; links between the same ASes run side by side.
fn curves(ends: &[(usize, usize)], places: &[Point]) -> Vec<Curve> {
    let pair = |&(a, b): &(usize, usize)| (a.min(b), a.max(b));
    let one = |(at, end): (usize, &(usize, usize))| {
        let same = |other: &&(usize, usize)| pair(other) == pair(end);
        let (rank, all) = (ends[..at].iter().filter(same), ends.iter().filter(same));
        let off = PARALLEL * (rank.count() as f64 - (all.count() as f64 - 1.0) / 2.0);
        let (low, high) = pair(end);
        let normal = places[high].sub(places[low]).unit().turned();
        let (from, to) = (places[end.0], places[end.1]);
        Curve {
            from,
            // The middle of the curve is half as far out as this point.
            bend: from.add(to).times(0.5).add(normal.times(2.0 * off)),
            to,
        }
    };
    ends.iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::graph::testing;

    /// The boxes and texts of a map.
    fn rects(drawing: &Drawing) -> Vec<Rect> {
        let texts = drawing.links.iter().zip(&drawing.places);
        let texts = texts.flat_map(|(link, at)| {
            let tip =
                |side: usize| Rect::around(at.tips[side], link.tips[side], labels::TIP_HEIGHT);
            let label = link.label.map(|(w, h)| Rect::around(at.label, w, h));
            [Some(tip(0)), Some(tip(1)), label].into_iter().flatten()
        });
        drawing.boxes.iter().copied().chain(texts).collect()
    }

    #[test]
    fn no_text_covers_another_or_a_box() {
        for graph in testing::graphs().iter().filter(|g| g.ases.len() <= 30) {
            let rects = rects(&Drawing::of(graph, Point::default()));
            for (i, one) in rects.iter().enumerate() {
                for other in &rects[i + 1..] {
                    assert_eq!(
                        one.overlap(*other),
                        0.0,
                        "{} ASes: {one:?} {other:?}",
                        graph.ases.len()
                    );
                }
            }
        }
    }
}
