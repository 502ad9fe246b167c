//! Keys of the server: the access token, and sign-in cookies, which clients get for the token or the
//! password.
//!
//! A cookie's value is random. The store keeps its hash, so a sign-in survives a restart, and
//! signing out ends it on the server.
//!
//! Sign-ins are bound to the token and the password at the time they were made: the store keeps a
//! fingerprint of both. When either changes, even while the server was off, all sign-ins end, and
//! open connections that use them end too ([`Revocation`]).

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, COOKIE};
use store::{AppendError, Store};
use subtle::ConstantTimeEq;
use tokio::sync::watch;
use transcript::Millis;

use crate::auth::gate::Gate;
use crate::auth::password;
use runtime::clock;

/// Lifetime of a sign-in, in days.
const SIGNED_IN_DAYS: u32 = 365;
/// Name of the stored setting that holds the fingerprint of the token and the password.
const SECRETS: &str = "sign_in_secrets";
/// Interval at which the server checks whether its password was changed.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Hash of a sign-in cookie's value, which identifies the sign-in.
pub(crate) type SignInHash = [u8; 32];

pub(crate) struct Keys {
    token: String,
    cookie_name: String,
    /// Whether browsers reach the server only by https.
    is_secure: bool,
    store: Store,
    /// Data folder, which contains the password file.
    data: PathBuf,
    /// Times at which sign-ins were created, by the hashes of their cookies. Locked for a look-up,
    /// never across an await.
    sign_ins: RwLock<HashMap<SignInHash, Millis>>,
    /// Fingerprint of the token and the password for which the sign-ins were created.
    secrets: RwLock<Option<String>>,
    /// Lock that serialises the creation of sign-ins and the end of outdated ones.
    changing: tokio::sync::Mutex<()>,
    revoked: watch::Sender<Revoked>,
}

/// State of the server's token and password at one moment.
pub(crate) struct Secrets {
    /// Hash of the server's password; `None` if no password is set.
    pub(crate) password_hash: Option<String>,
    /// Fingerprint of the secrets: a hash of the token and the password hash.
    fingerprint: String,
}

/// Counters of ended sign-ins, by which open connections notice a revocation.
#[derive(Clone, Copy, Default)]
struct Revoked {
    /// Number of sign-ins that were ended individually.
    some: u64,
    /// Number of times that all sign-ins were ended.
    all: u64,
}

