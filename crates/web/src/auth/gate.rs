//! Authorization: one layer in front of every route, including WebSocket upgrades.
//!
//! Agents run commands, so access to the server is access to the machine. A foreign web page can
//! make the user's browser send requests here, but it can neither choose the `Host`, `Origin` and
//! `Sec-Fetch-Site` headers that the browser sends nor read the token. Therefore:
//!
//! - the Host must be a name of this server, which prevents DNS rebinding;
//! - an Origin must be this server's or an allowed one; without one, the browser must not report
//!   the request as cross-site;
//! - changes and the WebSocket require an Origin, unless the request carries the token;
//! - a cookie counts only for this server's own page; front ends of other origins send the token.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, LOCATION, ORIGIN, REFERRER_POLICY, SET_COOKIE,
    VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;

use crate::auth::hosts::Hosts;
use crate::auth::keys::{Keys, Revocation, SignInHash};
use crate::auth::sign_in;
use crate::auth::sign_in::unreadable_password;
use crate::error::{HttpError, RequestCode};
use crate::html::PageError;
use crate::refusal::{error_response, wants_page};
use runtime::clock;

/// Path of the health check. This route and the assets need no key; assets are the same on every
/// machine, and the sign-in page needs them.
pub(crate) const HEALTH: &str = "/healthz";
pub(crate) const ASSETS: &str = "/assets/";
/// Path of the sign-in route, which takes the password instead of a key.
pub(crate) const SIGN_IN: &str = "/sign-in";
const SOCKET: &str = "/ws";
/// Name of the response header that marks a stream for version 4 of the AI SDK, which is plain
/// text.
pub(crate) const DATA_STREAM: &str = formats::ui_v4::MARKER_HEADER;

pub(crate) struct Gate {
    pub(crate) keys: Keys,
    pub(crate) hosts: Arc<Hosts>,
    /// Origins of other front ends that may read and write with the token.
    pub(crate) allowed_origins: Vec<String>,
}

/// Decision of the authorization layer about a request.
#[derive(Debug)]
enum Access {
    /// The request is granted by this sign-in; `None` for the token, for public routes and for
    /// signing in.
    Granted(Option<SignInHash>),
    /// The URL of a page contains the token: set a sign-in cookie and redirect to the URL without
    /// it.
    ToCookie,
    /// The request is a CORS preflight request of an allowed front end.
    Preflight,
    Denied(HttpError),
}

pub(crate) async fn check_access(
    State(gate): State<Arc<Gate>>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let revocation = Revocation::new(&gate);
    let access = gate.judge(&parts);
    let foreign = gate.foreign_origin(&parts.headers);
    let (method, uri) = (parts.method.clone(), parts.uri.clone());
    let mut response = match access {
        Access::Granted(sign_in) => {
            let revocation = revocation.of(sign_in);
            parts.extensions.insert(revocation.clone());
            let response = next.run(Request::from_parts(parts, body)).await;
            end_stream_with(revocation, response)
        }
        Access::ToCookie => to_cookie(&gate, &parts.uri).await,
        Access::Preflight => preflight(),
        Access::Denied(error) if is_for_person(&parts) && token_in(&parts.uri).is_none() => {
            sign_in::page(&gate, error)
        }
        Access::Denied(error) if is_for_person(&parts) => sign_in::refusal_page(&gate, error),
        Access::Denied(error) => error_response(&parts.uri, error),
    };
    set_headers(response.headers_mut(), foreign);
    // The query is not logged, because it may contain the token.
    tracing::debug!(%method, path = uri.path(), status = response.status().as_u16(), "answered");
    response
}

/// Ends the body of an event stream when the key of its request is revoked.
fn end_stream_with(revocation: Revocation, response: Response) -> Response {
    let media_type = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let is_stream = media_type.is_some_and(|it| it.starts_with(b"text/event-stream"))
        || response.headers().contains_key(DATA_STREAM);
    if !is_stream {
        return response;
    }
    response.map(|body| {
        let revoked = Box::pin(revocation.wait());
        Body::from_stream(body.into_data_stream().take_until(revoked))
    })
}

impl Gate {
    fn judge(&self, request: &Parts) -> Access {
        if let Err(error) = self.check_source(&request.headers) {
            return Access::Denied(error);
        }
        let asks_first = request.method == Method::OPTIONS
            && request.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        if asks_first && self.foreign_origin(&request.headers).is_some() {
            return Access::Preflight;
        }
        let path = request.uri.path();
        if path == HEALTH || path.starts_with(ASSETS) && only_reads(&request.method) {
            return Access::Granted(None);
        }
        self.check_key(request)
    }

    /// Checks from which site a request comes and which host it addresses, as far as the browser
    /// reports it.
    fn check_source(&self, headers: &HeaderMap) -> Result<(), HttpError> {
        if headers.get_all(HOST).iter().count() > 1 {
            return Err(HttpError::invalid("the request has more than one Host"));
        }
        let host = headers.get(HOST).and_then(|it| it.to_str().ok()).unwrap_or_default();
        if !self.hosts.is_ours(host) {
            let message = format!(
                "{host:?} is not a name of this server; use the address it printed, or set \
                 [server] public_url to the one it is reached by"
            );
            return Err(HttpError::new(RequestCode::ForbiddenHost, message));
        }
        match headers.get(ORIGIN).map(|it| it.to_str().unwrap_or("unreadable")) {
            Some(origin) if is_same(origin, host) => Ok(()),
            Some(origin) if self.allowed_origins.iter().any(|it| it == origin) => Ok(()),
            Some(origin) => {
                let message = format!(
                    "pages of {origin} may not use this server; list it in [server] \
                     allowed_origins if it should"
                );
                Err(HttpError::new(RequestCode::ForbiddenOrigin, message))
            }
            None => match headers.get("sec-fetch-site").map(HeaderValue::as_bytes) {
                None | Some(b"same-origin" | b"none") => Ok(()),
                Some(_) => {
                    let message = "the request comes from another site; open the address directly";
                    Err(HttpError::new(RequestCode::ForbiddenOrigin, message))
                }
            },
        }
    }

