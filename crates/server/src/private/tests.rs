//! Every way to the server's own files that we could think of.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

/// A home folder with a workspace and the data folder in it.
fn home() -> (tempfile::TempDir, PathBuf, PathBuf, Private) {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().canonicalize().unwrap();
    let (data, workspace) = (home.join(".local/share/callboard"), home.join("work"));
    fs::create_dir_all(data.join("shipped")).unwrap();
    fs::create_dir(&workspace).unwrap();
    fs::write(data.join("server.json"), "token").unwrap();
    symlink(&data, workspace.join("link")).unwrap();
    symlink("../.local/share/callboard/new", workspace.join("dangling")).unwrap();
    fs::hard_link(data.join("server.json"), workspace.join("hard")).unwrap();
    fs::write(workspace.join("a.txt"), "").unwrap();
    let private = Private::new(&data, Some(&home));
    (dir, data, workspace, private)
}

#[test]
fn private_files_are_known_by_every_name() {
    let (_dir, data, workspace, private) = home();
    for path in [
        data.clone(),
        data.join("server.json"),
        data.join("not/there"),
        workspace.join("link"),
        workspace.join("link/shipped/x"),
        workspace.join("dangling"),
        workspace.join("hard"),
        workspace.join("../.local/./share/callboard"),
    ] {
        assert!(private.holds(&path), "{}", path.display());
    }
    for path in ["", "a.txt", "..", "missing", "../.local/share", "../.local/share/callboard2"] {
        assert!(!private.holds(&workspace.join(path)), "{path}");
    }
    assert!(!Private::default().holds(&data));
}

#[test]
fn commands_that_name_private_files_are_found() {
    let (_dir, data, workspace, private) = home();
    let whole = data.display();
    for command in [
        format!("cat {whole}/server.json"),
        format!("sh -c 'cat {whole}/password'"),
        format!("X={whole}; ls $X"),
        "cat ~/.local/share/callboard/server.json".to_owned(),
        "cat $HOME/.local/share/callboard/server.json".to_owned(),
        "cd; cat .local/share/callboard/server.json".to_owned(),
        "cat ../.local/share/callboard/server.json".to_owned(),
        "cat ../.local/share/call\"board\"/server.json".to_owned(),
        "cat ../.local/share/call\\board/server.json".to_owned(),
        "cat<link/server.json".to_owned(),
        "head -c 9 hard".to_owned(),
        "cp --from=link/server.json x".to_owned(),
    ] {
        assert_eq!(private.reach_of_command(&command, &workspace), Reach::Named, "{command}");
    }
    for command in ["make", "cat a.txt", "ls ~/.local/share", "cat x/.local/share/callboard2", ""] {
        assert_eq!(private.reach_of_command(command, &workspace), Reach::Elsewhere, "{command}");
    }
    let long = "x ".repeat(MAX_SEARCHED);
    assert_eq!(private.reach_of_command(&long, &workspace), Reach::Possible);
    assert_eq!(private.reach_of_text("link/server.json", &workspace), Reach::Named);
    assert_eq!(private.reach_of_text("see link/server.json", &workspace), Reach::Elsewhere);
}

#[test]
fn workspace_around_the_data_folder_is_near() {
    let (dir, data, workspace, private) = home();
    for (folder, expected) in [(dir.path(), true), (&data, true), (&data.join("x"), true)] {
        assert_eq!(private.is_near(folder), expected, "{}", folder.display());
    }
    assert!(!private.is_near(&workspace));
}
