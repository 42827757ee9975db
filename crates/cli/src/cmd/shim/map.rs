//! `hawser shim map`: which destinations of programs go over SCION, and where to.

mod change;
mod list;

use std::path::{Path, PathBuf};

use clap::Subcommand;
use hawser_shim::map::{Destination, MapFile, Target};

use crate::cmd::folders;
use crate::failure::Failure;

/// The name of the file in the folder of configuration.
const FILE: &str = "map.toml";

#[derive(Subcommand)]
pub enum MapCommand {
    /// Let connections to a destination go over SCION
    Add(AddArgs),
    /// Let them go over IP again
    #[command(visible_alias = "del")]
    Remove(RemoveArgs),
    /// List what goes over SCION
    #[command(visible_alias = "show")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        map: MapFileArgs,
    },
}

#[derive(clap::Args)]
pub struct AddArgs {
    /// An IP prefix, an IP address or a host name; with :PORT one TCP port of it, with IPv6 in
    /// brackets
    #[arg(value_name = "PREFIX|NAME")]
    pub destination: Destination,
    /// The SCION host that serves it, ISD-AS,IP or with its shim's port ISD-AS,IP:PORT; an ISD-AS
    /// alone for the host of that AS with the destination's own IP address
    #[arg(value_name = "TARGET")]
    pub target: Target,
    /// Use at most this many paths, 1 to 8; as many as the shim does by default when not given
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u8).range(1..=hawser_shim::map::MAX_PATHS.into()))]
    pub paths: Option<u8>,
    /// Use only paths that a policy keeps: a YAML or JSON file, and the name of one of several in
    /// it
    #[arg(long, value_name = "FILE[:NAME]")]
    pub policy: Option<String>,
    /// Free text for readers
    #[arg(long, value_name = "TEXT")]
    pub comment: Option<String>,
    #[command(flatten)]
    pub map: MapFileArgs,
}

#[derive(clap::Args)]
pub struct RemoveArgs {
    /// What was added
    #[arg(value_name = "PREFIX|NAME")]
    pub destination: Destination,
    #[command(flatten)]
    pub map: MapFileArgs,
}

/// Which map is meant.
#[derive(clap::Args)]
pub struct MapFileArgs {
    /// The file with the map
    ///
    /// In TOML, or Shila's routing.json to read; when not given, hawser/map.toml in
    /// $XDG_CONFIG_HOME or ~/.config, and for root, unless $XDG_CONFIG_HOME is set,
    /// /etc/hawser/map.toml.
    #[arg(long, value_name = "FILE")]
    pub map: Option<PathBuf>,
}

impl MapFileArgs {
    /// The file's path; whether it was named.
    pub fn path(&self) -> Result<(PathBuf, bool), Failure> {
        if let Some(path) = &self.map {
            return Ok((path.clone(), true));
        }
        Ok((folders::config()?.join(FILE), false))
    }

    /// Reads the map. A file that was not named need not exist.
    pub fn read(&self) -> Result<MapFile, Failure> {
        let (path, is_named) = self.path()?;
        match MapFile::read(&path) {
            Err(error) if error.is_missing() && !is_named => empty(&path),
            // The named file is wrong use, its content is not.
            Err(error) if error.is_missing() => Err(Failure::usage(error)),
            read => Ok(read?),
        }
    }
}

fn empty(path: &Path) -> Result<MapFile, Failure> {
    Ok(MapFile::parse(path, "")?)
}

/// Runs `hawser shim map`.
pub fn run(command: MapCommand) -> Result<(), Failure> {
    match command {
        MapCommand::Add(args) => change::add(args),
        MapCommand::Remove(args) => change::remove(&args),
        MapCommand::List { json, map } => list::run(&map, json),
    }
}
