//! A path of its own for each file of a torrent, and the targets of its symbolic links.

use std::collections::HashMap;
use std::path::PathBuf;

use super::listed::{EntryKind, Listed};
use super::name::Numbered;

/// Most links followed to one target, as on Linux (path_resolution(7)).
const MAX_LINKS: usize = 40;

/// The folder of the torrent.
const ROOT: usize = 0;

/// The folders, files and links of a torrent.
pub(super) struct Places {
    nodes: Vec<Node>,
}

enum Node {
    Folder(HashMap<String, usize>),
    File,
    /// Which entry of the list it is.
    Link(usize),
}

/// Where a link leads.
#[derive(Clone)]
enum Lookup {
    Unknown,
    /// To nothing in the torrent. Also while it is being looked up, so that a circle ends.
    Nowhere,
    /// To this node, at this path from the torrent's folder on.
    To(usize, Vec<String>),
}

impl Places {
    /// Gives each entry but padding a place. Of several that ask for one, the first has it, and a
    /// folder has it before any file; the others are renamed.
    pub fn assign(listed: &mut [Listed]) -> Self {
        let mut places = Self {
            nodes: vec![Node::Folder(HashMap::new())],
        };
        let folders: Vec<Option<usize>> = listed
            .iter()
            .map(|file| {
                let (_, folders) = file.path.split_last()?;
                (!matches!(file.kind, EntryKind::Padding)).then(|| places.folder(folders))
            })
            .collect();
        let mut displaced = Vec::new();
        for (index, file) in listed.iter().enumerate() {
            if let (Some(folder), Some(name)) = (folders[index], file.path.last())
                && !places.insert(folder, name, Node::of(&file.kind, index))
            {
                displaced.push((index, folder));
            }
        }
        // The next number for names that begin alike, so that many of them take no square of time.
        let mut numbers: HashMap<(usize, Numbered), u32> = HashMap::new();
        for (index, folder) in displaced {
            let file = &mut listed[index];
            let path = file.path.join("/");
            let Some(name) = file.path.last_mut() else {
                continue;
            };
            let numbered = Numbered::of(name);
            let number = numbers.entry((folder, numbered.clone())).or_default();
            file.literal.get_or_insert_with(|| PathBuf::from(&path));
            file.original.get_or_insert(path);
            loop {
                *number += 1;
                *name = numbered.name(*number);
                if places.insert(folder, name, Node::of(&file.kind, index)) {
                    break;
                }
            }
        }
        places
    }

    /// For each entry, the path of the file or folder of the torrent that it leads to, from the
    /// torrent's folder on; `None` if it is no link, or leads to none.
    pub fn link_targets(&self, listed: &[Listed]) -> Vec<Option<Vec<String>>> {
        let mut found = vec![Lookup::Unknown; listed.len()];
        for index in 0..listed.len() {
            self.resolve(listed, index, &mut found, 0);
        }
        let targets = found.into_iter().map(|found| match found {
            Lookup::To(_, path) => Some(path),
            Lookup::Unknown | Lookup::Nowhere => None,
        });
        targets.collect()
    }

    /// The file or folder that a link leads to, through whatever other links.
    fn resolve(
        &self,
        listed: &[Listed],
        link: usize,
        found: &mut [Lookup],
        passed: usize,
    ) -> Option<usize> {
        match found[link] {
            Lookup::To(node, _) => return Some(node),
            Lookup::Nowhere => return None,
            Lookup::Unknown => {}
        }
        let Listed { path, kind, .. } = &listed[link];
        let EntryKind::Link(target) = kind else {
            return None;
        };
        if passed >= MAX_LINKS || target.is_empty() {
            return None;
        }
        found[link] = Lookup::Nowhere;
        // It begins in the torrent's folder, as BEP 47 has it, or in the folder that the link is
        // in, as early torrents have it.
        let beside = [folder_of(path), target].concat();
        let (node, path) = [target.clone(), beside].into_iter().find_map(|path| {
            let node = self.walk(listed, &path, found, passed)?;
            Some((node, path))
        })?;
        found[link] = Lookup::To(node, path);
        Some(node)
    }

    /// The file or folder at `target`.
    fn walk(
        &self,
        listed: &[Listed],
        target: &[String],
        found: &mut [Lookup],
        passed: usize,
    ) -> Option<usize> {
        let mut node = Some(ROOT);
        for name in target {
            node = match node.map(|node| &self.nodes[node]) {
                Some(Node::Folder(inner)) => inner.get(name).copied(),
                _ => None,
            };
            if let Some(Node::Link(other)) = node.map(|node| &self.nodes[node]) {
                node = self.resolve(listed, *other, found, passed + 1);
            }
        }
        node
    }

    /// The folder at `path`, with all above it. Folders come before files, so no file has
    /// its name.
    fn folder(&mut self, path: &[String]) -> usize {
        path.iter().fold(ROOT, |above, name| {
            let next = self.nodes.len();
            let Node::Folder(inner) = &mut self.nodes[above] else {
                return above;
            };
            if let Some(folder) = inner.get(name) {
                return *folder;
            }
            inner.insert(name.clone(), next);
            self.nodes.push(Node::Folder(HashMap::new()));
            next
        })
    }

