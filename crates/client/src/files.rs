//! Which files of a torrent are downloaded, how much they are wanted, and in which order.

use std::collections::BTreeMap;

use hawser_torrent::{PieceOrder, Priority, Selection};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Most files of a torrent whose wish differs from that for all others.
pub const MAX_CHOSEN_FILES: usize = 10_000;

/// How much a file is wanted, beside the others that are downloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum FilePriority {
    /// After all others.
    Low,
    /// As most files.
    #[default]
    Normal,
    /// Before all others.
    High,
}

/// What is wanted of a file. The priority of one that is not downloaded is kept until it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(bool, FilePriority)", into = "(bool, FilePriority)")]
pub struct FileWish {
    /// Whether it is downloaded.
    pub is_wanted: bool,
    /// How much.
    pub priority: FilePriority,
}

impl From<(bool, FilePriority)> for FileWish {
    fn from((is_wanted, priority): (bool, FilePriority)) -> Self {
        Self {
            is_wanted,
            priority,
        }
    }
}

impl From<FileWish> for (bool, FilePriority) {
    fn from(wish: FileWish) -> Self {
        (wish.is_wanted, wish.priority)
    }
}

impl Default for FileWish {
    fn default() -> Self {
        Self::from((true, FilePriority::Normal))
    }
}

impl FileWish {
    fn engine(self) -> Priority {
        match (self.is_wanted, self.priority) {
            (false, _) => Priority::Skip,
            (true, FilePriority::Low) => Priority::Low,
            (true, FilePriority::Normal) => Priority::Normal,
            (true, FilePriority::High) => Priority::High,
        }
    }
}

/// The files of a torrent that are downloaded, each named by its index in the metainfo, and their order.
/// By default all are, in any order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileChoice {
    /// The wish for files that are not in `files`.
    others: FileWish,
    /// Wishes that differ from `others`.
    files: BTreeMap<u32, FileWish>,
    /// Whether pieces are fetched in the order of the content.
    pub is_sequential: bool,
}

/// Files of a torrent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Files {
    /// All.
    All,
    /// Those with these indices in the metainfo.
    These(Vec<u32>),
}

/// A change of what is wanted of some files. What is `None` stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The files.
    pub files: Files,
    /// Whether they are downloaded.
    pub is_wanted: Option<bool>,
    /// Their priority.
    pub priority: Option<FilePriority>,
}

/// Changes of what is wanted of files, made in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileChanges {
    /// The changes.
    pub each: Vec<FileChange>,
    /// Whether pieces are fetched in the order of the content; `None` if that stays.
    pub is_sequential: Option<bool>,
}

impl FileChanges {
    /// What is wrong with the changes for a torrent with `count` files, padding included.
    pub(crate) fn fault(&self, count: usize) -> Option<String> {
        let named = self.each.iter().flat_map(|change| match &change.files {
            Files::All => &[][..],
            Files::These(files) => files,
        });
        let wrong = named.copied().find(|file| *file as usize >= count)?;
        Some(format!(
            "files: there is no file with index {wrong}: the torrent has {count} files, from index 0 on"
        ))
    }

    /// Leaves out the files that a torrent with `count` files, padding included, does not have.
    pub(crate) fn drop_unknown(&mut self, count: usize) {
        for change in &mut self.each {
            if let Files::These(files) = &mut change.files {
                files.retain(|file| (*file as usize) < count);
            }
        }
    }
}

impl FileChoice {
    /// What is wanted of the file with this index.
    pub fn wish(&self, file: usize) -> FileWish {
        let known = u32::try_from(file).ok().and_then(|it| self.files.get(&it));
        known.copied().unwrap_or(self.others)
    }

    /// Whether all files are downloaded.
    pub fn is_whole(&self) -> bool {
        self.others.is_wanted && self.files.values().all(|wish| wish.is_wanted)
    }

    /// Makes changes.
    pub fn change(&mut self, changes: &FileChanges) {
        for change in &changes.each {
            let set = |wish: &mut FileWish| {
                wish.is_wanted = change.is_wanted.unwrap_or(wish.is_wanted);
                wish.priority = change.priority.unwrap_or(wish.priority);
            };
            match &change.files {
                Files::All => {
                    set(&mut self.others);
                    self.files.values_mut().for_each(set);
                }
                Files::These(files) => {
                    for file in files {
                        set(self.files.entry(*file).or_insert(self.others));
                    }
                }
            }
        }
        let others = self.others;
        self.files.retain(|_, wish| *wish != others);
        self.is_sequential = changes.is_sequential.unwrap_or(self.is_sequential);
    }

    /// What is wrong with a choice.
    pub(crate) fn fault(&self) -> Option<String> {
        (self.files.len() > MAX_CHOSEN_FILES).then(|| {
            format!(
                "files: at most {MAX_CHOSEN_FILES} files may differ from the others: choose for all files \
                 first, then for the exceptions"
            )
        })
    }

