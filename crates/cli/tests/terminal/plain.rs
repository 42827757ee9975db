//! Colours and control sequences are printed only where they are allowed.

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use crate::peer::{self, Allowance, Content};
use crate::pty::Terminal;

/// Two peers, one of which sends wrong data, so that the download logs warnings.
fn peers(content: &Content) -> [SocketAddr; 2] {
    let (wrong, right) = (Allowance::default(), Allowance::default());
    wrong.add(usize::MAX);
    [
        peer::start(content, &right),
        peer::start_wrong(content, &wrong, &right),
    ]
}

/// All bytes that a download writes to a terminal with these environment variables.
fn written(variables: &[(&str, &str)]) -> String {
    let content = Content::new(32);
    let mut command = peer::get(&content, &peers(&content));
    command.env("RUST_LOG", "warn");
    command.envs(variables.iter().copied());
    let mut terminal = Terminal::start(command, 80, 24);
    assert!(terminal.end(|_| {}).success());
    let text = String::from_utf8(terminal.written.clone()).unwrap();
    assert!(text.contains("data.bin") && text.contains("WARN"), "{text}");
    text
}

/// Whether a text has colours (ECMA-48, SGR).
fn coloured(text: &str) -> bool {
    text.split("\x1b[").skip(1).any(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';');
        end.is_some_and(|end| rest[end..].starts_with('m'))
    })
}

#[test]
fn the_environment_turns_colours_off() {
    assert!(coloured(&written(&[])));
    for off in [("NO_COLOR", "1"), ("CLICOLOR", "0")] {
        let text = written(&[off]);
        assert!(!coloured(&text), "{off:?}: {text:?}");
    }
}

#[test]
fn a_dumb_terminal_gets_no_control_sequences() {
    let text = written(&[("TERM", "dumb")]);
    assert!(!text.contains('\x1b'), "{text:?}");
}

#[test]
fn without_a_terminal_there_are_no_control_sequences() {
    let content = Content::new(32);
    let mut command: Command = peer::get(&content, &peers(&content));
    command
        .env("RUST_LOG", "warn")
        .arg("--explain")
        .stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    for text in [&output.stdout, &output.stderr] {
        let text = String::from_utf8_lossy(text);
        assert!(!text.contains('\x1b') && !text.is_empty(), "{text:?}");
    }
}
