//! Files that are selected while a torrent is at work.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};

use super::event::Event;
use super::state::Swarm;
use crate::error::SelectError;
use crate::requests::Requests;
use crate::selection::Selection;
use crate::transport::Transport;

/// A request to select other files, and where its result goes.
pub(crate) type Select = (Selection, oneshot::Sender<Result<(), SelectError>>);

impl<T: Transport> Swarm<T> {
    /// Begins with a selection, which is in force on disk.
    pub fn begin(&mut self, selection: &Selection, now: Instant) {
        self.want(selection, now);
        let missing = self.fetching.picker.free_blocks();
        self.fetching.requests = Requests::new(missing, now);
        self.announced_final = self.shared.is_final();
    }

    /// Selects files as requested from now on, one request after another. On disk they are selected
    /// on a thread that may wait, before any of their pieces is requested.
    pub fn take_selections(&mut self, mut selects: mpsc::Receiver<Select>) {
        let (events, shared) = (self.net.events.clone(), Arc::clone(&self.shared));
        let metainfo = Arc::clone(&self.metainfo);
        self.net.tasks.spawn(async move {
            while let Some((selection, reply)) = selects.recv().await {
                let files = Arc::clone(&shared.files);
                let on_disk = selection.clone();
                let selected = match selection.check(&metainfo) {
                    Err(error) => Err(error.into()),
                    Ok(()) if !shared.fetches() => Err(SelectError::Complete),
                    Ok(()) => {
                        let select = move || files.select(|file| on_disk.has(file));
                        let selected = tokio::task::spawn_blocking(select).await;
                        selected.map_or(Err(SelectError::Ended), |it| it.map_err(Into::into))
                    }
                };
                if let Err(error) = selected {
                    // Nobody waits for the result any more.
                    let _ = reply.send(Err(error));
                } else if events
                    .send(Event::Selected(selection, reply))
                    .await
                    .is_err()
                {
                    return;
                }
            }
        });
    }

    /// Handles a selection, which is in force on disk.
    pub(super) fn selected(&mut self, (selection, reply): Select, now: Instant) {
        let result = match self.is_complete() {
            true => Err(SelectError::Complete),
            false => {
                self.want(&selection, now);
                Ok(())
            }
        };
        // Fails if nobody waits for the result any more.
        let _ = reply.send(result);
    }

    /// Fetches the files of a selection, which is in force on disk, and no others.
    fn want(&mut self, selection: &Selection, now: Instant) {
        let wanted = selection.wanted(&self.metainfo);
        let cancel = self.fetching.picker.select(wanted);
        super::fetching::cancel(&mut self.conns, cancel);
        let picker = &self.fetching.picker;
        self.fetching
            .files
            .select(selection, picker.wanted(), picker.verified());
        self.note_demand();
        for id in self.conns.ids() {
            self.show_interest(id);
        }
        self.conns.touch_all();
        self.ending.alive_at = now;
    }
}
