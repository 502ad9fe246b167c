//! Fills a data folder with one long session, `long`: for the benchmarks of the page.
//!
//!     long_session DATA EXCHANGES CALLS     CALLS in each exchange

use std::path::Path;

use anyhow::Context;
use bench::{Conversation, say};
use store::{Options, Store};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [data, exchanges, calls] = &args[..] else {
        anyhow::bail!("usage: long_session DATA EXCHANGES CALLS");
    };
    let exchanges: u64 = exchanges.parse().context("EXCHANGES")?;
    let calls: u32 = calls.parse().context("CALLS")?;
    let store = Store::open(Path::new(data), Options::default())?;
    let mut conversation = Conversation::new("long");
    let session = conversation.session().clone();
    let head = conversation.head();
    store.append(&session, head, conversation.opening("A long session")).await?;
    for _ in 0..exchanges {
        let head = conversation.head();
        store.append(&session, head, conversation.exchange(calls)).await?;
    }
    store.close().await;
    say(&conversation.head().to_string());
    Ok(())
}
