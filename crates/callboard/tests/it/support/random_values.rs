//! Random values for a JSON schema, valid and invalid. The same seed gives the same values.

use serde_json::{Map, Value, json};

use crate::support::document::Document;

/// The pseudo-random number generator SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }

    /// Returns true once in `n` times on average.
    pub(crate) fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

pub(crate) struct RandomValues<'a> {
    pub(crate) random: Random,
    pub(crate) document: &'a Document,
    /// Strings with a meaning for the operation, such as ids.
    pub(crate) known: Vec<String>,
}

/// Strings for random values. None is an absolute path, so that they cannot affect the machine.
const STRINGS: [&str; 24] = [
    "",
    " ",
    "\n",
    "\0",
    "a\0b",
    "null",
    "true",
    "-1",
    "1e999",
    "18446744073709551616",
    "../../x",
    "..",
    "%00",
    "%ff",
    "' OR 1=1 --",
    "\"quoted\" AND NEAR(",
    "<script>alert(1)</script>",
    "\u{202e}right to left",
    "\u{feff}mark",
    "\u{10ffff}",
    "e\u{301}\u{301}\u{301}",
    "👩‍👩‍👧‍👦",
    "ｆｕｌｌ ｗｉｄｔｈ",
    "hello",
];

impl RandomValues<'_> {
    /// Returns a value that usually fits the schema.
    pub(crate) fn value(&mut self, schema: &Value) -> Value {
        let schema = self.document.resolve(schema);
        for keyword in ["oneOf", "anyOf"] {
            if let Some(options) = schema[keyword].as_array() {
                let option = self.random.pick(options);
                return self.value(option);
            }
        }
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        if let Some(words) = schema["enum"].as_array() {
            return self.random.pick(words).clone();
        }
        match &schema["type"] {
            Value::Array(types) => {
                let kind = self.random.pick(types).clone();
                self.of_type(kind.as_str().unwrap_or_default(), schema)
            }
            kind => self.of_type(kind.as_str().unwrap_or_default(), schema),
        }
    }

    fn of_type(&mut self, kind: &str, schema: &Value) -> Value {
        match kind {
            "string" => Value::String(self.string()),
            "integer" | "number" => json!(self.random.below(200)),
            "boolean" => json!(self.random.once_in(2)),
            "array" => (0..self.random.below(3)).map(|_| self.value(&schema["items"])).collect(),
            "object" => self.object(schema),
            _ => Value::Null,
        }
    }

    fn object(&mut self, schema: &Value) -> Value {
        let mut object = Map::new();
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            if required.contains(&json!(name)) || self.random.once_in(2) {
                object.insert(name.clone(), self.value(schema));
            }
        }
        Value::Object(object)
    }

    pub(crate) fn string(&mut self) -> String {
        if !self.known.is_empty() && self.random.once_in(2) {
            return self.random.pick(&self.known).clone();
        }
        match self.random.below(30) {
            0 => "x".repeat(100_000),
            1 => "é".repeat(129),
            _ => (*self.random.pick(&STRINGS)).to_owned(),
        }
    }

    /// Returns a value that fits no schema of the API.
    fn wrong(&mut self) -> Value {
        match self.random.below(12) {
            0 => Value::Null,
            1 => json!(-1),
            2 => json!(u64::MAX),
            3 => json!(i64::MIN),
            4 => json!(1e308),
            5 => json!(0.5),
            6 => json!([]),
            7 => json!({}),
            8 => json!(true),
            9 => json!([[[{ "a": [null] }]]]),
            10 => json!({ "type": "subscribe" }),
            _ => Value::String(self.string()),
        }
    }

    /// Returns the text of a value with an error: an extra or missing field, a wrong type, or
    /// invalid JSON.
    pub(crate) fn spoiled_text(&mut self, value: &Value) -> Vec<u8> {
        let mut value = value.clone();
        for _ in 0..=self.random.below(2) {
            self.spoil(&mut value);
        }
        let mut text = value.to_string().into_bytes();
        match self.random.below(12) {
            0 => text.truncate(self.random.below(text.len())),
            1 => {
                let at = self.random.below(text.len());
                text[at] = self.random.below(256) as u8;
            }
            2 => text = vec![b'['; 20_000],
            3 => text = br#"{"text":"\u00"}"#.to_vec(),
            4 => text = Vec::new(),
            5 => text.splice(0..0, *b"\xef\xbb\xbf").for_each(drop),
            6 => text = [b"{\"a\":1,".to_vec(), text].concat(),
            7 => text = br#"{"title":"a","title":"b"}"#.to_vec(),
            8 => text = br#"{"after":1e400,"limit":-0}"#.to_vec(),
            _ => (),
        }
        text
    }

    fn spoil(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                let names: Vec<String> = fields.keys().cloned().collect();
                let name = self.random.pick(&names);
                match self.random.below(5) {
                    // The values without their names.
                    4 => *value = fields.values().cloned().collect(),
                    0 => drop(fields.shift_remove(name)),
                    1 => drop(fields.insert(self.string(), self.wrong())),
                    2 => drop(fields.insert(name.clone(), self.wrong())),
                    _ => self.spoil(&mut fields[name]),
                }
            }
            Value::Array(items) if !items.is_empty() => {
                let at = self.random.below(items.len());
                self.spoil(&mut items[at]);
            }
            _ => *value = self.wrong(),
        }
    }
}
