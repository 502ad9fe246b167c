//! Checks responses against the OpenAPI document, more strictly than clients do: an undocumented
//! field is an error.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value, json};

use crate::support::program::Server;

pub(crate) struct Document {
    json: Value,
    /// Operation, status and error code of every response so far.
    seen: BTreeSet<(String, u16, String)>,
    /// Error responses as plain text or pages, which have no error code. None if not checked.
    pub(crate) worded: Option<Worded>,
    /// Compiled validators by the text of their schema.
    validators: RefCell<HashMap<String, jsonschema::Validator>>,
}

/// One method of one path.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    pub(crate) method: reqwest::Method,
    pub(crate) path: String,
    pub(crate) json: Value,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) media_type: String,
    pub(crate) body: Vec<u8>,
}

impl Document {
    pub(crate) async fn of(server: &Server) -> Self {
        let json = server.get("/api/openapi.json").await;
        assert_eq!(json["openapi"], "3.1.0");
        Self { json, seen: BTreeSet::new(), worded: None, validators: RefCell::default() }
    }

    pub(crate) fn operations(&self) -> Vec<Operation> {
        let mut operations = Vec::new();
        for (path, methods) in self.json["paths"].as_object().unwrap() {
            for (method, json) in methods.as_object().unwrap() {
                let method = method.to_uppercase().parse().unwrap();
                operations.push(Operation { method, path: path.clone(), json: json.clone() });
            }
        }
        operations
    }

    pub(crate) fn operation(&self, method: &reqwest::Method, path: &str) -> Operation {
        let found = self.operations().into_iter().find(|it| it.method == method && it.path == path);
        found.unwrap_or_else(|| panic!("{method} {path} is not in the document"))
    }

    /// Panics unless the operation may answer like this. Returns the body if it is JSON.
    pub(crate) fn check(&mut self, operation: &Operation, answer: &Answer) -> Value {
        let (id, status) = (operation.id(), answer.status);
        let described = &operation.json["responses"][status.to_string()];
        let text = String::from_utf8_lossy(&answer.body);
        assert!(described.is_object(), "{id} does not say that it may answer {status}: {text}");
        let mut code = Value::Null;
        let mut body = Value::Null;
        match described.get("content").and_then(Value::as_object) {
            None => assert_eq!(text, "", "{id} {status} has no body"),
            Some(content) => {
                let media_type = answer.media_type.split(';').next().unwrap();
                let described = content.get(media_type).or(content.get("*/*"));
                let described =
                    described.unwrap_or_else(|| panic!("{id} {status}: {media_type:?}"));
                if media_type == "application/json" {
                    body = serde_json::from_str(&text).unwrap();
                    self.validate(&described["schema"], &body, &format!("{id} {status}"));
                    code = body["error"]["code"].clone();
                } else if let Some(worded) = self.worded.as_mut().filter(|_| status >= 400) {
                    code = json!(worded.code(operation, answer));
                }
            }
        }
        if let (Some(codes), Some(code)) = (described["x-codes"].as_array(), code.as_str()) {
            assert!(codes.contains(&json!(code)), "{id} does not say that it may answer {code}");
            let message = body["error"]["message"].as_str();
            let is_without = message.is_some_and(|it| it.trim().is_empty());
            assert!(!is_without, "{id}: {code} without a word");
        }
        self.seen.insert((id, status, code.as_str().unwrap_or_default().to_owned()));
        body
    }

    /// Returns whether the operation has succeeded at least once.
    pub(crate) fn saw_good(&self, operation: &Operation) -> bool {
        self.seen.iter().any(|(id, status, _)| *id == operation.id() && *status < 400)
    }

    /// Checks a WebSocket frame against the schema of that name.
    pub(crate) fn check_frame(&self, schema: &str, frame: &Value) {
        let schema = json!({ "$ref": format!("#/components/schemas/{schema}") });
        self.validate(&schema, frame, &frame.to_string());
    }

    /// Returns whether the document allows this request body.
    pub(crate) fn allows(&self, operation: &Operation, body: &[u8]) -> bool {
        let schema = &operation.json["requestBody"]["content"]["application/json"]["schema"];
        let Ok(body) = serde_json::from_slice(body) else { return schema.is_null() };
        let mut root = if schema.is_null() { json!({}) } else { schema.clone() };
        root["components"] = self.json["components"].clone();
        let mut validators = self.validators.borrow_mut();
        let validator = validators
            .entry(format!("the body of {}", operation.id()))
            .or_insert_with(|| jsonschema::draft202012::new(&root).unwrap());
        validator.is_valid(&body)
    }

    fn validate(&self, schema: &Value, value: &Value, what: &str) {
        let mut validators = self.validators.borrow_mut();
        let validator =
            validators.entry(schema.to_string()).or_insert_with(|| self.validator(schema));
        if let Err(error) = validator.validate(value) {
            panic!("{what}: {error} at {} in {value}", error.instance_path());
        }
    }

    fn validator(&self, schema: &Value) -> jsonschema::Validator {
        let mut root = schema.clone();
        close(&mut root);
        let mut schemas = self.json["components"]["schemas"].clone();
        schemas.as_object_mut().unwrap().values_mut().for_each(close_inside);
        if let Some(root) = root.as_object_mut() {
            root.insert("components".to_owned(), json!({ "schemas": schemas }));
        }
        jsonschema::draft202012::new(&root).unwrap()
    }

