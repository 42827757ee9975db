//! Torrents that are not as BEP 3 wants them, as the world has them.

use super::*;

/// The paths that files get.
fn paths(torrent: &Torrent) -> Vec<String> {
    let metainfo = torrent.parse().unwrap();
    let files = metainfo.files.iter().filter(|file| !file.padding);
    files.map(|file| file.path.display().to_string()).collect()
}

/// A file entry written by hand.
fn entry(rest: &str) -> Vec<u8> {
    let pieces = "a".repeat(20);
    format!(
        "d4:infod5:filesl{rest}d6:lengthi5e4:pathl4:lasteee4:name3:set12:piece lengthi16384e\
         6:pieces20:{pieces}ee"
    )
    .into_bytes()
}

#[test]
fn names_are_made_safe_rather_than_refused() {
    let long = "x".repeat(300) + ".flac";
    for (bad, safe) in [
        ("..", "_"),
        (".", "_"),
        ("", "_"),
        ("/etc", "etc"),
        ("a/b", "ab"),
        ("a\\b", "ab"),
        ("nul\0byte", "nulbyte"),
        (&long, &("x".repeat(240) + ".flac")),
    ] {
        assert_eq!(
            paths(&Torrent::several(&[&["ok", bad], &[bad, "ok"]])),
            [format!("file/ok/{safe}"), format!("file/{safe}/ok")],
        );
        let torrent = Torrent {
            name: bad.into(),
            ..Torrent::single()
        };
        let metainfo = torrent.parse().unwrap();
        let hash = metainfo.info_hash.to_string();
        // A name that names no file is that of the torrent itself.
        let name = if [".", ".."].contains(&bad) {
            &hash
        } else {
            safe
        };
        assert_eq!(&metainfo.name, name);
        assert_eq!(metainfo.files[0].path, Path::new(name));
        assert_eq!(metainfo.files[0].original.as_deref(), Some(bad));
    }
    let latin = Torrent {
        name: vec![b'c', b'a', b'f', 0xe9],
        ..Torrent::single()
    };
    assert_eq!(latin.parse().unwrap().name, "caf_");
}

#[test]
fn paths_that_nothing_can_be_made_of_are_refused() {
    let deep = vec!["d"; 101];
    let long = vec!["long-enough-name".repeat(8); 40];
    let long: Vec<&str> = long.iter().map(String::as_str).collect();
    for path in [&deep, &long] {
        let error = Torrent::several(&[path]).parse().unwrap_err();
        assert!(
            matches!(error, MetainfoError::PathTooLong { .. }),
            "{error}"
        );
        assert!(error.to_string().len() < 300, "{error}");
    }
    let empty: &[&str] = &[];
    assert!(Torrent::several(&[empty]).parse().is_err());
}

#[test]
fn files_of_one_name_are_renamed() {
    assert_eq!(
        paths(&Torrent::several(&[
            &["a.txt"],
            &["a.txt"],
            &["d", "b"],
            &["d"]
        ])),
        ["file/a.txt", "file/a.1.txt", "file/d/b", "file/d.1"]
    );
    let metainfo = Torrent::several(&[&["a"], &["s", "a/"], &["s", "a"]])
        .parse()
        .unwrap();
    let originals: Vec<_> = metainfo
        .files
        .iter()
        .map(|file| file.original.as_deref())
        .collect();
    assert_eq!(originals, [None, Some("s/a/"), Some("s/a")]);
}

#[test]
fn padding_is_kept_apart() {
    let mut torrent = Torrent::several(&[&["a"], &[".pad", "1"], &["b"], &[".pad", "1"]]);
    torrent.files[1].2 = "p";
    torrent.files[3].2 = "p";
    assert_eq!(paths(&torrent), ["file/a", "file/b"]);
    // BitComet's, by name, and one without any name.
    let bitcomet = Torrent::several(&[&["a"], &["_____padding_file_0_read me"], &["b"]]);
    assert_eq!(paths(&bitcomet), ["file/a", "file/b"]);
    let mut nameless = Torrent::several(&[&["a"], &[], &["b"]]);
    nameless.files[1].2 = "p";
    assert_eq!(paths(&nameless), ["file/a", "file/b"]);
}

