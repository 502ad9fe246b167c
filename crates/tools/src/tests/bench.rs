//! A workspace for tests, next to a file that no tool may read.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use backends::ToolOutcome;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};
use transcript::{CallId, ErrorCode, ErrorInfo, Millis, ResponseId, SessionId};

use crate::{
    Peer, PeerMessage, PeerReply, Peers, PreparedCall, PrivateFiles, Stopped, ToolContext,
    ToolSettings, ToolUpdate, Tools, tool_error,
};

pub(super) struct Bench {
    folder: TempDir,
    pub(super) context: ToolContext,
    pub(super) stop: watch::Sender<bool>,
    pub(super) news: mpsc::Receiver<ToolUpdate>,
    pub(super) tools: Tools,
}

/// A server with no other agents.
struct Alone;

impl Peers for Alone {
    fn list<'a>(&'a self, _: &'a SessionId) -> BoxFuture<'a, Result<Vec<Peer>, ErrorInfo>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn message<'a>(
        &'a self,
        _: PeerMessage,
        _: &'a Stopped,
    ) -> BoxFuture<'a, Result<PeerReply, ErrorInfo>> {
        Box::pin(async { Err(tool_error("There is nobody else.")) })
    }
}

impl Bench {
    /// Creates a workspace next to `outside/secret.txt`.
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("workspace")).unwrap();
        fs::create_dir(folder.path().join("outside")).unwrap();
        fs::write(folder.path().join("outside/secret.txt"), "secret\n").unwrap();
        let (stop, stopped) = watch::channel(false);
        let (tell, news) = mpsc::channel(10_000);
        fs::create_dir(folder.path().join("data")).unwrap();
        let context = ToolContext {
            session_id: SessionId::new("s"),
            response_id: ResponseId::new("r"),
            peers: Arc::new(Alone),
            // Identifies the processes of the call by their environment.
            call_id: CallId::new(folder.path().display().to_string()),
            workspace: folder.path().join("workspace"),
            private: PrivateFiles::new(&folder.path().join("data"), None),
            now: Millis::parse("2026-11-15T09:44:28Z").unwrap(),
            stopped: Stopped(stopped),
            updates: tell,
        };
        Self { folder, context, stop, news, tools: Tools::built_in(ToolSettings::for_tests()) }
    }

    pub(super) fn with(files: &[(&str, &str)]) -> Self {
        let bench = Self::new();
        for (path, text) in files {
            bench.write(path, text);
        }
        bench
    }

    pub(super) fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub(super) fn link(&self, path: &str, target: impl AsRef<Path>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }

    /// Alternately places each of these at a path, as fast as possible, while the work runs.
    pub(super) fn while_swapping(&self, place: &str, things: [&str; 2], work: impl FnOnce()) {
        let (place, things) = (self.path(place), things.map(|it| self.path(it)));
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    for thing in &things {
                        // The work may have created a folder there.
                        if fs::rename(thing, &place).is_err() {
                            let _ = fs::remove_dir_all(&place);
                            continue;
                        }
                        fs::rename(&place, thing).unwrap();
                    }
                }
            });
            work();
            is_done.store(true, Ordering::Relaxed);
        });
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.context.workspace.join(path)
    }

    pub(super) fn outside(&self) -> PathBuf {
        self.folder.path().join("outside")
    }

    pub(super) async fn run(&self, tool: &str, arguments: &str) -> ToolOutcome {
        let call = self.tools.prepare(tool, arguments, &self.context.workspace);
        self.start(&call).await
    }

    /// Runs a prepared call in the folder that it was judged for.
    pub(super) async fn start(&self, call: &PreparedCall) -> ToolOutcome {
        let workspace = call.parsed().root().to_owned();
        self.tools.run(call, ToolContext { workspace, ..self.context.clone() }).await
    }

    pub(super) async fn ok(&self, tool: &str, arguments: &str) -> Value {
        let outcome = self.run(tool, arguments).await;
        assert!(outcome.ok && outcome.error.is_none(), "{outcome:?}");
        outcome.result
    }

    pub(super) async fn error(&self, tool: &str, arguments: &str) -> (ErrorCode, String) {
        let outcome = self.run(tool, arguments).await;
        assert!(!outcome.ok && outcome.result.is_null(), "{outcome:?}");
        let error = outcome.error.unwrap();
        (error.code, error.message)
    }

    /// The message of a `tool_error`.
    pub(super) async fn refusal(&self, tool: &str, arguments: &str) -> String {
        let (code, message) = self.error(tool, arguments).await;
        assert_eq!(code, ErrorCode::ToolError, "{message}");
        message
    }
}
