//! What packages install besides the program: completions for shells, pages for `man`; the version.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::process::Command;

use self::common::{hawser, printed};

/// Checks a file with a program; skipped, with a message, if that is not installed.
fn checked(program: &str, args: &[&str], file: &Path) {
    match Command::new(program).args(args).arg(file).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{file:?}: {said}");
            assert!(said.is_empty(), "{file:?}: {said}");
        }
        Err(error) => eprintln!("skipped: {program}: {error}"),
    }
}

#[test]
fn each_shell_has_a_script() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = printed(&["completions", shell]);
        for word in ["traceroute", "segment-lifetime"] {
            assert!(script.contains(word), "{shell}: no {word}");
        }
        let file = folder.path().join(shell);
        std::fs::write(&file, script).unwrap();
        match shell {
            "bash" | "zsh" => checked(shell, &["-n"], &file),
            "fish" => checked(shell, &["--no-execute"], &file),
            _ => {}
        }
    }
}

#[test]
fn bash_completes_commands() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("script");
    let script = printed(&["completions", "bash"]);
    let ask = "COMP_WORDS=(hawser lab gr) COMP_CWORD=2\n_hawser hawser gr lab\necho \"${COMPREPLY[@]}\"\n";
    std::fs::write(&file, script + ask).unwrap();
    match Command::new("bash").arg(&file).output() {
        Ok(output) => assert_eq!(String::from_utf8_lossy(&output.stdout), "graph\n"),
        Err(error) => eprintln!("skipped: bash: {error}"),
    }
}

#[test]
fn every_command_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    let write = ["man", "-o", pages.to_str().unwrap()];
    assert_eq!(printed(&write), "");
    let mut names: Vec<String> = std::fs::read_dir(&pages)
        .unwrap()
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    for name in ["hawser.1", "hawser-get.1", "hawser-lab-link-set.1"] {
        assert!(names.iter().any(|n| n == name), "{names:?}");
    }
    assert!(
        !names
            .iter()
            .any(|n| n.contains("internal") || n.contains("help"))
    );
    for name in &names {
        let page = pages.join(name);
        checked("groff", &["-ww", "-man", "-Tutf8", "-z"], &page);
        let text = std::fs::read_to_string(&page).unwrap();
        let title = name.trim_end_matches(".1");
        assert!(text.contains(&format!(".TH {title} 1")), "{text}");
    }
    let program = std::fs::read_to_string(pages.join("hawser.1")).unwrap();
    assert_eq!(printed(&["man"]), program);

    // Existing pages are kept, all of them, unless overwriting is forced.
    let page = pages.join("hawser-get.1");
    std::fs::write(&page, "mine").unwrap();
    std::fs::remove_file(pages.join("hawser.1")).unwrap();
    let refused = hawser(&write);
    let error = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{error}");
    assert!(
        error.contains("--force") && error.lines().count() == 1,
        "{error}"
    );
    assert_eq!(std::fs::read_to_string(&page).unwrap(), "mine");
    assert!(!pages.join("hawser.1").exists());
    printed(&[&write[..], &["--force"]].concat());
    assert_ne!(std::fs::read_to_string(&page).unwrap(), "mine");
    let file = hawser(&["man", "-o", page.to_str().unwrap()]);
    assert_eq!(file.status.code(), Some(2));
    let nowhere = hawser(&["man", "-o", "/proc/x"]);
    assert_eq!(nowhere.status.code(), Some(1));
}

#[test]
fn the_version_names_the_commit() {
    let commit = option_env!("HAWSER_COMMIT").map_or_else(
        || {
            let mut git = Command::new("git");
            git.args(["log", "-1", "--abbrev=8", "--format=%h, %cs"]);
            let output = git.current_dir(env!("CARGO_MANIFEST_DIR")).output();
            // Sources may come without a repository.
            let output = output.ok().filter(|output| output.status.success());
            output.map_or_else(String::new, |output| {
                String::from_utf8(output.stdout).unwrap().trim().to_owned()
            })
        },
        str::to_owned,
    );
    let wanted = match commit.as_str() {
        "" => format!("hawser {}\n", env!("CARGO_PKG_VERSION")),
        commit => format!("hawser {} ({commit})\n", env!("CARGO_PKG_VERSION")),
    };
    assert_eq!(printed(&["--version"]), wanted);
}
