//! `torrent-get`.

use super::call::Call;
use crate::error::CallError;
use crate::fields::{Field, field};
use crate::ids::Ids;
use crate::json::Object;
use crate::names::Name;
use crate::torrent::{Parts, TorrentView};

const TORRENTS: Name = Name::same("torrents");

pub(super) fn get(call: &mut Call<'_>, result: &mut Object<'_>) -> Result<(), CallError> {
    let torrents = call.torrents()?;
    let fields = call.fields(field)?;
    if fields.is_empty() {
        return Err(CallError::invalid("no fields specified"));
    }
    let is_table = call.args.text("format")? == Some("table");
    if call.args.ids()? == Ids::RecentlyActive {
        result.field(Name::same("removed"), &call.client.removed());
    }
    let join = |parts: Parts, field: &&Field| parts.union(field.parts);
    let parts = fields.iter().fold(Parts::NONE, join);
    let json = result.key(TORRENTS);
    let form = json.form();
    json.elements(|rows| {
        if is_table {
            let names = fields.iter().map(|field| field.name.of(form));
            rows.next().array(names, |json, name| json.value(name));
        }
        let mut show = |torrent: &TorrentView| {
            let json = rows.next();
            if is_table {
                json.array(&fields, |json, field| (field.write)(torrent, json));
            } else {
                json.object(|object| {
                    for field in &fields {
                        (field.write)(torrent, object.key(field.name));
                    }
                });
            }
        };
        call.client.show(&torrents, parts, &mut show);
    });
    Ok(())
}
