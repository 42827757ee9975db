//! `hawser lab graph`: the map of a network, as text, as a picture, or for programs.

mod drawing;
mod geometry;
mod labels;
mod layout;
mod svg;
mod text;

use hawser_lab::Status;
use hawser_topology::{LinkKind, Shape, format_duration, format_loss};
use serde::Serialize;

use super::open::open;
use super::status;
use crate::cli::GraphArgs;
use crate::failure::{Doing, Failure};
use crate::out::{out, outln};
use crate::output::Output;
use crate::paint::Paint;

/// A network as it is drawn.
#[derive(Debug, Clone, Serialize)]
struct Graph {
    name: String,
    ases: Vec<Node>,
    links: Vec<Edge>,
}

/// An AS.
#[derive(Debug, Clone, Serialize)]
struct Node {
    isd_as: String,
    core: bool,
    note: Option<String>,
    host: String,
}

/// A link.
#[derive(Debug, Clone, Serialize)]
struct Edge {
    a: Tip,
    b: Tip,
    kind: LinkKind,
    /// `up`, `down`, or `mute` where the routers do not hear each other.
    state: &'static str,
    mtu: u16,
    #[serde(flatten)]
    shape: Shape,
}

/// An end of a link.
#[derive(Debug, Clone, Serialize)]
struct Tip {
    isd_as: String,
    interface: u16,
    /// Which of the ASes it is.
    #[serde(skip)]
    node: usize,
}

/// Prints or draws the map.
pub fn run(args: &GraphArgs) -> Result<(), Failure> {
    let lab = open(&args.lab.name)?;
    let status = lab.status().map_err(Failure::job)?;
    if !status.running {
        let word = status::word(false, &status.name);
        return Err(Failure::job(format!("the lab {} is {word}", status.name)));
    }
    let graph = Graph::of(&status);
    match &args.svg {
        Some(path) if path.as_os_str() == "-" => out(format_args!("{}", svg::draw(&graph))),
        Some(path) => {
            let output = Output::check("--svg", path, args.force, &[])?;
            output.write(svg::draw(&graph).as_bytes())?;
        }
        None if args.json => outln!(
            "{}",
            serde_json::to_string_pretty(&graph).doing("writing JSON")?
        ),
        None => out(format_args!("{}", text::map(&graph, Paint::new(false)))),
    }
    Ok(())
}

impl Graph {
    fn of(status: &Status) -> Self {
        let ases = status.ases.iter().map(|a| Node {
            isd_as: a.isd_as.to_string(),
            core: a.core,
            note: a.note.clone(),
            host: a.host.to_string(),
        });
        let tip = |end: &hawser_lab::EndStatus| Tip {
            isd_as: end.isd_as.to_string(),
            interface: end.id,
            node: status
                .ases
                .iter()
                .position(|a| a.isd_as == end.isd_as)
                .unwrap_or_default(),
        };
        let links = status.links.iter().map(|link| Edge {
            a: tip(&link.a),
            b: tip(&link.b),
            kind: link.kind,
            state: status::state(link),
            mtu: link.mtu,
            shape: link.shape,
        });
        Self {
            name: status.name.clone(),
            ases: ases.collect(),
            links: links.collect(),
        }
    }

    /// `lab default: 7 ASes, 8 links, 1 of them down`.
    fn title(&self) -> String {
        let mut title = format!(
            "lab {}: {} ASes, {} links",
            self.name,
            self.ases.len(),
            self.links.len()
        );
        for state in ["down", "mute"] {
            let count = self.links.iter().filter(|l| l.state == state).count();
            if count > 0 {
                title += &format!(", {count} {state}");
            }
        }
        title
    }
}

impl Edge {
    /// `10 Mbit/s`.
    fn rate(&self) -> Option<String> {
        self.shape.rate.map(short_rate)
    }

    /// `20ms ±2ms`.
    fn delay(&self) -> Option<String> {
        let Shape { delay, jitter, .. } = self.shape;
        let shown = format_duration(delay);
        match (delay.is_zero(), jitter.is_zero()) {
            (true, true) => None,
            (_, true) => Some(shown),
            (_, false) => Some(format!("{shown} ±{}", format_duration(jitter))),
        }
    }

    /// `0.1% lost`.
    fn loss(&self) -> Option<String> {
        let loss = self.shape.loss;
        (loss > 0.0).then(|| format!("{} lost", format_loss(loss)))
    }
}

/// A rate as it was set: `10 Mbit/s`, `2.5 Gbit/s`.
fn short_rate(rate: u64) -> String {
    let (scale, unit) = match rate {
        1_000_000_000.. => (1e9, "Gbit/s"),
        1_000_000.. => (1e6, "Mbit/s"),
        1_000.. => (1e3, "kbit/s"),
        _ => (1.0, "bit/s"),
    };
    let value = (rate as f64 / scale * 1000.0).round() / 1000.0;
    format!("{value} {unit}")
}

#[cfg(test)]
mod testing {
    use hawser_topology::{End, Network};

    use super::*;

    /// A network's map with all links up.
    pub fn graph(network: &Network) -> Graph {
        let ases = network.ases.iter().map(|a| Node {
            isd_as: a.isd_as.to_string(),
            core: a.core,
            note: a.note.clone(),
            host: "10.0.1.1".to_owned(),
        });
        let tip = |end: &End| Tip {
            isd_as: end.isd_as.to_string(),
            interface: end.id,
            node: network
                .ases
                .iter()
                .position(|a| a.isd_as == end.isd_as)
                .unwrap(),
        };
        Graph {
            name: "test".to_owned(),
            ases: ases.collect(),
            links: network
                .links
                .iter()
                .map(|link| Edge {
                    a: tip(&link.a),
                    b: tip(&link.b),
                    kind: link.kind,
                    state: "up",
                    mtu: link.mtu,
                    shape: link.shape,
                })
                .collect(),
        }
    }

    /// The networks that maps are tried on.
    pub fn graphs() -> Vec<Graph> {
        let ready = Network::ready_names().map(|name| Network::ready(name).unwrap());
        let made =
            [1, 2, 30, 100].map(|ases| Network::parse(&hawser_sim::generate(ases, 1)).unwrap());
        ready.chain(made).map(|network| graph(&network)).collect()
    }
}