#[test]
fn links_that_stay_inside_are_told_from_others() {
    let link =
        |path: &str, target: &str| format!("d4:attr1:l4:pathl{path}e12:symlink pathl{target}ee");
    for (target, leads) in [
        ("4:last", Some("../last")),
        ("1:.2:..4:last", Some("../last")),
        ("1:d", None),
        ("4:/etc6:passwd", None),
        ("2:..6:passwd", None),
        ("", None),
        ("1:d4:link", None),
    ] {
        let text = entry(&link("1:d4:link", target));
        let metainfo = Metainfo::parse(&text).unwrap();
        let [one] = &metainfo.links[..] else {
            panic!("{target}: {metainfo:?}")
        };
        assert_eq!(one.path, Path::new("set/d/link"));
        // A folder with nothing but the link in it is one of the torrent's too.
        let leads = if target == "1:d" { Some(".") } else { leads };
        assert_eq!(one.target.as_deref(), leads.map(Path::new), "{target}");
        assert_eq!(metainfo.files.len(), 1);
    }
    // Without a target it is an empty file.
    let text = entry("d4:attr1:l4:pathl4:linkee");
    let metainfo = Metainfo::parse(&text).unwrap();
    assert!(metainfo.links.is_empty());
    assert_eq!(metainfo.files[0].length, 0);
}

#[test]
fn what_stands_around_the_info_dictionary_does_not_matter() {
    let plain = Torrent::single().bytes();
    let hash = Metainfo::parse(&plain).unwrap().info_hash;
    let info =
        &plain[plain.windows(6).position(|it| it == b"4:info").unwrap() + 6..plain.len() - 1];
    let with = |before: &str, after: &str| {
        let mut bytes = before.as_bytes().to_vec();
        bytes.extend(info);
        bytes.extend(after.as_bytes());
        Metainfo::parse(&bytes).unwrap()
    };
    for (before, after) in [
        ("d4:info", "e"),
        ("d4:info", "e\n"),
        ("d4:info", "e\r\n\0garbage"),
        // Keys out of order, and numbers that are not canonical.
        ("d3:zzzi00e4:info", "7:comment1:xe"),
        ("d4:info", "13:creation datei99999999999999999999ee"),
        // Of keys that are repeated the first counts.
        ("d4:info", "4:infod6:lengthi1eee"),
    ] {
        assert_eq!(with(before, after).info_hash, hash, "{before}…{after}");
    }
}

#[test]
fn keys_out_of_order_in_the_info_dictionary_make_its_hash() {
    // SHA-1 of the info dictionary as it stands, with `pieces` before `length`, worked out with
    // sha1sum.
    let text =
        b"d4:infod6:pieces20:aaaaaaaaaaaaaaaaaaaa4:name1:a6:lengthi1e12:piece lengthi16384eee";
    assert_eq!(
        Metainfo::parse(text).unwrap().info_hash.to_string(),
        "debcfe8ce5f3062c374f051f18f17f2bf1256548"
    );
}

#[test]
fn names_in_utf8_come_before_others() {
    let text = entry("d6:lengthi1e4:pathl3:\u{fffd}e10:path.utf-8l5:caf\u{e9}ee");
    let metainfo = Metainfo::parse(&text).unwrap();
    assert_eq!(metainfo.files[0].path, Path::new("set/caf\u{e9}"));
}

#[test]
fn trackers_and_web_seeds_are_read() {
    let pieces = "a".repeat(20);
    let torrent = |top: &str| {
        let text = format!(
            "d{top}4:infod6:lengthi5e4:name1:x12:piece lengthi16384e6:pieces20:{pieces}7:privatei1e\
             6:source3:abcee"
        );
        Metainfo::parse(text.as_bytes()).unwrap()
    };
    let one = torrent("8:announce6: udp:a8:url-list6:http:a");
    assert_eq!(one.sources.trackers, [["udp:a"]]);
    assert_eq!(one.sources.web_seeds, ["http:a"]);
    assert!(one.private);
    assert_eq!(one.provenance.source.as_deref(), Some("abc"));
    let several =
        torrent("8:announce1:x13:announce-listll1:a1:bel0:el1:cei5ee8:url-listl1:u0:1:ve");
    assert_eq!(several.sources.trackers, [vec!["a", "b"], vec!["c"]]);
    assert_eq!(several.sources.web_seeds, ["u", "v"]);
    let empty = torrent("8:announce1:x13:announce-listle8:url-list0:");
    assert_eq!(empty.sources.trackers, [["x"]]);
    assert!(empty.sources.web_seeds.is_empty());
}

/// A path element that is likely to be trouble.
fn element() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "[ab./]{0,3}".prop_map(String::into_bytes),
        "[xy]{230,260}(\\.[a-z]{1,4})?".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..5),
    ]
}

