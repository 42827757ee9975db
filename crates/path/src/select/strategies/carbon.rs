//! `carbon`: the lowest sum of what a gigabyte costs in each AS on the path, in grams of CO2.

use std::sync::Arc;

use sciparse::identifier::isd_asn::IsdAsn;

use crate::carbon::is_amount;
use crate::select::kind::{self, Kind};
use crate::select::strategy::{Candidate, Part, Rank, Strategy};
use crate::{Carbon, Path};

pub(super) const KIND: Kind = Kind::ranking(
    "carbon",
    "the lowest sum of CO2 per GB over the ASes on the path",
    kind::plain::<LowestCarbon>,
);

/// Ranks by a [`Carbon`] table, and by the notes of ASes that are not in it.
#[derive(Debug, Default)]
struct LowestCarbon(Carbon);

impl Strategy for LowestCarbon {
    fn text(&self) -> String {
        KIND.name.to_owned()
    }

    fn rank(&self, path: &Candidate<'_>) -> Option<Rank> {
        let mut sum = 0.0;
        let (mut parts, mut told) = (Vec::new(), Vec::new());
        let mut missing = Vec::new();
        for (at, isd_as) in ases(path.path).into_iter().enumerate() {
            let interfaces = path.path.interfaces.iter();
            let crossed = interfaces.filter(|interface| interface.isd_as == isd_as);
            let noted = || {
                path.path
                    .metadata
                    .notes
                    .get(at)
                    .and_then(|note| noted(note))
            };
            let found = self
                .0
                .crossing(isd_as, crossed)
                .map(|value| (value, "file"));
            let found = found.or_else(|| noted().map(|value| (value, "note")));
            parts.push(Part {
                isd_as,
                amount: found.map(|(value, _)| value),
                source: found.map(|(_, source)| source),
            });
            match found {
                Some((value, source)) => {
                    sum += value;
                    told.push(format!("{} from {isd_as} ({source})", grams(value)));
                }
                None => missing.push(isd_as.to_string()),
            }
        }
        let known = missing.is_empty();
        let total = match (known, told.is_empty()) {
            (true, _) => format!("carbon {} g/GB", grams(sum)),
            (false, true) => "carbon unknown".to_owned(),
            (false, false) => format!("carbon more than {} g/GB", grams(sum)),
        };
        let amount = (!told.is_empty()).then_some(grams(sum));
        if !known {
            told.push(format!("nothing known of {}", missing.join(", ")));
        }
        Some(Rank {
            known,
            // Micrograms; a float beyond the range becomes the largest number.
            cost: if known { (sum * 1e6).round() as u64 } else { 0 },
            value: format!("{total}: {}", told.join(", ")),
            amount,
            unit: "g/GB",
            parts,
        })
    }

    fn best(&self) -> &'static str {
        "lowest"
    }

    fn with_carbon(&self, table: &Carbon) -> Option<Arc<dyn Strategy>> {
        Some(Arc::new(Self(table.clone())))
    }
}

/// The ASes on the path, both ends included.
fn ases(path: &Path) -> Vec<IsdAsn> {
    let entered = path.interfaces.iter().skip(1).step_by(2);
    std::iter::once(path.src)
        .chain(entered.map(|interface| interface.isd_as))
        .collect()
}

/// The number after `carbon=` in a note, whose words are separated by blanks, commas or semicolons;
/// `None` if it is not an amount.
fn noted(note: &str) -> Option<f64> {
    let mut words = note.split([' ', '\t', '\n', '\r', ',', ';']);
    let text = words.find_map(|word| word.strip_prefix("carbon="))?;
    text.parse().ok().filter(|value| is_amount(*value))
}

/// To hundredths.
fn grams(value: f64) -> f64 {
    (value * 1e2).round() / 1e2
}
