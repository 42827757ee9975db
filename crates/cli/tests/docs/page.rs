//! Pages of Markdown and their blocks of code.

use std::fmt::Write;
use std::fs;
use std::path::Path;

/// A page.
pub struct Page {
    /// The page's path from the root of the repository.
    pub name: String,
    /// The whole text.
    pub text: String,
    /// The fenced blocks.
    pub blocks: Vec<Block>,
}

/// A fenced block of code.
pub struct Block {
    /// The number of the line that opens the block, from 1.
    pub line: usize,
    /// Whether the block contains commands to run: its language is `sh`.
    pub runs: bool,
    /// The text in the block.
    pub text: String,
}

impl Page {
    /// The README, then the pages of `docs/`.
    pub fn all() -> Vec<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let docs = fs::read_dir(root.join("docs")).unwrap();
        let docs = docs.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = docs
            .filter(|name| name.ends_with(".md"))
            .map(|name| format!("docs/{name}"))
            .collect();
        names.sort();
        names.insert(0, "README.md".to_owned());
        let read = |name: String| {
            let text = fs::read_to_string(root.join(&name)).unwrap();
            let blocks = blocks(&text);
            Self { name, text, blocks }
        };
        names.into_iter().map(read).collect()
    }

    /// The commands as one script, which prints the name of each block on standard error. Lines
    /// that only build are left out; any other use of cargo is refused.
    pub fn script(&self, builds: &[&str]) -> String {
        let mut script = String::new();
        for block in self.blocks.iter().filter(|block| block.runs) {
            // Writing to a string cannot fail.
            let _ = writeln!(script, "echo '@{} line {}' >&2", self.name, block.line);
            for line in block.text.lines() {
                let command = line.split('#').next().unwrap().trim_end();
                match command.starts_with("cargo ") {
                    true => assert!(builds.contains(&command), "{}: {line}", self.name),
                    false => script += &format!("{line}\n"),
                }
            }
        }
        script
    }

    /// The targets of links and pictures, without those on the web or on the page itself.
    pub fn links(&self) -> impl Iterator<Item = &str> {
        let targets = self.text.split("](").skip(1);
        let targets = targets.filter_map(|rest| Some(rest.split_once(')')?.0));
        targets.filter(|target| !target.contains("://") && !target.starts_with('#'))
    }
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for (index, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), open) {
            (Some(language), false) => {
                assert!(!language.is_empty(), "line {}: no language", index + 1);
                blocks.push(Block {
                    line: index + 1,
                    runs: language == "sh",
                    text: String::new(),
                });
                open = true;
            }
            (Some(_), true) => open = false,
            (None, true) => {
                let block = blocks.last_mut().unwrap();
                block.text += line;
                block.text.push('\n');
            }
            (None, false) => {}
        }
    }
    assert!(!open, "a block has no end");
    blocks
}
