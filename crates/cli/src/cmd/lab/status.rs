//! `hawser lab status` and `hawser lab list`: running labs and their state, as a table or JSON.

use std::process::ExitCode;

use hawser_lab::{AsStatus, EndStatus, HostStatus, Lab, LinkStatus, ProcessStatus, Status};
use hawser_topology::{Shape, format_duration, format_loss, format_rate};

use super::name::LabName;
use crate::cmd::print;
use crate::failure::Failure;
use crate::format;
use crate::out::outln;

#[derive(clap::Args)]
pub struct StatusArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    lab: LabName,
}

/// Prints the state of a lab; exit code 1 if a part of it does not run.
pub fn run(args: &StatusArgs) -> Result<ExitCode, Failure> {
    let status = args.lab.open()?.status()?;
    if args.json {
        print::pretty_json(&status)?;
    } else {
        outln!("{}", table(&status).trim_end());
    }
    let is_whole = status.running && dead(&status) == 0;
    Ok(ExitCode::from(u8::from(!is_whole)))
}

/// Prints the labs of this user, one per line, or as a JSON array.
pub fn list(json: bool) -> Result<(), Failure> {
    let labs = Lab::list()?;
    if json {
        return print::pretty_json(&labs);
    }
    for lab in labs {
        let state = lab.damage.unwrap_or_else(|| word(lab.running, &lab.name));
        outln!("{:<20} {:>3} ASes  {state}", lab.name, lab.ases);
    }
    Ok(())
}

/// Whether a lab runs, and the remedy if it does not.
pub fn word(running: bool, name: &str) -> String {
    match running {
        true => "up".to_owned(),
        false => format!(
            "dead: bring it up again with `hawser lab up FILE --name {name}`, or clear it away with `hawser lab down --name {name}`"
        ),
    }
}

/// Said of a lab that has such links.
pub const PLAIN_IP: &str = "plain IP has the delay, jitter and loss of links, as SCION has\n";

/// Whether a link has delay, jitter or loss.
pub fn is_emulated<'a>(shapes: impl IntoIterator<Item = &'a Shape>) -> bool {
    shapes.into_iter().any(Shape::is_emulated)
}

/// The number of services that have died.
fn dead(status: &Status) -> usize {
    let services = status.ases.iter().flat_map(AsStatus::processes);
    services.filter(|process| process.is_dead()).count()
}

fn table(status: &Status) -> String {
    let mut state = word(status.running, &status.name);
    let dead = dead(status);
    if status.running && dead > 0 {
        state = format!(
            "up, but {dead} of its services died and are being started again (see the logs there)"
        );
    }
    let mut text = format!(
        "lab {} is {state} ({})\n",
        status.name,
        status.dir.display()
    );
    if status.no_offload {
        text += "without offloads: every packet crosses links and loopback by itself\n";
    }
    if status.enforce_mtu {
        text += "border routers refuse packets above the MTU of a link\n";
    }
    if is_emulated(status.links.iter().map(|link| &link.shape)) {
        text += PLAIN_IP;
    }
    text.push('\n');
    let processes = status.ases.iter().flat_map(AsStatus::processes);
    let widths = processes.map(|p| process(p).chars().count());
    let width = widths.fold(22, usize::max);
    let emulates = status.ases.iter().any(|a| a.emulator.is_some());
    let emulator = if emulates { "EMULATOR" } else { "" };
    let columns = ["AS", "HOST", "ROUTER", "CONTROL", emulator, "NOTE"];
    let width = [width, if emulates { width } else { 0 }];
    text += &as_line(columns, width);
    for a in &status.ases {
        text += &as_lines(a, width);
    }
    for a in &status.ases {
        text.extend(a.hosts.iter().map(|host| host_line(a, host)));
    }
    text.push('\n');
    text += &link_line(["LINK", "", "KIND", "STATE", "SHAPE", "A TO B", "B TO A"]);
    text.extend(status.links.iter().map(link_text));
    text += &rest_line(status);
    let mut drops = status.ases.iter().flat_map(drop_lines).peekable();
    if drops.peek().is_some() {
        text += &format!("\n{:<24} DROPPED PACKETS\n", "ROUTER");
        text.extend(drops);
    }
    text
}

/// Says how many links are at rest, if any.
fn rest_line(status: &Status) -> String {
    let rests = |link: &&LinkStatus| {
        [&link.a, &link.b]
            .iter()
            .all(|end| end.bfd_at_rest == Some(true))
    };
    match status.links.iter().filter(rests).count() {
        0 => String::new(),
        count => format!(
            "{count} of {} links are at rest: BFD sends once a second there until a packet crosses them\n",
            status.links.len()
        ),
    }
}

