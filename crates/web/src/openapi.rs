//! The OpenAPI 3.1 document, generated from the routes and from the types that are parsed and
//! serialised.
//!
//! The inputs and outputs of a handler describe themselves ([`DescribeInput`], [`DescribeOutput`]), so every
//! route has a description that matches its handler.

mod route;

use std::collections::BTreeMap;

use axum::http::StatusCode;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use crate::error::{ErrorBody, RequestCode};

pub(crate) use route::Route;

/// An input of a handler that adds itself to the OpenAPI description of the handler's route.
pub(crate) trait DescribeInput {
    fn describe(operation: &mut Operation<'_>);
}

/// An output of a handler that adds itself to the OpenAPI description of the handler's route.
pub(crate) trait DescribeOutput {
    fn describe(operation: &mut Operation<'_>);
}

/// Builder of the description of a route in the OpenAPI document.
pub(crate) struct Operation<'a> {
    schemas: &'a mut Schemas,
    parameters: Vec<Value>,
    body: Option<Value>,
    answers: BTreeMap<u16, Value>,
    refusals: BTreeMap<u16, Vec<RequestCode>>,
    /// Media types of the route's error responses; JSON if empty.
    refusal_types: Vec<&'static str>,
    /// Schema of the route's JSON error responses; `None` for [`ErrorBody`].
    refusal_schema: Option<Schema>,
    /// Schemas of the variable segments of the route's path, by name. A segment without a schema is
    /// any text.
    segments: Map<String, Value>,
}

/// Generators of the JSON schemas of requests and of responses. The schemas differ: a field with a
/// default may be omitted in a request and is always present in a response.
struct Schemas {
    read: SchemaGenerator,
    written: SchemaGenerator,
}

/// Returns the OpenAPI document of these routes.
pub(crate) fn document<S>(routes: &[Route<S>]) -> Value
where
    S: Clone + Send + Sync + 'static,
{
    let mut schemas = Schemas::new();
    let mut paths: Map<String, Value> = Map::new();
    for route in routes {
        let operation = describe(route, &mut schemas);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_lowercase()] = operation;
    }
    let (mut components, written) = schemas.into_named();
    components.extend(written);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Callboard",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A chat server for agents. Frames of `/ws` have the schemas `ClientFrame` and \
                            `ServerFrame`. New types and fields of records may be added, so clients \
                            must ignore unknown ones.",
        },
        "security": [{ "token": [] }, { "cookie": [] }],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                "cookie": {
                    "type": "apiKey", "in": "cookie", "name": "callboard_PORT",
                    "description": "Set by `/sign-in`, or by a page's address with `?token=`. \
                                    Requests that change data also need the page's own `Origin`.",
                },
            },
        },
    })
}

fn describe<S>(route: &Route<S>, schemas: &mut Schemas) -> Value
where
    S: Clone + Send + Sync + 'static,
{
    let mut operation = Operation {
        schemas,
        parameters: Vec::new(),
        body: None,
        answers: BTreeMap::new(),
        refusals: BTreeMap::new(),
        refusal_types: Vec::new(),
        refusal_schema: None,
        segments: Map::new(),
    };
    operation.refuses(&[RequestCode::ForbiddenHost, RequestCode::ForbiddenOrigin]);
    if !route.is_public {
        operation.refuses(&[RequestCode::Unauthorized]);
    }
    route.describe(&mut operation);
    operation.finish(route)
}

