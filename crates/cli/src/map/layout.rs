//! Places of ASes on a map: the same for the same network.
//!
//! The first step makes distances on the page follow distances in the network, by stochastic
//! gradient descent on the stress (Zheng, Pawar, Goodman, *Graph Drawing by Stochastic Gradient
//! Descent*, 2019), from several beginnings. Then each AS moves slightly while that reduces
//! overlaps of links and boxes and crossings of links.

use super::geometry::{Point, Rect, cross};

/// The network to place.
pub struct Network<'a> {
    /// The two ASes of each link.
    pub links: &'a [(usize, usize)],
    /// Whether each AS is a core AS.
    pub core: &'a [bool],
    /// Width of the box of an AS.
    pub width: f64,
    /// Height of the box of an AS.
    pub height: f64,
    /// Width and height of the largest label of a link.
    pub label: (f64, f64),
}

/// Room between boxes for links that pass, in pixels.
const GAP: f64 = 40.0;
/// Least distance between a box and a link that passes it, in pixels.
const CLEARANCE: f64 = 14.0;
/// Length of a link that the interface numbers at its ends take, in pixels.
const TIPS: f64 = 64.0;
/// Number of steps of the descent.
const STEPS: usize = 30;
/// Number of rotations that are tried.
const TURNS: usize = 12;

/// Places every AS.
pub fn place(network: &Network<'_>) -> Vec<Point> {
    let count = network.core.len();
    let distances = distances(count, network.links);
    let pairs = count * count / 2 + 1;
    let starts = (200_000 / pairs).clamp(1, 24);
    // A fixed seed, because the same network must have the same map.
    let mut rng = fastrand::Rng::with_seed(0x6861_7773_6572);
    // Many links need more room than their own length.
    let crowd = (network.links.len() as f64 / count.max(1) as f64 - 1.2).clamp(0.0, 2.0);
    let stretch = 1.0 + 0.25 * crowd;
    let page = Page {
        network,
        across: stretch * (network.width + network.label.0 + TIPS),
        down: stretch * (network.height + network.label.1 + TIPS),
    };
    let mut tries: Vec<(f64, Vec<Point>)> = (0..starts)
        .filter_map(|_| {
            let shape = descend(&distances, count, &mut rng);
            let turns = (0..TURNS).map(|turn| page.fit(&shape, turn));
            let costs = turns.map(|places| (page.cost(&places), places));
            costs.min_by(|a, b| a.0.total_cmp(&b.0))
        })
        .collect();
    tries.sort_by(|a, b| a.0.total_cmp(&b.0));
    // The best start does not always have the best end.
    let work = count * network.links.len().max(1);
    tries.truncate((20_000 / work.max(1)).clamp(1, starts));
    for (cost, places) in &mut tries {
        page.refine(places, &mut rng);
        *cost = page.cost(places);
    }
    let best = tries.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or_else(Vec::new, |(_, places)| places)
}

/// The distance of any two ASes in links (Floyd and Warshall). Components without a link between
/// them are placed slightly apart.
fn distances(count: usize, links: &[(usize, usize)]) -> Vec<f64> {
    let mut distances = vec![f64::INFINITY; count * count];
    for &(a, b) in links {
        distances[a * count + b] = 1.0;
        distances[b * count + a] = 1.0;
    }
    for node in 0..count {
        distances[node * count + node] = 0.0;
    }
    for over in 0..count {
        for from in 0..count {
            let first = distances[from * count + over];
            for to in 0..count {
                let both = first + distances[over * count + to];
                let known = &mut distances[from * count + to];
                *known = known.min(both);
            }
        }
    }
    let finite = distances.iter().filter(|distance| distance.is_finite());
    let far = finite.copied().fold(1.0, f64::max) + 1.0;
    distances.iter().map(|distance| distance.min(far)).collect()
}

