//! JSON read as a description of it (JSON Schema) says.
//!
//! Deserializers that serde derives take a list for an object, its items for the fields in their order:
//! `["a"]` for `{"name": "a"}`, and `[]` for any object whose fields may all be absent. And they refuse
//! `10.0` for an integer, which is one in JSON Schema.

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use serde_json::Value;

/// Largest number of which floating point has all smaller ones, too.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// Reads a value from its text.
pub(crate) fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = T::deserialize(Strict(&mut deserializer))?;
    deserializer.end()?;
    Ok(value)
}

/// Reads a value from JSON that was read already.
pub(crate) fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, serde_json::Error> {
    T::deserialize(Strict(value))
}

/// A deserializer, visitor, seed or access for which objects are objects.
struct Strict<T>(T);

/// A visitor of an integer.
struct Integer<V>(V);

/// Methods that hand their argument on.
macro_rules! forward {
    ($($method:ident($($name:ident: $kind:ty),*)),* $(,)?) => {
        $(fn $method<V: Visitor<'de>>(self, $($name: $kind,)* visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method($($name,)* Strict(visitor))
        })*
    };
}

/// The same for integers.
macro_rules! integers {
    ($($method:ident),*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method(Integer(visitor))
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Strict<D> {
    type Error = D::Error;

    forward! {
        deserialize_any(), deserialize_bool(), deserialize_f32(), deserialize_f64(), deserialize_char(),
        deserialize_str(), deserialize_string(), deserialize_bytes(), deserialize_byte_buf(),
        deserialize_option(), deserialize_unit(), deserialize_unit_struct(name: &'static str),
        deserialize_newtype_struct(name: &'static str), deserialize_seq(), deserialize_tuple(length: usize),
        deserialize_tuple_struct(name: &'static str, length: usize), deserialize_map(),
        deserialize_enum(name: &'static str, variants: &'static [&'static str]),
        deserialize_identifier(), deserialize_ignored_any(),
    }

    integers!(
        deserialize_i8,
        deserialize_i16,
        deserialize_i32,
        deserialize_i64,
        deserialize_u8,
        deserialize_u16,
        deserialize_u32,
        deserialize_u64
    );

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(Strict(visitor))
    }
}

/// Methods of visitors that hand their argument on.
macro_rules! visits {
    ($($method:ident($kind:ty)),* $(,)?) => {
        $(fn $method<E: Error>(self, value: $kind) -> Result<V::Value, E> {
            self.0.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Strict<V> {
    type Value = V::Value;

    fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.expecting(to)
    }

    visits! {
        visit_bool(bool), visit_i64(i64), visit_u64(u64), visit_f64(f64), visit_char(char), visit_str(&str),
        visit_borrowed_str(&'de str), visit_string(String), visit_bytes(&[u8]),
        visit_borrowed_bytes(&'de [u8]), visit_byte_buf(Vec<u8>),
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Strict(inner))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Strict(inner))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(Strict(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Strict(fields))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(Strict(data))
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Integer<V> {
    type Value = V::Value;

    fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.expecting(to)
    }

    visits! {
        visit_bool(bool), visit_i64(i64), visit_u64(u64), visit_str(&str),
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "it is whole, and floating point is exact there"
    )]
    fn visit_f64<E: Error>(self, value: f64) -> Result<V::Value, E> {
        match value.fract() == 0.0 && value.abs() < MAX_EXACT {
            true if value < 0.0 => self.0.visit_i64(value as i64),
            true => self.0.visit_u64((value as i64).unsigned_abs()),
            false => self.0.visit_f64(value),
        }
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Strict<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Strict(deserializer))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Strict<A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, A::Error> {
        self.0.next_element_seed(Strict(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Strict<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        // Keys are texts, also of numbers.
        self.0.next_key_seed(seed)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        self.0.next_value_seed(Strict(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Strict<A> {
    type Error = A::Error;
    type Variant = Strict<A::Variant>;

    fn variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<(T::Value, Self::Variant), A::Error> {
        let (value, variant) = self.0.variant_seed(seed)?;
        Ok((value, Strict(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Strict<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, A::Error> {
        self.0.newtype_variant_seed(Strict(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(length, Strict(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.struct_variant(fields, Strict(visitor))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Rates {
        egress: Option<u64>,
        ingress: Option<i8>,
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        Plain,
        Of(Rates),
        With { rates: Rates },
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Link {
        name: String,
        #[serde(default)]
        limit: Rates,
        #[serde(default)]
        ends: Vec<u16>,
        #[serde(default)]
        kinds: Vec<Kind>,
        #[serde(default)]
        more: BTreeMap<u16, Option<Rates>>,
        share: Option<f64>,
    }

    fn read(text: &str) -> Result<Link, serde_json::Error> {
        let read = from_slice::<Link>(text.as_bytes());
        let value: Option<Value> = serde_json::from_str(text).ok();
        let of_value = value.map(|value| from_value::<Link>(value).ok());
        assert_eq!(read.as_ref().ok(), of_value.flatten().as_ref(), "{text}");
        read
    }

    #[test]
    fn a_list_is_not_an_object() {
        for text in [
            r#"["a",{},[],[],{},null]"#,
            r#"{"name":"a","limit":[]}"#,
            r#"{"name":"a","limit":[1,2]}"#,
            r#"{"name":"a","kinds":[{"of":[1,2]}]}"#,
            r#"{"name":"a","kinds":[{"with":{"rates":[]}}]}"#,
            r#"{"name":"a","more":{"1":[]}}"#,
        ] {
            assert!(serde_json::from_str::<Link>(text).is_ok(), "{text}");
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn whole_numbers_are_integers() {
        let text =
            r#"{"name":"a","limit":{"egress":10.0,"ingress":-1e0},"ends":[65535.0],"share":1}"#;
        let link = read(text).unwrap();
        assert_eq!(
            (link.limit.egress, link.limit.ingress),
            (Some(10), Some(-1))
        );
        assert_eq!((link.ends, link.share), (vec![u16::MAX], Some(1.0)));
        for text in [
            r#"{"name":"a","ends":[1.5]}"#,
            r#"{"name":"a","ends":[65536.0]}"#,
            r#"{"name":"a","ends":[-1.0]}"#,
            r#"{"name":"a","limit":{"egress":1e300}}"#,
            r#"{"name":"a"} x"#,
            r#"{"name":1.0}"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    fn rates() -> impl Strategy<Value = Rates> {
        let rates = (any::<Option<u64>>(), any::<Option<i8>>());
        rates.prop_map(|(egress, ingress)| Rates { egress, ingress })
    }

    fn kind() -> impl Strategy<Value = Kind> {
        prop_oneof![
            Just(Kind::Plain),
            rates().prop_map(Kind::Of),
            rates().prop_map(|rates| Kind::With { rates }),
        ]
    }

    proptest! {
        /// What is written is read.
        #[test]
        fn values_are_read(
            name: String, limit in rates(), ends: Vec<u16>, share in prop::option::of(-1_000_000..1_000_000),
            kinds in prop::collection::vec(kind(), 0..4),
            more in prop::collection::btree_map(any::<u16>(), prop::option::of(rates()), 0..4),
        ) {
            let share = share.map(f64::from);
            let link = Link { name, limit, ends, kinds, more, share };
            let text = serde_json::to_string(&link).unwrap();
            prop_assert_eq!(from_slice::<Link>(text.as_bytes()).unwrap(), link);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        let valid = [
            r#"{"name":"a","limit":{"egress":1},"ends":[1.0],"kinds":["plain",{"of":{}}],"more":{"1":null}}"#,
        ];
        let valid: Vec<_> = valid.iter().map(|text| text.as_bytes().to_vec()).collect();
        hawser_fuzz::fuzz(&valid, |bytes| {
            let _ = from_slice::<Link>(bytes);
        });
    }
}
