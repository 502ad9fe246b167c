//! The time, new ids and secrets: the only place that reads the clock and draws random numbers.

use std::time::SystemTime;

use transcript::{ClientId, ExchangeId, MessageId, Millis, SessionId};
use uuid::Uuid;

/// Returns the current time.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn now() -> Millis {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

pub fn new_session_id() -> SessionId {
    SessionId::new(new_id())
}

pub fn new_message_id() -> MessageId {
    MessageId::new(new_id())
}

pub fn new_client_id() -> ClientId {
    ClientId::new(new_id())
}

pub fn new_exchange_id() -> ExchangeId {
    ExchangeId::new(new_id())
}

/// Returns random bits as the seed from which a session makes its ids.
pub fn new_seed() -> u128 {
    new_random().as_u128()
}

/// Returns an unguessable value for the environment variable that marks a program and its
/// descendants.
pub fn new_mark() -> String {
    new_random().to_string()
}

/// Returns an unguessable token for a program that may call Callboard's tools.
pub fn new_pass() -> String {
    new_random().simple().to_string()
}

/// Returns a new access token for the server.
pub fn new_token() -> String {
    new_random().simple().to_string()
}

/// Returns an unguessable value for a new sign-in cookie.
pub fn new_cookie() -> String {
    format!("{}{}", new_random().simple(), new_random().simple())
}

/// Returns a random salt for the hash of a password.
pub fn new_salt() -> [u8; 16] {
    new_random().into_bytes()
}

/// Returns 122 random bits from the operating system.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
fn new_random() -> Uuid {
    Uuid::new_v4()
}

/// Returns a new id. Ids rise with time, so neighbours in the store's indexes stay together.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
fn new_id() -> String {
    Uuid::now_v7().to_string()
}
