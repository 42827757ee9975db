//! `hawser lab graph`: the map of a network, as text, as a picture, or for programs.

use hawser_lab::{EndStatus, Status};

use super::open::open;
use super::status;
use crate::cli::GraphArgs;
use crate::cmd::print;
use crate::failure::Failure;
use crate::map::{self, Edge, Graph, Node, Tip};
use crate::out::out;
use crate::output::Output;
use crate::paint::Paint;

/// Prints or draws the map.
pub fn run(args: &GraphArgs) -> Result<(), Failure> {
    let lab = open(&args.lab.name)?;
    let status = lab.status().map_err(Failure::job)?;
    if !status.running {
        let word = status::word(false, &status.name);
        return Err(Failure::job(format!("the lab {} is {word}", status.name)));
    }
    let graph = graph(&status);
    match &args.svg {
        Some(path) if path.as_os_str() == "-" => out(format_args!("{}", map::draw(&graph))),
        Some(path) => {
            let output = Output::check("--svg", path, args.force, &[])?;
            output.write(map::draw(&graph).as_bytes())?;
        }
        None if args.json => print::pretty_json(&graph)?,
        None => out(format_args!("{}", map::text(&graph, Paint::new(false)))),
    }
    Ok(())
}

/// The map of a lab.
fn graph(status: &Status) -> Graph {
    let ases = status.ases.iter().map(|a| Node {
        isd_as: a.isd_as.to_string(),
        core: a.core,
        note: a.note.clone(),
        host: a.host.to_string(),
    });
    let tip = |end: &EndStatus| Tip::new(end.isd_as, end.id, status.ases.iter().map(|a| a.isd_as));
    let links = status.links.iter().map(|link| Edge {
        a: tip(&link.a),
        b: tip(&link.b),
        kind: link.kind,
        state: status::state(link),
        mtu: link.mtu,
        shape: link.shape,
    });
    Graph {
        name: status.name.clone(),
        ases: ases.collect(),
        links: links.collect(),
    }
}
