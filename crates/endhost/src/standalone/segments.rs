//! Which segments to request from control services, and a cache of their answers until they expire.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hawser_address::IsdAsn;
use hawser_segment::{Segment, Segments};

use crate::sync::lock;

/// How long an answer is used before the next request: a control service serves many hosts.
const MAX_ANSWER_AGE: Duration = Duration::from_secs(5);

/// The segments between two ASes; AS number 0 stands for all core ASes of an ISD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Question {
    pub(super) src: IsdAsn,
    pub(super) dst: IsdAsn,
}

/// The requests for paths from `src` to `dst`, which may be a core AS or not: the up segments, core
/// segments to `dst` itself or to all core ASes of its ISD, and down segments. A request that does
/// not apply is refused or has an empty answer (SCION control plane, "Path Lookup").
pub(super) fn questions(src: IsdAsn, core: bool, dst: IsdAsn) -> Vec<Question> {
    let cores_of = |isd_as: IsdAsn| IsdAsn::from_u64(isd_as.to_u64() >> 48 << 48);
    let (here, there) = (cores_of(src), cores_of(dst));
    let pairs = if core {
        vec![(src, dst), (src, there), (there, dst)]
    } else {
        vec![(src, here), (here, there), (here, dst), (there, dst)]
    };
    let mut questions = Vec::new();
    for (src, dst) in pairs {
        let question = Question { src, dst };
        if !questions.contains(&question) {
            questions.push(question);
        }
    }
    questions
}

/// Answers by request.
#[derive(Default)]
pub(super) struct SegmentCache(Mutex<HashMap<Question, Answer>>);

struct Answer {
    at: Instant,
    found: Segments,
}

impl SegmentCache {
    /// Replaces the answer to `question`.
    pub(super) fn put(&self, question: Question, found: Segments) {
        let at = Instant::now();
        lock(&self.0).insert(question, Answer { at, found });
    }

    /// Whether the answer is recent.
    pub(super) fn is_recent(&self, question: Question) -> bool {
        let answers = lock(&self.0);
        answers
            .get(&question)
            .is_some_and(|answer| answer.at.elapsed() < MAX_ANSWER_AGE)
    }

    /// Whether there was an answer to any of `questions`, even an empty one.
    pub(super) fn has_any(&self, questions: &[Question]) -> bool {
        let answers = lock(&self.0);
        questions
            .iter()
            .any(|question| answers.contains_key(question))
    }

    /// The segments of the answers to `questions`, each once, that have not expired at `now` (seconds
    /// since the Unix epoch).
    pub(super) fn unexpired(&self, questions: &[Question], now: u64) -> Segments {
        self.matching(questions, |segment| segment.expiry() > now)
    }

    /// All segments of the answers to `questions`, each once, expired ones included.
    pub(super) fn all(&self, questions: &[Question]) -> Segments {
        self.matching(questions, |_| true)
    }

    fn matching(&self, questions: &[Question], is: impl Fn(&Segment) -> bool) -> Segments {
        let answers = lock(&self.0);
        let mut all = Segments::default();
        for question in questions {
            let Some(Answer { found, .. }) = answers.get(question) else {
                continue;
            };
            for (from, into) in [
                (&found.up, &mut all.up),
                (&found.core, &mut all.core),
                (&found.down, &mut all.down),
            ] {
                into.extend(from.iter().filter(|segment| is(segment)).cloned());
            }
        }
        for list in [&mut all.up, &mut all.core, &mut all.down] {
            let mut seen = HashSet::new();
            // Two copies of a segment may have different timestamps; path combination takes the
            // better one.
            list.retain(|segment: &Segment| seen.insert((segment.id(), segment.timestamp())));
        }
        all
    }
}
