//! The page, rendered on the server so that it is readable without script.

pub(crate) mod assets;

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use axum::extract::State;
use render::{
    Grants, ListedAgent, ListedGrant, ListedServer, ListedSession, OpenSession, Page, SearchHit,
    SearchResults, SessionList, Settings, UnknownMessages,
};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{Query, Store, Window};
use transcript::{Message, Millis, Seq, SessionId, SessionState, Summary, Transcript};

use crate::api::sessions::{cursor, parse_cursor};
use crate::error::HttpError;
use crate::extract::{Params, SessionPath};
use crate::html::{Html, PageError};
use runtime::Sessions;
use runtime::agents::AgentCatalog;
use runtime::agents::tool_catalog::{McpServerInfo, ToolCatalog, grant_id};
use runtime::draw_pool::{DrawPool, in_place};
use runtime::export::page_settings;
use runtime::import::ImportFormat;
use runtime::live::page_context::PageContext;
use runtime::live::window::{self, Opened};

pub(crate) const LISTED: usize = 100;
const MESSAGES: usize = render::WINDOW;
const HITS: usize = 50;
const GRANTS: usize = 200;
/// Limit for the weight of the messages on one page, see [`render::weight`]. The last message may exceed it.
const PAGE_BYTES: usize = 2 * 1024 * 1024;

