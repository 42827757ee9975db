//! `hawser run`, UDP and echo requests through a shim, and what is left when shims are killed.

mod bed;
mod left;
mod program;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::process::{Child, Stdio};
use std::thread;

use self::bed::{Bed, CLIENT, MAPPED};
use self::left::{PingPong, Snapshot};
use crate::support::eventually;

/// Bytes of a transfer.
const BYTES: usize = 3 << 20;

/// Answers each connection with what it has received, until the test ends.
fn serve(listener: TcpListener) {
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut bytes = Vec::new();
            // A program that was killed resets its connection.
            if stream.read_to_end(&mut bytes).is_ok() {
                let _ = stream.write_all(&bytes);
            }
        }
    });
}

/// Returns each datagram, until the test ends.
fn echo(socket: UdpSocket) {
    thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).unwrap();
            socket.send_to(&buffer[..length], from).unwrap();
        }
    });
}

/// The next line that a command prints.
fn line(child: &mut Child) -> String {
    let mut line = String::new();
    let mut stdout = BufReader::with_capacity(1, child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    child.stdout = Some(stdout.into_inner());
    line
}

#[test]
fn a_command_in_a_control_group_is_captured_alone() {
    let Some(bed) = Bed::new("shim-run-group") else {
        return;
    };
    let before = Snapshot::with_groups(&bed);
    let (listener, port) = bed.listen();
    serve(listener);
    let to = format!("{}:{port}", MAPPED[0]);
    let mut transfer = bed.run(&["--explain", "-n", "2"], &format!("tcp {to} {BYTES}"));
    let output = transfer.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{output:?}");
    for part in [
        format!("{to} over SCION to {}", bed.address).as_str(),
        " taken: ",
        "1 connections, ",
        // How much of it each path carried is left to the kernel.
        " sent, ",
    ] {
        assert!(said.contains(part), "{part:?}: {said}");
    }
    // The kernel removes devices and groups a moment later.
    let as_before = || Snapshot::with_groups(&bed) == before;
    eventually("all is as before", as_before);
    // The server's host keeps nothing of it either.
    eventually("the session has ended", || bed.served_sessions().is_empty());

    // Exit codes.
    let not_executable = bed.path("map.toml");
    for (command, code) in [
        (&["sh", "-c", "exit 7"][..], 7),
        (&["sh", "-c", "kill -TERM $$"], 143),
        (&["/nonexistent/program"], 127),
        (&[&not_executable], 126),
    ] {
        let output = bed.run_command(&[], command).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{command:?}: {output:?}");
    }

    // A command that runs on; others have no route.
    let script =
        "cat /proc/self/cgroup; echo ready; trap 'exit 9' USR1; while :; do sleep 0.01; done";
    let start = || {
        let mut command = bed.run_command(&[], &["sh", "-c", script]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut groups = Vec::new();
        loop {
            match line(&mut child) {
                line if line == "ready\n" => break (child, groups),
                line => groups.push(line),
            }
        }
    };
    let (mut child, groups) = start();
    assert!(groups.concat().contains("/hawser-run-"), "{groups:?}");
    assert_ne!(Snapshot::with_groups(&bed), before);
    let outside = bed.program(&format!("tcp {to} 10")).output().unwrap();
    assert!(!outside.status.success(), "{outside:?}");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::USR1).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(9));
    eventually("all is as before", as_before);

    // Killed, it leaves what the next command or `shim down` removes.
    let (mut child, _) = start();
    let command = bed.children(&child);
    child.kill().unwrap();
    child.wait().unwrap();
    crate::support::kill(&command);
    // A program that the command had started may end a moment later.
    eventually("nothing is left", || {
        assert!(bed.shim(CLIENT, &["down"]).status.success());
        Snapshot::with_groups(&bed) == before
    });
}