    /// Resolves references until the schema itself is found.
    pub(crate) fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str().and_then(|it| it.strip_prefix('#')) {
            Some(pointer) => self.resolve(self.json.pointer(pointer).unwrap()),
            None => schema,
        }
    }

    /// Returns the smallest body that the operation accepts, if it takes JSON.
    pub(crate) fn sample_body(&self, operation: &Operation) -> Option<Value> {
        let schema = &operation.json["requestBody"]["content"]["application/json"]["schema"];
        let schema = self.resolve(schema.as_object().map(|_| schema)?);
        let required = schema["required"].as_array().into_iter().flatten();
        let fields = required.map(|name| (name.as_str().unwrap().to_owned(), json!("hello")));
        Some(Value::Object(fields.collect()))
    }

    /// Returns the documented statuses and error codes without a response so far, by operation.
    pub(crate) fn unseen(&self) -> BTreeMap<String, Vec<String>> {
        let mut unseen: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for operation in self.operations() {
            let id = operation.id();
            for (status, answer) in operation.json["responses"].as_object().unwrap() {
                let codes = answer["x-codes"].as_array();
                let codes: Vec<String> = codes.map_or(vec![String::new()], |codes| {
                    codes.iter().map(|it| it.as_str().unwrap().to_owned()).collect()
                });
                let number: u16 = status.parse().unwrap();
                let was_seen = |code: &String| {
                    let is_it = |(its, status, with): &(String, u16, String)| {
                        (its, *status) == (&id, number) && (code.is_empty() || with == code)
                    };
                    self.seen.iter().any(is_it)
                };
                let missing = codes.into_iter().filter(|code| !was_seen(code));
                let missing: Vec<String> =
                    missing.map(|code| format!("{status} {code}").trim().to_owned()).collect();
                if !missing.is_empty() {
                    unseen.entry(id.clone()).or_default().extend(missing);
                }
            }
        }
        unseen
    }
}

/// Known error responses without an error code, one per line: operation, status, code and text.
pub(crate) struct Worded {
    known: BTreeMap<String, String>,
    seen: BTreeSet<String>,
    /// Responses that are not among the known lines.
    pub(crate) unknown: BTreeSet<String>,
}

impl Worded {
    /// Parses lines such as `GET /path 404 not_found: There is nothing at this address.`
    pub(crate) fn read(lines: &str) -> Self {
        let known = lines.lines().map(|line| {
            let (head, words) = line.split_once(": ").unwrap();
            let (place, code) = head.rsplit_once(' ').unwrap();
            (format!("{place}: {words}"), code.to_owned())
        });
        Self { known: known.collect(), seen: BTreeSet::new(), unknown: BTreeSet::new() }
    }

    fn code(&mut self, operation: &Operation, answer: &Answer) -> Option<&str> {
        let Operation { method, path, .. } = operation;
        let line = format!("{method} {path} {}: {}", answer.status, words_of(answer));
        let code = self.known.get(&line).map(String::as_str);
        let seen = if code.is_some() { &mut self.seen } else { &mut self.unknown };
        seen.insert(line);
        code
    }

    pub(crate) fn unseen(&self) -> Vec<&String> {
        self.known.keys().filter(|it| !self.seen.contains(*it)).collect()
    }
}

/// Returns the text of a response, or the first paragraph of a page.
fn words_of(answer: &Answer) -> String {
    let text = String::from_utf8_lossy(&answer.body);
    if !answer.media_type.starts_with("text/html") {
        return text.into_owned();
    }
    let (_, paragraph) = text.split_once("<main>").unwrap().1.split_once("<p").unwrap();
    let (_, words) = paragraph.split_once('>').unwrap();
    words.split_once("</p>").unwrap().0.replace("&quot;", "\"")
}

impl Operation {
    pub(crate) fn id(&self) -> String {
        self.json["operationId"].as_str().unwrap().to_owned()
    }

    /// Returns the path with this value for every parameter.
    pub(crate) fn url(&self, segment: &str) -> String {
        self.url_of(|| segment.to_owned())
    }

    pub(crate) fn url_of(&self, mut segment: impl FnMut() -> String) -> String {
        let parts = self.path.split('/');
        let filled = parts.map(|it| if it.starts_with('{') { segment() } else { it.to_owned() });
        filled.collect::<Vec<_>>().join("/")
    }

    pub(crate) fn body_type(&self) -> Option<String> {
        let content = self.json["requestBody"]["content"].as_object()?;
        content.keys().next().cloned()
    }

    pub(crate) fn parameters(&self, place: &str) -> Vec<Value> {
        let parameters = self.json["parameters"].as_array().unwrap();
        parameters.iter().filter(|it| it["in"] == place).cloned().collect()
    }
}

/// Forbids undocumented fields in values of this schema.
fn close(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    let names_fields = ["$ref", "properties", "allOf", "anyOf", "oneOf"];
    if names_fields.iter().any(|it| fields.contains_key(*it)) {
        fields.entry("unevaluatedProperties").or_insert(json!(false));
    }
    close_inside(schema);
}

/// Forbids undocumented fields in all nested values, but not in the value itself, whose other
/// fields may be declared by an enclosing schema.
fn close_inside(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    for (keyword, inner) in fields {
        match (keyword.as_str(), inner) {
            ("properties", Value::Object(properties)) => close_all(properties),
            ("items" | "additionalProperties", inner) => close(inner),
            ("allOf" | "anyOf" | "oneOf", Value::Array(same_value)) => {
                same_value.iter_mut().for_each(close_inside);
            }
            _ => (),
        }
    }
}

fn close_all(properties: &mut Map<String, Value>) {
    properties.values_mut().for_each(close);
}