proptest! {
    #[test]
    fn random_bytes_never_panic(
        info in proptest::collection::vec(any::<u8>(), 0..200),
        letters in "[ilde0-9:a-f]{0,80}",
    ) {
        for inner in [&info[..], letters.as_bytes()] {
            let _ = Metainfo::parse(inner);
            let _ = Metainfo::parse(&[b"d4:info", inner, b"e"].concat());
        }
    }

    #[test]
    fn files_never_leave_the_folder_and_never_collide(
        name in element(),
        paths in proptest::collection::vec(
            (proptest::collection::vec(element(), 1..4), prop_oneof![Just(""), Just("p"), Just("x")]),
            1..12,
        ),
    ) {
        let files: Vec<_> = paths.into_iter().map(|(path, attr)| (path, 20_000, attr)).collect();
        let torrent = Torrent { name, hashes: (20_000 * files.len()).div_ceil(16384), length: None, files, piece_length: 16384 };
        let Ok(metainfo) = torrent.parse() else {
            prop_assert!(torrent.files.iter().all(|file| file.2 == "p"));
            return Ok(());
        };
        prop_assert_eq!(metainfo.files.len(), torrent.files.len());
        let mut taken = std::collections::HashSet::new();
        let mut folders = std::collections::HashSet::new();
        for file in metainfo.files.iter().filter(|file| !file.padding) {
            prop_assert!(file.path.starts_with(&metainfo.name));
            for part in file.path.components() {
                prop_assert!(matches!(part, std::path::Component::Normal(_)));
                prop_assert!(part.as_os_str().len() <= 255);
            }
            prop_assert!(taken.insert(file.path.clone()), "{:?} twice", file.path);
            folders.extend(file.path.ancestors().skip(1).map(Path::to_owned));
        }
        for path in taken {
            prop_assert!(!folders.contains(&path), "{path:?} is a file and a folder");
        }
    }

    #[test]
    fn links_never_lead_out_of_the_folder(
        paths in proptest::collection::vec(proptest::collection::vec("[abc]", 1..4), 1..8),
        targets in proptest::collection::vec(proptest::collection::vec("[abc./]{1,2}", 0..4), 1..8),
    ) {
        let list = |names: &[String]| -> String {
            names.iter().map(|name| format!("{}:{name}", name.len())).collect()
        };
        let links: String = paths
            .iter()
            .zip(&targets)
            .map(|(path, target)| {
                format!("d4:attr1:l4:pathl{}e12:symlink pathl{}ee", list(path), list(target))
            })
            .collect();
        let metainfo = Metainfo::parse(&entry(&links)).unwrap();
        // As a file system follows them.
        let dir = tempfile::tempdir().unwrap();
        for path in metainfo.files.iter().map(|file| &file.path).chain(metainfo.links.iter().map(|link| &link.path)) {
            fs::create_dir_all(dir.path().join(path).parent().unwrap()).unwrap();
        }
        for file in &metainfo.files {
            fs::write(dir.path().join(&file.path), b"").unwrap();
        }
        let made = || metainfo.links.iter().filter_map(|link| Some((&link.path, link.target.as_ref()?)));
        for (path, target) in made() {
            symlink(target, dir.path().join(path)).unwrap();
        }
        let root = dir.path().join(&metainfo.name).canonicalize().unwrap();
        for (path, _) in made() {
            let leads = dir.path().join(path).canonicalize();
            prop_assert!(leads.as_ref().is_ok_and(|it| it.starts_with(&root)), "{path:?} leads to {leads:?}");
        }
    }
}

#[test]
fn nodes_of_the_dht_are_read_and_what_is_none_is_left_out() {
    let with = |nodes: &str| {
        let mut torrent = Torrent::single().bytes();
        torrent.pop();
        torrent.extend(format!("5:nodes{nodes}e").bytes());
        Metainfo::parse(&torrent).unwrap().sources.nodes
    };
    let node = |host: &str, port| (host.to_owned(), port);
    let several = with(
        "ll12:node.examplei6881eel9:127.0.0.1i1eel3:::1i65535eel21:1-ff00:0:110,10.0.0.1i9eee",
    );
    assert_eq!(
        several,
        [
            node("node.example", 6881),
            node("127.0.0.1", 1),
            node("::1", 65535),
            node("1-ff00:0:110,10.0.0.1", 9)
        ]
    );
    for wrong in [
        "le",
        "lli1ei1eee",
        "ll1:ai0eee",
        "ll1:ai65536eee",
        "ll0:i1eee",
        "ll1:aee",
        "l1:ae",
        "i1e",
    ] {
        assert_eq!(with(wrong), [], "{wrong}");
    }
    let many = "l1:ai1ee".repeat(MAX_NODES + 1);
    assert_eq!(with(&format!("l{many}e")).len(), MAX_NODES);
}
