//! Files that change while they are served.

use std::sync::Arc;
use std::time::Duration;

use hawser_store::{Stamps, Watch};

use super::state::Swarm;
use crate::close::CloseCode;
use crate::picker::ConnId;
use crate::progress::ChangedFile;
use crate::transport::Transport;
use crate::wire::Message;

/// How often the files are looked at where nobody reads them.
const SCAN: Duration = Duration::from_secs(1);

/// The text of a close when pieces it was offered are not there any more. Nothing in BEP 3 takes a
/// piece back: it connects again and is offered what there is.
pub(super) const WITHDRAWN: &str = "some pieces are not offered any more: connect again";

impl<T: Transport> Swarm<T> {
    /// Watches over the files from now on: all of them are verified, in the states `stamps`.
    pub(super) fn watch_content(&mut self, stamps: Stamps) {
        let (files, metainfo) = (Arc::clone(&self.shared.files), Arc::clone(&self.metainfo));
        let content = Watch::new(files, metainfo, stamps);
        let content = Arc::clone(self.shared.content.get_or_init(|| Arc::new(content)));
        self.net.tasks.spawn(async move {
            loop {
                tokio::time::sleep(SCAN).await;
                let content = Arc::clone(&content);
                // It fails where the program ends.
                if tokio::task::spawn_blocking(move || content.scan())
                    .await
                    .is_err()
                {
                    return;
                }
            }
        });
    }

    /// Tells peers and the user what became of the files.
    pub(super) fn follow_content(&mut self) {
        let Some(content) = self.shared.content.get() else {
            return;
        };
        let Some(news) = content.take_news() else {
            return;
        };
        // A piece may be among both more than once: what counts is how it is now.
        for piece in news.withdrawn.iter().chain(&news.restored) {
            self.shared.offer(*piece, content.is_offered(*piece));
        }
        let lacks = |id: &ConnId| news.withdrawn.iter().any(|p| !self.picker.has(*id, *p));
        let misled: Vec<ConnId> = self.conns.open.keys().copied().filter(lacks).collect();
        for id in misled {
            self.drop_conn(id, CloseCode::Withdrawn, WITHDRAWN);
        }
        let offered = self.shared.offered();
        for (id, conn) in self.conns.open.iter() {
            let restored = news.restored.iter().copied();
            let restored = restored.filter(|p| offered.has(*p) && !self.picker.has(*id, *p));
            conn.send(restored.map(Message::Have));
        }
        for changed in news.changed.into_iter().map(ChangedFile::from) {
            tracing::debug!(%changed, "a file under the seeder");
            let reported = &mut self.tally.changed;
            reported.retain(|before| before.path != changed.path);
            reported.push(changed);
        }
    }
}
