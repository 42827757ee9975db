//! Certificates and TRCs.

use super::ago;
use crate::code::Code;
use crate::facts::{Facts, TrustItem};
use crate::finding::Finding;
use crate::time::utc;

/// A certificate with less than this part of its lifetime left should have been renewed.
const RENEWAL_PART: u64 = 10;

pub(super) fn check(facts: &Facts, findings: &mut Vec<Finding>) {
    let now = facts.now;
    for one in &facts.trust {
        let path = one.path.display();
        let item = match &one.item {
            Ok(item) => item,
            Err(reason) => {
                findings.push(Finding::error(
                    Code::TrustFile,
                    format!("{path} cannot be used: {reason}"),
                    "replace it by a valid one from the operator of the AS or ISD",
                ));
                continue;
            }
        };
        let TrustItem {
            name,
            is_trc,
            not_before,
            not_after,
        } = item;
        let (since, lifetime) = (utc(*not_after), not_after.saturating_sub(*not_before));
        if *not_after < now {
            let (code, remedy) = match is_trc {
                true => (
                    Code::TrcExpired,
                    "get the newest TRC of the ISD from its operator, and put it beside this one",
                ),
                false => (
                    Code::CertificateExpired,
                    "renew it at the certification authority of the ISD, and restart the control \
                     service",
                ),
            };
            let age = ago(now, *not_after);
            let problem = format!("{name} ({path}) expired at {since}, {age} ago");
            findings.push(Finding::error(code, problem, remedy));
        } else if !is_trc && *not_before <= now && (not_after - now) < lifetime / RENEWAL_PART {
            let left = ago(now, *not_after);
            findings.push(Finding::warning(
                Code::CertificateExpires,
                format!("{name} ({path}) expires at {since}, in {left}"),
                "renew it: what renews certificates of the AS seems not to run",
            ));
        }
    }
}
