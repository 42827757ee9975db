//! Files that change while they are served, reported once each time.

use hawser_torrent::ChangedFile;

use crate::out::{errln, outln, plain};

/// The changes that were reported.
#[derive(Debug, Default)]
pub struct Changes(Vec<ChangedFile>);

impl Changes {
    /// Reports the files of `changed` whose change was not reported before: as JSON objects on
    /// standard output, or as lines on standard error.
    pub fn report(&mut self, changed: &[ChangedFile], json: bool) {
        for file in changed.iter().filter(|file| !self.0.contains(file)) {
            if json {
                let object = serde_json::json!({
                    "file": file.path,
                    "pieces": file.pieces,
                    "lost_pieces": file.lost,
                    "error": file.error,
                });
                outln!("{object}");
            } else {
                errln!("hawser: {}", plain(&file.to_string()));
            }
        }
        self.0 = changed.to_vec();
    }
}
