//! `hawser torrent files`: the files of a torrent of the daemon, and which of them are downloaded.

use std::path::{Path, PathBuf};

use hawser_client::http::body::{Detail, FileChange, Rename, Torrent, TorrentChange};
use hawser_client::{FilePriority, Method};
use hawser_torrent::Metainfo;

use super::{RemoteArgs, path, print};
use crate::cmd::get::selecting::{Files, Listed, SelectionArgs};
use crate::cmd::process;
use crate::failure::Failure;

/// Where the numbers and names of files are shown.
const SHOWN: &str = "`hawser torrent files` lists them";

#[derive(clap::Args)]
pub struct FilesArgs {
    /// The torrent: its info-hash or the beginning of that, or its name
    torrent: String,
    /// Download these files, too, by number or pattern: 1,3-5 or '*.iso,docs/'
    ///
    /// The numbers are those that this command shows. May be given several times.
    #[arg(long, value_name = "FILES", value_delimiter = ',')]
    want: Vec<Files>,
    /// Do not download these files, unless they are those of --want: '*' for all others
    ///
    /// What is there of them stays.
    #[arg(long, value_name = "FILES", value_delimiter = ',')]
    skip: Vec<Files>,
    /// Give the files of --want this priority
    #[arg(long, value_name = "LEVEL", value_parser = super::priority::<FilePriority>(), requires = "want")]
    priority: Option<FilePriority>,
    /// Fetch the content from its beginning to its end
    #[arg(long, conflicts_with = "rarest_first")]
    sequential: bool,
    /// Fetch the rarest pieces first
    #[arg(long)]
    rarest_first: bool,
    /// Give a file or folder another name; PATH is as it is shown, the torrent's name first
    #[arg(long, value_names = ["PATH", "NAME"], num_args = 2)]
    rename: Vec<String>,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl FilesArgs {
    /// The change of a torrent that is wanted; `None` if it is only to be shown.
    ///
    /// # Errors
    /// If an argument stands for no file.
    fn change(&self, detail: &Detail) -> Result<Option<TorrentChange>, Failure> {
        let files = self.file_changes(detail)?;
        let sequential = match (self.sequential, self.rarest_first) {
            (false, false) => None,
            (is_sequential, _) => Some(is_sequential),
        };
        let rename = match &self.rename[..] {
            [path, name] => Some(Rename {
                path: path.clone(),
                name: name.clone(),
            }),
            _ => None,
        };
        let is_change = !files.is_empty() || sequential.is_some() || rename.is_some();
        Ok(is_change.then(|| TorrentChange {
            files,
            sequential,
            rename,
            ..TorrentChange::default()
        }))
    }

    fn file_changes(&self, detail: &Detail) -> Result<Vec<FileChange>, Failure> {
        if self.want.is_empty() && self.skip.is_empty() {
            return Ok(Vec::new());
        }
        if detail.files.is_empty() {
            return Err(Failure::job(
                "the files are not known before the metadata of the magnet link is: start the torrent first",
            ));
        }
        let paths = detail.files.iter().map(|file| inner(Path::new(&file.path)));
        let listed = Listed {
            name: &detail.torrent.name,
            paths: paths.collect(),
            shown: SHOWN,
        };
        let mut changes = Vec::new();
        // The files of --want come last, so that they are downloaded whatever --skip says.
        for (flag, some, wanted) in [("--skip", &self.skip, false), ("--want", &self.want, true)] {
            let mut chosen = vec![false; detail.files.len()];
            for one in some {
                listed.set(&mut chosen, flag, one, true)?;
            }
            let indices = detail.files.iter().zip(&chosen);
            let indices = indices
                .filter(|(_, chosen)| **chosen)
                .map(|(file, _)| file.index);
            if !some.is_empty() {
                changes.push(FileChange {
                    indices: match chosen.contains(&false) {
                        true => Some(indices.collect()),
                        false => None,
                    },
                    wanted: Some(wanted),
                    priority: self.priority.filter(|_| wanted),
                });
            }
        }
        Ok(changes)
    }
}

/// The path of a file in its torrent, without the torrent's name if that is a folder.
fn inner(path: &Path) -> PathBuf {
    let is_in_folder = path.components().nth(1).is_some();
    path.components().skip(usize::from(is_in_folder)).collect()
}

/// The change for the files that are not selected of a torrent that is added.
///
/// # Errors
/// If an argument stands for no file, or no file is left.
pub fn of(args: &SelectionArgs, metainfo: &Metainfo) -> Result<Vec<FileChange>, Failure> {
    if !args.is_partial() {
        return Ok(Vec::new());
    }
    let selection = args.selection(metainfo)?;
    let files = metainfo.files.iter().zip(0_u32..);
    let files = files
        .filter(|(file, _)| !file.padding)
        .map(|(_, index)| index);
    let (wanted, others): (Vec<u32>, Vec<u32>) =
        files.partition(|index| selection.has(*index as usize));
    let change = |indices, wanted| FileChange {
        indices,
        wanted: Some(wanted),
        priority: None,
    };
    // The shorter list: the daemon keeps the exceptions.
    Ok(match wanted.len() < others.len() {
        true => vec![change(None, false), change(Some(wanted), true)],
        false => vec![change(Some(others), false)],
    })
}

/// Runs `hawser torrent files`.
pub fn run(args: &FilesArgs) -> Result<(), Failure> {
    let detail: Detail = process::small_runtime()?.block_on(async {
        let remote = args.remote.find().await?;
        let path = path(&remote, &args.torrent).await?;
        let detail: Detail = remote.ask(Method::GET, &path).await?;
        let Some(change) = args.change(&detail)? else {
            return Ok::<_, Failure>(detail);
        };
        let _: Torrent = remote.send(Method::PATCH, &path, &change).await?;
        Ok(remote.ask(Method::GET, &path).await?)
    })?;
    args.remote.print(&detail, print::detail)
}
