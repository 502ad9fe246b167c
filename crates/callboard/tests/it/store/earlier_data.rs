//! Data folders of earlier versions: every session reads and looks as it did then.
//!
//! `e2e/earlier_data.mjs` made the folders, with the responses of the version of that time. After
//! an intended change of the page's text, run with `UPDATE_EXPECT=1`; records and messages never
//! change.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::program::{Home, Server};

const AGENTS: &str =
    "[[agents]]\nid = \"demo\"\nkind = \"demo\"\n[[agents]]\nid = \"b\"\nkind = \"demo\"\n";

fn folders() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/data");
    all.read_dir().unwrap().map(|it| it.unwrap().path()).collect()
}

/// Returns the ids of the sessions that the folder has files of.
fn sessions(folder: &Path) -> Vec<String> {
    let files = folder.read_dir().unwrap().map(|it| it.unwrap().path());
    let pages = files.filter(|it| it.extension().is_some_and(|it| it == "html"));
    pages.map(|it| it.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

async fn text(server: &Server, path: &str) -> String {
    let request = tools::http_client().get(format!("{}{path}", server.base));
    let answer = request.bearer_auth(crate::support::program::TOKEN).send().await.unwrap();
    assert!(answer.status().is_success(), "{path}");
    answer.text().await.unwrap()
}

#[tokio::test]
async fn sessions_of_earlier_versions_are_unchanged() {
    for folder in folders() {
        let home = Home::new(AGENTS);
        std::fs::create_dir_all(home.data()).unwrap();
        std::fs::copy(folder.join("callboard.db"), home.data().join("callboard.db")).unwrap();
        let server = home.start();
        let sessions = sessions(&folder);
        assert!(sessions.len() >= 20, "{sessions:?}");
        for id in sessions {
            let kept = |ending: &str| folder.join(format!("{id}.{ending}"));
            let records = text(&server, &format!("/api/sessions/{id}/export?format=jsonl")).await;
            assert_eq!(records, std::fs::read_to_string(kept("jsonl")).unwrap(), "{id}");
            let messages = text(&server, &format!("/api/sessions/{id}/messages?limit=1000")).await;
            let expected = std::fs::read_to_string(kept("json")).unwrap();
            let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            assert_eq!(parsed(&messages), parsed(&expected), "{id}");
            let page = text(&server, &format!("/api/sessions/{id}/export?format=html")).await;
            let body = &page[page.find("<body").unwrap()..];
            expect_test::expect_file![kept("html")].assert_eq(body);
        }
    }
}
