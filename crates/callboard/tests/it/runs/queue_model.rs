//! The message queue, checked against a model: whatever people do, and however often the server is
//! killed, no message is lost, none runs twice, and they run in the order that people set.
//!
//! The agent uses a model service that answers only as the test tells it to, so the test always
//! knows the queue, the open run and the messages so far.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use transcript::{Content, PartKind, SendMode, Seq, SteerState, Transcript};

use crate::agents::model_agent::{create_session, start};
use crate::support::log::check_log;
use crate::support::model::{Asked, Model};
use crate::support::program::{Home, Server};
use crate::support::random_values::Random;
use crate::support::watcher::{Watcher, as_record};

const SEEDS: u64 = 8;
const DEEDS: usize = 50;
/// Time limit for an expected record or request.
const TIMEOUT: Duration = Duration::from_secs(20);

/// An action in the test. Messages are identified by their place in the queue.
#[derive(Debug, Clone)]
enum Action {
    Send(String, SendMode),
    Edit(usize, String),
    Move(usize, usize),
    Drop(usize),
    Steer(usize),
    Release,
    Clear,
    Cancel,
    /// The model sends a word, calls a tool, or completes its answer.
    Say,
    Call,
    Answer,
    /// The server is stopped and restarted.
    Stop,
    Kill,
    /// The server is killed during this action.
    KillDuring(Box<Self>),
}

/// The expected state.
#[derive(Debug, Clone, Default, PartialEq)]
struct World {
    queue: Vec<Waiting>,
    run: Option<Running>,
    /// Messages that got their own run, in order.
    messages: Vec<String>,
    /// Messages that were steered into runs, and whether the model has seen them.
    steered: Vec<(String, SteerState)>,
    dropped: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
struct Waiting {
    /// Identity of the message, which edits do not change.
    name: usize,
    text: String,
    held: bool,
    mode: SendMode,
}

/// An open run. Messages are listed by name, in the order in which they were steered.
#[derive(Debug, Clone, Default, PartialEq)]
struct Running {
    to_be_told: Vec<usize>,
    handed_over: Vec<Waiting>,
}

impl World {
    fn after(&self, action: &Action) -> Self {
        let mut world = self.clone();
        world.take(action);
        world
    }

    fn take(&mut self, action: &Action) {
        match action {
            Action::Send(text, mode) => self.send(text, *mode),
            Action::Edit(at, text) => self.queue[*at].text.clone_from(text),
            Action::Move(from, to) => {
                let message = self.queue.remove(*from);
                self.queue.insert((*to).min(self.queue.len()), message);
            }
            Action::Drop(at) => self.dropped.push(self.queue.remove(*at).text),
            Action::Steer(at) => self.steer(*at),
            Action::Release => {
                self.queue.iter_mut().for_each(|it| it.held = false);
                self.start_next();
            }
            Action::Clear => self.dropped.extend(self.queue.drain(..).map(|it| it.text)),
            Action::Cancel => {
                if self.run.is_some() {
                    self.queue.iter_mut().for_each(|it| it.held = true);
                    self.break_off(true);
                }
            }
            Action::Say => self.saw(),
            Action::Call => {
                self.saw();
                self.hand_over();
            }
            Action::Answer => {
                self.saw();
                self.break_off(false);
                self.start_next();
            }
            Action::Stop | Action::Kill => {
                self.break_off(false);
                self.start_next();
            }
            Action::KillDuring(_) => unreachable!("it has more than one outcome"),
        }
    }

    fn send(&mut self, text: &str, mode: SendMode) {
        let names =
            self.messages.len() + self.steered.len() + self.dropped.len() + self.queue.len();
        let message = Waiting { name: names, text: text.to_owned(), held: false, mode };
        let Some(run) = &mut self.run else { return self.begin(message) };
        self.queue.push(message);
        if mode == SendMode::Steer {
            run.to_be_told.push(names);
        }
    }

    fn begin(&mut self, message: Waiting) {
        self.messages.push(message.text);
        self.run = Some(Running::default());
    }

    fn start_next(&mut self) {
        if self.run.is_none()
            && let Some(at) = self.queue.iter().position(|it| !it.held)
        {
            let message = self.queue.remove(at);
            self.begin(message);
        }
    }

    fn steer(&mut self, at: usize) {
        let Some(run) = &mut self.run else { return };
        let message = &mut self.queue[at];
        if message.mode == SendMode::Queue {
            message.mode = SendMode::Steer;
            run.to_be_told.push(message.name);
        }
    }

    fn saw(&mut self) {
        self.run.as_mut().unwrap().handed_over.clear();
        self.steered.iter_mut().for_each(|it| it.1 = SteerState::Seen);
    }