/// The parts of the server that pages show or use.
#[derive(Clone)]
pub(crate) struct PageState {
    pub(crate) store: Store,
    pub(crate) sessions: Sessions,
    pub(crate) agents: AgentCatalog,
    pub(crate) tools: ToolCatalog,
    pub(crate) context: Arc<PageContext>,
    pub(crate) draws: DrawPool,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct HomeParams {
    /// Whether to list archived sessions instead of the others.
    #[serde(default)]
    archived: bool,
    /// Cursor of the session list, as in the link at the end of the previous page.
    before: Option<String>,
    /// Text to search for in all sessions.
    q: Option<String>,
    part: Option<HomePart>,
    /// Id of the session whose grants are listed in addition to the grants for all sessions.
    session: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum HomePart {
    /// Return only the search results.
    Found,
    /// Return only the list of grants.
    Grants,
}

pub(crate) async fn home(
    State(server): State<PageState>,
    params: Result<Params<HomeParams>, HttpError>,
) -> Result<Html, PageError> {
    let Params(HomeParams { archived, before, q, part, session }) = params?;
    if let Some(HomePart::Grants) = part {
        return Ok(Html::new(render::grants_page(
            &listed_grants(&server, session.as_deref()).await?,
        )));
    }
    let before = before.as_deref().map(parse_cursor).transpose()?;
    let search = match q.filter(|it| !it.trim().is_empty()) {
        Some(words) => Some(search(&server, words).await?),
        None => None,
    };
    let list = ListPart { archived, before, ..ListPart::default() };
    let permit = server.draws.permit().await;
    let search = match (part, search) {
        (Some(HomePart::Found), Some(found)) => {
            let draw = move || Html::new(render::search_results_page(&found));
            return Ok(permit.draw(draw).await);
        }
        (_, search) => search,
    };
    let mut page = PageData::load(&server, &list).await?;
    page.sessions.search = search;
    Ok(permit.draw(move || page.draw(None)).await)
}

/// Reads the newest grants for all sessions, and the grants of one session.
async fn listed_grants(server: &PageState, session: Option<&str>) -> Result<Grants, store::Error> {
    let session = session.and_then(SessionId::parse);
    let summary = match &session {
        Some(session) => server.store.summary(session).await?,
        None => None,
    };
    let of_session = |(covers, _): (String, Millis)| {
        let session = session.as_ref().map(SessionId::as_str).unwrap_or_default();
        let address = format!("/api/sessions/{session}/grants/{}", grant_id(&covers));
        ListedGrant { address, covers }
    };
    let granted = summary.map(|(it, _)| it.granted).unwrap_or_default();
    let (always, n_always) = server.store.newest_grants(GRANTS).await?;
    let of_all = |it: store::Grant| {
        let address = format!("/api/grants/{}", it.id);
        ListedGrant { address, covers: it.covers }
    };
    Ok(Grants {
        session: granted.into_iter().take(GRANTS).map(of_session).collect(),
        always: always.into_iter().map(of_all).collect(),
        n_always: u64::try_from(n_always).unwrap_or_default(),
    })
}

async fn search(server: &PageState, words: String) -> Result<SearchResults, store::Error> {
    let query =
        Query { text: words.clone(), session: None, archived: None, limit: HITS, before: None };
    let found = server.store.search(query).await?.hits;
    let sessions: HashSet<SessionId> = found.iter().map(|it| it.session.clone()).collect();
    let summaries = server.store.summaries(sessions.into_iter().collect()).await?.into_iter();
    let titles: HashMap<SessionId, String> =
        summaries.map(|(id, summary, _)| (id, summary.title().to_owned())).collect();
    let hits = found.into_iter().map(|hit| SearchHit {
        title: titles.get(&hit.session).cloned().unwrap_or_default(),
        session: hit.session,
        message_id: hit.message_id,
        at: hit.at,
        snippet: hit.snippet,
    });
    Ok(SearchResults { hits: hits.collect(), words })
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct PageParams {
    /// Show the session as it was at this record number.
    at: Option<u64>,
    /// Show the newest messages that begin before this record number.
    before: Option<u64>,
    /// Show the oldest messages that begin after this record number.
    after: Option<u64>,
    /// Show the message with this id and the messages after it.
    message: Option<String>,
    part: Option<PagePart>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum PagePart {
    /// Return only the messages of the session.
    Messages,
}

pub(crate) async fn session(
    State(server): State<PageState>,
    named: Result<SessionPath, HttpError>,
    params: Result<Params<PageParams>, HttpError>,
) -> Result<Html, PageError> {
    let (SessionPath(id), Params(params)) = (named?, params?);
    let permit = server.draws.permit().await;
    let opened = params.read(&server.store, &id).await?;
    let opened = opened.ok_or_else(|| HttpError::no_session(id.as_str()))?;
    let unknown = unknown(&server, &opened.shown.transcript.summary).await?;
    let page = match params.part {
        Some(PagePart::Messages) => None,
        None => Some(PageData::load(&server, &ListPart::default()).await?),
    };
    let draw = move || draw_session(&server.context, &id, opened.fit(), page, params.at, unknown);
    Ok(permit.draw(draw).await)
}

/// Renders a session's page, or only its messages if `page` is `None`.
fn draw_session(
    context: &PageContext,
    id: &SessionId,
    (shown, end): (Opened, Option<Opened>),
    page: Option<PageData>,
    at: Option<u64>,
    unknown: Option<UnknownMessages>,
) -> Html {
    let open = OpenSession {
        view: context.view_of(id, &shown.transcript.summary),
        transcript: &shown.transcript,
        end: &end.as_ref().unwrap_or(&shown).transcript,
        earlier: shown.earlier.map(|it| it.0),
        later: shown.later.map(|it| it.0),
        at,
        pulse: context.pulse_of(id, &shown.transcript).filter(|_| at.is_none()),
        unknown,
    };
    match page {
        Some(page) => page.draw(Some(open)),
        None => Html::new(render::messages_page(&open)),
    }
}

impl PageParams {
    /// Reads the messages that the page of a session shows. `None` if there is no such session.
    async fn read(
        &self,
        store: &Store,
        session: &SessionId,
    ) -> Result<Option<ReadMessages>, store::Error> {
        let (window, keep) = self.window(store, session).await?;
        let end = Window { before: None, limit: MESSAGES };
        if let Some(at) = self.at {
            let past = window::read_all(store, session, Some(Seq(at)), Transcript::default());
            return Ok(past.await?.map(|past| {
                in_place(|| ReadMessages {
                    shown: window::cut(past.clone(), window),
                    end: Some(window::cut(past, end)),
                    keep,
                })
            }));
        }
        if window.before.is_none() || self.part.is_some() {
            let read = window::read(store, session, window).await?;
            return Ok(read.map(|shown| ReadMessages { shown, end: None, keep }));
        }
        let both = window::read_both(store, session, [window, end]).await?;
        Ok(both.map(|[shown, end]| ReadMessages { shown, end: Some(end), keep }))
    }

    /// Returns the window of messages that the page of a session shows, and the end of it that is
    /// kept if it exceeds the size limit. If the requested position does not exist, returns the end
    /// of the session.
    async fn window(
        &self,
        store: &Store,
        session: &SessionId,
    ) -> Result<(Window, Keep), store::Error> {
        let window = match (self.after, &self.message) {
            (Some(after), _) => Some(store.window_after(session, Seq(after), MESSAGES).await?),
            (None, Some(message)) => store.window_from(session, message, MESSAGES).await?,
            (None, None) => None,
        };
        if let Some(window) = window.filter(|it| it.limit > 0) {
            return Ok((window, Keep::First));
        }
        Ok((Window { before: self.before.map(Seq), limit: MESSAGES }, Keep::Last))
    }
}

/// End of a window of messages that is kept if the window exceeds the size limit of a page.
#[derive(Clone, Copy)]
enum Keep {
    First,
    Last,
}

/// The messages that were read for the page of a session.
struct ReadMessages {
    shown: Opened,
    /// Messages at the end of the session, if the page shows another part of it.
    end: Option<Opened>,
    keep: Keep,
}

impl ReadMessages {
    /// Removes messages beyond the size limit of a page, but never the requested message. The
    /// page's outline and totals still include all messages.
    fn fit(self) -> (Opened, Option<Opened>) {
        let Self { shown, end, keep } = self;
        let messages = &shown.transcript.messages;
        let mut budget = PAGE_BYTES;
        let fits = |message: &&Message| {
            let fits = budget > 0;
            budget = budget.saturating_sub(render::weight(message));
            fits
        };
        let n_shown = match keep {
            Keep::First => messages.iter().take_while(fits).count(),
            Keep::Last => messages.iter().rev().take_while(fits).count(),
        };
        if n_shown == messages.len() {
            return (shown, end);
        }
        let mut fitting = shown.clone();
        match keep {
            Keep::First => {
                fitting.transcript.messages.truncate(n_shown);
                fitting.later = fitting.transcript.messages.last().map(|it| it.first);
            }
            Keep::Last => {
                fitting.transcript.drop_earlier(messages.len() - n_shown);
                fitting.earlier = fitting.transcript.messages.first().map(|it| it.first);
            }
        }
        (fitting, end.or(Some(shown)))
    }
}

/// Data that every complete page shows: settings, sessions, agents and MCP servers.
struct PageData {
    settings: Settings,
    sessions: SessionList,
    agents: Vec<ListedAgent>,
    servers: Vec<ListedServer>,
}

fn listed_server(server: McpServerInfo) -> ListedServer {
    let (state, problem) = (server.in_words(), server.error);
    ListedServer { id: server.id, state, problem }
}

impl PageData {
    async fn load(server: &PageState, part: &ListPart) -> Result<Self, store::Error> {
        Ok(Self {
            settings: page_settings(&server.store).await?,
            sessions: listed_sessions(server, part).await?,
            agents: server.agents.listed(),
            servers: server.tools.mcp_servers().into_iter().map(listed_server).collect(),
        })
    }

    fn draw(&self, open: Option<OpenSession<'_>>) -> Html {
        let Self { settings, sessions, agents, servers } = self;
        let imports = &ImportFormat::all();
        let text = render::page(&Page { settings, sessions, agents, servers, imports, open });
        Html::new(text).with_remote_pictures(settings.remote_images)
    }
}

/// Returns the kinds of messages of the session's program version that Callboard does not recognise.
async fn unknown(
    server: &PageState,
    summary: &Summary,
) -> Result<Option<UnknownMessages>, store::Error> {
    let linked = summary.linked.as_ref();
    let Some(version) = linked.map(|it| it.version.clone().unwrap_or_default()) else {
        return Ok(None);
    };
    let Some(name) = server.agents.program_name(&summary.agent) else { return Ok(None) };
    let all = server.store.unrecognized().await?.into_iter();
    let kinds = all.filter(|it| it.agent == summary.agent && it.version == version);
    let kinds: Vec<String> = kinds.map(|it| format!("{} ({})", it.kind, it.n)).collect();
    let program = format!("{name} {version}").trim_end().to_owned();
    Ok((!kinds.is_empty()).then_some(UnknownMessages { program, kinds }))
}

/// Selection of the sessions that a page of the session list shows.
#[derive(Clone)]
pub(crate) struct ListPart {
    pub(crate) archived: bool,
    pub(crate) before: Option<(Millis, SessionId)>,
    pub(crate) limit: usize,
}

impl Default for ListPart {
    fn default() -> Self {
        Self { archived: false, before: None, limit: LISTED }
    }
}

pub(crate) async fn listed_sessions(
    server: &PageState,
    part: &ListPart,
) -> Result<SessionList, store::Error> {
    let ListPart { archived, before, limit } = part;
    let listed = server.store.sessions(Some(*archived), *limit, before.clone()).await?;
    let last = listed.last().filter(|_| listed.len() == *limit);
    let more = last.map(|(id, summary, _)| {
        let archived = if *archived { "archived=true&" } else { "" };
        format!("/?{archived}before={}", cursor(id, summary))
    });
    let waits = |summary: &Summary| summary.state() == SessionState::Waiting;
    let attention = server.store.needing_attention().await?.into_iter();
    let waiting = attention.filter(|(_, summary, _)| waits(summary));
    let mut waiting: Vec<_> =
        waiting.map(|(id, summary, _)| listed_session(server, id, summary)).collect();
    waiting.sort_by_key(|it| Reverse(it.updated_at));
    let others = listed.into_iter().filter(|(_, summary, _)| !waits(summary));
    let sessions = others.map(|(id, summary, _)| listed_session(server, id, summary)).collect();
    Ok(SessionList { waiting, sessions, archived: *archived, more, search: None })
}

fn listed_session(server: &PageState, id: SessionId, summary: Summary) -> ListedSession {
    ListedSession {
        title: summary.title().to_owned(),
        state: summary.state(),
        archived: summary.archived,
        pending_deletion: server.sessions.is_pending_deletion(&id),
        updated_at: summary.updated_at,
        agent: summary.agent,
        id,
    }
}
