//! `hawser lab save`: the network as it is now, as a `.topo` file.

use std::path::PathBuf;

use super::name::LabName;
use crate::failure::Failure;
use crate::out::errln;
use crate::output::Output;

#[derive(clap::Args)]
pub struct SaveArgs {
    /// The file; `-` for standard output
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    lab: LabName,
}

/// Writes the file, and reports what the format cannot express.
pub fn run(args: &SaveArgs) -> Result<(), Failure> {
    let lab = args.lab.open()?;
    // Checked before the work, like every file that a command writes.
    let output = Output::check_or_stdout("", &args.file, args.force)?;
    let (status, network, flags) = (lab.status()?, lab.network()?, lab.up_flags()?);
    let mut text = format!(
        "# The lab {} as it was when `hawser lab save` wrote this.\n",
        lab.name()
    );
    let mut notes = Vec::new();
    for link in status.links.iter().filter(|link| !link.up) {
        let (a, b) = (&link.a, &link.b);
        let ends = format!("{}#{} - {}#{}", a.isd_as, a.id, b.isd_as, b.id);
        text += &format!("# Down: {ends}\n");
        notes.push(format!(
            "the link {ends} is down, and a .topo file cannot say so: after `lab up`, \
             `hawser lab link set {}#{} --down`",
            a.isd_as, a.id
        ));
    }
    if !flags.is_empty() {
        let flags = flags.join(" ");
        text += &format!("# Brought up with: {flags}\n");
        notes.push(format!(
            "a .topo file cannot say what the lab was brought up with: give `lab up` {flags} again"
        ));
    }
    text += &network.to_topo();
    output.write(text.as_bytes())?;
    for note in notes {
        errln!("hawser: {note}");
    }
    Ok(())
}
