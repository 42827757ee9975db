//! `hawser lab attach`, `lab detach`, and `lab add host`: hosts of an AS beside its own.

use hawser_lab::{Attached, Guest};
use hawser_topology::IsdAsn;
use serde_json::json;

use super::name::LabName;
use crate::cmd::address::one_as;
use crate::failure::Failure;
use crate::out::{errln, outln};

#[derive(clap::Args)]
pub struct AttachArgs {
    /// A process, as the first one of a container, by its number; a name of `ip netns`; or a path
    #[arg(value_name = "PID|NETNS")]
    guest: Guest,
    /// The AS, for example 1-ff00:0:112
    #[arg(value_name = "AS", value_parser = one_as)]
    isd_as: IsdAsn,
    /// The name of the host in `lab status` and `lab detach`; host2 and so on when not given
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    lab: LabName,
}

#[derive(clap::Args)]
pub struct DetachArgs {
    /// The name of the host, or what it was attached by
    #[arg(value_name = "HOST|PID|NETNS")]
    guest: String,
    #[command(flatten)]
    lab: LabName,
}

#[derive(clap::Args)]
pub struct AddHostArgs {
    /// The name of the host, for `lab exec --host`
    #[arg(value_name = "NAME")]
    host: String,
    /// The AS, for example 1-ff00:0:112
    #[arg(value_name = "AS", value_parser = one_as)]
    isd_as: IsdAsn,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    lab: LabName,
}

#[derive(clap::Args)]
pub struct RemoveHostArgs {
    /// The name of the host
    #[arg(value_name = "NAME")]
    host: String,
    /// Its AS
    #[arg(value_name = "AS", value_parser = one_as)]
    isd_as: IsdAsn,
    #[command(flatten)]
    lab: LabName,
}

/// Attaches a namespace, and prints what its programs need as lines for a shell.
pub fn attach(args: AttachArgs) -> Result<(), Failure> {
    let lab = args.lab.open()?;
    let attached = lab.attach(&args.guest, args.isd_as, args.host)?;
    print(&attached, args.json);
    if !args.json {
        outln!("export SCION_DAEMON={}", attached.daemon);
    }
    Ok(())
}

/// Takes a guest out.
pub fn detach(args: &DetachArgs) -> Result<(), Failure> {
    let (isd_as, name) = args.lab.open()?.detach(&args.guest)?;
    outln!("{name} of {isd_as} is detached");
    Ok(())
}

/// Makes a host.
pub fn add(args: AddHostArgs) -> Result<(), Failure> {
    let lab = args.lab.open()?;
    print(&lab.add_host(args.isd_as, args.host)?, args.json);
    Ok(())
}

/// Removes a host.
pub fn remove(args: &RemoveHostArgs) -> Result<(), Failure> {
    Ok(args.lab.open()?.remove_host(args.isd_as, &args.host)?)
}

/// Prints the address of a host, as a comment of a shell, and where it finds the network.
fn print(host: &Attached, is_json: bool) {
    let address = format!("{},{}", host.isd_as, host.address);
    if is_json {
        let object = json!({
            "isd_as": host.isd_as.to_string(),
            "host": host.name,
            "address": address,
            "daemon": host.daemon.to_string(),
            "bootstrap": format!("http://{}", host.bootstrap),
            "notes": host.notes,
        });
        outln!("{object:#}");
    } else {
        outln!("# {} is {address}", host.name);
        outln!("# bootstrap server: http://{}", host.bootstrap);
    }
    for note in &host.notes {
        errln!("hawser: {note}");
    }
}
