//! `callboard export`: a session's whole log on standard output, one record a line.
//!
//! From the running server, if one has the data folder; else from the folder itself.

use std::io::Write;

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::value::RawValue;
use store::{OpenError, Options, ReadRange, Store};
use transcript::{Seq, SessionId};

use crate::clock;
use crate::config::Config;
use crate::serve::read_server_file;

const PAGE: usize = 1000;

pub(crate) async fn run(session: &str, config: Config) -> anyhow::Result<()> {
    let Some(session) = SessionId::parse(session) else { bail!("{session:?} is no session id") };
    let options =
        Options { sync: config.sync, holder: "callboard export".to_owned(), since: clock::now() };
    match Store::open(&config.data, options) {
        Ok(store) => from_folder(&store, &session),
        Err(OpenError::Held { by, .. }) if by.address.is_some() => {
            let server = read_server_file(&config.data);
            let server = server.with_context(|| format!("finding the token of {by}"))?;
            from_server(&server.address, &server.token, &session).await
        }
        Err(error) => Err(error.into()),
    }
}

fn from_folder(store: &Store, session: &SessionId) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let mut after = Seq(0);
    loop {
        let range = ReadRange { after, up_to: None, limit: PAGE, deltas: true };
        let page = store.read(session, range)?;
        if page.head == Seq(0) {
            bail!("there is no session {session}");
        }
        let Some(last) = page.records.last() else { return Ok(()) };
        after = last.seq;
        for record in &page.records {
            writeln!(out, "{}", record.to_json())?;
        }
    }
}

#[derive(Deserialize)]
struct Events {
    events: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Numbered {
    seq: Seq,
}

async fn from_server(address: &str, token: &str, session: &SessionId) -> anyhow::Result<()> {
    let client = reqwest::Client::new();
    let mut out = std::io::stdout().lock();
    let mut after = Seq(0);
    loop {
        let url =
            format!("{address}/api/sessions/{session}/events?after={after}&limit={PAGE}&deltas=1");
        let answer = client.get(&url).bearer_auth(token).send().await;
        let answer = answer.with_context(|| format!("asking the server at {address}"))?;
        if answer.status() == reqwest::StatusCode::NOT_FOUND {
            bail!("there is no session {session}");
        }
        let page: Events = answer.error_for_status()?.json().await?;
        let Some(last) = page.events.last() else { return Ok(()) };
        after = serde_json::from_str::<Numbered>(last.get())?.seq;
        for record in &page.events {
            writeln!(out, "{record}")?;
        }
    }
}
