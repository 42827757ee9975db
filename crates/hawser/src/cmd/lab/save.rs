//! `hawser lab save`: the network as it is now, as a `.topo` file.

use std::path::Path;

use hawser_lab::Lab;

use crate::failure::Failure;
use crate::out::{errln, out};
use crate::output::Output;

/// Writes the file, and says what it cannot hold.
pub fn run(lab: &Lab, file: &Path, force: bool) -> Result<(), Failure> {
    // Before the work, as for every file that a command writes.
    let output = match file.as_os_str() == "-" {
        true => None,
        false => Some(Output::check("", file, force, &[])?),
    };
    let status = lab.status().map_err(Failure::job)?;
    let network = lab.network().map_err(Failure::job)?;
    let flags = lab.up_flags().map_err(Failure::job)?;
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
    match output {
        None => out(format_args!("{text}")),
        Some(output) => output.write(text.as_bytes())?,
    }
    for note in notes {
        errln!("hawser: {note}");
    }
    Ok(())
}
