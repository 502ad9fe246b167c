//! Timed effects: a step is first queued as effects with pauses, and then played.
//!
//! The effects are the same at every pace, only the pauses differ. Pauses vary by a counter, so that they
//! look natural and are still deterministic.

use std::collections::VecDeque;

use transcript::{CallId, Event, Executor, Millis, PartId, Validation};

use super::call::Call;
use crate::{ModelEffect, RunEffect, arguments_summary};

/// Speed at which the demo agent emits its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// About as fast as the answer of a model.
    Natural,
    /// Without pauses between deltas.
    Instant,
}

#[derive(Debug)]
pub(super) struct Playback {
    pace: Pace,
    queue: VecDeque<TimedEffect>,
    pauses_made: u64,
}

#[derive(Debug)]
struct TimedEffect {
    pause_ms: u64,
    effect: ModelEffect,
}

impl Playback {
    pub(super) fn new(pace: Pace) -> Self {
        Self { pace, queue: VecDeque::new(), pauses_made: 0 }
    }

    /// Ends the pause before the next queued effect.
    pub(super) fn wake(&mut self) {
        if let Some(timed) = self.queue.front_mut() {
            timed.pause_ms = 0;
        }
    }

    /// Removes and returns the queued effects up to the next pause, which is returned as a
    /// [`RunEffect::WakeAt`].
    pub(super) fn play(&mut self, now: Millis) -> Vec<ModelEffect> {
        let mut effects = Vec::new();
        while let Some(timed) = self.queue.pop_front() {
            if timed.pause_ms > 0 {
                effects.push(RunEffect::WakeAt(now.plus(timed.pause_ms)).into());
                self.queue.push_front(timed);
                break;
            }
            effects.push(timed.effect);
        }
        effects
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn effect(&mut self, effect: impl Into<ModelEffect>) {
        self.queue.push_back(TimedEffect { pause_ms: 0, effect: effect.into() });
    }

    pub(super) fn event(&mut self, event: Event) {
        self.effect(RunEffect::Emit(event));
    }

    /// Queues the start of a step, after a pause as long as a model would take to read and think.
    pub(super) fn start_step(&mut self, index: u32) {
        let event = Event::StepStart { index, parent_call_id: None };
        self.after_pause(300..=500, event);
    }

    pub(super) fn thinking(&mut self, part_id: &PartId, text: &str) {
        let part_id = || part_id.clone();
        self.event(Event::ThinkingStart { part_id: part_id(), parent_call_id: None });
        for delta in words(text) {
            let delta = Event::ThinkingDelta { part_id: part_id(), parent_call_id: None, delta };
            self.delta(delta);
        }
        self.event(Event::ThinkingDone {
            part_id: part_id(),
            parent_call_id: None,
            text: text.to_owned(),
            discarded: false,
        });
    }

    pub(super) fn text(&mut self, part_id: &PartId, text: &str) {
        self.open_text(part_id, text);
        self.event(Event::TextDone {
            part_id: part_id.clone(),
            parent_call_id: None,
            text: text.to_owned(),
            phase: None,
            discarded: false,
        });
    }

    /// Queues the beginning and the deltas of a text without its end. The driver closes the text
    /// when the run ends.
    pub(super) fn open_text(&mut self, part_id: &PartId, text: &str) {
        let part_id = || part_id.clone();
        self.event(Event::TextStart { part_id: part_id(), parent_call_id: None });
        for delta in words(text) {
            self.delta(Event::TextDelta { part_id: part_id(), parent_call_id: None, delta });
        }
    }

    /// Queues the events of a tool call that the demo agent writes. Running the call is a separate
    /// effect.
    pub(super) fn call(&mut self, call_id: &CallId, call: &Call) {
        let arguments = call.arguments().to_string();
        self.event(Event::ToolCallStart {
            call_id: call_id.clone(),
            provider_call_id: None,
            tool_name: call.tool_name().to_owned(),
            arguments: None,
            parent_call_id: None,
            executor: Executor::Server,
        });
        for delta in chunks(&arguments, ARGUMENTS_DELTA_CHARS) {
            self.delta(Event::ToolArgumentsDelta { call_id: call_id.clone(), delta });
        }
        self.event(Event::ToolArgumentsDone {
            call_id: call_id.clone(),
            summary: arguments_summary(&arguments),
            arguments,
            incomplete: false,
            validation: Validation::NotRequired,
            provider_data: None,
        });
    }

    fn delta(&mut self, event: Event) {
        self.after_pause(18..=45, event);
    }

    fn after_pause(&mut self, range: std::ops::RangeInclusive<u64>, event: Event) {
        let (least, most) = range.into_inner();
        self.pauses_made += 1;
        let pause_ms = match self.pace {
            // 11 shares no factor with the lengths of both ranges, so every value comes up.
            Pace::Natural => least + (self.pauses_made * 11) % (most - least + 1),
            Pace::Instant => 0,
        };
        self.queue.push_back(TimedEffect { pause_ms, effect: RunEffect::Emit(event).into() });
    }
}

const ARGUMENTS_DELTA_CHARS: usize = 6;
const LONGEST_WORD_CHARS: usize = 24;

/// Splits a text into words for deltas, each with the space after it. Very long words are cut.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut is_space_before = true;
    for letter in text.chars() {
        let begins_word = is_space_before && !letter.is_whitespace();
        match words.last_mut() {
            Some(word) if !begins_word => word.push(letter),
            _ => words.push(letter.to_string()),
        }
        is_space_before = letter.is_whitespace();
    }
    words.iter().flat_map(|it| chunks(it, LONGEST_WORD_CHARS)).collect()
}

fn chunks(text: &str, length: usize) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(length).map(|it| it.iter().collect()).collect()
}
