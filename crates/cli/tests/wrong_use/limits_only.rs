//! Wrong use of `hawser coordinator --limits-only`. All of it is refused before the kernel's limits are touched.

use hawser_coordinator::Coordinator;

use crate::common::{failed, hawser, refused};

#[test]
fn wrong_arguments_and_a_state_in_use_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let serve = |args: &[&str]| {
        let state = state.to_str().unwrap();
        hawser(&[&["coordinator", "--limits-only", "--state", state], args].concat())
    };
    failed(&serve(&["--tls-cert", "a.pem"]), 2, &["--tls-key"]);
    let proxy = serve(&["--behind-proxy", "limits.example.org"]);
    failed(&proxy, 2, &["limits.example.org", "without a path"]);
    refused(
        &serve(&["--listen", "192.0.2.1:80"]),
        1,
        &[
            "cannot listen at 192.0.2.1:80: 192.0.2.1 is not an address of this host",
            "`ip address`",
        ],
    );
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap();
    let shows = format!("`ss -tlnp 'sport = {}'`", taken.port());
    refused(
        &serve(&["--listen", &taken.to_string()]),
        1,
        &["another program has TCP port", &shows],
    );
    let (cert, key) = (path("cert.pem"), path("key.pem"));
    let tls = serve(&[
        "--listen",
        "127.0.0.1:0",
        "--tls-cert",
        &cert,
        "--tls-key",
        &key,
    ]);
    refused(&tls, 1, &["cannot read", "cert.pem"]);
    let links = path("links.toml");
    let begin = |text: &str| {
        std::fs::write(&links, text).unwrap();
        serve(&["--listen", "127.0.0.1:0", "--links", &links])
    };
    let default = begin("default = '1mbit'");
    refused(&default, 2, &["links.toml", "--default"]);
    let interface = begin("[[link]]\ninterface = 7\nrate = '1mbit'");
    refused(
        &interface,
        1,
        &["links.toml", "link 1", "interface 7", "--from"],
    );

    assert!(!state.exists());

    let _there = Coordinator::open(&state).unwrap();
    let in_use = serve(&["--listen", "127.0.0.1:0"]);
    refused(&in_use, 1, &["is in use by another hawser", "--state"]);
}
