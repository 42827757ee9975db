//! Places of texts on a map: beside the element they belong to, without overlap.

use super::geometry::{Curve, Point, Rect};

/// Number of places where a label may be, from the middle of its link outwards.
const LABEL_PLACES: u32 = 29;
/// Distance between two of them, as a share of the link.
const LABEL_STEP: f64 = 0.03;
/// Margin around a text that nothing else should cover, in pixels.
const ROOM: f64 = 3.0;
/// Cost of a place that is covered at all, that another link crosses, and that is one step further
/// out: texts on texts cannot be read, lines behind them do little harm.
const COST_COVERED: f64 = 200.0;
const COST_CROSSED: f64 = 12.0;
const FURTHER: f64 = 1.0;
/// Distances from a box at which an interface's number may be, in pixels.
const TIP_PLACES: [f64; 6] = [13.0, 19.0, 25.0, 32.0, 40.0, 50.0];

/// A link with the sizes of its texts.
pub struct Labelled {
    pub curve: Curve,
    /// Width and height of the label; `None` without a label.
    pub label: Option<(f64, f64)>,
    /// Widths of the interface numbers at the two ends.
    pub tips: [f64; 2],
}

/// The centres of a link's texts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Places {
    pub label: Point,
    pub tips: [Point; 2],
}

/// Height of an interface's number, in pixels.
pub const TIP_HEIGHT: f64 = 11.0;

/// Finds places, and returns with them how many texts overlap something else. `boxes` holds the
/// boxes of all ASes, and `ends` the two of each link.
pub fn place(links: &[Labelled], boxes: &[Rect], ends: &[(usize, usize)]) -> (Vec<Places>, usize) {
    let mut taken: Vec<Rect> = boxes.to_vec();
    let mut places = vec![Places::default(); links.len()];
    let mut covering = 0;
    for (at, link) in links.iter().enumerate() {
        let sides = [
            (link.curve, ends[at].0),
            (link.curve.reversed(), ends[at].1),
        ];
        for (side, (curve, home)) in sides.into_iter().enumerate() {
            let start = curve.leaves(boxes[home]);
            let length = curve.to.sub(curve.from).length().max(1.0);
            let candidates = TIP_PLACES
                .iter()
                .map(|step| curve.at((start + step / length).min(0.5)));
            let (place, free) = best(candidates, link.tips[side], TIP_HEIGHT, &taken, links, at);
            covering += usize::from(!free);
            taken.push(Rect::around(place, link.tips[side], TIP_HEIGHT));
            places[at].tips[side] = place;
        }
    }
    // Short links first: they have the fewest places.
    let mut order: Vec<usize> = (0..links.len()).collect();
    let length = |at: &usize| links[*at].curve.to.sub(links[*at].curve.from).length();
    order.sort_by(|a, b| length(a).total_cmp(&length(b)));
    for at in order {
        let link = &links[at];
        let Some((width, height)) = link.label else {
            continue;
        };
        // Between the boxes, not between their centres.
        let from = link.curve.leaves(boxes[ends[at].0]);
        let to = 1.0 - link.curve.reversed().leaves(boxes[ends[at].1]);
        let candidates = (0..LABEL_PLACES).map(|i| {
            let out = LABEL_STEP * f64::from(i.div_ceil(2));
            let share = if i % 2 == 0 { 0.5 - out } else { 0.5 + out };
            link.curve.at(from + share * (to - from))
        });
        let (place, free) = best(candidates, width, height, &taken, links, at);
        covering += usize::from(!free);
        taken.push(Rect::around(place, width, height));
        places[at].label = place;
    }
    (places, covering)
}

/// The best place, the first of several equal ones, and whether it is not covered.
fn best(
    candidates: impl Iterator<Item = Point>,
    width: f64,
    height: f64,
    taken: &[Rect],
    links: &[Labelled],
    own: usize,
) -> (Point, bool) {
    let mut best = (f64::INFINITY, Point::default(), false);
    for (rank, place) in candidates.enumerate() {
        let rect = Rect::around(place, width, height);
        let areas = taken.iter().map(|other| rect.overlap(other.grown(ROOM)));
        let areas = areas.filter(|area| *area > 0.0);
        let covered: f64 = areas.map(|area| COST_COVERED + area).sum();
        let passed = links.iter().enumerate().filter(|(at, link)| {
            let curve = &link.curve;
            *at != own
                && [0.0, 0.25, 0.5, 0.75]
                    .iter()
                    .any(|&t| rect.covers(curve.at(t), curve.at(t + 0.25)) > 0.0)
        });
        let cost = covered + COST_CROSSED * passed.count() as f64 + FURTHER * rank as f64;
        if cost < best.0 {
            best = (cost, place, covered == 0.0);
        }
    }
    (best.1, best.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_crossing_links_do_not_cover_each_other() {
        let line = |from: Point, to: Point| Labelled {
            curve: Curve {
                from,
                bend: from.add(to).times(0.5),
                to,
            },
            label: Some((60.0, 14.0)),
            tips: [14.0; 2],
        };
        let corners = [(0.0, 0.0), (300.0, 200.0), (0.0, 200.0), (300.0, 0.0)];
        let corners = corners.map(|(x, y)| Point::new(x, y));
        let links = [line(corners[0], corners[1]), line(corners[2], corners[3])];
        let boxes = corners.map(|corner| Rect::around(corner, 80.0, 30.0));
        let (places, covering) = place(&links, &boxes, &[(0, 1), (2, 3)]);
        assert_eq!(covering, 0);
        let rect = |at: usize| Rect::around(places[at].label, 60.0, 14.0);
        assert_eq!(rect(0).overlap(rect(1)), 0.0);
        for tip in places.iter().flat_map(|place| place.tips) {
            let tip = Rect::around(tip, 14.0, TIP_HEIGHT);
            assert!(boxes.iter().all(|other| other.overlap(tip) == 0.0));
        }
    }
}
