//! `hawser torrent create` and `hawser torrent show`.

use crate::out::{outln, plain};
use crate::{
    cli::{TorrentArgs, TorrentCommand},
    cmd,
    failure::{Doing, Failure},
    format,
};
use hawser_torrent::{CreateError, CreateOptions, Metainfo};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::{Path, PathBuf};

/// Runs `hawser torrent`.
pub fn run(args: TorrentArgs) -> Result<(), Failure> {
    match args.command {
        TorrentCommand::Create {
            path,
            output,
            piece_length,
        } => create(&path, output, piece_length),
        TorrentCommand::Show { file, json } => show(&file, json),
    }
}

fn create(path: &Path, output: Option<PathBuf>, piece_length: Option<u32>) -> Result<(), Failure> {
    let output = match output {
        Some(output) => output,
        None => beside(path)?,
    };
    let mut options = CreateOptions::default();
    options.piece_length = piece_length;
    let bytes = hashed(path, &options)?;
    // Read back what is written: a file that `get` refuses is no use.
    let metainfo = Metainfo::parse(&bytes).doing(path.display())?;
    std::fs::write(&output, &bytes).doing(output.display())?;
    outln!(
        "{}: {} in {} pieces of {}, info-hash {}",
        output.display(),
        format::bytes(metainfo.total_length()),
        metainfo.piece_count(),
        format::bytes(metainfo.piece_length().into()),
        metainfo.info_hash(),
    );
    Ok(())
}

/// Hashes a file or folder into a torrent, with a bar on a terminal.
pub fn hashed(path: &Path, options: &CreateOptions) -> Result<Vec<u8>, Failure> {
    let bar = ProgressBar::new(0).with_style(bar_style());
    bar.set_message("hashing");
    let bytes = hawser_torrent::create(path, options, |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    })
    .map_err(|error| match error {
        CreateError::PieceLength(_) => Failure::usage(format!("--piece-length: {error}")),
        error => Failure::job(error),
    });
    bar.finish_and_clear();
    bytes
}

/// The style of a bar that counts bytes of local work.
pub fn bar_style() -> ProgressStyle {
    ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
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

fn show(file: &Path, json: bool) -> Result<(), Failure> {
    let metainfo = cmd::read_metainfo(file)?;
    if json {
        let files: Vec<_> = metainfo
            .files()
            .iter()
            .map(|f| serde_json::json!({"path": f.path, "length": f.length}))
            .collect();
        let object = serde_json::json!({
            "name": metainfo.name(),
            "info_hash": metainfo.info_hash().to_string(),
            "total_length": metainfo.total_length(),
            "piece_length": metainfo.piece_length(),
            "pieces": metainfo.piece_count(),
            "comment": metainfo.comment(),
            "created_by": metainfo.created_by(),
            "creation_date": metainfo.creation_date(),
            "files": files,
        });
        outln!("{object:#}");
        return Ok(());
    }
    outln!("name:      {}", plain(metainfo.name()));
    outln!("info-hash: {}", metainfo.info_hash());
    outln!(
        "size:      {} ({} bytes)",
        format::bytes(metainfo.total_length()),
        metainfo.total_length()
    );
    outln!(
        "pieces:    {} of {}",
        metainfo.piece_count(),
        format::bytes(metainfo.piece_length().into())
    );
    if let Some(comment) = metainfo.comment() {
        outln!("comment:   {}", plain(comment));
    }
    if metainfo.is_multi_file() {
        outln!("files:");
        for f in metainfo.files() {
            outln!(
                "  {:>12}  {}",
                format::bytes(f.length),
                plain(&f.path.display().to_string())
            );
        }
    }
    Ok(())
}