impl Operation<'_> {
    pub(crate) fn takes_query<T: JsonSchema>(&mut self) {
        let schema = T::json_schema(&mut self.schemas.read);
        let required = schema.get("required").cloned().unwrap_or_default();
        let is_required = |name| required.as_array().is_some_and(|it| it.contains(&json!(name)));
        let fields = schema.get("properties").and_then(Value::as_object);
        for (name, schema) in fields.into_iter().flatten() {
            let schema = without_null(schema.clone());
            self.parameters.push(json!({
                "name": name, "in": "query", "required": is_required(name), "schema": schema,
            }));
        }
    }

    /// Adds the schemas of the frames in both directions of a WebSocket to the document.
    pub(crate) fn exchanges_frames<I: JsonSchema, O: JsonSchema>(&mut self) {
        self.schemas.read.subschema_for::<I>();
        self.schemas.written.subschema_for::<O>();
    }

    pub(crate) fn takes_header<T: JsonSchema>(&mut self, name: &str) {
        let schema = self.schemas.read.subschema_for::<T>();
        self.takes_header_of(name, schema);
    }

    pub(crate) fn takes_header_of(&mut self, name: &str, schema: Schema) {
        let header = json!({ "name": name, "in": "header", "required": false, "schema": schema });
        self.parameters.push(header);
    }

    pub(crate) fn takes_segment<T: JsonSchema>(&mut self, name: &str) {
        let schema = self.schemas.read.subschema_for::<T>().to_value();
        self.segments.insert(name.to_owned(), schema);
    }

    pub(crate) fn takes_json<T: JsonSchema>(&mut self) {
        let schema = self.schemas.read.subschema_for::<T>();
        self.takes_body("application/json", schema);
    }

    pub(crate) fn takes_body(&mut self, media_type: &str, schema: Schema) {
        let content = json!({ media_type: { "schema": schema } });
        self.body = Some(json!({ "required": true, "content": content }));
    }

    pub(crate) fn gives_json<T: JsonSchema>(&mut self, status: StatusCode) {
        let schema = self.schemas.written.subschema_for::<T>();
        self.gives(status, Some(("application/json", schema)));
    }

    /// Adds a response to the description of the route. Several responses with one status are
    /// alternatives.
    pub(crate) fn gives(&mut self, status: StatusCode, content: Option<(&str, Schema)>) {
        let described = || json!({ "description": status.canonical_reason() });
        let answer = self.answers.entry(status.as_u16()).or_insert_with(described);
        if let Some((media_type, schema)) = content {
            answer["content"][media_type] = json!({ "schema": schema });
        }
    }

    pub(crate) fn refuses(&mut self, codes: &[RequestCode]) {
        for code in codes {
            let same_status = self.refusals.entry(code.status().as_u16()).or_default();
            same_status.push(*code);
            same_status.sort();
            same_status.dedup();
        }
    }

    /// Sets the media types of the route's error responses. The default is `application/json`.
    pub(crate) fn refuses_as(&mut self, media_types: &[&'static str]) {
        self.refusal_types = media_types.to_vec();
    }

    /// Sets the JSON schema of the route's error responses.
    pub(crate) fn refuses_with<T: JsonSchema>(&mut self) {
        self.refusal_schema = Some(self.schemas.written.subschema_for::<T>());
    }

    fn finish<S: Clone + Send + Sync + 'static>(mut self, route: &Route<S>) -> Value {
        for (status, codes) in std::mem::take(&mut self.refusals) {
            let refusal = self.refusal(&codes);
            self.answers.insert(status, refusal);
        }
        let segments = route.path.split('/').filter_map(|it| it.strip_prefix('{'));
        let segments = segments.filter_map(|it| it.strip_suffix('}')).map(|name| {
            let text = json!({ "type": "string" });
            let schema = self.segments.get(name).unwrap_or(&text);
            json!({ "name": name, "in": "path", "required": true, "schema": schema })
        });
        self.parameters.extend(segments);
        let mut operation = json!({
            "operationId": route.id(),
            "summary": route.summary,
            "parameters": self.parameters,
            "responses": self.answers,
        });
        if let Some(body) = self.body {
            operation["requestBody"] = body;
        }
        if route.is_public {
            operation["security"] = json!([]);
        }
        operation
    }

    fn refusal(&mut self, codes: &[RequestCode]) -> Value {
        let meanings: Vec<String> =
            codes.iter().map(|code| format!("`{}`: {}", code.as_str(), code.meaning())).collect();
        let ours = || self.schemas.written.subschema_for::<ErrorBody>();
        let schema = self.refusal_schema.clone().unwrap_or_else(ours);
        let mut content = Map::new();
        for media_type in &self.refusal_types {
            content.insert((*media_type).to_owned(), json!({ "schema": { "type": "string" } }));
        }
        if content.is_empty() || content.contains_key("application/json") {
            content.insert("application/json".to_owned(), json!({ "schema": schema }));
        }
        json!({ "description": meanings.join(" "), "x-codes": codes, "content": content })
    }
}

/// Removes `null` from the JSON schema of a query parameter, which can only be omitted.
fn without_null(mut schema: Value) -> Value {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|it| it != "null");
    }
    schema
}

impl Schemas {
    fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|it| {
                it.definitions_path = "/components/schemas".into();
                it.meta_schema = None;
            })
        };
        Self {
            read: settings().for_deserialize().into_generator(),
            written: settings().for_serialize().into_generator(),
        }
    }

    /// Returns all named JSON schemas of requests and of responses.
    fn into_named(mut self) -> (Map<String, Value>, Map<String, Value>) {
        (self.read.take_definitions(true), self.written.take_definitions(true))
    }
}

#[cfg(test)]
pub(crate) fn named_schemas<S>(routes: &[Route<S>]) -> (Map<String, Value>, Map<String, Value>)
where
    S: Clone + Send + Sync + 'static,
{
    let mut schemas = Schemas::new();
    for route in routes {
        describe(route, &mut schemas);
    }
    schemas.into_named()
}
