//! `hawser image`: this program as a container image.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hawser_image::{Image, ImageError, Options, check_folder};

use crate::cmd::print;
use crate::failure::Failure;
use crate::out::{outln, plain};
use crate::output::Output;

/// The name of the image that `lab export` names too.
pub const NAME: &str = concat!("localhost/hawser:", env!("CARGO_PKG_VERSION"));
/// What `hawser --version` says of the commit: ` (4a84e091, 2026-11-27)`.
const COMMIT: &str = env!("HAWSER_VERSION_SUFFIX");
const LICENSE: &[u8] = include_bytes!("../../../../LICENSE");

#[derive(clap::Args)]
pub struct ImageArgs {
    /// The archive to write, whose name ends in .tar; any other name is that of a folder to make
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The name of the image, with a tag
    #[arg(long, value_name = "NAME", default_value = NAME)]
    name: String,
    /// Replace the archive if there is one
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Where the image goes.
enum Target {
    Archive(Output),
    Folder(PathBuf),
}

/// Writes the image, and says what is in it.
pub fn run(args: ImageArgs) -> Result<(), Failure> {
    let is_archive = args.output.extension().is_some_and(|end| end == "tar");
    let target = match is_archive {
        true => Target::Archive(Output::check("-o", &args.output, args.force, &[])?),
        false => {
            check_folder(&args.output).map_err(failure)?;
            Target::Folder(args.output.clone())
        }
    };
    let options = Options {
        name: args.name,
        program_name: "hawser".to_owned(),
        labels: labels(),
        files: vec![("usr/share/doc/hawser/LICENSE".to_owned(), LICENSE.to_vec())],
        created: created()?,
        library_path: std::env::var_os("LD_LIBRARY_PATH"),
    };
    // Also when the file was replaced since this process was started.
    let image = Image::of_program(Path::new("/proc/self/exe"), &options).map_err(failure)?;
    match target {
        Target::Archive(output) => output.write(&image.to_tar()?)?,
        Target::Folder(folder) => image.write_folder(&folder).map_err(failure)?,
    }
    let summary = image.summary();
    if args.json {
        return print::json(summary);
    }
    outln!(
        "{} for {} in {}: {:.1} MB",
        summary.name,
        summary.architecture,
        plain(&args.output.display().to_string()),
        summary.size as f64 / 1e6
    );
    outln!("  {}", summary.digest);
    for library in &summary.libraries {
        outln!("  with {}", library.display());
    }
    Ok(())
}

fn labels() -> BTreeMap<String, String> {
    let commit = COMMIT.trim_matches([' ', '(', ')']);
    let commit = commit.split(", ").next().filter(|text| !text.is_empty());
    let all = [
        ("title", Some("hawser")),
        ("description", Some(env!("CARGO_PKG_DESCRIPTION"))),
        ("version", Some(env!("CARGO_PKG_VERSION"))),
        ("licenses", Some(env!("CARGO_PKG_LICENSE"))),
        ("revision", commit),
    ];
    let label = |(name, value): (&str, Option<&str>)| {
        let name = format!("org.opencontainers.image.{name}");
        Some((name, value?.to_owned()))
    };
    all.into_iter().filter_map(label).collect()
}

/// The time of files, as builds that can be repeated name it (reproducible-builds.org).
fn created() -> Result<Option<u64>, Failure> {
    let Some(text) = std::env::var_os("SOURCE_DATE_EPOCH") else {
        return Ok(None);
    };
    let seconds = text.to_str().and_then(|text| text.parse().ok());
    // Twelve octal digits are the largest time in an archive.
    match seconds.filter(|seconds| *seconds < 1 << 33) {
        Some(seconds) => Ok(Some(seconds)),
        None => Err(Failure::usage(format_args!(
            "SOURCE_DATE_EPOCH {text:?}: it is a time in seconds since 1970, as of date +%s"
        ))),
    }
}

fn failure(error: ImageError) -> Failure {
    match error.is_wrong_use() {
        true => Failure::usage(error),
        false => error.into(),
    }
}
