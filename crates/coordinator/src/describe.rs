//! How values are written in requests, for descriptions of APIs (OpenAPI): in place of types that are
//! written as text, and with the bounds that the coordinator checks.

use utoipa::openapi::schema::{
    AnyOfBuilder, Array, ArrayBuilder, KnownFormat, ObjectBuilder, SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// An ISD-AS, as `1-ff00:0:110`.
#[derive(Debug, ToSchema)]
#[schema(
    pattern = "^(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[0-9]{1,4})-([0-9a-fA-F]{1,4}:[0-9a-fA-F]{1,4}:[0-9a-fA-F]{1,4}|[0-9]{1,9}|[1-3][0-9]{9}|4[01][0-9]{8}|42[0-8][0-9]{7}|429[0-3][0-9]{6}|4294[0-8][0-9]{5}|42949[0-5][0-9]{4}|429496[0-6][0-9]{3}|4294967[01][0-9]{2}|42949672[0-8][0-9]|429496729[0-5])$",
    examples("1-ff00:0:110")
)]
pub struct IsdAs(pub String);

/// The ISD-AS of one AS, as `1-ff00:0:110`: neither number is 0.
#[derive(Debug, ToSchema)]
#[schema(
    pattern = "^(?!0+-)(?![0-9]+-0+(:0+:0+)?$)(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[0-9]{1,4})-([0-9a-fA-F]{1,4}:[0-9a-fA-F]{1,4}:[0-9a-fA-F]{1,4}|[0-9]{1,9}|[1-3][0-9]{9}|4[01][0-9]{8}|42[0-8][0-9]{7}|429[0-3][0-9]{6}|4294[0-8][0-9]{5}|42949[0-5][0-9]{4}|429496[0-6][0-9]{3}|4294967[01][0-9]{2}|42949672[0-8][0-9]|429496729[0-5])$",
    examples("1-ff00:0:110")
)]
pub struct SingleIsdAs(pub String);

/// 1 to 64 characters, without control characters, invisible ones, and spaces around.
#[derive(Debug, ToSchema)]
#[schema(
    min_length = 1,
    max_length = 64,
    pattern = r"^[^\s\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]([^\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*[^\s\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb])?$",
    examples("Zurich")
)]
pub struct Name(pub String);

/// The name of a network interface.
#[derive(Debug, ToSchema)]
#[schema(min_length = 1, max_length = 15, pattern = "^[!-.0-9;-~]+$")]
pub struct Device(pub String);

/// An IPv4 or IPv6 address, as text.
#[derive(Debug)]
pub enum Address {}

impl PartialSchema for Address {
    fn schema() -> RefOr<Schema> {
        let of = |format| {
            let format = Some(SchemaFormat::KnownFormat(format));
            ObjectBuilder::new()
                .schema_type(SchemaType::AnyValue)
                .format(format)
        };
        AnyOfBuilder::new()
            .schema_type(Type::String)
            .item(of(KnownFormat::Ipv4))
            .item(of(KnownFormat::Ipv6))
            .description(Some("An IPv4 or IPv6 address."))
            .examples(["192.0.2.1"])
            .into()
    }
}

impl ToSchema for Address {}

/// Two ASes that differ.
pub(crate) fn two_ases() -> Array {
    ArrayBuilder::new()
        .items(Ref::from_schema_name("IsdAs"))
        .min_items(Some(2))
        .max_items(Some(2))
        .unique_items(true)
        .build()
}
