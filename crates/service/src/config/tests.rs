//! Configurations that are right, and what is said of wrong ones.

use proptest::prelude::*;

use super::*;

const RIGHT: &str = r#"
state = "state"

[transfers]
running = 3
paths = 2
congestion = "bbr"
known_hosts = "/etc/known_hosts"
rate = "2.5gbit"

[http]
listen = "127.0.0.1:8001"
anonymous = "alice"

[https]
listen = "0.0.0.0:8443"
certificate = "cert.pem"
key = "key.pem"
client_ca = "ca.pem"

[receive]
folder = "in"
rate = "1Gbit/s"
allowed_keys = "allowed"

[users.alice]
folders = ["data", "/srv"]

[users.bob]
certificate = "CN=bob"
token_sha256 = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
max_priority = 5
queued = 7
rate = "100mbit"
"#;

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(Path::new("/etc/hawser/daemon.toml"), text)
}

#[test]
fn relative_paths_are_from_the_root() {
    let config = Config::parse(Path::new("site/daemon.toml"), RIGHT).unwrap();
    let folder = std::env::current_dir().unwrap().join("site");
    assert_eq!(config.state, Some(folder.join("state")));
    assert_eq!(config.users["alice"].folders[0], folder.join("data"));
    // So that users can name their files by their whole path.
    let users = crate::users::Users::new(&config, TokenHash::of("owner"));
    let alice = users.by_name("alice").unwrap();
    let run = folder.join("data/run");
    assert_eq!(
        alice.place(run.to_str().unwrap()).unwrap().root,
        folder.join("data")
    );
    assert_eq!(config.path, folder.join("daemon.toml"));
}

#[test]
fn trying_again_takes_an_hour_unless_something_else_is_said() {
    let hour = Duration::from_secs(3600);
    let config = parse(RIGHT).unwrap();
    let of = |config: &Config| (config.transfers.retry, config.transfers.attempts);
    assert_eq!(of(&config), (hour, None));
    let config = parse("[transfers]\nretry = '30m'\nattempts = 5\n").unwrap();
    assert_eq!(of(&config), (hour / 2, Some(5)));
    let error = parse("[transfers]\nretry = 5\n").unwrap_err().to_string();
    assert!(error.contains("line 2"), "{error}");
    let error = parse("state = 's'\nreceive.data_port = 0\n")
        .unwrap_err()
        .to_string();
    assert!(error.contains("line 2"), "{error}");
}

#[test]
fn a_right_one_is_read() {
    let config = parse(RIGHT).unwrap();
    assert_eq!(config.state, Some("/etc/hawser/state".into()));
    assert_eq!(config.transfers.running, 3);
    let alice = &config.users["alice"];
    assert_eq!(
        alice.folders,
        [Path::new("/etc/hawser/data"), Path::new("/srv")]
    );
    let limits = config.limits();
    assert_eq!(limits.users["bob"].priority, 5);
    assert_eq!(limits.users["bob"].queued, 7);
    assert_eq!(config.transfers.congestion, "bbr".parse().unwrap());
    let hash = config.users["bob"].token_sha256.unwrap();
    assert_eq!(&hash.0[..2], [0x2b, 0xb8]);

    assert_eq!(config.transfers.rate, Some(2_500_000_000));
    assert_eq!(config.receive.unwrap().rate, Some(1_000_000_000));
    assert_eq!(config.users["bob"].rate, Some(100_000_000));
    assert_eq!(alice.rate, None);

    let least = parse("").unwrap();
    assert_eq!((least.state, least.http.listen), (None, None));
    let owner = &least.transfers;
    assert_eq!((owner.running, owner.keep_days), (4, 7));
}

