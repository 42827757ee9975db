//! `hawser torrent create` and `hawser torrent show`.

mod show;

use std::path::{Path, PathBuf};

use hawser_torrent::{CreateError, CreateOptions, Metainfo};

use super::files;
use super::work::Work;
use crate::cli::{TorrentArgs, TorrentCommand, TorrentCreateArgs};
use crate::failure::{Doing, Failure};
use crate::format;
use crate::out::outln;
use crate::output::Output;

/// Runs `hawser torrent`.
pub fn run(args: TorrentArgs) -> Result<(), Failure> {
    match args.command {
        TorrentCommand::Create(args) => create(args),
        TorrentCommand::Show { file, json } => show::run(&file, json),
    }
}

fn create(args: TorrentCreateArgs) -> Result<(), Failure> {
    let path = &args.path;
    // A missing input is reported before an existing output.
    files::check_input(path)?;
    let output = match &args.output {
        Some(output) => Output::check("-o", output, args.force, &[path])?,
        None => Output::check("", &beside(path)?, args.force, &[path])?,
    };
    let tiers = args.announce.into_iter().map(|tier| tier.0);
    let options = CreateOptions {
        piece_length: args.piece_length,
        comment: args.comment,
        trackers: tiers.collect(),
        web_seeds: args.web_seed,
        private: args.private,
        source: args.source,
    };
    let bytes = hashed(path, &options)?;
    // Read it back: a file that `get` refuses is useless.
    let metainfo = Metainfo::parse(&bytes).doing(path.display())?;
    output.write(&bytes)?;
    outln!(
        "{}: {} in {} pieces of {}, info-hash {}",
        output.path().display(),
        format::bytes(metainfo.pieces.total),
        metainfo.pieces.count(),
        format::bytes(metainfo.pieces.length.into()),
        metainfo.info_hash,
    );
    Ok(())
}

/// Hashes a file or folder into a torrent, with a bar on a terminal.
fn hashed(path: &Path, options: &CreateOptions) -> Result<Vec<u8>, Failure> {
    let mut work = Work::begin("hashing");
    hawser_torrent::create(path, options, |done, total| work.show(done, total)).map_err(|error| {
        match error {
            CreateError::PieceLength(_) => Failure::usage(format!("--piece-length: {error}")),
            error => Failure::job(error),
        }
    })
}

/// `PATH.torrent`, beside PATH.
fn beside(path: &Path) -> Result<PathBuf, Failure> {
    let absolute = path.canonicalize().doing(path.display())?;
    let name = absolute
        .file_name()
        .ok_or_else(|| Failure::usage(format!("{}: has no name: give -o FILE", path.display())))?;
    let mut file = name.to_owned();
    file.push(".torrent");
    Ok(match path.parent() {
        Some(parent) if path.file_name().is_some() => parent.join(file),
        _ => PathBuf::from(file),
    })
}
