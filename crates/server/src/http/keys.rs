//! What opens the door: the token, or a cookie that somebody got for it or for the password.
//!
//! A cookie's value is random and means nothing by itself. The store keeps a hash of it, so that a
//! sign-in survives a restart and signing out really ends it.
//!
//! Sign-ins are bound to the token and the password that there were when they were made: the store keeps a
//! fingerprint of both, and when either is another, also because of a change while the server was off, all
//! sign-ins end. What is open by then ends with them ([`Revocation`]).

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, COOKIE};
use store::{AppendError, Store};
use subtle::ConstantTimeEq;
use tokio::sync::watch;
use transcript::Millis;

use super::door::Door;
use crate::{clock, password};

/// How long a browser stays signed in, in days.
const SIGNED_IN_DAYS: u32 = 365;
const DAY_MS: i64 = 86_400_000;
/// The setting that holds the fingerprint.
const SECRETS: &str = "sign_in_secrets";
/// How often the server looks whether the password has been changed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The hash of a cookie.
pub(super) type SignInHash = [u8; 32];

pub(super) struct Keys {
    token: String,
    cookie_name: String,
    /// Whether browsers reach us by https alone.
    is_secure: bool,
    store: Store,
    /// Where the password is.
    data: PathBuf,
    /// Hashes of the cookies, and since when they are good. Held for a look-up, never across an await.
    sign_ins: RwLock<HashMap<SignInHash, Millis>>,
    /// The fingerprint of the secrets that the sign-ins were made with.
    secrets: RwLock<Option<String>>,
    /// One change of the secrets at a time.
    changing: tokio::sync::Mutex<()>,
    revoked: watch::Sender<Revoked>,
}

/// The token and the password at one moment.
pub(super) struct Secrets {
    /// None if no password is set.
    pub(super) password_hash: Option<String>,
    /// Hash of the token and the password hash.
    fingerprint: String,
}

/// Counts what was taken back.
#[derive(Clone, Copy, Default)]
struct Revoked {
    /// Sign-ins that ended alone.
    some: u64,
    /// Times that all of them ended.
    all: u64,
}

impl Keys {
    pub(super) async fn load(
        token: String,
        port: u16,
        is_secure: bool,
        data: PathBuf,
        store: Store,
    ) -> Result<Self, store::Error> {
        let sign_ins: HashMap<SignInHash, Millis> = store.sign_ins().await?.into_iter().collect();
        let secrets = store.setting(SECRETS).await?;
        let keys = Self {
            token,
            // Cookies know no ports: two servers on one machine must not share one.
            cookie_name: format!("callboard_{port}"),
            is_secure,
            data,
            secrets: RwLock::new(secrets),
            sign_ins: RwLock::new(sign_ins),
            changing: tokio::sync::Mutex::default(),
            revoked: watch::Sender::default(),
            store,
        };
        // Without sign-ins there is nothing to end, and nothing is written before the first one is made.
        if keys.sign_ins.read().unwrap_or_else(PoisonError::into_inner).is_empty() {
            let fingerprint = keys.fingerprint().ok();
            *keys.secrets.write().unwrap_or_else(PoisonError::into_inner) = fingerprint;
        }
        Ok(keys)
    }

    pub(super) fn is_token(&self, given: &str) -> bool {
        // Takes the same time whichever letter is wrong.
        given.as_bytes().ct_eq(self.token.as_bytes()).into()
    }

    pub(super) fn has_bearer(&self, headers: &HeaderMap) -> bool {
        let value = headers.get(AUTHORIZATION).and_then(|it| it.to_str().ok());
        value.and_then(|it| it.strip_prefix("Bearer ")).is_some_and(|it| self.is_token(it))
    }

    /// The valid sign-in that the request has. A hash is looked up, so the time it takes says nothing about
    /// the value.
    pub(super) fn sign_in_of(&self, headers: &HeaderMap, now: Millis) -> Option<SignInHash> {
        let hash = self.cookies(headers).map(hash).find(|it| self.is_good(it, now))?;
        self.fingerprint().is_ok_and(|it| self.is_current(&it)).then_some(hash)
    }

    fn is_good(&self, hash: &SignInHash, now: Millis) -> bool {
        let sign_ins = self.sign_ins.read().unwrap_or_else(PoisonError::into_inner);
        sign_ins.get(hash).is_some_and(|since| *since > oldest_sign_in(now))
    }

    /// Makes a sign-in and returns the header that tells the browser. `None` if the secrets are no longer
    /// those that were `checked`: the caller has shown one that does not count any more.
    pub(super) async fn sign_in(
        &self,
        checked: &Secrets,
        now: Millis,
    ) -> Result<Option<String>, AppendError> {
        self.end_outdated().await?;
        let _one_at_a_time = self.changing.lock().await;
        if !self.is_current(&checked.fingerprint) {
            return Ok(None);
        }
        self.store.set_setting(SECRETS, &checked.fingerprint).await?;
        let value = clock::new_cookie();
        self.store.add_sign_in(hash(&value), now).await?;
        let mut sign_ins = self.sign_ins.write().unwrap_or_else(PoisonError::into_inner);
        sign_ins.insert(hash(&value), now);
        Ok(Some(self.set_cookie(&value, u64::from(SIGNED_IN_DAYS) * 86_400)))
    }

