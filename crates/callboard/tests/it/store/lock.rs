//! One data folder has one writer, and a second process is told which one.

use std::io::Read;
use std::process::Stdio;

use crate::support::program::{Home, output};
use crate::support::watcher::{is_quiet, watch_until};

#[tokio::test]
async fn a_second_server_says_who_holds_the_folder() {
    let home = Home::instant();
    let server = home.start();
    let (ok, stdout, stderr) = output(&mut home.command());
    assert!(!ok && stdout.is_empty());
    assert!(stderr.contains(&format!("process {}", server.pid())), "{stderr}");
    assert!(stderr.contains("callboard serve") && stderr.contains(&server.base), "{stderr}");
    server.stop();
    home.start().stop();
}

#[tokio::test]
async fn a_command_uses_the_running_server_or_the_data_folder() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    server.send(&session, "read a.txt").await;
    watch_until(&server, &session, is_quiet).await;
    let log: Vec<String> = server.log(&session).await.iter().map(|it| it.to_json()).collect();
    let log = log.join("\n") + "\n";

    let (ok, while_running, stderr) = output(home.command().args(["export", &session]));
    assert!(ok, "{stderr}");
    assert_eq!(while_running, log);
    server.stop();
    let (ok, afterwards, stderr) = output(home.command().args(["export", &session]));
    assert!(ok, "{stderr}");
    assert_eq!(afterwards, log);
    let (ok, _, stderr) = output(home.command().args(["export", "none"]));
    assert!(!ok && stderr.contains("there is no session none"), "{stderr}");
}

#[tokio::test]
async fn a_server_says_which_command_holds_the_folder() {
    let home = Home::instant();
    let server = home.start();
    let session = server.create_session().await;
    // A pipe holds less than this, so the export cannot finish before its output is read.
    server.send(&session, &"long ".repeat(100_000)).await;
    watch_until(&server, &session, is_quiet).await;
    server.stop();

    let mut export = home.command();
    let mut export = export.args(["export", &session]).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = export.stdout.take().unwrap();
    stdout.read_exact(&mut [0]).unwrap();
    let (ok, _, stderr) = output(&mut home.command());
    assert!(!ok, "the server must not start");
    assert!(stderr.contains("callboard export"), "{stderr}");
    assert!(stderr.contains(&format!("process {}", export.id())), "{stderr}");

    stdout.read_to_end(&mut Vec::new()).unwrap();
    assert!(export.wait().unwrap().success());
    home.start().stop();
}