    /// Whether the other choice wants a file that this one does not.
    pub(crate) fn grows_to(&self, other: &Self) -> bool {
        let more = |before: FileWish, after: FileWish| !before.is_wanted && after.is_wanted;
        let named = self.files.keys().chain(other.files.keys());
        let mut named = named.map(|file| *file as usize);
        more(self.others, other.others) || named.any(|file| more(self.wish(file), other.wish(file)))
    }

    /// The choice as the engine takes it, for a torrent with `count` files, padding included.
    pub(crate) fn selection(&self, count: usize) -> Selection {
        let order = match self.is_sequential {
            true => PieceOrder::Sequential,
            false => PieceOrder::RarestFirst,
        };
        let others = self.others.engine();
        let selection = match others {
            Priority::Skip => Selection::none(),
            Priority::Normal => Selection::all(),
            // All that are not named have one priority or the other.
            _ => (0..count).fold(Selection::all(), |all, file| all.with_file(file, others)),
        };
        let files = self.files.iter();
        let files = files.map(|(file, wish)| (*file as usize, wish.engine()));
        files
            .fold(selection, |all, (file, priority)| {
                all.with_file(file, priority)
            })
            .with_order(order)
    }

    /// The bytes of the files that are wanted, of these lengths and padding.
    pub(crate) fn wanted_bytes(&self, files: &[hawser_torrent::metainfo::File]) -> u64 {
        let wanted = files.iter().enumerate().filter(|(_, file)| !file.padding);
        let wanted = wanted.filter(|(index, _)| self.wish(*index).is_wanted);
        wanted.map(|(_, file)| file.length).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FILES: u32 = 6;

    fn change() -> impl Strategy<Value = FileChange> {
        let priority = prop_oneof![
            Just(FilePriority::Low),
            Just(FilePriority::Normal),
            Just(FilePriority::High)
        ];
        let files = prop_oneof![
            Just(Files::All),
            proptest::collection::vec(0..FILES, 0..4).prop_map(Files::These)
        ];
        (files, any::<Option<bool>>(), proptest::option::of(priority)).prop_map(
            |(files, is_wanted, priority)| FileChange {
                files,
                is_wanted,
                priority,
            },
        )
    }

    proptest! {
        /// A choice is what changes one file after another make of it, on disk and for the engine.
        #[test]
        fn changes_are_made_in_their_order(changes in proptest::collection::vec(change(), 0..12)) {
            let mut choice = FileChoice::default();
            let mut model = vec![FileWish::default(); FILES as usize];
            for change in changes {
                let before = choice.clone();
                let had = model.clone();
                for (file, wish) in (0..).zip(&mut model) {
                    let is_it = match &change.files {
                        Files::All => true,
                        Files::These(files) => files.contains(&file),
                    };
                    if is_it {
                        wish.is_wanted = change.is_wanted.unwrap_or(wish.is_wanted);
                        wish.priority = change.priority.unwrap_or(wish.priority);
                    }
                }
                let changes = FileChanges { each: vec![change], is_sequential: None };
                choice.change(&changes);
                let selection = choice.selection(FILES as usize);
                let mut grew = false;
                for (file, wish) in model.iter().enumerate() {
                    prop_assert_eq!(choice.wish(file), *wish);
                    prop_assert_eq!(selection.priority(file), wish.engine());
                    grew |= wish.is_wanted && !had[file].is_wanted;
                }
                // The files that are not named may not exist, so it may only say so too often.
                prop_assert!(!grew || before.grows_to(&choice));
                prop_assert!(!choice.grows_to(&choice));
                let all = model.iter().all(|wish| wish.is_wanted);
                prop_assert!(all || !choice.is_whole());
                prop_assert!(choice.files.len() <= FILES as usize);
                let text = serde_json::to_string(&choice).unwrap();
                prop_assert_eq!(serde_json::from_str::<FileChoice>(&text).unwrap(), choice.clone());
            }
        }
    }

    #[test]
    fn files_that_a_torrent_does_not_have_are_named_or_left_out() {
        let these = |files: &[u32]| FileChanges {
            each: vec![FileChange {
                files: Files::These(files.to_vec()),
                is_wanted: Some(false),
                priority: None,
            }],
            is_sequential: None,
        };
        let mut changes = these(&[0, 2]);
        assert_eq!(changes.fault(3), None);
        assert!(
            changes
                .fault(2)
                .is_some_and(|text| text.contains("index 2"))
        );
        changes.drop_unknown(2);
        assert_eq!(changes, these(&[0]));
        let mut choice = FileChoice::default();
        let many: Vec<u32> = (0..=10_000).collect();
        choice.change(&these(&many[..10_000]));
        assert_eq!(choice.fault(), None);
        choice.change(&these(&many));
        assert!(choice.fault().is_some());
    }
}