impl Keys {
    pub(crate) async fn load(
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
            // Cookies ignore ports: two servers on one machine must not share one.
            cookie_name: format!("callboard_{port}"),
            is_secure,
            data,
            secrets: RwLock::new(secrets),
            sign_ins: RwLock::new(sign_ins),
            changing: tokio::sync::Mutex::default(),
            revoked: watch::Sender::default(),
            store,
        };
        // Without sign-ins there is nothing to end, and the fingerprint is written with the first
        // one.
        if read(&keys.sign_ins).is_empty() {
            let fingerprint = keys.fingerprint().ok();
            *write(&keys.secrets) = fingerprint;
        }
        Ok(keys)
    }

    pub(crate) fn has_password(&self) -> bool {
        password::is_set(&self.data)
    }

    pub(crate) fn is_token(&self, given: &str) -> bool {
        // Constant-time comparison.
        given.as_bytes().ct_eq(self.token.as_bytes()).into()
    }

    pub(crate) fn has_bearer(&self, headers: &HeaderMap) -> bool {
        let value = headers.get(AUTHORIZATION).and_then(|it| it.to_str().ok());
        value.and_then(|it| it.strip_prefix("Bearer ")).is_some_and(|it| self.is_token(it))
    }

    /// Returns the valid sign-in whose cookie a request contains. The hash of the cookie is looked
    /// up, so timing reveals nothing about its value.
    pub(crate) fn sign_in_of(&self, headers: &HeaderMap, now: Millis) -> Option<SignInHash> {
        let hash = self.cookies(headers).map(hash).find(|it| self.is_good(it, now))?;
        self.fingerprint().is_ok_and(|it| self.is_current(&it)).then_some(hash)
    }

    fn is_good(&self, hash: &SignInHash, now: Millis) -> bool {
        let sign_ins = read(&self.sign_ins);
        sign_ins.get(hash).is_some_and(|since| *since > oldest_sign_in(now))
    }

    /// Creates a sign-in and returns the `Set-Cookie` header for its cookie. `None` if the token or
    /// the password has changed since they were `checked`.
    pub(crate) async fn sign_in(
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
        let mut sign_ins = write(&self.sign_ins);
        sign_ins.insert(hash(&value), now);
        Ok(Some(self.set_cookie(&value, u64::from(SIGNED_IN_DAYS) * 86_400)))
    }

    /// Reads the current token and password hash. Call this before a key is checked against them.
    pub(crate) fn read_secrets(&self) -> io::Result<Secrets> {
        let password_hash = password::stored_hash(&self.data)?;
        let mut hasher = blake3::Hasher::new_derive_key("callboard sign-in secrets");
        hasher.update(&(self.token.len() as u64).to_le_bytes());
        hasher.update(self.token.as_bytes());
        hasher.update(password_hash.as_deref().unwrap_or_default().as_bytes());
        let fingerprint = hasher.finalize().to_hex().to_string();
        Ok(Secrets { password_hash, fingerprint })
    }

    /// Ends the sign-ins whose cookies a request contains, and returns the `Set-Cookie` header that
    /// deletes the cookie.
    pub(crate) async fn sign_out(&self, headers: &HeaderMap) -> Result<String, AppendError> {
        let hashes: Vec<SignInHash> = self.cookies(headers).map(hash).collect();
        for hash in hashes {
            write(&self.sign_ins).remove(&hash);
            self.revoked.send_modify(|it| it.some += 1);
            self.store.remove_sign_in(hash).await?;
        }
        Ok(self.forget_cookie())
    }

    /// Ends all sign-ins of the server and the connections that use them.
    pub(crate) async fn sign_out_everywhere(&self) -> Result<(), AppendError> {
        write(&self.sign_ins).clear();
        self.revoked.send_modify(|it| it.all += 1);
        self.store.remove_sign_ins_before(Millis(i64::MAX)).await
    }

    /// Ends all sign-ins if they were created for another token or password.
    async fn end_outdated(&self) -> Result<(), AppendError> {
        let _one_at_a_time = self.changing.lock().await;
        // A password file that cannot be read, for example for lack of file handles, does not count as
        // changed.
        let Ok(fingerprint) = self.fingerprint() else { return Ok(()) };
        if self.is_current(&fingerprint) {
            return Ok(());
        }
        self.sign_out_everywhere().await?;
        self.store.set_setting(SECRETS, &fingerprint).await?;
        *write(&self.secrets) = Some(fingerprint);
        Ok(())
    }

    pub(crate) async fn end_outdated_or_warn(&self) {
        if let Err(error) = self.end_outdated().await {
            tracing::warn!(%error, "cannot remove sign-ins made before a change of token or password");
        }
    }

    /// Returns whether the sign-ins were created for the token and password with this fingerprint.
    fn is_current(&self, fingerprint: &str) -> bool {
        let secrets = read(&self.secrets);
        secrets.as_deref() == Some(fingerprint)
    }

    fn fingerprint(&self) -> io::Result<String> {
        Ok(self.read_secrets()?.fingerprint)
    }

    /// Returns the `Set-Cookie` header that deletes the sign-in cookie.
    pub(crate) fn forget_cookie(&self) -> String {
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

/// Notification that the sign-in of a request, or every sign-in, has ended.
#[derive(Clone)]
pub(crate) struct Revocation {
    gate: Arc<Gate>,
    /// Sign-in that granted the request; `None` for the token and for public routes.
    sign_in: Option<SignInHash>,
    changes: watch::Receiver<Revoked>,
    /// Number of times that all sign-ins had been ended before the request was authorized.
    all_before: u64,
}

impl Revocation {
    /// Subscribes to the end of sign-ins. Call this before the key of a request is checked, so that
    /// no revocation is missed.
    pub(crate) fn new(gate: &Arc<Gate>) -> Self {
        let changes = gate.keys.revoked.subscribe();
        let all_before = changes.borrow().all;
        Self { gate: Arc::clone(gate), sign_in: None, changes, all_before }
    }

    pub(crate) fn of(self, sign_in: Option<SignInHash>) -> Self {
        Self { sign_in, ..self }
    }

    /// Waits until the sign-in of the request or all sign-ins have ended.
    pub(crate) async fn wait(mut self) {
        loop {
            let all = self.changes.borrow_and_update().all;
            let is_out = |it: &SignInHash| !self.gate.keys.is_good(it, clock::now());
            if all != self.all_before || self.sign_in.as_ref().is_some_and(is_out) {
                return;
            }
            if self.changes.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Checks periodically whether another process has changed the password, which ends all sign-ins.
/// Returns when the server stops.
pub(crate) async fn watch_secrets(gate: Arc<Gate>, mut stopping: watch::Receiver<bool>) {
    let mut looks = tokio::time::interval(CHECK_INTERVAL);
    loop {
        tokio::select! {
            _ = stopping.changed() => return,
            _ = looks.tick() => (),
        }
        gate.keys.end_outdated_or_warn().await;
    }
}

/// Returns the creation time up to which sign-ins have expired at `now`.
pub fn oldest_sign_in(now: Millis) -> Millis {
    now.minus_days(SIGNED_IN_DAYS)
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

fn hash(value: &str) -> SignInHash {
    *blake3::hash(value.as_bytes()).as_bytes()
}
