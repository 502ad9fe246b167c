//! Records and their JSON: the fields of the header first, then those of the event.
//!
//! The JSON object of the event is called the *body*. The store keeps bodies as they were written,
//! so fields that this version does not know stay in the log and on the wire.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser::Error as _};
use serde_json::{Map, Value, value::RawValue};

use crate::{CallId, Event, Millis, OutputStream, PartId, ResponseId, Seq, SessionId};

/// One numbered entry of a session's log.
///
/// ```
/// use transcript::{Event, Record};
///
/// let json = r#"{"seq":1,"at":"2026-11-15T18:44:28.000Z","sessionId":"s","type":"session_created","agent":"demo","colour":"red"}"#;
/// let record = Record::from_json(json)?;
/// assert!(matches!(&record.event, Event::SessionCreated { agent, .. } if agent == "demo"));
/// // Fields of a newer version are kept.
/// assert_eq!(record.to_json(), json);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename_all = "camelCase"))]
pub struct Record {
    /// Sequence number of the record: its position in the session's log.
    pub seq: Seq,
    /// Time at which the record was written.
    pub at: Millis,
    /// Id of the session.
    pub session_id: SessionId,
    /// Id of the run that the event belongs to; absent if it belongs to no run.
    #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "Option::is_none"))]
    pub response_id: Option<ResponseId>,
    /// Content of the record.
    #[cfg_attr(feature = "schema", schemars(flatten))]
    pub event: Event,
    /// Fields of a newer version on an event that this version knows; kept but not interpreted.
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub extra: Map<String, Value>,
}

/// An event with its time and run, before the log assigns its sequence number.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Time of the event.
    pub at: Millis,
    /// Id of the run that the event belongs to; `None` if it belongs to no run.
    pub response_id: Option<ResponseId>,
    /// The event itself.
    pub event: Event,
}

impl Record {
    /// Creates a record that has no fields of a newer version.
    pub fn new(
        seq: Seq,
        at: Millis,
        session_id: SessionId,
        response_id: Option<ResponseId>,
        event: Event,
    ) -> Self {
        Self { seq, at, session_id, response_id, event, extra: Map::new() }
    }

    /// Parses a record from JSON. A delta without fields of a newer version, which nearly every
    /// record of a live session is, is read directly from the text; other records go through a map
    /// that keeps unknown fields.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        let delta = serde_json::from_str(text).ok().and_then(DeltaRecord::into_record);
        delta.map_or_else(|| serde_json::from_str(text), Ok)
    }

    /// Returns the JSON object of the event as text, including unknown fields, without the record's
    /// header.
    pub fn body(&self) -> String {
        let body = serde_json::to_string(&self.event).unwrap_or_else(|_| "{}".to_owned());
        if self.extra.is_empty() {
            return body;
        }
        let extra = serde_json::to_string(&self.extra).unwrap_or_else(|_| "{}".to_owned());
        splice(body, &extra)
    }

    /// Returns the whole record as JSON text: header and event.
    pub fn to_json(&self) -> String {
        to_json(self.seq, self.at, &self.session_id, self.response_id.as_ref(), &self.body())
    }
}

/// A record of any delta type, for fast parsing: it has the fields of all delta types.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DeltaRecord<'a> {
    seq: Seq,
    at: Millis,
    session_id: &'a str,
    response_id: Option<&'a str>,
    r#type: DeltaType,
    part_id: Option<&'a str>,
    call_id: Option<&'a str>,
    parent_call_id: Option<&'a str>,
    stream: Option<OutputStream>,
    offset: Option<u64>,
    delta: String,
}

#[derive(Deserialize)]
enum DeltaType {
    #[serde(rename = "text_delta")]
    Text,
    #[serde(rename = "thinking_delta")]
    Thinking,
    #[serde(rename = "tool_arguments_delta")]
    Arguments,
    #[serde(rename = "tool_output_delta")]
    Output,
}

