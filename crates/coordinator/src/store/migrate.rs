//! Older formats of the store.

use std::path::Path;

use redb::{Database, ReadableDatabase, ReadableTable, TableError, WriteTransaction};

use super::{
    AS_LINKS, ATTACHMENT_POINTS, CHANGES, CHANGES_BY_LINK, CORE_LINKS, LINKS, META, USER_ASES,
    USERS, text,
};
use crate::change::Change;
use crate::error::OpenError;

/// The format of today.
pub const SCHEMA: u64 = 3;

const KEY: &str = "schema";

/// What makes a format of the one before.
type Step = fn(&WriteTransaction) -> Result<(), String>;

/// The steps from format 1 on.
const STEPS: [Step; SCHEMA as usize - 1] = [index_changes_by_link, add_as_links];

/// Gives a new database its tables.
pub(super) fn make(database: &Database) -> Result<(), String> {
    write(database, None)
}

/// Brings a database to the format of today, all in one transaction.
pub(super) fn migrate(database: &Database, path: &Path) -> Result<(), OpenError> {
    let damaged = |reason| OpenError::Damaged {
        path: path.to_owned(),
        reason,
    };
    let found = found(database).map_err(damaged)?;
    match found {
        Some(SCHEMA) => return Ok(()),
        Some(found) if found > SCHEMA => {
            return Err(OpenError::Newer {
                path: path.to_owned(),
                found,
                newest: SCHEMA,
            });
        }
        Some(0) | None => return Err(damaged("it has no state".to_owned())),
        Some(_) => {}
    }
    write(database, found).map_err(damaged)
}

fn found(database: &Database) -> Result<Option<u64>, String> {
    let transaction = database.begin_read().map_err(text)?;
    match transaction.open_table(META) {
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(text(error)),
        Ok(meta) => Ok(meta.get(KEY).map_err(text)?.map(|value| value.value())),
    }
}

fn write(database: &Database, found: Option<u64>) -> Result<(), String> {
    let transaction = database.begin_write().map_err(text)?;
    for table in [
        USERS,
        ATTACHMENT_POINTS,
        USER_ASES,
        LINKS,
        CORE_LINKS,
        AS_LINKS,
        CHANGES,
    ] {
        transaction.open_table(table).map_err(text)?;
    }
    transaction.open_table(CHANGES_BY_LINK).map_err(text)?;
    if let Some(found) = found {
        let steps = STEPS.iter().zip(1..).filter(|(_, from)| *from >= found);
        for (step, _) in steps {
            step(&transaction)?;
        }
    }
    transaction
        .open_table(META)
        .map_err(text)?
        .insert(KEY, SCHEMA)
        .map_err(text)?;
    transaction.commit().map_err(text)
}

/// 2 to 3: the table of peering links and of those between user ASes, which has been made.
fn add_as_links(_: &WriteTransaction) -> Result<(), String> {
    Ok(())
}

/// 1 to 2: changes are found by their link.
fn index_changes_by_link(transaction: &WriteTransaction) -> Result<(), String> {
    let changes = transaction.open_table(CHANGES).map_err(text)?;
    let mut by_link = transaction.open_table(CHANGES_BY_LINK).map_err(text)?;
    for entry in changes.iter().map_err(text)? {
        let (number, value) = entry.map_err(text)?;
        let change: Change = serde_json::from_slice(value.value()).map_err(text)?;
        if let Some(link) = change.kind.link() {
            by_link.insert((link.0, number.value()), ()).map_err(text)?;
        }
    }
    Ok(())
}