/// Places in units of a link, by descent from random ones.
fn descend(distances: &[f64], count: usize, rng: &mut fastrand::Rng) -> Vec<Point> {
    let spread = (count as f64).sqrt();
    let mut places: Vec<Point> = (0..count)
        .map(|_| Point::new(rng.f64() * spread, rng.f64() * spread))
        .collect();
    let mut pairs: Vec<(usize, usize)> = (0..count)
        .flat_map(|i| (i + 1..count).map(move |j| (i, j)))
        .collect();
    let largest = distances.iter().copied().fold(1.0, f64::max).powi(2);
    let smallest = 0.1;
    let fall = (largest / smallest).ln() / (STEPS - 1) as f64;
    for step in 0..STEPS {
        let rate = largest * (-fall * step as f64).exp();
        rng.shuffle(&mut pairs);
        for &(i, j) in &pairs {
            let distance = distances[i * count + j];
            let part = (rate / distance.powi(2)).min(1.0);
            let apart = places[i].sub(places[j]);
            let shift = apart.unit().times(part * (apart.length() - distance) / 2.0);
            places[i] = places[i].sub(shift);
            places[j] = places[j].add(shift);
        }
    }
    places
}

/// The lengths of horizontal and vertical links.
struct Page<'a> {
    network: &'a Network<'a>,
    across: f64,
    down: f64,
}

