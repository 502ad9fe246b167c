//! A conversation as people have with an agent that works: asked, answered after some calls, again
//! and again.

use std::sync::Arc;

use serde_json::json;
use transcript::{
    CallId, Event, Executor, MessageId, MessageRole, Millis, PartId, Record, ResponseId, RunStatus,
    Seq, SessionId, Trigger, Usage, Validation,
};

/// Writes the records of one session, one question and answer at a time.
pub struct Conversation {
    session: SessionId,
    head: u64,
    exchanges: u64,
}

impl Conversation {
    pub fn new(session: &str) -> Self {
        Self { session: SessionId::new(session), head: 0, exchanges: 0 }
    }

    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The sequence number of the last record.
    pub fn head(&self) -> Seq {
        Seq(self.head)
    }

    pub fn opening(&mut self, title: &str) -> Arc<[Record]> {
        let title = Some(title.to_owned());
        let event = Event::SessionCreated {
            agent: "demo".into(),
            workspace: None,
            workspace_confirmed: false,
            title,
        };
        self.records(None, vec![event])
    }

    /// Adds a question, and an answer with calls, each with its commentary.
    pub fn exchange(&mut self, calls: u32) -> Arc<[Record]> {
        self.exchanges += 1;
        let n = self.exchanges;
        let run = ResponseId::new(format!("01a1e10e-9c69-7013-a16d-{n:012}"));
        let question = Event::UserMessage {
            sent: None,
            message_id: MessageId::new(format!("01a1e10e-9c68-7013-a16d-{n:012}")),
            client_id: None,
            role: MessageRole::User,
            text: format!(
                "Why does the test of module {n} fail? Look, then say it in two sentences."
            ),
            attachments: Vec::new(),
            from: None,
        };
        let asked = self.records(None, vec![question]);
        let mut events = vec![Event::RunStart {
            agent: "demo".into(),
            model: Some("scripted".into()),
            trigger: Trigger::User,
            exchange_id: None,
        }];
        for call in 0..calls {
            let words = format!("I look at `src/module_{n}.rs` around line {}.", 40 * call + 12);
            events.extend(step(
                call,
                "tool_calls",
                text(&run, 2 * call, &words),
                calling(&run, n, call),
            ));
        }
        events.extend(step(calls, "stop", text(&run, 2 * calls, &answer(n)), Vec::new()));
        let usage = Usage {
            input_tokens: 4200,
            output_tokens: 380,
            total_tokens: 4580,
            ..Usage::default()
        };
        events.push(Event::RunFinish {
            status: RunStatus::Completed,
            error: None,
            usage: Some(usage),
            cost: None,
            duration_ms: Some(8_400),
        });
        let answered = self.records(Some(&run), events);
        asked.iter().chain(&*answered).cloned().collect()
    }

    fn records(&mut self, run: Option<&ResponseId>, events: Vec<Event>) -> Arc<[Record]> {
        let record = |event| {
            self.head += 1;
            let at = Millis(1_763_232_268_000 + 100 * self.head as i64);
            Record::new(Seq(self.head), at, self.session.clone(), run.cloned(), event)
        };
        events.into_iter().map(record).collect()
    }
}

fn step(index: u32, finish_reason: &str, words: Vec<Event>, call: Vec<Event>) -> Vec<Event> {
    let start = Event::StepStart { index, parent_call_id: None };
    let finish_reason = finish_reason.to_owned();
    let finish =
        Event::StepFinish { index, finish_reason, usage: None, cost: None, parent_call_id: None };
    [start].into_iter().chain(words).chain(call).chain([finish]).collect()
}

fn text(run: &ResponseId, n: u32, words: &str) -> Vec<Event> {
    let part_id = PartId::numbered(run, n);
    let start = Event::TextStart { part_id: part_id.clone(), parent_call_id: None };
    let text = words.to_owned();
    vec![
        start,
        Event::TextDone { part_id, parent_call_id: None, text, phase: None, discarded: false },
    ]
}

fn calling(run: &ResponseId, exchange: u64, n: u32) -> Vec<Event> {
    let call_id = CallId::numbered(run, 2 * n + 1);
    let tool_name = "read_file".to_owned();
    let (from, to) = (40 * n + 1, 40 * n + 24);
    let arguments =
        json!({ "path": format!("src/module_{exchange}.rs"), "from_line": from, "to_line": to });
    let lines = (from..=to).map(|line| format!("    let value_{line} = read(input, {line})?;\n"));
    vec![
        Event::ToolCallStart {
            call_id: call_id.clone(),
            provider_call_id: None,
            tool_name: tool_name.clone(),
            arguments: None,
            parent_call_id: None,
            executor: Executor::Server,
        },
        Event::ToolArgumentsDone {
            call_id: call_id.clone(),
            arguments: arguments.to_string(),
            summary: format!("path: 'src/module_{exchange}.rs', from_line: {from}, to_line: {to}"),
            incomplete: false,
            validation: Validation::NotRequired,
            provider_data: None,
        },
        Event::ToolRunning { call_id: call_id.clone() },
        Event::ToolResult {
            call_id,
            tool_name,
            ok: true,
            result: Some(json!({ "content": lines.collect::<String>() })),
            output: None,
            error: None,
            summary: None,
            duration_ms: Some(12),
            truncated: None,
        },
    ]
}

fn answer(n: u64) -> String {
    format!(
        "The test fails because `read` gives **nothing** for an empty line, and line {n} is empty.\n\n\
         - `module_{n}` reads line by line and takes the first word of each.\n\
         - The fixture has got an empty line at its end.\n\n\
         ```rust\nlet words = line.split_whitespace();\nlet first = words.next().unwrap_or_default();\n```\n\n\
         With that change the test passes; nothing else depends on it.\n"
    )
}
