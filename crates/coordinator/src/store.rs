//! The state on disk: a redb database with one table for each kind of entry, and JSON as values.
//!
//! A change is one transaction, which is on disk when it returns. The file is made whole or not at all, so
//! that one that is empty or has no state is a damaged one.

mod file;
mod migrate;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use hawser_topology::IsdAsn;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use self::file::DatabaseFile;
pub use self::migrate::SCHEMA;
use crate::change::{Change, ChangePage};
use crate::error::OpenError;
use crate::link::LinkId;
use crate::state::{Next, State, differing};
use crate::user::UserId;

type Entries = TableDefinition<'static, u64, &'static [u8]>;

const META: TableDefinition<'static, &'static str, u64> = TableDefinition::new("meta");
const USERS: Entries = TableDefinition::new("users");
const ATTACHMENT_POINTS: Entries = TableDefinition::new("attachment_points");
const USER_ASES: Entries = TableDefinition::new("user_ases");
const LINKS: Entries = TableDefinition::new("links");
const CORE_LINKS: Entries = TableDefinition::new("core_links");
const AS_LINKS: Entries = TableDefinition::new("as_links");
const CHANGES: Entries = TableDefinition::new("changes");
/// (link, change): the changes of each link.
const CHANGES_BY_LINK: TableDefinition<'static, (u64, u64), ()> =
    TableDefinition::new("changes_by_link");

/// The state on disk.
#[derive(Debug)]
pub(crate) struct Store {
    file: DatabaseFile,
    /// `None` after a failure until it is opened again: redb refuses all after a failed write.
    database: Option<Database>,
}

impl Store {
    /// Opens the file at `path`, or makes it where nothing in `keys` shows that there was one. An older
    /// format becomes that of today. The whole file is checked.
    pub fn open(path: &Path, keys: &Path) -> Result<(Self, State), OpenError> {
        let file = DatabaseFile::new(path);
        if !path.exists() {
            if has_entries(keys) {
                return Err(OpenError::Missing {
                    path: path.to_owned(),
                    keys: keys.to_owned(),
                });
            }
            file.make()?;
        }
        Self::on_file(file)
    }

    /// Opens a file that is there.
    pub fn on_file(file: DatabaseFile) -> Result<(Self, State), OpenError> {
        let (database, state) = file.open()?;
        let database = Some(database);
        Ok((Self { file, database }, state))
    }

    /// Opens the file again after a failure. Returns the state that it has then, as a failed change may
    /// be on disk all the same; `None` if there was no failure.
    ///
    /// # Errors
    /// Why that is still not possible.
    pub fn recover(&mut self) -> Result<Option<State>, String> {
        if self.database.is_some() {
            return Ok(None);
        }
        let (database, state) = self.file.open().map_err(text)?;
        self.database = Some(database);
        Ok(Some(state))
    }

    /// Writes what differs between two states, and the record of it.
    ///
    /// # Errors
    /// Why that is not possible; nothing is then written or read until [`recover`](Self::recover) is
    /// called.
    pub fn save(&mut self, old: &State, new: &State, changes: &[Change]) -> Result<(), String> {
        let database = self.database.as_ref().ok_or_else(not_open)?;
        let saved = save(database, old, new, changes);
        if saved.is_err() {
            self.database = None;
        }
        saved
    }

    /// At most `count` changes with numbers below `before`, the newest first; those of a link alone
    /// if one is given. Changes that `keep` refuses are passed over.
    pub fn changes(
        &self,
        before: Option<u64>,
        count: usize,
        link: Option<LinkId>,
        keep: impl Fn(&Change) -> bool,
    ) -> Result<ChangePage, String> {
        let before = before.unwrap_or(u64::MAX);
        let database = self.database.as_ref().ok_or_else(not_open)?;
        let transaction = database.begin_read().map_err(text)?;
        let entries = transaction.open_table(CHANGES).map_err(text)?;
        let by_link = transaction.open_table(CHANGES_BY_LINK).map_err(text)?;
        let numbers: Box<dyn Iterator<Item = Result<u64, String>>> = match link {
            Some(link) => {
                let range = by_link.range((link.0, 0)..(link.0, before)).map_err(text)?;
                Box::new(
                    range
                        .rev()
                        .map(|entry| Ok(entry.map_err(text)?.0.value().1)),
                )
            }
            None => {
                let range = entries.range(0..before).map_err(text)?;
                Box::new(range.rev().map(|entry| Ok(entry.map_err(text)?.0.value())))
            }
        };
        let mut page = ChangePage {
            changes: Vec::new(),
            next: None,
        };
        for number in numbers {
            let number = number?;
            let Some(entry) = entries.get(number).map_err(text)? else {
                continue;
            };
            let change: Change = serde_json::from_slice(entry.value()).map_err(text)?;
            if !keep(&change) {
                continue;
            }
            if page.changes.len() == count {
                page.next = page.changes.last().map(|last: &Change| last.number);
                break;
            }
            page.changes.push(change);
        }
        Ok(page)
    }
}

