//! A session as the data thread has it.

use crate::data::{Command, Commands, SessionKey};

/// A session as the data thread has it. It ends there when this is dropped, also when the future that
/// runs the session is dropped before its end.
pub(super) struct AtData {
    commands: Commands,
    key: SessionKey,
}

impl AtData {
    /// The session `key`, which was begun by `commands`.
    pub(super) fn new(commands: Commands, key: SessionKey) -> Self {
        Self { commands, key }
    }

    /// Gives a command to the thread.
    pub(super) fn give(&self, command: Command) {
        self.commands.give(command);
    }
}

impl Drop for AtData {
    fn drop(&mut self) {
        self.commands.give(Command::End(self.key));
    }
}
