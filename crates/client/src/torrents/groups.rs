//! Commands about bandwidth groups.

use std::collections::HashSet;

use hawser_torrent::InfoHash;

use super::{CommandError, Torrents};
use crate::groups::{self, GroupChanges, GroupLimits, MAX_GROUPS, OuterChange};

impl Torrents {
    /// Changes the limits of a bandwidth group, at once. One that is not there is made.
    ///
    /// # Errors
    /// [`CommandError::Value`]; nothing is changed then.
    pub fn change_group(&mut self, name: &str, changes: GroupChanges) -> Result<(), CommandError> {
        let before = self.bounds.all.clone();
        let limits = self.group(name)?;
        changes.apply(limits);
        self.note_limits(&before);
        Ok(())
    }

    /// Changes the bandwidth group of a torrent, whether outer limits hold for it, and how much it gets of them,
    /// at once if it runs. A
    /// group that is not there is made, without limits.
    ///
    /// # Errors
    /// [`CommandError::Unknown`], [`CommandError::Busy`] or [`CommandError::Value`]; nothing is changed then.
    pub fn change_outer(
        &mut self,
        info_hash: InfoHash,
        change: OuterChange,
    ) -> Result<(), CommandError> {
        self.settled(info_hash)?;
        if let Some(name) = change.group.as_deref().filter(|name| !name.is_empty()) {
            let before = self.bounds.all.clone();
            self.group(name)?;
            self.note_limits(&before);
        }
        let entry = self.settled(info_hash)?;
        let settings = &mut entry.record.settings;
        let before = settings.clone();
        if let Some(group) = change.group {
            settings.group = group;
        }
        settings.is_exempt = change.is_exempt.unwrap_or(settings.is_exempt);
        settings.priority = change.priority.unwrap_or(settings.priority);
        if *settings != before {
            entry.must_save = true;
            entry.task.must_apply = true;
        }
        Ok(())
    }

    /// Adds the groups that records name and that are not there, as far as there is room for them.
    pub(super) fn add_groups(&mut self) {
        let entries = self.entries.values();
        let named: HashSet<String> = entries
            .map(|entry| entry.record.settings.group.clone())
            .filter(|name| !name.is_empty())
            .collect();
        for name in named {
            // A torrent without its group is in none.
            let _ = self.group(&name);
        }
    }

    /// The limits of a group, which is made if it is not there. Where there are too many, those that limit
    /// nothing and have no torrents give way.
    fn group(&mut self, name: &str) -> Result<&mut GroupLimits, CommandError> {
        if let Some(fault) = groups::check_name(name) {
            return Err(CommandError::Value(fault));
        }
        let groups = &mut self.bounds.all.groups;
        if !groups.contains_key(name) && groups.len() >= MAX_GROUPS {
            let entries = self.entries.values();
            let used: HashSet<&str> = entries
                .map(|entry| entry.record.settings.group.as_str())
                .collect();
            let limits_something = |limits: &GroupLimits| {
                let GroupLimits { rates, is_exempt } = limits;
                rates.download.holds || rates.upload.holds || *is_exempt
            };
            groups.retain(|name, limits| limits_something(limits) || used.contains(name.as_str()));
            if groups.len() >= MAX_GROUPS {
                return Err(CommandError::Value(groups::too_many()));
            }
        }
        Ok(groups.entry(name.to_owned()).or_default())
    }
}