fn save(database: &Database, old: &State, new: &State, changes: &[Change]) -> Result<(), String> {
    let transaction = database.begin_write().map_err(text)?;
    write(&transaction, USERS, &old.users, &new.users, |id| id.0)?;
    let number = IsdAsn::to_u64;
    let (before, now) = (&old.attachment_points, &new.attachment_points);
    write(&transaction, ATTACHMENT_POINTS, before, now, number)?;
    write(
        &transaction,
        USER_ASES,
        &old.user_ases,
        &new.user_ases,
        number,
    )?;
    write(&transaction, LINKS, &old.links, &new.links, |id| id.0)?;
    write(
        &transaction,
        CORE_LINKS,
        &old.core_links,
        &new.core_links,
        |id| id.0,
    )?;
    write(&transaction, AS_LINKS, &old.as_links, &new.as_links, |id| {
        id.0
    })?;
    record(&transaction, changes)?;
    {
        let mut meta = transaction.open_table(META).map_err(text)?;
        for (name, value) in numbers(new.next) {
            meta.insert(name, value).map_err(text)?;
        }
    }
    transaction.commit().map_err(text)
}

/// Whether a folder has anything in it.
fn has_entries(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

fn not_open() -> String {
    "the file could not be opened again after a failure".to_owned()
}

fn text(error: impl Display) -> String {
    error.to_string()
}

fn numbers(next: Next) -> [(&'static str, u64); 4] {
    [
        ("next_user", next.user),
        ("next_link", next.link),
        ("next_change", next.change),
        ("next_version", next.version),
    ]
}

/// Writes the entries of a table that differ.
fn write<K: Ord + Copy, V: PartialEq + Serialize>(
    transaction: &WriteTransaction,
    table: Entries,
    old: &BTreeMap<K, V>,
    new: &BTreeMap<K, V>,
    number: impl Fn(K) -> u64,
) -> Result<(), String> {
    let keys = differing(old, new);
    if keys.is_empty() {
        return Ok(());
    }
    let mut table = transaction.open_table(table).map_err(text)?;
    for key in keys {
        match new.get(&key) {
            Some(value) => {
                let value = serde_json::to_vec(value).map_err(text)?;
                table.insert(number(key), value.as_slice()).map_err(text)?;
            }
            None => drop(table.remove(number(key)).map_err(text)?),
        }
    }
    Ok(())
}

fn record(transaction: &WriteTransaction, changes: &[Change]) -> Result<(), String> {
    let mut entries = transaction.open_table(CHANGES).map_err(text)?;
    let mut by_link = transaction.open_table(CHANGES_BY_LINK).map_err(text)?;
    for change in changes {
        let value = serde_json::to_vec(change).map_err(text)?;
        entries
            .insert(change.number, value.as_slice())
            .map_err(text)?;
        if let Some(link) = change.kind.link() {
            by_link.insert((link.0, change.number), ()).map_err(text)?;
        }
    }
    Ok(())
}

fn read(database: &Database) -> Result<State, String> {
    let transaction = database.begin_read().map_err(text)?;
    let mut next = Next::default();
    let meta = transaction.open_table(META).map_err(text)?;
    let number = |name: &str, or: u64| {
        let value = meta.get(name).map_err(text)?;
        Ok::<_, String>(value.map_or(or, |value| value.value()))
    };
    next.user = number("next_user", next.user)?;
    next.link = number("next_link", next.link)?;
    next.change = number("next_change", next.change)?;
    next.version = number("next_version", next.version)?;
    Ok(State {
        users: entries(&transaction, USERS, UserId)?,
        attachment_points: entries(&transaction, ATTACHMENT_POINTS, IsdAsn::from_u64)?,
        user_ases: entries(&transaction, USER_ASES, IsdAsn::from_u64)?,
        links: entries(&transaction, LINKS, LinkId)?,
        core_links: entries(&transaction, CORE_LINKS, LinkId)?,
        as_links: entries(&transaction, AS_LINKS, LinkId)?,
        next,
    })
}

fn entries<K: Ord, V: DeserializeOwned>(
    transaction: &redb::ReadTransaction,
    table: Entries,
    key: impl Fn(u64) -> K,
) -> Result<BTreeMap<K, V>, String> {
    use redb::TableHandle;
    let name = table.name().to_owned();
    let table = transaction.open_table(table).map_err(text)?;
    let mut read = BTreeMap::new();
    for entry in table.iter().map_err(text)? {
        let (number, value) = entry.map_err(text)?;
        let number = number.value();
        let value = serde_json::from_slice(value.value())
            .map_err(|error| format!("entry {number} of {name}: {error}"))?;
        read.insert(key(number), value);
    }
    Ok(read)
}

/// Where a store is in its folder.
pub(crate) fn file(folder: &Path) -> PathBuf {
    folder.join("state.redb")
}

#[cfg(test)]
mod tests;
