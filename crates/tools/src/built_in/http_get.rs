//! `http_get`: reads a text from the web, with an SSRF guard.
//!
//! This machine and private networks are refused unless the configuration allows them. Every hop of a
//! redirect is resolved and checked, and the connection uses the checked address, so DNS rebinding has no
//! effect. A redirect to another host is reported instead of followed, because that host needs a separate
//! approval.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use backends::ToolOutcome;
use futures_util::future::BoxFuture;
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Response, Url, redirect};
use serde::Deserialize;
use serde_json::{Value, json};
use transcript::{ErrorCode, ErrorInfo};
use url::Host;

use super::{Arguments, Tool, Work};
use crate::{ToolContext, ToolSettings, Web, interrupted, outcome, tool_error};

pub(super) const TOOL: Tool = Tool {
    name: "http_get",
    description: "Reads a text, such as a web page, from an http or https URL on the internet, up to \
                  1 MiB.",
    parameters,
    may_repeat: true,
    work: Work::Waiting(run),
};

const MAX_BYTES: usize = 1024 * 1024;
const MAX_REDIRECTS: usize = 5;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HttpGet {
    url: String,
}

fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "url": {"type": "string", "description": "The URL, with http:// or https://."},
        },
        "required": ["url"],
        "additionalProperties": false,
    })
}

fn run(
    arguments: Arguments,
    context: ToolContext,
    settings: Arc<ToolSettings>,
) -> BoxFuture<'static, ToolOutcome> {
    Box::pin(async move {
        let got = tokio::select! {
            got = get(&arguments, &settings.web) => got,
            () = context.stopped.wait() => Err(interrupted()),
        };
        outcome(got)
    })
}

async fn get(arguments: &Arguments, web: &Web) -> Result<Value, ErrorInfo> {
    let HttpGet { url } = arguments.parse()?;
    let mut url = Url::parse(&url).map_err(|error| arguments.invalid(format!("url: {error}")))?;
    for _ in 0..=MAX_REDIRECTS {
        let response = ask(&url, web).await?;
        match next_hop(&url, &response)? {
            Some(next) => url = next,
            None => return read(&url, response).await,
        }
    }
    Err(tool_error(format!("{url} was redirected more than {MAX_REDIRECTS} times.")))
}

async fn ask(url: &Url, web: &Web) -> Result<Response, ErrorInfo> {
    let address = checked_address(url, web).await?;
    let host = url.host_str().unwrap_or_default();
    let client = crate::http_client_builder()
        .user_agent(concat!("callboard/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        // A proxy would resolve the name itself.
        .no_proxy()
        .resolve(host, address)
        .build()
        .map_err(|error| unreachable(url, &error))?;
    client.get(url.clone()).send().await.map_err(|error| unreachable(url, &error))
}

/// Resolves the host of a URL and returns the address to connect to. Fails if any of the host's
/// addresses may not be contacted, such as one in a private network.
async fn checked_address(url: &Url, web: &Web) -> Result<SocketAddr, ErrorInfo> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(tool_error(format!("'{url}' is not an http or https address.")));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(tool_error("URLs with a user name or password are not allowed."));
    }
    let port = url.port_or_known_default().unwrap_or(80);
    let addresses: Vec<IpAddr> = match url.host() {
        Some(Host::Ipv4(address)) => vec![address.into()],
        Some(Host::Ipv6(address)) => vec![address.into()],
        Some(Host::Domain(name)) => {
            let found = (web.look_up)(name.to_owned()).await;
            found.map_err(|error| failure(url, &error.to_string()))?
        }
        None => Vec::new(),
    };
    let first = addresses.first().ok_or_else(|| failure(url, "the name has no address"))?;
    if !addresses.iter().all(|it| (web.may_contact)(*it)) {
        return Err(tool_error(format!(
            "'{url}' is in a private network, and only the internet may be asked. The server's owner \
             can change that with http_private = true under [tools]."
        )));
    }
    Ok(SocketAddr::new(*first, port))
}

fn next_hop(url: &Url, response: &Response) -> Result<Option<Url>, ErrorInfo> {
    if !response.status().is_redirection() {
        return Ok(None);
    }
    let Some(location) = response.headers().get(LOCATION) else { return Ok(None) };
    let next = location.to_str().ok().and_then(|it| url.join(it).ok());
    let next = next.ok_or_else(|| tool_error(format!("'{url}' redirects without a target.")))?;
    if stays_with_host(url, &next) {
        return Ok(Some(next));
    }
    Err(tool_error(format!(
        "'{url}' redirects to '{next}', which is another host. Ask for that address if you need it."
    )))
}

/// Returns whether an HTTP redirect stays on the same origin, or upgrades the same host to https.
pub(crate) fn stays_with_host(url: &Url, next: &Url) -> bool {
    let is_upgrade = (url.scheme(), next.scheme()) == ("http", "https")
        && url.port().is_none()
        && next.port().is_none();
    url.host() == next.host() && (url.origin() == next.origin() || is_upgrade)
}

async fn read(url: &Url, mut response: Response) -> Result<Value, ErrorInfo> {
    let status = response.status();
    if status.is_server_error() {
        return Err(failure(url, &format!("the server answered {status}")));
    }
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let content_type = content_type.map(str::to_owned);
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unreachable(url, &error))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_BYTES {
            return Err(tool_error(format!("'{url}' is larger than {} MiB.", MAX_BYTES >> 20)));
        }
    }
    if bytes.contains(&0) {
        let kind = content_type.unwrap_or_default();
        return Err(tool_error(format!(
            "'{url}' is not text: it is {} bytes of {kind}.",
            bytes.len()
        )));
    }
    let text = String::from_utf8_lossy(&bytes);
    if !status.is_success() {
        let excerpt: String = text.chars().take(500).collect();
        return Err(tool_error(format!("'{url}' answered {status}: {excerpt}")));
    }
    Ok(json!({"url": url.as_str(), "contentType": content_type, "text": text}))
}

fn unreachable(url: &Url, error: &reqwest::Error) -> ErrorInfo {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    failure(url, &innermost.to_string())
}

/// Returns the error for a URL that could not be read, with an error code that allows a retry of
/// the tool call.
fn failure(url: &Url, why: &str) -> ErrorInfo {
    ErrorInfo::new(ErrorCode::ToolFailed, format!("'{url}' could not be read: {why}."))
}
