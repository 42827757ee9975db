//! What to ask a control service for the paths to an AS.

use sciparse::identifier::isd_asn::IsdAsn;

/// The segments between two ASes; AS number 0 stands for all core ASes of an ISD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Question {
    pub(super) src: IsdAsn,
    pub(super) dst: IsdAsn,
}

/// The questions for paths from `src` to `dst`, which may be a core AS or not: the up segments,
/// core segments to `dst` itself or to all core ASes of its ISD, and down segments. What does not
/// apply is refused or has an empty answer (SCION control plane, "Path Lookup").
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