    fn hand_over(&mut self) {
        let run = self.run.as_mut().unwrap();
        for name in std::mem::take(&mut run.to_be_told) {
            if let Some(at) = self.queue.iter().position(|it| it.name == name) {
                let message = self.queue.remove(at);
                self.steered.push((message.text.clone(), SteerState::HandedOver));
                run.handed_over.push(message);
            }
        }
    }

    /// Ends the run. Messages that its model has not seen return to the front of the queue.
    fn break_off(&mut self, is_stopped: bool) {
        let Some(run) = self.run.take() else { return };
        self.queue.iter_mut().for_each(|it| it.mode = SendMode::Queue);
        self.steered.truncate(self.steered.len() - run.handed_over.len());
        let back = |it| Waiting { held: is_stopped, mode: SendMode::Queue, ..it };
        self.queue.splice(0..0, run.handed_over.into_iter().map(back));
    }

    /// Returns every state that a kill during this action may lead to.
    fn after_dying_in(&self, action: &Action) -> Vec<Self> {
        let mut worlds = vec![self.clone(), self.after(action)];
        let mut between = self.clone();
        match action {
            // The model's delta was received, but its effect is not in the log.
            Action::Say | Action::Call | Action::Answer => {
                between.saw();
                worlds.push(between.clone());
                // The answer has ended, and the next message has not started.
                if let Action::Answer = action {
                    between.break_off(false);
                    worlds.push(between);
                }
            }
            Action::Release => {
                between.queue.iter_mut().for_each(|it| it.held = false);
                worlds.push(between);
            }
            _ => (),
        }
        worlds.iter().map(|it| it.after(&Action::Kill)).collect()
    }

