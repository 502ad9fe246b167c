//! Lines of a user's that the program has not looked at yet, as far as it says.

use serde_json::Value;
use transcript::{Event, MessageId, SteerState};

use super::stdin;

#[derive(Debug)]
pub(super) struct UserLine {
    pub(super) uuid: String,
    /// None: what began the run.
    pub(super) steered: Option<Steered>,
}

#[derive(Debug)]
pub(super) struct Steered {
    pub(super) id: MessageId,
    text: String,
}

impl Steered {
    pub(super) fn new(id: MessageId, message: &Value) -> Self {
        Self { id, text: stdin::text_of(message) }
    }

    pub(super) fn event(&self, state: SteerState) -> Event {
        Event::MessageSteered { message_id: self.id.clone(), text: self.text.clone(), state }
    }
}

/// The program wants uuids, and reports under them; the same id gives the same one (FNV-1a).
pub(super) fn uuid_of(id: &str) -> String {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let hash = id.bytes().fold(BASIS, |hash, it| (hash ^ u128::from(it)).wrapping_mul(PRIME));
    let hex = format!("{hash:032x}");
    // Version 8 is for uuids that are made in a way of one's own.
    format!("{}-{}-8{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
}
