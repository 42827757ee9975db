//! Owners, ACLs and extended attributes.

use std::os::unix::fs::{MetadataExt, chown};
use std::process::Command;

use super::*;

/// All that can be carried.
fn all() -> Choices {
    Choices::NONE
        .with(Choices::OWNER, true)
        .with(Choices::GROUP, true)
        .with(Choices::ACLS, true)
        .with(Choices::ATTRIBUTES, true)
}

/// What a program prints, if it works.
fn run(program: &str, args: &[&str], path: &Path) -> Option<String> {
    let output = Command::new(program).args(args).arg(path).output().ok()?;
    let text = String::from_utf8(output.stdout).unwrap();
    output.status.success().then_some(text)
}

/// Carries what both sides want; what the sink does not take is counted at both.
#[tokio::test]
async fn attributes_are_carried_that_both_sides_want() {
    let mut bed = Bed::start().await;
    let file = bed.from("d/f");
    fs::create_dir(bed.from("d")).unwrap();
    fs::write(&file, "x").unwrap();
    if !rustix::process::geteuid().is_root()
        || run("setfattr", &["-n", "user.a", "-v", "b"], &file).is_none()
        || run("setfacl", &["-m", "u:12345:rw"], &file).is_none()
    {
        eprintln!("skipped: it takes root, setfattr, setfacl and a file system with both");
        return;
    }
    for path in ["d", "d/f"] {
        chown(bed.from(path), Some(1234), Some(5678)).unwrap();
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o6755)).unwrap();
    // The mask has changed with it.
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&file), 0o6755);
    let options = ScanOptions {
        carry: all(),
        ..ScanOptions::default()
    };
    let content = bed.content("d", options.clone());
    let sent = bed.send(&content, "").await;
    let arrived = bed.arrived("d/f");
    let owner = |path: &Path| {
        let metadata = fs::metadata(path).unwrap();
        (metadata.uid(), metadata.gid())
    };
    assert_eq!(owner(&arrived), (1234, 5678));
    assert_eq!(owner(&bed.arrived("d")), (1234, 5678));
    let attribute = |path: &Path| run("getfattr", &["-n", "user.a", "--only-values"], path);
    assert_eq!(attribute(&arrived).as_deref(), Some("b"));
    // The sink takes no ACLs: the group has what the ACL gives it.
    assert_eq!(mode(&arrived), 0o6755 & !0o070 | mode_of_group(&file));
    assert_eq!((sent.stripped, bed.ended().await.unwrap().stripped), (1, 1));

    // What is fetched is what the client wants.
    let wants = Wants {
        choices: all(),
        ..Wants::default()
    };
    let fetched = bed.fetch("d", wants).await;
    let arrived = bed.folder.path().join("out/d/f");
    assert_eq!((fetched.stripped, mode(&arrived)), (0, 0o6755));
    let acl = |path: &Path| run("getfacl", &["-cnp"], path);
    assert_eq!(acl(&arrived), acl(&file));
    assert!(acl(&file).unwrap().contains("user:12345:rw-"));

    // Nothing of it without being asked for.
    let destination = Destination::Folder {
        root: bed.folder.path().join("plain"),
        name: PathBuf::new(),
    };
    let name = "d".to_owned();
    let request = Request::Fetch { name, destination };
    bed.transfer(request, Wants::default()).await.unwrap();
    let arrived = bed.folder.path().join("plain/d/f");
    assert_eq!(owner(&arrived).0, rustix::process::geteuid().as_raw());
    assert_eq!(mode(&arrived) & 0o7000, 0);
    assert_eq!(attribute(&arrived), None);
}

#[tokio::test]
async fn hard_links_stay_one_file() {
    let bed = Bed::start().await;
    fs::create_dir_all(bed.from("d/e")).unwrap();
    fs::write(bed.from("d/a"), bytes(3 << 20, 1)).unwrap();
    fs::hard_link(bed.from("d/a"), bed.from("d/b")).unwrap();
    fs::hard_link(bed.from("d/a"), bed.from("d/e/c")).unwrap();
    fs::create_dir_all(bed.arrived("d")).unwrap();
    fs::write(bed.arrived("d/b"), "another").unwrap();
    let carry = Choices::NONE.with(Choices::HARD_LINKS, true);
    let options = ScanOptions {
        carry,
        ..ScanOptions::default()
    };
    let inode = |path: &Path| fs::metadata(path).unwrap().ino();
    // Also when all is there.
    for _ in 0..2 {
        let content = bed.content("d", options.clone());
        assert_eq!(content.manifest().length(), 3 << 20);
        let summary = bed.send(&content, "").await;
        assert_eq!((failed(&summary), summary.stripped), (vec![], 0));
        assert!(same(&bed.from("d/a"), &bed.arrived("d/a")));
        for name in ["d/b", "d/e/c"] {
            assert_eq!(
                inode(&bed.arrived(name)),
                inode(&bed.arrived("d/a")),
                "{name}"
            );
        }
        assert_eq!(fs::read_dir(bed.arrived("d")).unwrap().count(), 3);
    }
    // One that cannot be made costs that name.
    fs::remove_file(bed.arrived("d/e/c")).unwrap();
    fs::create_dir(bed.arrived("d/e/c")).unwrap();
    let wants = Wants {
        choices: carry,
        ..Wants::default()
    };
    let content = bed.content("d", options.clone());
    assert_eq!(failed(&bed.send(&content, "").await), [("d/e/c", false)]);
    // Fetched alike.
    bed.fetch("d", wants).await;
    let at = |name: &str| bed.folder.path().join("out").join(name);
    assert_eq!(inode(&at("d/a")), inode(&at("d/e/c")));
}

/// The permission bits that the ACL of a file gives the owning group.
fn mode_of_group(path: &Path) -> u32 {
    let acl = run("getfacl", &["-cnpE"], path).unwrap();
    let group = acl.lines().find_map(|line| line.strip_prefix("group::"));
    let bits = [('r', 0o40), ('w', 0o20), ('x', 0o10)];
    let group = group.unwrap();
    let has = |letter: char| group.contains(letter);
    bits.iter()
        .filter(|(letter, _)| has(*letter))
        .map(|(_, bit)| bit)
        .sum()
}
