//! `time`: returns the time in any time zone. The zones are compiled in, so that every machine gives the same
//! result.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Value, json};
use transcript::ErrorInfo;

use super::{Arguments, Tool, Work};
use crate::{ToolContext, tool_error};

pub(super) const TOOL: Tool = Tool {
    name: "time",
    description: "Returns the current date and time, in UTC or in the given time zone.",
    parameters,
    may_repeat: false,
    work: Work::Blocking(run),
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Time {
    zone: Option<String>,
}

fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "zone": {"type": "string", "description": "IANA name, such as 'Europe/Paris'. Default: UTC."},
        },
        "additionalProperties": false,
    })
}

fn run(arguments: &Arguments, context: &ToolContext) -> Result<Value, ErrorInfo> {
    let Time { zone } = arguments.parse()?;
    let zone = zone.unwrap_or_else(|| "UTC".to_owned());
    let time_zone = TimeZone::get(&zone).map_err(|_| {
        tool_error(format!(
            "There is no time zone '{zone}'. Use an IANA name such as 'Europe/Paris'."
        ))
    })?;
    let now = Timestamp::from_millisecond(context.now.0)
        .map_err(|_| tool_error("The server's clock is out of range."))?
        .to_zoned(time_zone);
    Ok(json!({
        // The name as the database spells it.
        "zone": now.time_zone().iana_name().unwrap_or(&zone),
        "time": now.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        "text": now.strftime("%A, %-d %B %Y, %H:%M").to_string(),
    }))
}
