//! What a shim refuses: one clear line each.

use std::net::UdpSocket;
use std::process::{Command, Output};

use super::bed::{Bed, CLIENT, MAPPED, MPTCP, SERVER};
use crate::support::eventually;

/// Asserts a failure with the exit code, whose one line has these words.
fn refused(output: &Output, code: i32, words: &[&str]) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert_eq!(error.trim_end().lines().count(), 1, "{error}");
    for word in words {
        assert!(error.contains(word), "{word:?} is not in: {error}");
    }
    assert!(output.stdout.is_empty(), "{output:?}");
}

/// Waits until programs of the client, which connect to nowhere in particular, fail for this reason.
/// The first ones may fail for an earlier one: that the other host has started again, or no longer
/// refuses this one, is found out by connecting.
fn failure(bed: &Bed, words: &str) {
    let to = format!("{}:9", MAPPED[0]);
    eventually(words, || {
        let stream = bed.client.connect(&to);
        assert!(std::io::Read::read(&mut &stream, &mut [0]).is_err());
        let failures = bed.failures(CLIENT);
        failures.last().is_some_and(|text| text.contains(words))
    });
}

impl Bed {
    /// Runs `shim up` of the client, which must fail, with these flags, behind a shell command.
    fn fail(&self, before: &str, flags: &[&str]) -> Output {
        let name = format!("{}-fails", self.lab.name);
        let key = self.path("fails.key");
        let mut script = vec!["unshare", "-m", "sh", "-ec"];
        let run = format!("{before}\nexec \"$@\"");
        script.extend([
            run.as_str(),
            "sh",
            env!("CARGO_BIN_EXE_hawser"),
            "shim",
            "up",
        ]);
        script.extend(["--name", &name, "--key", &key]);
        script.extend(flags);
        let mut command = self.lab.exec(CLIENT, &script);
        command.env("XDG_CONFIG_HOME", self.folder.path());
        let output = command.output().unwrap();
        // Nothing of it remains.
        let down = self
            .lab
            .hawser(CLIENT, &["shim", "status", "--name", &name]);
        refused(&down, 1, &["no shim", "hawser shim up"]);
        output
    }
}

#[test]
fn a_shim_that_cannot_work_says_why_and_leaves_nothing() {
    let Some(bed) = Bed::new("shim-refused") else {
        return;
    };
    let has_unshare = Command::new("unshare").arg("-V").output().is_ok();
    if !has_unshare {
        eprintln!("skipped: needs unshare");
        return;
    }
    let hide = |path: &str| format!("mount -t tmpfs none {path}");

    // What the kernel lacks.
    let output = bed.fail(&hide("/dev/net"), &[]);
    refused(&output, 1, &["/dev/net/tun", "modprobe tun"]);
    let output = bed.fail(&hide("/proc/sys/net"), &MPTCP);
    refused(&output, 1, &["MPTCP", "use Linux 6.6 or later"]);
    let read_only = "mount --bind /proc/sys /proc/sys; mount -o remount,ro,bind /proc/sys";
    let output = bed.fail(read_only, &MPTCP);
    refused(&output, 1, &["/proc/sys/net/mptcp/enabled", "writable"]);
    let output = bed.fail("mount -t tmpfs -o ro none /run", &[]);
    refused(&output, 1, &["/run/hawser/shim"]);

    // Where it cannot listen.
    let elsewhere = bed.fail("", &["--listen", "192.0.2.1:31800"]);
    refused(&elsewhere, 1, &["192.0.2.1"]);
    let used = bed.client.run(|| UdpSocket::bind("0.0.0.0:31800")).unwrap();
    refused(
        &bed.fail("", &[]),
        1,
        &["another program has UDP port 31800"],
    );
    drop(used);

    // Maps.
    let (map, absent) = (bed.path("map.toml"), bed.path("absent.toml"));
    refused(&bed.fail("", &["--map", &absent]), 2, &[&absent]);
    bed.map([("10.99.0.0/16", "nowhere")]);
    let output = bed.fail("", &["--map", &map]);
    refused(&output, 1, &["map.toml:2: ", "1-ff00:0:4"]);
    bed.map([("127.0.0.0/8", SERVER)]);
    refused(&bed.fail("", &["--map", &map]), 1, &["loopback"]);

    // A daemon that does not run.
    let output = bed.fail("", &["--sciond", "127.0.0.1:1"]);
    refused(&output, 1, &["127.0.0.1:1", "start it"]);
}

#[test]
fn strangers_are_refused_on_both_sides() {
    let Some(bed) = Bed::new("shim-strangers") else {
        return;
    };
    let none = bed.path("none.toml");
    let server = bed.up(SERVER, &["--expose", "all", "--map", &none]);
    let client = bed.use_shim(&server, &[]);
    failure(&bed, &format!("the key {} is not allowed here", client.key));

    // Another one is not brought up beside it.
    let up = |flags: &[&str]| bed.shim(CLIENT, &[&["up", "--key"], flags].concat());
    let key = bed.path(&format!("{CLIENT}.key"));
    refused(&up(&[&key]), 1, &["is up already", "take it down first"]);
    let other = bed.path("other.key");
    let words = [client.key.as_str(), "hawser shim down"];
    refused(&up(&[&other]), 1, &words);
    refused(
        &bed.fail("", &[]),
        1,
        &["another shim", "take it down first"],
    );

    // Now it is allowed; then it does not know the server.
    server.kill();
    let allow = ["--allow", &client.key];
    let server = bed.up(
        SERVER,
        &[&["--expose", "all", "--map", &none], &allow[..]].concat(),
    );
    failure(&bed, "nothing listens on the port");
    client.kill();
    let map = bed.path("map.toml");
    let client = bed.up(CLIENT, &["--map", &map]);
    let words = format!(
        "the key of {} is {}, which is not known",
        server.address, server.key
    );
    failure(&bed, &words);
    client.kill();
    let stranger = format!("SHA256:{}", "A".repeat(43));
    let client = bed.up(CLIENT, &["--map", &map, "--server-key", &stranger]);
    failure(&bed, "not the given one");
    client.kill();

    // Loops are left out, the rest of the map counts.
    let here = client_host(&bed);
    bed.map([
        ("10.98.0.0/16", here.as_str()),
        ("10.0.0.0/8", SERVER),
        (MAPPED[0], server.address.as_str()),
    ]);
    let _client = bed.up(CLIENT, &["--map", &map, "--server-key", &server.key]);
    failure(&bed, "nothing listens on the port");
    let unmapped = bed
        .client
        .run(|| std::net::TcpStream::connect("10.98.0.1:9"));
    assert!(unmapped.is_err());
}

/// The SCION address of the client's host.
fn client_host(bed: &Bed) -> String {
    let output = bed.lab.exec(CLIENT, &["hostname", "-I"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let ip = text.split_whitespace().find(|ip| ip.starts_with("10."));
    format!("{CLIENT},{}", ip.unwrap())
}
