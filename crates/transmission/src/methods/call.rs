//! A call of a method, as all methods see it.

use std::collections::HashSet;
use std::ptr;

use crate::args::Args;
use crate::client::{Action, Client};
use crate::error::CallError;
use crate::ids::TorrentId;

/// A call of a method.
pub(crate) struct Call<'a> {
    pub args: &'a Args,
    /// The current id of the [`Session`](crate::Session).
    pub session_id: &'a str,
    pub client: &'a mut dyn Client,
}

impl Call<'_> {
    /// The torrents that the call is about, each once.
    pub fn torrents(&self) -> Result<Vec<TorrentId>, CallError> {
        let mut torrents = self.client.resolve(&self.args.ids()?);
        let mut seen = HashSet::with_capacity(torrents.len());
        torrents.retain(|id| seen.insert(*id));
        Ok(torrents)
    }

    /// The fields that the call asks for, each once, as `find` finds them. What is no field is
    /// passed over, as clients ask for fields of newer and older versions.
    pub fn fields<T>(
        &self,
        find: fn(&str) -> Option<&'static T>,
    ) -> Result<Vec<&'static T>, CallError> {
        let mut fields: Vec<&T> = Vec::new();
        for name in self.args.texts("fields")?.unwrap_or_default() {
            if let Some(field) = find(&name)
                && !fields.iter().any(|other| ptr::eq(*other, field))
            {
                fields.push(field);
            }
        }
        Ok(fields)
    }

    /// Does this to the torrents that the call is about.
    pub fn act(&mut self, action: Action) -> Result<(), CallError> {
        let torrents = self.torrents()?;
        self.client.act(action, &torrents)
    }
}