/// A line for a host that was added to an AS.
fn host_line(a: &AsStatus, host: &HostStatus) -> String {
    let what = match (host.guest, host.ended) {
        (true, true) => "attached, has ended",
        (true, false) => "attached",
        (false, _) => "added",
    };
    let (isd_as, address) = (a.isd_as.to_string(), host.address.to_string());
    format!("{isd_as:<18} {address:<16} host {} ({what})\n", host.name)
}

/// A line for each border router of an AS that has dropped packets, with the reasons.
fn drop_lines(a: &AsStatus) -> impl Iterator<Item = String> {
    a.routers.iter().filter_map(|router| {
        let drops = router
            .drops
            .iter()
            .flatten()
            .filter(|(_, count)| **count > 0);
        let reasons: Vec<_> = drops.map(|(reason, n)| format!("{n} {reason}")).collect();
        let line = || format!("{:<24} {}\n", router.name, reasons.join(", "));
        (!reasons.is_empty()).then(line)
    })
}

/// Columns of processes have the first width, that of emulators the second; 0 leaves it out.
fn as_line(columns: [&str; 6], [width, emulators]: [usize; 2]) -> String {
    let [name, host, router, control, emulator, note] = columns;
    let emulator = match emulators {
        0 => String::new(),
        width => format!("{emulator:<width$} "),
    };
    format!("{name:<18} {host:<16} {router:<width$} {control:<width$} {emulator}{note}\n")
}

fn link_line([a, b, kind, state, shape, sent, received]: [&str; 7]) -> String {
    format!("{a:<20} {b:<20} {kind:<6} {state:<5} {shape:<40} {sent:>12} {received:>12}\n")
}

/// One line, and another for each further border router.
fn as_lines(a: &AsStatus, width: [usize; 2]) -> String {
    let mut routers = a.routers.iter().map(|router| process(&router.process));
    let name = format!("{}{}", a.isd_as, if a.core { " core" } else { "" });
    let (host, router) = (a.host.to_string(), routers.next().unwrap_or_default());
    let (control, note) = (process(&a.control), a.note.as_deref().unwrap_or_default());
    let emulator = a.emulator.as_ref().map(process).unwrap_or_default();
    let mut text = as_line([&name, &host, &router, &control, &emulator, note], width);
    for router in routers {
        text += &format!("{:<18} {:<16} {router}\n", "", "");
    }
    text
}

fn process(process: &ProcessStatus) -> String {
    let running = |pid| {
        let memory = process.resident.map(format::bytes);
        format!("{pid} ({})", memory.as_deref().unwrap_or("?"))
    };
    let ended = process.ended.as_deref();
    match (process.alive, process.pid, ended) {
        (true, Some(pid), _) if !process.ours => format!("{} by hand", running(pid)),
        _ if !process.ours => "not ours".to_owned(),
        (true, Some(pid), None) => running(pid),
        (true, Some(pid), Some(_)) => format!("{} restarts: {}", running(pid), process.restarts),
        (_, _, Some(ended)) => match process.restart_in {
            Some(seconds) => format!("dead: {ended}, restart in {seconds:.1} s"),
            None => format!("dead: {ended}"),
        },
        _ => "dead".to_owned(),
    }
}

/// The state of a link: `mute` if it is up but receives nothing, because the far router does not
/// run or something outside the lab broke the link.
pub fn state(link: &LinkStatus) -> &'static str {
    match (link.up, link.a.bfd_up, link.b.bfd_up) {
        (false, ..) => "down",
        (true, Some(false), _) | (true, _, Some(false)) => "mute",
        (true, ..) => "up",
    }
}

fn link_text(link: &LinkStatus) -> String {
    let shape = &link.shape;
    let rate = shape.rate.map(format_rate);
    let mut words = vec![rate.unwrap_or_else(|| "no limit".to_owned())];
    if !shape.delay.is_zero() {
        words.push(format!("delay {}", format_duration(shape.delay)));
    }
    if !shape.jitter.is_zero() {
        words.push(format!("jitter {}", format_duration(shape.jitter)));
    }
    if shape.loss > 0.0 {
        words.push(format!("loss {}", format_loss(shape.loss)));
    }
    let interface = |end: &EndStatus| format!("{}#{}", end.isd_as, end.id);
    let sent = |end: &EndStatus| {
        let counters = end.counters.as_ref();
        counters.map_or_else(|| "?".to_owned(), |c| format::bytes(c.tx_bytes))
    };
    link_line([
        &interface(&link.a),
        &interface(&link.b),
        &format!("{:?}", link.kind).to_lowercase(),
        state(link),
        &words.join(", "),
        &sent(&link.a),
        &sent(&link.b),
    ])
}
