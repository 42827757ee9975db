//! `torrent-get`.

use super::Call;
use crate::error::CallError;
use crate::fields::{Field, field};
use crate::ids::Ids;
use crate::json::Object;
use crate::names::Name;
use crate::torrent::{Parts, TorrentView};

const TORRENTS: Name = Name::same("torrents");

pub(super) fn get(call: &mut Call<'_>, result: &mut Object<'_>) -> Result<(), CallError> {
    let torrents = call.torrents()?;
    let fields = fields(call)?;
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

/// The fields that are asked for, each once. What is no field is passed over, as clients ask for
/// fields of newer and older versions.
fn fields(call: &Call<'_>) -> Result<Vec<&'static Field>, CallError> {
    let mut fields: Vec<&Field> = Vec::new();
    for name in call.args.texts("fields")?.unwrap_or_default() {
        if let Some(field) = field(&name)
            && fields.iter().all(|other| other.name != field.name)
        {
            fields.push(field);
        }
    }
    if fields.is_empty() {
        return Err(CallError::InvalidParams("no fields specified".to_owned()));
    }
    Ok(fields)
}
