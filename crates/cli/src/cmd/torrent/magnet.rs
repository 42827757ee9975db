//! `hawser torrent magnet`: the magnet link of a `.torrent` file.

use std::path::PathBuf;

use hawser_magnet::{Magnet, MagnetPeer};
use hawser_torrent::PeerAddr;

use crate::cmd::{files, print};
use crate::failure::Failure;
use crate::out::outln;

#[derive(clap::Args)]
pub struct TorrentMagnetArgs {
    /// The .torrent file
    pub file: PathBuf,
    /// Name this peer in the link: 1-ff00:0:110,10.0.1.1:31000
    ///
    /// Or for example 10.0.1.1:6881 for one over plain IP. May be given several times.
    #[arg(long, value_name = "ADDR", num_args = 1..)]
    pub peer: Vec<PeerAddr>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Prints the link.
pub fn run(args: &TorrentMagnetArgs) -> Result<(), Failure> {
    let metainfo = files::metainfo(&args.file)?;
    let magnet = Magnet {
        info_hashes: metainfo.info_hashes(),
        name: Some(metainfo.name.clone()),
        trackers: metainfo
            .sources
            .trackers
            .iter()
            .flatten()
            .cloned()
            .collect(),
        web_seeds: metainfo.sources.web_seeds.clone(),
        peers: args.peer.iter().copied().map(MagnetPeer::Addr).collect(),
        ..Magnet::default()
    };
    match args.json {
        true => print::json(&serde_json::json!({ "magnet": magnet.to_string() }))?,
        false => outln!("{magnet}"),
    }
    Ok(())
}
