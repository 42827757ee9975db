//! The archive with which an AS is run by `hawser as join`.

use std::collections::BTreeMap;

use hawser_bundle::{Bundle, Manifest, Role};
use hawser_topology::{IsdAsn, Network};

use crate::error::ExportError;
use crate::index::Version;
use crate::keys::Keys;
use crate::name::hex;
use crate::plan::AsPlan;

/// The configuration of an AS: what it is planned to be, and its keys. Its version is the one of
/// `before` if nothing has changed since, else the next one.
pub(crate) fn bundle(
    network: &Network,
    plan: &AsPlan,
    keys: &Keys,
    before: &BTreeMap<IsdAsn, Version>,
) -> Result<(Bundle, Version), ExportError> {
    let mut bundle = Bundle::default();
    bundle.set_topology(&plan.topology);
    bundle.set_link_states(&plan.states);
    if !plan.limits.0.is_empty() {
        bundle.set_link_info(&plan.limits);
    }
    if !plan.neighbours.0.is_empty() {
        bundle.set_neighbours(&plan.neighbours);
    }
    for (name, bytes) in keys.of(plan.isd_as) {
        bundle.insert(name, bytes)?;
    }
    let of = hex(&bundle.hash());
    let number = match before.get(&plan.isd_as) {
        Some(before) if before.of == of => before.number,
        Some(before) => before.number + 1,
        None => 1,
    };
    // It limits its links, as an attachment point does.
    let mut manifest = Manifest::new(plan.isd_as, Role::AttachmentPoint, number);
    let note = network.find(plan.isd_as).and_then(|as_| as_.note.clone());
    manifest.label = note.unwrap_or_default();
    bundle.set_manifest(&manifest);
    Ok((bundle, Version { number, of }))
}