    /// Puts `node` into a folder; `false` when the name is taken.
    fn insert(&mut self, folder: usize, name: &str, node: Node) -> bool {
        let next = self.nodes.len();
        let Node::Folder(inner) = &mut self.nodes[folder] else {
            return false;
        };
        if inner.contains_key(name) {
            return false;
        }
        inner.insert(name.to_owned(), next);
        self.nodes.push(node);
        true
    }
}

impl Node {
    /// That of a file or link at position `index` of the list.
    fn of(kind: &EntryKind, index: usize) -> Self {
        match kind {
            EntryKind::Link(_) => Self::Link(index),
            EntryKind::Content | EntryKind::Padding => Self::File,
        }
    }
}

/// The folder that `path` is in.
fn folder_of(path: &[String]) -> &[String] {
    &path[..path.len().saturating_sub(1)]
}

/// The text of a link at `path` to `target`, both from the torrent's folder on: it stays right
/// wherever that folder is moved.
pub(super) fn link_text(path: &[String], target: &[String]) -> String {
    let folder = folder_of(path);
    let common = folder.iter().zip(target);
    let common = common.take_while(|(a, b)| a == b).count();
    // A link to a folder that it is in has no name left to go down to.
    let up = std::iter::repeat_n("..", folder.len() - common);
    let parts: Vec<&str> = up
        .chain(target[common..].iter().map(String::as_str))
        .collect();
    match parts.is_empty() {
        true => ".".to_owned(),
        false => parts.join("/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<String> {
        text.split('/').map(str::to_owned).collect()
    }

    /// What becomes of files (`a/b`) and links (`a/b -> c/d`): their paths, and whether each is a
    /// link that leads somewhere.
    fn placed(entries: &[&str]) -> (Vec<String>, Vec<bool>) {
        let listed = |path, kind| Listed {
            path,
            original: None,
            literal: None,
            length: 0,
            kind,
        };
        let entries = entries.iter().map(|entry| match entry.split_once(" -> ") {
            Some((from, to)) => listed(path(from), EntryKind::Link(path(to))),
            None => listed(path(entry), EntryKind::Content),
        });
        let mut entries: Vec<Listed> = entries.collect();
        let places = Places::assign(&mut entries);
        let targets = places.link_targets(&entries);
        let links = targets.iter().map(Option::is_some).collect();
        let names = entries.iter().map(|entry| entry.path.join("/")).collect();
        (names, links)
    }

    #[test]
    fn each_file_has_a_place_of_its_own() {
        for (entries, names) in [
            (
                &["a.txt", "a.txt", "a.txt"][..],
                &["a.txt", "a.1.txt", "a.2.txt"][..],
            ),
            // A name that is taken stays with its file.
            (&["a", "a", "a.1"], &["a", "a.2", "a.1"]),
            // Folders come first, wherever they stand.
            (&["a", "a/b"], &["a.1", "a/b"]),
            (&["a/b", "a"], &["a/b", "a.1"]),
            (&["a/b/c", "a/b"], &["a/b/c", "a/b.1"]),
            (&["a/b", "a/c", "b"], &["a/b", "a/c", "b"]),
            // Letter case tells names apart.
            (&["README", "readme"], &["README", "readme"]),
            (&["d/x", "d -> d"], &["d/x", "d.1"]),
        ] {
            assert_eq!(placed(entries).0, names, "{entries:?}");
        }
    }

    #[test]
    fn links_lead_to_what_is_in_the_torrent() {
        for (entries, inside) in [
            (&["a", "l -> a"][..], true),
            (&["a/b/c", "l -> a/b"], true),
            (&["a/b/c", "l -> a/b/c"], true),
            (&["a", "l -> b"], false),
            (&["a", "l -> a/b"], false),
            (&["a", "l -> etc/passwd"], false),
            (&["a", "l -> l"], false),
            (&["m -> l", "l -> m"], false),
            (&["v/1/lib", "v/now -> v/1", "l -> v/now/lib"], true),
            (&["v/1/lib", "v/now -> v/2", "l -> v/now/lib"], false),
            (&["a", "m -> a", "l -> m"], true),
            // From the link's own folder on.
            (&["v/1/lib", "v/now -> 1"], true),
            (&["v/1/lib", "now -> 1"], false),
        ] {
            let (_, links) = placed(entries);
            assert_eq!(links.last(), Some(&inside), "{entries:?}");
        }
    }

    #[test]
    fn long_chains_of_links_end() {
        let chain: Vec<String> = (0..100_000)
            .map(|i| format!("l{i} -> l{}", i + 1))
            .collect();
        let entries: Vec<&str> = chain
            .iter()
            .map(String::as_str)
            .chain(["l100000"])
            .collect();
        let (_, links) = placed(&entries);
        assert!(!links[0]);
        assert!(links[99_999]);
    }

    #[test]
    fn many_duplicates_are_renamed_in_no_time() {
        let entries = vec!["same.name"; 100_000];
        let (names, _) = placed(&entries);
        let unique: std::collections::HashSet<&String> = names.iter().collect();
        assert_eq!(unique.len(), names.len());
    }

    #[test]
    fn the_text_of_a_link_leads_from_its_folder_to_the_target() {
        for (from, to, text) in [
            ("l", "a", "a"),
            ("d/l", "d/a", "a"),
            ("d/l", "a", "../a"),
            ("d/e/l", "d/f/a", "../f/a"),
            ("d/e/l", "d", ".."),
            ("d/l", "d", "."),
        ] {
            assert_eq!(link_text(&path(from), &path(to)), text, "{from} -> {to}");
        }
    }
}
