//! A path of its own for each file of a torrent, and the targets of its symbolic links.

use std::collections::HashMap;

use super::name::Numbered;

/// Most links followed to one target, as on Linux (path_resolution(7)).
const MAX_LINKS: usize = 40;

/// The folder of the torrent.
const ROOT: usize = 0;

/// What takes a place.
pub(super) enum Leaf<'a> {
    /// A file.
    File,
    /// A symbolic link; the path of its target from the torrent's folder on.
    Link(&'a [String]),
}

/// The folders, files and links of a torrent.
pub(super) struct Places {
    nodes: Vec<Node>,
}

enum Node {
    Folder(HashMap<String, usize>),
    File,
    /// Which leaf it is.
    Link(usize),
}

impl Places {
    /// Gives each path a place. Of several that ask for one, the first has it, and a folder has it
    /// before any file; the others are renamed. Returns the new names by position, besides.
    pub fn assign(leaves: &[(&[String], Leaf<'_>)]) -> (Self, HashMap<usize, String>) {
        let mut places = Self {
            nodes: vec![Node::Folder(HashMap::new())],
        };
        let folders: Vec<Option<usize>> = leaves
            .iter()
            .map(|(path, _)| {
                let (_, folders) = path.split_last()?;
                Some(places.folder(folders))
            })
            .collect();
        let mut displaced = Vec::new();
        for (index, (path, leaf)) in leaves.iter().enumerate() {
            let (Some(folder), Some(name)) = (folders[index], path.last()) else {
                continue;
            };
            if !places.insert(folder, name, leaf.node(index)) {
                displaced.push((index, folder, name, leaf));
            }
        }
        let mut renamed = HashMap::new();
        // The next number for names that begin alike, so that many of them take no square of time.
        let mut numbers: HashMap<(usize, Numbered), u32> = HashMap::new();
        for (index, folder, name, leaf) in displaced {
            let numbered = Numbered::of(name);
            let number = numbers.entry((folder, numbered.clone())).or_default();
            let name = loop {
                *number += 1;
                let name = numbered.name(*number);
                if places.insert(folder, &name, leaf.node(index)) {
                    break name;
                }
            };
            renamed.insert(index, name);
        }
        (places, renamed)
    }

    /// The targets, from the torrent's folder on, of links that lead to a file or folder of the
    /// torrent, by position.
    pub fn link_targets(&self, leaves: &[(&[String], Leaf<'_>)]) -> HashMap<usize, Vec<String>> {
        let mut found = vec![Lookup::New; leaves.len()];
        let links = leaves.iter().enumerate();
        let links = links.filter_map(|(index, (path, leaf))| match leaf {
            Leaf::File => None,
            Leaf::Link(target) => Some((index, *path, *target)),
        });
        links
            .filter_map(|(index, path, target)| {
                self.resolve(leaves, index, &mut found, 0)?;
                let Lookup::Done(_, base) = found[index] else {
                    return None;
                };
                Some((index, base.path(path, target)))
            })
            .collect()
    }

    /// The file or folder that a link leads to, through whatever other links.
    fn resolve(
        &self,
        leaves: &[(&[String], Leaf<'_>)],
        link: usize,
        found: &mut [Lookup],
        passed: usize,
    ) -> Option<usize> {
        let (path, target) = match (found[link], &leaves[link]) {
            (Lookup::Done(node, _), _) => return node,
            // A circle of links.
            (Lookup::UnderWay, _) | (_, (_, Leaf::File)) => return None,
            (Lookup::New, (path, Leaf::Link(target))) => (*path, *target),
        };
        if passed >= MAX_LINKS || target.is_empty() {
            return None;
        }
        found[link] = Lookup::UnderWay;
        let (node, base) = [Base::Torrent, Base::Folder]
            .into_iter()
            .map(|base| {
                let node = self.walk(leaves, &base.path(path, target), found, passed);
                (node, base)
            })
            .find(|(node, _)| node.is_some())
            .unwrap_or((None, Base::Torrent));
        found[link] = Lookup::Done(node, base);
        node
    }

    /// The file or folder at `target`.
    fn walk(
        &self,
        leaves: &[(&[String], Leaf<'_>)],
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
                node = self.resolve(leaves, *other, found, passed + 1);
            }
        }
        node
    }

    /// The folder at `path`, with all above it. Folders are there before files, so none is in the
    /// way.
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

impl Leaf<'_> {
    fn node(&self, index: usize) -> Node {
        match self {
            Leaf::File => Node::File,
            Leaf::Link(_) => Node::Link(index),
        }
    }
}

/// How far looking a link up has come.
#[derive(Clone, Copy)]
enum Lookup {
    New,
    UnderWay,
    /// What it leads to, and how.
    Done(Option<usize>, Base),
}

/// Where the target of a link begins.
#[derive(Clone, Copy)]
enum Base {
    /// In the torrent's folder, as BEP 47 has it.
    Torrent,
    /// In the folder that the link is in, as early torrents have it.
    Folder,
}

impl Base {
    /// The target of a link at `path`, from the torrent's folder on.
    fn path(self, path: &[String], target: &[String]) -> Vec<String> {
        match self {
            Self::Torrent => target.to_vec(),
            Self::Folder => [&path[..path.len().saturating_sub(1)], target].concat(),
        }
    }
}

/// The text of a link at `path` to `target`, both from the torrent's folder on: it stays right
/// wherever that folder is moved.
pub(super) fn link_text(path: &[String], target: &[String]) -> String {
    let folder = &path[..path.len().saturating_sub(1)];
    let common = folder
        .iter()
        .zip(target)
        .take_while(|(a, b)| a == b)
        .count();
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
        let entries: Vec<_> = entries
            .iter()
            .map(|entry| match entry.split_once(" -> ") {
                Some((from, to)) => (path(from), Some(path(to))),
                None => (path(entry), None),
            })
            .collect();
        let leaves: Vec<_> = entries
            .iter()
            .map(|(from, to)| match to {
                Some(to) => (from.as_slice(), Leaf::Link(to)),
                None => (from.as_slice(), Leaf::File),
            })
            .collect();
        let (places, renamed) = Places::assign(&leaves);
        let targets = places.link_targets(&leaves);
        let links = (0..leaves.len())
            .map(|index| targets.contains_key(&index))
            .collect();
        let names = entries.iter().enumerate().map(|(index, (from, _))| {
            let mut from = from.clone();
            if let (Some(new), Some(last)) = (renamed.get(&index), from.last_mut()) {
                last.clone_from(new);
            }
            from.join("/")
        });
        (names.collect(), links)
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