    /// The secrets as they are now. To be read before a key is checked against them.
    pub(super) fn read_secrets(&self) -> io::Result<Secrets> {
        let password_hash = password::stored_hash(&self.data)?;
        let mut hasher = blake3::Hasher::new_derive_key("callboard sign-in secrets");
        hasher.update(&(self.token.len() as u64).to_le_bytes());
        hasher.update(self.token.as_bytes());
        hasher.update(password_hash.as_deref().unwrap_or_default().as_bytes());
        let fingerprint = hasher.finalize().to_hex().to_string();
        Ok(Secrets { password_hash, fingerprint })
    }

    /// Ends the sign-ins that the request has, and tells the browser to forget them.
    pub(super) async fn sign_out(&self, headers: &HeaderMap) -> Result<String, AppendError> {
        let hashes: Vec<SignInHash> = self.cookies(headers).map(hash).collect();
        for hash in hashes {
            self.sign_ins.write().unwrap_or_else(PoisonError::into_inner).remove(&hash);
            self.revoked.send_modify(|it| it.some += 1);
            self.store.remove_sign_in(hash).await?;
        }
        Ok(self.forget_cookie())
    }

    /// Ends all sign-ins, and whatever is open.
    pub(super) async fn sign_out_everywhere(&self) -> Result<(), AppendError> {
        self.sign_ins.write().unwrap_or_else(PoisonError::into_inner).clear();
        self.revoked.send_modify(|it| it.all += 1);
        self.store.remove_sign_ins_before(Millis(i64::MAX)).await
    }

    /// Ends all sign-ins if they were made with another token or another password.
    async fn end_outdated(&self) -> Result<(), AppendError> {
        let _one_at_a_time = self.changing.lock().await;
        // Not being able to read the password, for lack of file handles say, is no change of it.
        let Ok(fingerprint) = self.fingerprint() else { return Ok(()) };
        if self.is_current(&fingerprint) {
            return Ok(());
        }
        self.sign_out_everywhere().await?;
        self.store.set_setting(SECRETS, &fingerprint).await?;
        *self.secrets.write().unwrap_or_else(PoisonError::into_inner) = Some(fingerprint);
        Ok(())
    }

    pub(super) async fn end_outdated_or_warn(&self) {
        if let Err(error) = self.end_outdated().await {
            tracing::warn!(%error, "sign-ins made before a change of token or password could not be removed");
        }
    }

    /// Whether the sign-ins were made with the secrets of this fingerprint.
    fn is_current(&self, fingerprint: &str) -> bool {
        let secrets = self.secrets.read().unwrap_or_else(PoisonError::into_inner);
        secrets.as_deref() == Some(fingerprint)
    }

    fn fingerprint(&self) -> io::Result<String> {
        Ok(self.read_secrets()?.fingerprint)
    }

    /// The header that tells a browser to forget its sign-in.
    pub(super) fn forget_cookie(&self) -> String {
        self.set_cookie("", 0)
    }

    fn set_cookie(&self, value: &str, seconds: u64) -> String {
        let name = &self.cookie_name;
        let secure = if self.is_secure { "; Secure" } else { "" };
        format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}")
    }

    fn cookies<'a>(&'a self, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|it| it.to_str().ok());
        cookies.flat_map(|it| it.split(';')).filter_map(|cookie| {
            let (name, value) = cookie.trim().split_once('=')?;
            (name == self.cookie_name).then_some(value)
        })
    }
}

/// The end of the right by which a request was let in.
#[derive(Clone)]
pub(super) struct Revocation {
    door: Arc<Door>,
    /// None where it was the token.
    sign_in: Option<SignInHash>,
    changes: watch::Receiver<Revoked>,
    /// As it was before the request was let in.
    all_before: u64,
}

impl Revocation {
    /// To be made before the key is looked at, so that nothing is missed.
    pub(super) fn new(door: &Arc<Door>) -> Self {
        let changes = door.keys.revoked.subscribe();
        let all_before = changes.borrow().all;
        Self { door: Arc::clone(door), sign_in: None, changes, all_before }
    }

    pub(super) fn of(self, sign_in: Option<SignInHash>) -> Self {
        Self { sign_in, ..self }
    }

    /// Completes when everybody is signed out, or this sign-in is.
    pub(super) async fn wait(mut self) {
        loop {
            let all = self.changes.borrow_and_update().all;
            let is_out = |it: &SignInHash| !self.door.keys.is_good(it, clock::now());
            if all != self.all_before || self.sign_in.as_ref().is_some_and(is_out) {
                return;
            }
            if self.changes.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Notices a password that was changed by another process, until the server stops.
pub(super) async fn watch_secrets(door: Arc<Door>, mut stopping: watch::Receiver<bool>) {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    loop {
        tokio::select! {
            _ = stopping.changed() => return,
            _ = looks.tick() => (),
        }
        door.keys.end_outdated_or_warn().await;
    }
}

/// What is older is not good any more.
pub(crate) fn oldest_sign_in(now: Millis) -> Millis {
    Millis(now.0 - i64::from(SIGNED_IN_DAYS) * DAY_MS)
}

fn hash(value: &str) -> SignInHash {
    *blake3::hash(value.as_bytes()).as_bytes()
}