impl DeltaRecord<'_> {
    /// Converts the parsed delta into a record. Returns `None` if a field is missing or does not
    /// belong to the delta's type.
    fn into_record(self) -> Option<Record> {
        let parent_call_id = self.parent_call_id.map(CallId::new);
        let (part_id, call_id) = (self.part_id.map(PartId::new), self.call_id.map(CallId::new));
        let (nested, delta) = (parent_call_id.is_some(), self.delta);
        let event = match (self.r#type, part_id, call_id, self.stream, self.offset) {
            (DeltaType::Text, Some(part_id), None, None, None) => {
                Event::TextDelta { part_id, parent_call_id, delta }
            }
            (DeltaType::Thinking, Some(part_id), None, None, None) => {
                Event::ThinkingDelta { part_id, parent_call_id, delta }
            }
            (DeltaType::Arguments, None, Some(call_id), None, None) if !nested => {
                Event::ToolArgumentsDelta { call_id, delta }
            }
            (DeltaType::Output, None, Some(call_id), Some(stream), Some(offset)) if !nested => {
                Event::ToolOutputDelta { call_id, stream, offset, delta }
            }
            _ => return None,
        };
        let (session_id, response_id) =
            (SessionId::new(self.session_id), self.response_id.map(ResponseId::new));
        Some(Record::new(self.seq, self.at, session_id, response_id, event))
    }
}

/// Returns a record as JSON text, from the fields of its header and the stored JSON of its event.
pub fn to_json(
    seq: Seq,
    at: Millis,
    session_id: &SessionId,
    response_id: Option<&ResponseId>,
    body: &str,
) -> String {
    let mut json =
        format!(r#"{{"seq":{seq},"at":"{at}","sessionId":{}"#, quoted(session_id.as_str()));
    if let Some(response_id) = response_id {
        json.push_str(r#","responseId":"#);
        json.push_str(&quoted(response_id.as_str()));
    }
    json.push('}');
    splice(json, body)
}

/// Parses the stored JSON of an event. Unreadable JSON becomes [`Event::Other`]; a value that is
/// not an object is kept inside one.
pub fn event_from_body(body: &str) -> Event {
    let event = body.trim_start().starts_with('{').then(|| serde_json::from_str(body).ok());
    event.flatten().unwrap_or_else(|| {
        let raw = serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.to_owned()));
        Event::Other(Map::from_iter([("unreadable".to_owned(), raw)]))
    })
}

/// Joins two JSON objects, given as text, into one object.
fn splice(mut object: String, more: &str) -> String {
    let inner = more.trim_start().strip_prefix('{').unwrap_or("}");
    if inner.trim_start() == "}" {
        return object;
    }
    let is_empty = object == "{}";
    object.pop();
    if !is_empty {
        object.push(',');
    }
    object.push_str(inner);
    object
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.to_json()).map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Map::deserialize(deserializer)?;
        let mut take = |name: &str| fields.shift_remove(name).unwrap_or(Value::Null);
        let (seq, at) = (take("seq"), take("at"));
        let (session_id, response_id) = (take("sessionId"), take("responseId"));

        let event = Event::deserialize(&fields).map_err(D::Error::custom)?;
        Ok(Self {
            seq: serde_json::from_value(seq).map_err(D::Error::custom)?,
            at: serde_json::from_value(at).map_err(D::Error::custom)?,
            session_id: serde_json::from_value(session_id).map_err(D::Error::custom)?,
            response_id: serde_json::from_value(response_id).map_err(D::Error::custom)?,
            extra: fields_not_in(fields, &event),
            event,
        })
    }
}

/// Returns the JSON fields of a record that the parsed event does not have, except those that are
/// null.
fn fields_not_in(mut fields: Map<String, Value>, event: &Event) -> Map<String, Value> {
    if let Ok(Value::Object(known)) = serde_json::to_value(event) {
        fields.retain(|name, value| !known.contains_key(name) && !value.is_null());
    }
    fields
}
