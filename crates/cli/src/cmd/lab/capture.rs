//! `hawser lab capture`: records the packets of a link, for Wireshark.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use hawser_lab::{Capture, CaptureWriter, SNAP_LENGTH};
use hawser_path::Interface;
use hawser_topology::parse_duration;

use super::name::LabName;
use crate::cmd::process;
use crate::failure::{Doing, Failure};
use crate::out::errln;
use crate::output::Output;

#[derive(clap::Args)]
pub struct CaptureArgs {
    /// The end of the link to capture at, for example 1-ff00:0:110#1
    #[arg(value_name = "A#IF")]
    interface: Interface,
    /// The file to write, in pcapng format; `-` for standard output
    #[arg(long, short, value_name = "FILE")]
    write: PathBuf,
    /// Keep only the first BYTES bytes of each packet, for example 256: enough for the headers
    #[arg(long, short, value_name = "BYTES", default_value_t = SNAP_LENGTH,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(SNAP_LENGTH)))]
    snapshot_length: u32,
    /// End after N packets
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after this time, for example 10s
    #[arg(long, short = 'G', value_name = "TIME", value_parser = parse_duration)]
    time: Option<Duration>,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    lab: LabName,
}

/// Bytes that are buffered before they are written.
const BUFFER: usize = 1 << 20;
/// Frames taken before the next check whether to end.
const TURN: usize = 256;

/// Captures until a signal, the time limit, or the last requested packet.
pub fn run(args: &CaptureArgs) -> Result<(), Failure> {
    let lab = args.lab.open()?;
    let to_stdout = args.write.as_os_str() == "-";
    if to_stdout && std::io::stdout().is_terminal() {
        return Err(Failure::usage(
            "lab capture: -w - prints binary data: pipe it on, for example into `wireshark -k -i -`",
        ));
    }
    // Opened before any thread is started, and before the file is created.
    let capture = lab.capture(args.interface.isd_as, args.interface.id)?;
    let out: Box<dyn Write> = match to_stdout {
        true => Box::new(std::io::stdout()),
        false => Box::new(create(&args.write, args.force)?),
    };
    record(args, capture, out)
}

/// Creates the file, which grows as packets arrive; a pipe or a device is opened as it is.
fn create(path: &Path, force: bool) -> Result<File, Failure> {
    Output::check("-w", path, force, &[])?;
    let there = path.exists();
    let mut options = File::options();
    options.write(true).create_new(!there).truncate(there);
    options.open(path).doing(path.display())
}

fn record(args: &CaptureArgs, mut capture: Capture, out: Box<dyn Write>) -> Result<(), Failure> {
    let stop = stop_after(args.time)?;
    let out = BufWriter::with_capacity(BUFFER, out);
    let interface = &capture.interface;
    let mut file = match CaptureWriter::new(out, interface, args.snapshot_length) {
        Ok(file) => file,
        Err(error) => return end(args, Err(error)),
    };
    errln!(
        "capturing at {} of the link to {}; Ctrl-C ends it",
        interface.near,
        interface.far
    );
    let enough = args.count.unwrap_or(u64::MAX);
    let mut written = file.flush();
    while written.is_ok() && file.frames() < enough {
        if !capture.wait(stop.as_fd()).doing("capturing")? {
            break;
        }
        written = take(&mut capture, &mut file, enough).doing("capturing")?;
    }
    let frames = file.frames();
    let dropped = capture.dropped().doing("capturing")?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let written = written.and_then(|()| file.finish(now.unwrap_or_default(), dropped));
    errln!("{frames} packets captured, {dropped} dropped by the kernel");
    end(args, written)
}

/// Whether the end of writing is a failure.
fn end(args: &CaptureArgs, written: std::io::Result<()>) -> Result<(), Failure> {
    match written {
        // The reader closed the pipe, as `head` does.
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.doing(args.write.display()),
    }
}

/// A socket that closes at a signal, or after a time.
pub(super) fn stop_after(duration: Option<Duration>) -> Result<UnixStream, Failure> {
    let (stop, stopper) = UnixStream::pair().doing("starting")?;
    let runtime = process::small_runtime()?;
    let interrupted = runtime.block_on(async { process::interrupted() })?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                () = interrupted => {}
                () = tokio::time::sleep(duration.unwrap_or(Duration::MAX)) => {}
            }
        });
        drop(stopper);
    });
    Ok(stop)
}

/// Writes the waiting frames, at most [`TURN`]: the outer error is the socket's, the inner one the
/// file's.
fn take(
    capture: &mut Capture,
    file: &mut CaptureWriter<BufWriter<Box<dyn Write>>>,
    enough: u64,
) -> std::io::Result<std::io::Result<()>> {
    for _ in 0..TURN {
        if file.frames() >= enough {
            break;
        }
        let written = match capture.next_frame()? {
            Some(frame) => file.frame(&frame),
            // All frames so far are visible to a reader, and survive SIGKILL.
            None => return Ok(file.flush()),
        };
        if written.is_err() {
            return Ok(written);
        }
    }
    Ok(Ok(()))
}