impl Page<'_> {
    /// Rotates a shape and stretches it to the page.
    fn fit(&self, shape: &[Point], turn: usize) -> Vec<Point> {
        let angle = std::f64::consts::TAU * turn as f64 / TURNS as f64;
        let (sin, cos) = angle.sin_cos();
        let turned = |p: &Point| {
            Point::new(
                self.across * (p.x * cos - p.y * sin),
                self.down * (p.x * sin + p.y * cos),
            )
        };
        shape.iter().map(turned).collect()
    }

    fn rect(&self, at: Point) -> Rect {
        Rect::around(at, self.network.width, self.network.height)
    }

    /// The cost of all places.
    fn cost(&self, places: &[Point]) -> f64 {
        let nodes = (0..places.len()).map(|node| self.cost_of(node, places, f64::INFINITY));
        let height = |core: bool| {
            let of = places.iter().zip(self.network.core);
            let of: Vec<f64> = of.filter(|(_, c)| **c == core).map(|(p, _)| p.y).collect();
            of.iter().sum::<f64>() / of.len().max(1) as f64
        };
        let all_alike = self.network.core.windows(2).all(|two| two[0] == two[1]);
        // Core ASes should be above the others, and pages wider than high.
        let below = match all_alike {
            true => 0.0,
            false => (height(true) - height(false)) / self.down,
        };
        let range = |of: fn(&Point) -> f64| {
            let high = places.iter().map(of).fold(f64::MIN, f64::max);
            high - places.iter().map(of).fold(f64::MAX, f64::min)
        };
        let tall = range(|p| p.y) / range(|p| p.x).max(1.0);
        nodes.sum::<f64>() + 3.0 * below + 6.0 * (tall - 0.6).max(0.0)
    }

    /// The cost of the place of one AS, or a part of it that is at least `limit`: no term is negative.
    fn cost_of(&self, node: usize, places: &[Point], limit: f64) -> f64 {
        let here = places[node];
        let rect = self.rect(here);
        let wide = rect.grown(GAP / 2.0);
        let mut cost = 0.0;
        for (other, &there) in places.iter().enumerate() {
            if other != node {
                let shared = wide.overlap(self.rect(there).grown(GAP / 2.0));
                cost += 8.0 * shared / (self.network.width * self.network.height);
            }
        }
        let mut own = Vec::new();
        for &(a, b) in self.network.links {
            if a == node || b == node {
                own.push((a, b));
            } else if rect.grown(CLEARANCE).covers(places[a], places[b]) > 0.0 {
                cost += 6.0;
            }
        }
        for (i, &(a, b)) in own.iter().enumerate() {
            if cost >= limit {
                return cost;
            }
            let (from, to) = (places[a], places[b]);
            let line = to.sub(from);
            // Links should be near their ideal length.
            let length = (line.x / self.across).hypot(line.y / self.down);
            cost += 0.6 * (length - 1.0).powi(2);
            // Links should have room for their texts.
            let covered = self.rect(from).covers(from, to) + self.rect(to).covers(from, to);
            let free = line.length() * (1.0 - covered);
            let unit = line.unit();
            let (ux, uy) = (unit.x.abs(), unit.y.abs());
            let needed = TIPS + self.network.label.0 * ux + self.network.label.1 * uy;
            cost += 4.0 * (1.0 - free / needed).max(0.0);
            // Horizontal and vertical links look calmer than oblique ones.
            cost += 0.3 * ux.min(uy);
            for (other, &there) in places.iter().enumerate() {
                if other != a
                    && other != b
                    && self.rect(there).grown(CLEARANCE).covers(from, to) > 0.0
                {
                    cost += 6.0;
                }
            }
            for &(c, d) in self.network.links {
                let apart = a != c && a != d && b != c && b != d;
                if apart && cross(from, to, places[c], places[d]) {
                    cost += 2.0;
                }
            }
            // Links that leave in nearly the same direction hide each other.
            let direction = |(a, b): (usize, usize)| {
                let far = if a == node { b } else { a };
                places[far].sub(here).unit()
            };
            for &next in &own[i + 1..] {
                let same = (a.min(b), a.max(b)) == (next.0.min(next.1), next.0.max(next.1));
                let (u, v) = (direction((a, b)), direction(next));
                let cosine = u.x * v.x + u.y * v.y;
                if !same && cosine > 0.9 {
                    cost += 15.0 * (cosine - 0.9);
                }
            }
        }
        cost
    }

    /// Moves one AS after the other to a better place, in smaller and smaller steps.
    fn refine(&self, places: &mut [Point], rng: &mut fastrand::Rng) {
        let work = places.len() * self.network.links.len().max(1);
        let rounds = (3_000_000 / work.max(1)).clamp(6, 250);
        for round in 0..rounds {
            let reach = 1.2 * (1.0 - round as f64 / rounds as f64) + 0.05;
            for node in 0..places.len() {
                let (was, before) = (places[node], self.cost_of(node, places, f64::INFINITY));
                let step = Point::new(
                    (rng.f64() - 0.5) * 2.0 * reach * self.across,
                    (rng.f64() - 0.5) * 2.0 * reach * self.down,
                );
                places[node] = was.add(step);
                if self.cost_of(node, places, before) >= before {
                    places[node] = was;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(count: usize) -> Vec<(usize, usize)> {
        (0..count).map(|i| (i, (i + 1) % count)).collect()
    }

    #[test]
    fn boxes_are_apart_and_no_link_crosses_them() {
        let links = ring(9);
        let network = Network {
            links: &links,
            core: &[true; 9],
            width: 130.0,
            height: 40.0,
            label: (70.0, 28.0),
        };
        let places = place(&network);
        let rect = |node: usize| Rect::around(places[node], 130.0, 40.0);
        for one in 0..9 {
            for other in one + 1..9 {
                assert_eq!(rect(one).overlap(rect(other)), 0.0, "{one} {other}");
            }
            for &(a, b) in &links {
                let own = a == one || b == one;
                assert!(own || rect(one).covers(places[a], places[b]) == 0.0);
            }
        }
        assert_eq!(place(&network), places);
    }

    #[test]
    fn any_network_is_placed() {
        for (count, links) in [
            (0, vec![]),
            (1, vec![]),
            (3, vec![]),
            (3, vec![(0, 1), (0, 1)]),
        ] {
            let network = Network {
                links: &links,
                core: &vec![false; count],
                width: 100.0,
                height: 40.0,
                label: (0.0, 0.0),
            };
            let places = place(&network);
            assert_eq!(places.len(), count);
            assert!(places.iter().all(|p| p.x.is_finite() && p.y.is_finite()));
        }
    }
}
