//! Which files are a user's.

use std::fs;
use std::os::unix::fs::symlink;

use proptest::prelude::*;

use super::*;

fn user(folders: &[&Path]) -> User {
    User {
        name: "alice".into(),
        admin: false,
        torrents: false,
        token: None,
        certificate: None,
        folders: folders.iter().map(|path| (*path).to_owned()).collect(),
        rate: None,
        limit: None,
    }
}

fn place(root: &str, relative: &str) -> Place {
    Place {
        root: root.into(),
        relative: relative.into(),
    }
}

#[test]
fn places_are_in_the_folders() {
    let user = user(&["/data".as_ref(), "/srv/x".as_ref(), "/srv".as_ref()]);
    for (text, expected) in [
        ("a/b", place("/data", "a/b")),
        ("./a//b/", place("/data", "a/b")),
        ("/data", place("/data", "")),
        ("/data/a", place("/data", "a")),
        ("/srv/x/y", place("/srv/x", "y")),
        ("/srv/y", place("/srv", "y")),
    ] {
        assert_eq!(user.place(text).unwrap(), expected, "{text}");
    }
    for text in [
        "",
        "..",
        "../etc",
        "a/../../b",
        "/etc/shadow",
        "/database",
        "/data/../etc",
        "/",
        "a\0b",
    ] {
        let error = user.place(text).unwrap_err();
        assert!(matches!(error, PlaceError::Outside(_)), "{text:?}: {error}");
    }
    let nothing = self::user(&[]).place("a");
    assert!(matches!(nothing, Err(PlaceError::NoFolder)));
}

proptest! {
    /// Whatever is asked for, the place is below one of the folders.
    #[test]
    fn no_text_leaves_the_folders(text in "(/?(\\.\\.?|data|srv|[a-z]|\\PC)){0,6}/?") {
        let user = user(&["/data".as_ref(), "/srv".as_ref()]);
        if let Ok(place) = user.place(&text) {
            prop_assert!(user.folders.contains(&place.root));
            let plain = |component| matches!(component, Component::Normal(_));
            prop_assert!(place.relative.components().all(plain));
        }
    }
}

#[test]
fn links_are_not_followed_and_absent_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs::create_dir_all(root.join("a")).unwrap();
    fs::write(root.join("a/file"), b"x").unwrap();
    fs::write(folder.path().join("secret"), b"x").unwrap();
    symlink("../secret", root.join("link")).unwrap();
    symlink("..", root.join("up")).unwrap();
    socket(&root.join("fifo"));
    let user = user(&[&root]);
    let check = |text: &str| user.place(text).unwrap().check();
    for text in [".", "a", "a/file"] {
        check(text).unwrap();
    }
    assert!(matches!(check("b"), Err(PlaceError::Absent(_))));
    assert!(matches!(check("b/c"), Err(PlaceError::Absent(_))));
    assert!(matches!(check("link"), Err(PlaceError::Special(_))));
    assert!(matches!(check("fifo"), Err(PlaceError::Special(_))));
    let through = check("up/secret");
    assert!(
        matches!(through, Err(PlaceError::Store(StoreError::Link(_)))),
        "{through:?}"
    );
}

/// Makes what is neither a file nor a folder.
fn socket(path: &Path) {
    std::os::unix::net::UnixListener::bind(path).unwrap();
}

#[test]
fn tokens_and_certificates_identify_users() {
    let hash = |token: &str| TokenHash::of(token);
    let mut alice = user(&[]);
    alice.token = Some(hash("secret"));
    let mut bob = user(&[]);
    bob.name = "bob".into();
    bob.certificate = Some("CN=bob,O=site".into());
    let users = Users {
        all: vec![alice, bob],
        ..Users::default()
    };
    let name = |user: Option<&User>| user.map(|user| user.name.clone());
    assert_eq!(
        name(users.by_token(&TokenHash::of("secret"))).as_deref(),
        Some("alice")
    );
    for wrong in ["", "secre", "secret ", "Secret"] {
        assert_eq!(name(users.by_token(&TokenHash::of(wrong))), None);
    }
    assert_eq!(
        name(users.by_certificate("CN=bob,O=site")).as_deref(),
        Some("bob")
    );
    assert_eq!(name(users.by_certificate("")), None);
}

#[test]
fn limits_that_stay_the_same_are_shared_with_what_runs() {
    let parse = |all: &str, alice: &str| {
        let text = format!(
            "transfers.rate = '{all}'
            [users.alice]
            token_sha256 = '2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b'
            rate = '{alice}'
            [users.bob]
            token_sha256 = '3bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b'"
        );
        Config::parse(Path::new("daemon.toml"), &text).unwrap()
    };
    let limit = |users: &Users, name: &str| users.by_name(name).unwrap().limit().cloned().unwrap();
    let before = Users::new(&parse("50mbit", "10mbit"), TokenHash::of("owner"));
    // Limits are within each other if they are the same one.
    let is_same = |after: &Users, name: &str| {
        let (before, after) = (limit(&before, name), limit(after, name));
        before.is_within(&after) && after.is_within(&before)
    };
    let after = before.renewed(&parse("50mbit", "10mbit"));
    assert!(is_same(&after, "alice") && is_same(&after, "bob"));
    let after = before.renewed(&parse("50mbit", "20mbit"));
    assert!(!is_same(&after, "alice") && is_same(&after, "bob"));
    assert!(limit(&after, "alice").is_within(&limit(&before, "bob")));
    let after = before.renewed(&parse("60mbit", "10mbit"));
    assert!(!is_same(&after, "alice") && !is_same(&after, "bob"));
}

#[test]
fn the_limit_of_a_user_is_within_that_of_all() {
    let text = "
        transfers.rate = '50mbit'
        [users.alice]
        token_sha256 = '2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b'
        rate = '10mbit'
        [users.bob]
        token_sha256 = '3bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b'
    ";
    let limits = |text: &str| {
        let config = Config::parse(Path::new("daemon.toml"), text).unwrap();
        let users = Users::new(&config, TokenHash::of("owner"));
        ["alice", "bob"].map(|name| users.by_name(name).unwrap().limit().cloned())
    };
    let [alice, bob] = limits(text);
    let (alice, bob) = (alice.unwrap(), bob.unwrap());
    assert_eq!((alice.rate(), bob.rate()), (10_000_000, 50_000_000));
    assert!(alice.is_within(&bob) && !bob.is_within(&alice));
    let [alice, bob] = limits(&text.replace("transfers.rate = '50mbit'", ""));
    assert_eq!(
        (alice.map(|one| one.rate()), bob.is_none()),
        (Some(10_000_000), true)
    );
}
