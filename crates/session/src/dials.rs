//! Dials under way.

use std::collections::HashMap;
use std::future::{Future, pending};
use std::hash::Hash;
use std::panic::resume_unwind;

use hawser_manager::Action;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

/// Dials under way, each as a task of its own under a name of type `K`, with an outcome of type `T`. There
/// are as many tasks as dials were started and have not been returned by [`next`](Self::next).
///
/// Dropping it cancels all.
#[derive(Debug)]
pub struct Dials<K, T> {
    tasks: JoinSet<T>,
    /// Those whose outcome is wanted.
    wanted: HashMap<Id, (K, AbortHandle)>,
}

impl<K, T: 'static> Default for Dials<K, T> {
    fn default() -> Self {
        Self {
            tasks: JoinSet::new(),
            wanted: HashMap::new(),
        }
    }
}

impl<K: Copy + Eq + Hash, T: Send + 'static> Dials<K, T> {
    /// Starts a dial. Must be called inside a tokio runtime.
    pub fn start(&mut self, name: K, dial: impl Future<Output = T> + Send + 'static) {
        let task = self.tasks.spawn(dial);
        self.wanted.insert(task.id(), (name, task));
    }

    /// Cancels a dial: its outcome is dropped, also if it is there and was not returned yet. Returns
    /// whether it was under way.
    pub fn cancel(&mut self, name: K) -> bool {
        let all = self.wanted.iter();
        let found = all
            .filter(|(_, (of, _))| *of == name)
            .map(|(id, _)| *id)
            .next();
        match found.and_then(|id| self.wanted.remove(&id)) {
            Some((_, task)) => {
                task.abort();
                true
            }
            None => false,
        }
    }

    /// Carries out what a path manager orders about the subflow of this name, as far as it is dialed here:
    /// starts the dial that `dial` returns, or cancels one. Returns whether nothing is left to do; if not,
    /// the order is about a subflow that is connected.
    pub fn obey<F>(&mut self, name: K, action: Action, dial: impl FnOnce() -> Option<F>) -> bool
    where
        F: Future<Output = T> + Send + 'static,
    {
        match action {
            Action::Dial => {
                if let Some(dial) = dial() {
                    self.start(name, dial);
                }
                true
            }
            Action::Close { .. } => self.cancel(name),
            Action::Hold | Action::Resume => false,
        }
    }

    /// Cancels the dials whose names are not to be kept.
    pub fn retain(&mut self, keep: impl Fn(&K) -> bool) {
        let gone = self.wanted.extract_if(|_, (name, _)| !keep(name));
        gone.for_each(|(_, (_, task))| task.abort());
    }

    /// Cancels all dials.
    pub fn cancel_all(&mut self) {
        self.wanted.clear();
        self.tasks.abort_all();
    }

    /// Whether no dial is under way.
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// The next outcome of a dial that was not cancelled, with its name. Waits for ever if there is none
    /// under way. Cancel safe: an outcome is returned or kept.
    ///
    /// # Panics
    /// If a dial has panicked.
    pub async fn next(&mut self) -> (K, T) {
        loop {
            match self.tasks.join_next_with_id().await {
                Some(joined) => {
                    if let Some(outcome) = self.outcome(joined) {
                        return outcome;
                    }
                }
                None => pending().await,
            }
        }
    }

    /// The next outcome as of [`next`](Self::next), if there is one already. Take all of these before
    /// judging which dials are late.
    ///
    /// # Panics
    /// If a dial has panicked.
    pub fn try_next(&mut self) -> Option<(K, T)> {
        loop {
            let joined = self.tasks.try_join_next_with_id()?;
            if let Some(outcome) = self.outcome(joined) {
                return Some(outcome);
            }
        }
    }

    /// The outcome of a task that has ended, unless the dial was cancelled, at the last moment as well.
    fn outcome(&mut self, joined: Result<(Id, T), JoinError>) -> Option<(K, T)> {
        match joined {
            Ok((id, outcome)) => self.wanted.remove(&id).map(|(name, _)| (name, outcome)),
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            Err(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::time::Duration;

    use tokio::task::yield_now;
    use tokio::time::{sleep, timeout};

    use super::*;

    async fn after(seconds: u64) -> u64 {
        sleep(Duration::from_secs(seconds)).await;
        seconds
    }

    #[tokio::test(start_paused = true)]
    async fn outcomes_come_as_they_are_there() {
        let mut dials = Dials::default();
        dials.start('a', after(2));
        dials.start('b', after(1));
        assert_eq!(dials.next().await, ('b', 1));
        assert!(!dials.is_empty());
        assert_eq!(dials.next().await, ('a', 2));
        assert!(dials.is_empty());
        let more = timeout(Duration::from_secs(60), dials.next()).await;
        assert!(more.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn outcomes_that_are_there_are_taken_without_waiting() {
        let mut dials = Dials::default();
        for (name, seconds) in [('a', 1), ('b', 2), ('c', 3), ('d', 60)] {
            dials.start(name, after(seconds));
        }
        assert_eq!(dials.try_next(), None);
        sleep(Duration::from_secs(4)).await;
        assert!(dials.cancel('b'));
        let mut there = [dials.try_next(), dials.try_next()];
        there.sort();
        assert_eq!(there, [Some(('a', 1)), Some(('c', 3))]);
        assert_eq!(dials.try_next(), None);
        assert!(!dials.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_dial_has_no_outcome_even_if_it_waits() {
        let mut dials = Dials::default();
        dials.start('a', ready(1));
        dials.start('b', after(60));
        dials.start('c', after(3));
        for _ in 0..10 {
            yield_now().await;
        }
        assert!(dials.cancel('a') && dials.cancel('b'));
        assert!(!dials.cancel('a') && !dials.cancel('d'));
        // Its name may be given again.
        dials.start('a', after(1));
        assert_eq!(dials.next().await, ('a', 1));
        assert_eq!(dials.next().await, ('c', 3));
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_are_not_kept_are_cancelled() {
        let mut dials = Dials::default();
        for name in ['a', 'b', 'c'] {
            dials.start(name, after(1));
        }
        dials.retain(|name| *name == 'b');
        assert_eq!(dials.next().await, ('b', 1));
        assert!(dials.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn orders_about_connected_subflows_are_left_to_others() {
        let mut dials = Dials::default();
        let none = || None::<std::future::Ready<u64>>;
        let close = Action::Close { drain: false };
        assert!(dials.obey('a', Action::Dial, || Some(after(60))));
        assert!(dials.obey('b', Action::Dial, none));
        assert!(!dials.obey('a', Action::Hold, none));
        assert!(!dials.obey('a', Action::Resume, none));
        assert!(dials.obey('a', close, none));
        assert!(!dials.obey('a', close, none) && !dials.obey('b', close, none));
        assert!(dials.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn dropping_it_cancels_all() {
        let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
        let mut dials = Dials::default();
        dials.start('a', async move { sender.send(after(60).await).await });
        yield_now().await;
        drop(dials);
        assert_eq!(receiver.recv().await, None);
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "as the test wants")]
    async fn a_panic_of_a_dial_is_one_of_its_owner() {
        let mut dials: Dials<char, ()> = Dials::default();
        dials.start('a', async { panic!("as the test wants") });
        dials.next().await;
    }
}
