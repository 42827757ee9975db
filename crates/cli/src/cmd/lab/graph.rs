//! `hawser lab graph`: the map of a network, as text, as a picture, or for programs.

use std::path::PathBuf;

use hawser_lab::{EndStatus, Status};

use super::name::LabName;
use super::status;
use crate::cmd::print;
use crate::failure::Failure;
use crate::map::{self, Edge, Graph, Node, Tip};
use crate::out::out;
use crate::output::Output;
use crate::paint::Paint;

#[derive(clap::Args)]
pub struct GraphArgs {
    /// Draw it into this SVG file; `-` for standard output
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    svg: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long, requires = "svg")]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    lab: LabName,
}

/// Prints or draws the map.
pub fn run(args: &GraphArgs) -> Result<(), Failure> {
    let status = args.lab.open()?.status()?;
    if !status.running {
        let word = status::word(false, &status.name);
        return Err(Failure::job(format!("the lab {} is {word}", status.name)));
    }
    let graph = graph(&status);
    match &args.svg {
        Some(path) => {
            let output = Output::check_or_stdout("--svg", path, args.force)?;
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