#[test]
fn a_command_in_a_namespace_has_all_that_it_sends_carried() {
    let Some(bed) = Bed::new("shim-run-namespace") else {
        return;
    };
    let before = Snapshot::take(&bed);
    let (listener, port) = bed.listen();
    serve(listener);
    let socket = bed.server.run(|| UdpSocket::bind(("0.0.0.0", 0))).unwrap();
    let datagrams = socket.local_addr().unwrap().port();
    echo(socket);
    // Not mapped: on the client's own host.
    let own = bed.own_address();
    let near = bed.client.run(|| TcpListener::bind((own, 0))).unwrap();
    let near_port = near.local_addr().unwrap().port();
    serve(near);
    let near = bed.client.run(|| UdpSocket::bind((own, 0))).unwrap();
    let near_datagrams = near.local_addr().unwrap().port();
    echo(near);
    let far = MAPPED[0];
    for job in [
        format!("tcp {far}:{port} {BYTES}"),
        format!("tcp {own}:{near_port} {BYTES}"),
        format!("udp {far}:{datagrams} 1200"),
        format!("udp {own}:{near_datagrams} 1200"),
        format!("echo {far}"),
    ] {
        let output = bed.run(&["--namespace"], &job).output().unwrap();
        assert!(output.status.success(), "{job}: {output:?}");
    }
    eventually("all is as before", || Snapshot::take(&bed) == before);
}

#[test]
fn datagrams_and_echo_requests_go_through_a_shim() {
    let Some(bed) = Bed::new("shim-run-udp") else {
        return;
    };
    let client = bed.up();
    let socket = bed.server.run(|| UdpSocket::bind(("0.0.0.0", 0))).unwrap();
    let port = socket.local_addr().unwrap().port();
    echo(socket);
    let free = bed.server.run(|| UdpSocket::bind(("0.0.0.0", 0))).unwrap();
    let refused = free.local_addr().unwrap().port();
    drop(free);
    for ip in MAPPED.map(|ip| {
        if ip.contains(':') {
            format!("[{ip}]")
        } else {
            ip.into()
        }
    }) {
        for size in [1, 1200, 5000] {
            let output = bed.program(&format!("udp {ip}:{port} {size}")).output();
            let output = output.unwrap();
            assert!(output.status.success(), "{ip} {size}: {output:?}");
        }
        let output = bed.program(&format!("refused {ip}:{refused}")).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{ip}: {output:?}");
    }
    for ip in MAPPED {
        let output = bed.program(&format!("echo {ip}")).output().unwrap();
        assert!(output.status.success(), "{ip}: {output:?}");
    }
    eventually("there is one session", || bed.served_sessions().len() == 1);
    client.end();
    eventually("the session has ended", || bed.served_sessions().is_empty());
}

#[test]
fn a_slow_server_gets_all_that_an_ended_command_has_sent() {
    let Some(bed) = Bed::new("shim-run-slow") else {
        return;
    };
    let (listener, port) = bed.listen();
    // More than the server's buffer has room for.
    let bytes = 1 << 20;
    let job = format!("send {}:{port} {bytes}", MAPPED[0]);
    let output = bed.run(&["--namespace"], &job).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    eventually("the session has ended", || bed.served_sessions().is_empty());
    listener.set_nonblocking(true).unwrap();
    let mut accepted = None;
    eventually("the server has a connection", || {
        accepted = listener.accept().ok();
        accepted.is_some()
    });
    let (mut stream, _) = accepted.unwrap();
    stream.set_nonblocking(false).unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    assert_eq!(received.len(), bytes);
}

#[test]
fn nothing_is_left_and_other_programs_are_not_touched() {
    let Some(bed) = Bed::new("shim-run-left") else {
        return;
    };
    let before = Snapshot::take(&bed);
    let others = PingPong::begin(&bed);
    for kills in [false, true] {
        let client = bed.up();
        let (listener, port) = bed.listen();
        serve(listener);
        let to = format!("{}:{port}", MAPPED[0]);
        let output = bed.program(&format!("tcp {to} {BYTES}")).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_ne!(Snapshot::take(&bed), before);
        match kills {
            true => client.kill_all(&bed),
            false => drop(client),
        }
        assert!(bed.shim(CLIENT, &["down"]).status.success());
        eventually("all is as before", || Snapshot::take(&bed) == before);
    }
    others.end();
    // The names of sockets are gone as well.
    let sockets = fs::read_dir("/run/hawser/shim").unwrap().flatten();
    let names = sockets.map(|entry| entry.file_name().into_string().unwrap());
    assert_eq!(
        names
            .filter(|name| name.contains(&bed.name(CLIENT)))
            .count(),
        0
    );
}