    fn check_key(&self, request: &Parts) -> Access {
        let Parts { uri, headers, method, .. } = request;
        let token_in_address = token_in(uri).is_some_and(|it| self.keys.is_token(it));
        if token_in_address && is_page(uri) && *method == Method::GET {
            return Access::ToCookie;
        }
        if token_in_address && uri.path() == SOCKET || self.keys.has_bearer(headers) {
            return Access::Granted(None);
        }
        if (!only_reads(method) || uri.path() == SOCKET) && !headers.contains_key(ORIGIN) {
            let message = "without the token as 'Authorization: Bearer TOKEN', changes are accepted \
                           only from Callboard's own page, which sends an Origin";
            return Access::Denied(HttpError::new(RequestCode::Unauthorized, message));
        }
        let signs_in = uri.path() == SIGN_IN && *method == Method::POST;
        // Browsers send the cookie for front ends on other ports of this machine, too.
        let is_ours = is_from_our_page(headers);
        if is_ours && signs_in {
            return Access::Granted(None);
        }
        let sign_in = self.keys.sign_in_of(headers, clock::now()).filter(|_| is_ours);
        if sign_in.is_some() {
            return Access::Granted(sign_in);
        }
        Access::Denied(HttpError::new(RequestCode::Unauthorized, sign_in_help(request)))
    }

    /// Returns the origin of an allowed front end of another origin, if the request comes from one.
    fn foreign_origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        self.allowed_origins.iter().any(|it| origin == it.as_str()).then(|| origin.clone())
    }
}

fn sign_in_help(request: &Parts) -> &'static str {
    match is_for_person(request) {
        true if token_in(&request.uri).is_some() => {
            "the token in this address is not valid. Open the address that the \
             server printed when it started"
        }
        true => "open the address that the server printed when it started",
        false => {
            "send the token that the server printed when it started as 'Authorization: Bearer TOKEN'"
        }
    }
}

fn only_reads(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

async fn to_cookie(gate: &Gate, uri: &Uri) -> Response {
    match sign_in_by_token(gate).await {
        Ok(Some(cookie)) => {
            let headers = [(LOCATION, without_token(uri)), (SET_COOKIE, cookie)];
            (StatusCode::SEE_OTHER, headers).into_response()
        }
        // The password was changed during this request. The same URL signs in with the new secrets.
        Ok(None) => (StatusCode::SEE_OTHER, [(LOCATION, uri.to_string())]).into_response(),
        Err(error) => PageError::from(error).into_response(),
    }
}

async fn sign_in_by_token(gate: &Gate) -> Result<Option<String>, HttpError> {
    let secrets = gate.keys.read_secrets().map_err(unreadable_password)?;
    Ok(gate.keys.sign_in(&secrets, clock::now()).await?)
}

/// Returns the response to a CORS preflight request. Front ends of other origins use the token, so
/// credentials are not offered.
fn preflight() -> Response {
    let headers = [
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PATCH, DELETE"),
        // Clients of other vendors send many headers of their own. The wildcard does not cover
        // `authorization`.
        (ACCESS_CONTROL_ALLOW_HEADERS, "authorization, *"),
        (ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// Sets the security headers of a response, such as no type sniffing and no scripts, and CORS
/// headers for an allowed foreign origin. Pages set further ones.
fn set_headers(headers: &mut HeaderMap, foreign: Option<HeaderValue>) {
    let defaults = [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'; sandbox"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    for (name, value) in defaults {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    let policy = if foreign.is_some() { "cross-origin" } else { "same-origin" };
    let resource_policy = HeaderName::from_static("cross-origin-resource-policy");
    headers.insert(resource_policy, HeaderValue::from_static(policy));
    headers.append(VARY, HeaderValue::from_static("Origin"));
    if let Some(origin) = foreign {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        let readable = HeaderValue::from_static("x-callboard-session");
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, readable);
    }
}

/// Returns whether the `Origin` of a request is this server's own page: same host and port.
fn is_same(origin: &str, host: &str) -> bool {
    let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    authority.is_some_and(|it| it.eq_ignore_ascii_case(host))
}

/// Returns whether the request has this server's `Origin` or none. Browsers send none for links and
/// typed addresses.
fn is_from_our_page(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(|it: &HeaderValue| it.to_str().unwrap_or_default());
    text(ORIGIN).is_none_or(|origin| is_same(origin, text(HOST).unwrap_or_default()))
}

/// Returns whether the refusal of a request is sent as a page for a person.
fn is_for_person(request: &Parts) -> bool {
    is_page(&request.uri) || wants_page(request)
}

fn is_page(uri: &Uri) -> bool {
    uri.path() == "/" || uri.path().starts_with("/s/")
}

fn token_in(uri: &Uri) -> Option<&str> {
    uri.query()?.split('&').find_map(|pair| pair.strip_prefix("token="))
}

fn without_token(uri: &Uri) -> String {
    let query = uri.query().unwrap_or_default().split('&');
    let kept: Vec<&str> =
        query.filter(|pair| !pair.is_empty() && !pair.starts_with("token=")).collect();
    // A path with two leading slashes would lead to another host.
    let path = format!("/{}", uri.path().trim_start_matches('/'));
    if kept.is_empty() { path } else { format!("{path}?{}", kept.join("&")) }
}
