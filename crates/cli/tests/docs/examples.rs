//! Examples in the documentation of crates are compiled.

use std::fs;
use std::path::Path;

/// Whether a line of Rust opens or closes a block of code in documentation, and what stands after it.
fn fence(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = line
        .strip_prefix("///")
        .or_else(|| line.strip_prefix("//!"))?;
    text.trim_start().strip_prefix("```")
}

/// Whether documentation in this file has a block that rustdoc would compile.
fn has_example(text: &str) -> bool {
    let fences: Vec<&str> = text.lines().filter_map(fence).collect();
    let mut opening = fences.iter().step_by(2);
    opening.any(|language| !["text", "json", "toml", "sh"].contains(language))
}

fn visit(folder: &Path, examples: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            visit(&path, examples);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && has_example(&fs::read_to_string(&path).unwrap())
        {
            examples.push(path.display().to_string());
        }
    }
}

#[test]
fn crates_without_documentation_tests_have_no_examples() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut examples = Vec::new();
    for entry in fs::read_dir(crates).unwrap() {
        let folder = entry.unwrap().path();
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        if manifest.contains("doctest = false") {
            visit(&folder.join("src"), &mut examples);
        }
    }
    assert!(
        examples.is_empty(),
        "take `doctest = false` out of the manifest: {examples:?}"
    );
    assert!(has_example("/// ```no_run\n/// let a = 1;\n/// ```"));
}