    fn is_shown_by(&self, transcript: &Transcript) -> bool {
        let queue: Vec<_> = self.queue.iter().map(|it| (&*it.text, it.held, it.mode)).collect();
        let steered: Vec<_> = self.steered.iter().map(|(text, state)| (&**text, *state)).collect();
        let shown = Shown::of(transcript);
        (shown.queue, shown.steered) == (queue, steered)
            && shown.messages == self.messages
            && shown.is_running == self.run.is_some()
    }
}

/// The state that the log shows.
#[derive(Debug)]
struct Shown<'a> {
    queue: Vec<(&'a str, bool, SendMode)>,
    is_running: bool,
    messages: Vec<&'a str>,
    steered: Vec<(&'a str, SteerState)>,
}

impl<'a> Shown<'a> {
    fn of(transcript: &'a Transcript) -> Self {
        let queue = transcript.queue.messages.iter();
        let mut shown = Self {
            queue: queue.map(|it| (&*it.text, it.held, it.mode)).collect(),
            is_running: transcript.summary.open_run.is_some(),
            messages: Vec::new(),
            steered: Vec::new(),
        };
        for message in &transcript.messages {
            match &message.content {
                Content::User(messages) => shown.messages.push(&messages.text),
                Content::Run(answer) => {
                    let steered = answer.parts.iter().filter_map(|part| match &part.kind {
                        PartKind::Steered(it) => Some((&*it.text, it.state)),
                        _ => None,
                    });
                    shown.steered.extend(steered.filter(|it| it.1 != SteerState::Returned));
                }
                Content::Aside(_) => (),
            }
        }
        shown
    }
}

/// The running server with its model service, and the expected state.
struct Stage {
    home: Home,
    model: Model,
    session: String,
    server: Option<Server>,
    watcher: Watcher,
    transcript: Transcript,
    /// The open request to the model.
    asked: Option<Asked>,
    world: World,
    done: Vec<Action>,
    seed: u64,
}

impl Stage {
    async fn new(seed: u64) -> Self {
        let model = Model::start().await;
        let (home, server) = start(&model, "tools = [\"time\"]");
        let session = create_session(&server).await;
        let mut watcher = Watcher::connect(&server).await;
        watcher.subscribe(&session, Seq(0), true).await;
        let (transcript, world) = (Transcript::default(), World::default());
        let (asked, done, server) = (None, Vec::new(), Some(server));
        Self { home, model, session, server, watcher, transcript, asked, world, done, seed }
    }

    fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    /// Chooses a possible action.
    fn choose(&self, random: &mut Random, n: usize) -> Action {
        let waiting = self.world.queue.len();
        // A message that was handed over but not yet seen is in no queue.
        let is_delicate = self.world.run.as_ref().is_some_and(|it| !it.handed_over.is_empty());
        if is_delicate && random.below(3) == 0 {
            return [Action::Stop, Action::Kill, Action::Cancel][random.below(3)].clone();
        }
        let mode = if random.below(3) == 0 { SendMode::Queue } else { SendMode::Steer };
        let new = |random: &mut Random| Action::Send(format!("m{n}.{}", random.below(1000)), mode);
        let action = match random.below(28) {
            0..=4 => new(random),
            6 | 7 if waiting > 0 => Action::Edit(random.below(waiting), format!("e{n}")),
            8 | 9 if waiting > 0 => Action::Move(random.below(waiting), random.below(waiting + 1)),
            10 | 11 if waiting > 0 => Action::Drop(random.below(waiting)),
            12 | 13 if waiting > 0 => Action::Steer(random.below(waiting)),
            14 | 15 => Action::Release,
            16 => Action::Cancel,
            17 if random.below(4) == 0 => Action::Clear,
            18 if random.below(2) == 0 => Action::Stop,
            19 if random.below(2) == 0 => Action::Kill,
            20 if self.asked.is_some() => Action::Say,
            21..=25 if self.asked.is_some() => Action::Call,
            26 | 27 if self.asked.is_some() => Action::Answer,
            _ => new(random),
        };
        match action {
            Action::Stop | Action::Kill => action,
            action if random.below(10) == 0 => Action::KillDuring(Box::new(action)),
            action => action,
        }
    }

    async fn play(&mut self, action: Action) {
        self.done.push(action.clone());
        let before = self.world.clone();
        match &action {
            Action::KillDuring(inner) => {
                self.die_in(inner).await;
                let worlds = before.after_dying_in(inner);
                self.settle(&worlds).await;
            }
            action => {
                let (status, answer) = self.carry_out(action).await;
                let world = before.after(action);
                check_answer(action, &before, &world, status, &answer);
                self.settle(std::slice::from_ref(&world)).await;
            }
        }
        let has_new_run = self.world.messages.len() > before.messages.len();
        if self.world.run.is_none() {
            self.asked = None;
        } else if has_new_run || matches!(action, Action::Call) {
            self.receive_request().await;
        }
    }

    /// Waits for the next request and checks its last message.
    async fn receive_request(&mut self) {
        let run = self.world.run.as_ref().unwrap();
        let mut texts: Vec<&str> = run.handed_over.iter().map(|it| &*it.text).collect();
        if texts.is_empty() {
            texts.push(self.world.messages.last().unwrap());
        }
        let expected = texts.join("\n\n");
        let is_step = matches!(self.done.last(), Some(Action::Call)) && run.handed_over.is_empty();
        loop {
            let asked = self.next_request(self.seed, "a request").await;
            let last = asked.messages().last().unwrap();
            let words = last["content"].as_str().unwrap_or_default();
            // A killed server may have sent requests too. Unanswered messages are merged into one.
            if is_step && last["role"] == "tool" || words.ends_with(&expected) {
                assert_eq!(testkit::strict::check(asked.messages()), Ok(()), "{:#}", asked.body);
                self.asked = Some(asked);
                return;
            }
        }
    }

    async fn next_request(&mut self, seed: u64, what: &str) -> Asked {
        let asked = tokio::time::timeout(TIMEOUT, self.model.asked()).await;
        asked.unwrap_or_else(|_| panic!("seed {seed}: {what} never came; {:#?}", self.done))
    }

    async fn carry_out(&mut self, action: &Action) -> (StatusCode, Value) {
        match action {
            Action::Say => {
                let asked = self.asked.as_mut().unwrap();
                asked.begin().await;
                asked.send_delta(json!({ "content": "word " })).await;
            }
            Action::Call => self.asked.take().unwrap().call("time", &json!({})).await,
            Action::Answer => self.asked.take().unwrap().answer("Done.").await,
            Action::Stop => {
                self.server.take().unwrap().stop();
                self.start_again().await;
            }
            Action::Kill => {
                self.server.take().unwrap().kill();
                self.start_again().await;
            }
            action => return self.ask(action).await,
        }
        (StatusCode::OK, Value::Null)
    }

    async fn ask(&self, action: &Action) -> (StatusCode, Value) {
        let (method, rest, body) = self.request(action);
        let path = format!("/api/sessions/{}/{rest}", self.session);
        self.server().request(method, &path, body).await
    }

    fn request(&self, action: &Action) -> (Method, String, Option<Value>) {
        let of = |at: &usize, rest: &str| {
            format!("queue/{}{rest}", self.transcript.queue.messages[*at].id)
        };
        match action {
            Action::Send(text, mode) => {
                let body = json!({ "text": text, "mode": mode });
                (Method::POST, "messages".to_owned(), Some(body))
            }
            Action::Edit(at, text) => (Method::PATCH, of(at, ""), Some(json!({ "text": text }))),
            Action::Move(at, to) => (Method::PATCH, of(at, ""), Some(json!({ "position": to }))),
            Action::Drop(at) => (Method::DELETE, of(at, ""), None),
            Action::Steer(at) => (Method::POST, of(at, "/steer"), None),
            Action::Release => (Method::POST, "queue/release".to_owned(), None),
            Action::Clear => (Method::DELETE, "queue".to_owned(), None),
            Action::Cancel => (Method::POST, "cancel".to_owned(), None),
            other => unreachable!("nobody asks the server for {other:?}"),
        }
    }

    /// The server may be killed before, during or after the action.
    async fn die_in(&mut self, action: &Action) {
        match action {
            Action::Say | Action::Call | Action::Answer => {
                self.carry_out(action).await;
            }
            action => {
                let (method, rest, body) = self.request(action);
                let path = format!("/api/sessions/{}/{rest}", self.session);
                self.server().send_without_waiting(method, &path, body);
            }
        }
        self.server.take().unwrap().kill();
        self.start_again().await;
    }

    async fn start_again(&mut self) {
        let mut command = self.home.command();
        command.env("MODEL_KEY", "key-of-the-tests").env("TEAM", "ours");
        let server = Server::start(command);
        self.watcher = Watcher::connect(&server).await;
        self.watcher.subscribe(&self.session, self.transcript.head, true).await;
        // The server answers this after it has completed the work in the log.
        let title = format!("started again at {}", self.done.len());
        let path = format!("/api/sessions/{}", self.session);
        server.request(Method::PATCH, &path, Some(json!({ "title": title }))).await;
        while self.transcript.summary.title() != title {
            self.receive_record().await;
        }
        self.server = Some(server);
    }

    async fn receive_record(&mut self) {
        let frame = self.watcher.next().await.expect("the connection should be open");
        if let Some(record) = as_record(&frame) {
            self.transcript.apply(&record);
        }
    }

    /// Waits until the log shows one of these states.
    async fn settle(&mut self, worlds: &[World]) {
        let seen = tokio::time::timeout(TIMEOUT, async {
            loop {
                let shown = worlds.iter().find(|it| it.is_shown_by(&self.transcript));
                if let Some(world) = shown {
                    return world.clone();
                }
                self.receive_record().await;
            }
        });
        match seen.await {
            Ok(world) => self.world = world,
            Err(_) => panic!(
                "seed {}: {:#?}\nafter {:#?}\nthe log shows {:#?}\nand should show {worlds:#?}",
                self.seed,
                self.done.last(),
                self.done,
                Shown::of(&self.transcript),
            ),
        }
    }
}

/// Checks that the response says what became of the message.
fn check_answer(
    action: &Action,
    before: &World,
    after: &World,
    status: StatusCode,
    answer: &Value,
) {
    match action {
        Action::Send(_, mode) => {
            let state = match (before.run.is_some(), mode) {
                (false, _) => "started",
                (true, SendMode::Queue) => "queued",
                (true, SendMode::Steer) => "steering",
            };
            assert_eq!((status, &answer["state"]), (StatusCode::ACCEPTED, &json!(state)));
        }
        Action::Steer(_) if before.run.is_none() => {
            assert_eq!(
                (status, &answer["error"]["code"]),
                (StatusCode::CONFLICT, &json!("cannot_steer"))
            );
        }
        Action::Steer(_) => assert_eq!(answer["state"], "steering"),
        Action::Cancel => {
            assert_eq!(answer["cancelled"], json!(before.run.is_some()));
            assert!(after.run.is_none());
        }
        _ => assert!(status.is_success(), "{action:?}: {answer}"),
    }
}

#[expect(clippy::print_stdout, reason = "a failure is shown with its seed")]
async fn run_random_actions(seed: u64) {
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let mut stage = Stage::new(seed).await;
    for n in 0..DEEDS {
        let action = stage.choose(&mut random, n);
        stage.play(action).await;
    }
    stage.play(Action::Release).await;
    while stage.world.run.is_some() {
        stage.play(Action::Answer).await;
    }
    let World { queue, messages, steered, dropped, .. } = &stage.world;
    assert!(queue.is_empty(), "{queue:?}");
    let mut texts: Vec<&String> = messages.iter().chain(dropped).collect();
    texts.extend(steered.iter().map(|it| &it.0));
    let n_texts = texts.len();
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), n_texts, "each message went one way");
    check_log(&stage.server().log(&stage.session).await, |_| false);
    assert!(stage.model.took_no_request(), "nothing else was asked");
}

#[tokio::test]
async fn no_message_is_lost_and_none_runs_twice() {
    for seed in 1..=SEEDS {
        run_random_actions(seed).await;
    }
}