#[test]
fn wrong_ones_name_the_file_the_key_and_the_remedy() {
    for (from, to, expected) in [
        (
            "running = 3",
            "runing = 3",
            "daemon.toml, line 5: `runing = 3`: `runing` is not known: write one of `running`",
        ),
        (
            "running = 3",
            "running = -3",
            "line 5: `running = -3`: a whole number that is not negative is expected, not -3",
        ),
        (
            "running = 3",
            "running = 0",
            "running: 0 transfers at once is none: write 1 or more",
        ),
        ("paths = 2", "paths = two", "line 6: `paths = two`:"),
        (
            "100mbit",
            "0",
            "`rate = \"0\"`: \"0\" is not a rate: write for example 10mbit",
        ),
        ("2.5gbit", "-1mbit", "\"-1mbit\" is not a rate"),
        (
            "\"1Gbit/s\"",
            "100",
            "`rate = 100`: a text is expected, not 100",
        ),
        (
            "\"bbr\"",
            "\"warp\"",
            "line 7: `congestion = \"warp\"`: \"warp\":",
        ),
        (
            "127.0.0.1:8001",
            "0.0.0.0:8001",
            "http.listen: tokens would cross the network unencrypted",
        ),
        ("127.0.0.1:8001", "localhost", "line 12:"),
        (
            "anonymous = \"alice\"",
            "anonymous = \"eve\"",
            "http.anonymous: there is no user \"eve\": add a section [users.eve]",
        ),
        (
            "anonymous = \"alice\"",
            "",
            "users.alice: nothing identifies this user: add `token_sha256` or `certificate`",
        ),
        (
            "client_ca = \"ca.pem\"",
            "",
            "users.bob.certificate: certificates are not asked for: add `client_ca` to [https]",
        ),
        ("allowed_keys = \"allowed\"", "", "receive: nobody may send"),
        ("2bb8", "2bg8", "write 64 hex digits"),
        ("2bb8", "ééb8", "write 64 hex digits"),
        ("queued = 7", "running = 0", "users.bob.running: 0"),
        (
            "\"data\"",
            "\"../data\"",
            "users.alice.folders: `..` is not allowed",
        ),
        (
            "[transfers]",
            "[network]\nbootstrap = \"https://a\"\n\n[transfers]",
            "line 5: `bootstrap = \"https://a\"`: ",
        ),
        (
            "[transfers]",
            "[network]\nbootstrap = \"http://a\"\nsciond = \"default\"\n\n[transfers]",
            "network.bootstrap: the bootstrap server has topology.json",
        ),
        (
            "[transfers]",
            "[network]\nbootstrap = \"http://a\"\nconfig_dir = \"b\"\n\n[transfers]",
            "network.bootstrap: the bootstrap server has topology.json",
        ),
        (
            "[users.bob]",
            "[users.bob",
            "line 29: `[users.bob`: unclosed table",
        ),
    ] {
        let text = RIGHT.replacen(from, to, 1);
        assert_ne!(text, RIGHT, "{from}");
        let error = parse(&text).unwrap_err().to_string();
        assert!(error.contains(expected), "{to}: {error}");
        assert!(error.starts_with("/etc/hawser/daemon.toml"), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let twice = format!("{RIGHT}\n[users.carol]\ncertificate = \"CN=bob\"");
    let error = parse(&twice).unwrap_err().to_string();
    assert!(
        error.contains("users.carol.certificate: users.bob has the same one"),
        "{error}"
    );
    for old in [
        "attempts = 3",
        "keep_days = 3",
        "retry = '1h'",
        "running = 3",
    ] {
        let error = parse(&format!("{old}\n{RIGHT}")).unwrap_err().to_string();
        let key = old.split(' ').next().unwrap();
        let expected = format!("line 1: `{old}`: `{key}` is now `transfers.{key}`");
        assert!(error.contains(&expected), "{error}");
    }
    let owner = format!("{RIGHT}\n[users.owner]\nadmin = true");
    let error = parse(&owner).unwrap_err().to_string();
    assert!(error.contains("users.owner: this is the user"), "{error}");
    let absent = Config::read(Path::new("/absent/daemon.toml")).unwrap_err();
    assert!(
        absent
            .to_string()
            .starts_with("cannot read /absent/daemon.toml: ")
    );
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC*") {
        let _ = parse(&text);
    }

    /// Neither does a right one of which a part is missing.
    #[test]
    fn no_part_of_a_right_one_panics(from in 0..RIGHT.len(), length in 0..40_usize) {
        let until = RIGHT.len().min(from + length);
        let _ = parse(&format!("{}{}", &RIGHT[..from], &RIGHT[until..]));
    }
}
