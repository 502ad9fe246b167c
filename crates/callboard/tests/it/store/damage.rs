//! A data folder that disappears or is damaged: errors say what to do, and the rest is still
//! served.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::program::{Home, output};

#[tokio::test]
async fn a_removed_data_folder_is_detected() {
    for what in [".", "callboard.db", "callboard.db-wal"] {
        let home = Home::instant();
        let server = home.start();
        let session = server.create_session().await;
        assert_eq!(server.get("/healthz").await, "ok");
        let path = home.data().join(what);
        match what {
            "." => std::fs::remove_dir_all(home.data()).unwrap(),
            _ => std::fs::remove_file(path).unwrap(),
        }
        // The damage is found without a write.
        server.wait_for_log("removed or replaced");
        let (status, health) = server.request(Method::GET, "/healthz", None).await;
        assert_eq!(status, StatusCode::INSUFFICIENT_STORAGE, "{what}: {health}");
        assert!(!health.to_string().contains("callboard.db"), "anybody may ask: {health}");

        let path = format!("/api/sessions/{session}/messages");
        let (status, refused) = server.post(&path, json!({ "text": "time in Lima" })).await;
        let (code, message) = (&refused["error"]["code"], &refused["error"]["message"]);
        assert_eq!((status, code), (StatusCode::INSUFFICIENT_STORAGE, &json!("storage")), "{what}");
        let message = message.as_str().unwrap();
        assert!(
            message.contains("removed or replaced") && message.contains("/api/backup"),
            "{message}"
        );
        let saved = home.workspace().join("saved.db");
        let (status, made) = server.post("/api/backup", json!({ "file": saved })).await;
        assert_eq!(status, StatusCode::OK, "{what}: {made}");
    }
}

#[tokio::test]
async fn the_doctor_reports_damage_and_the_remedy() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    for _ in 0..20 {
        server.send(&session, &"many words ".repeat(200)).await;
    }
    server.stop();
    let doctor = || output(home.command().arg("doctor"));
    let (_, report, _) = doctor();
    assert!(report.contains("no damage found"), "{report}");

    let file = home.data().join("callboard.db");
    let database = OpenOptions::new().write(true).open(&file).unwrap();
    let n_pages = database.metadata().unwrap().len() / 4096;
    for page in n_pages / 2..n_pages {
        database.write_all_at(&[0; 4096], page * 4096).unwrap();
    }
    let (ok, report, _) = doctor();
    assert!(!ok && report.contains("PROBLEM database"), "{report}");
    assert!(
        report.contains("callboard.db is damaged") && report.contains("restore a backup"),
        "{report}"
    );

    std::fs::write(&file, "").unwrap();
    let (ok, report, _) = doctor();
    assert!(!ok && report.contains("is empty, but"), "{report}");
    let (ok, _, refused) = output(&mut home.command());
    assert!(!ok && refused.contains("is empty, but"), "{refused}");
}
