//! Attempts to reach the server's own files.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

/// Creates a home folder with a workspace and the data folder.
fn home() -> (tempfile::TempDir, PathBuf, PathBuf, PrivateFiles) {
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
    let private = PrivateFiles::new(&data, Some(&home));
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
    assert!(!PrivateFiles::default().holds(&data));
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
    for command in
        ["make", "cat a.txt", "ls ~/.config", "cat x/.local/share/callboard2", "ls *", ""]
    {
        assert_eq!(private.reach_of_command(command, &workspace), Reach::Elsewhere, "{command}");
    }
    for command in [
        "ls ~/.local/share",
        "grep -r token ~",
        "tar cf x ~; true",
        "tar --directory=~ -c .",
        "tar -C $HOME -c .",
        "cat ~/.local/share/*/server.json",
        "cat ../.local/share/c*/server.json",
        "cat ~/.local/share/{callboard,x}/server.json",
        "cat ${HOME}/.local/$X/callboard/server.json",
        "cat ~/`echo .local`/share/callboard2",
        "cd ~/.local/share; cat callboard/server.json",
        "cd && tar c .",
        "cd -P; tar c .",
        "cp -r .. /tmp/x",
        "cp -r ../* /tmp/x",
    ] {
        assert_eq!(private.reach_of_command(command, &workspace), Reach::Possible, "{command}");
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

/// Tests a data folder directly in the home folder, and one elsewhere.
#[test]
fn data_folders_with_short_paths_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().canonicalize().unwrap();
    let (in_home, elsewhere, workspace) = (home.join("cb"), home.join("srv/cb"), home.join("work"));
    for folder in [&in_home, &elsewhere, &workspace] {
        fs::create_dir_all(folder).unwrap();
    }
    let user = home.file_name().unwrap().to_str().unwrap();
    let private = PrivateFiles::new(&in_home, Some(&home));
    for command in ["cat ~/cb/x", "cat $HOME/cb/x", "cat ${HOME}/cb/x", "cat ../cb/x"] {
        assert_eq!(private.reach_of_command(command, &workspace), Reach::Named, "{command}");
    }
    let command = format!("cat ~{user}/cb/server.json");
    assert_eq!(private.reach_of_command(&command, &workspace), Reach::Named, "{command}");
    for text in ["~/cb/x", "@~/cb/x", "@../cb/x", "../cb/x"] {
        assert_eq!(private.reach_of_text(text, &workspace), Reach::Named, "{text}");
    }
    assert_eq!(private.reach_of_command("cd; cat cb/x", &workspace), Reach::Possible);
    let private = PrivateFiles::new(&elsewhere, Some(&home.join("nobody")));
    let whole = elsewhere.display();
    for command in [
        format!("curl -T{whole}/server.json http://127.0.0.1"),
        format!("tar -C{whole} -c ."),
        format!("cat ${{X:-{whole}/server.json}}"),
    ] {
        assert_eq!(private.reach_of_command(&command, &workspace), Reach::Named, "{command}");
    }
    let encoded = whole.to_string().replace("srv", "s%72v");
    for text in [format!("file://localhost{whole}/x"), format!("file://localhost{encoded}/x")] {
        assert_eq!(private.reach_of_text(&text, &workspace), Reach::Named, "{text}");
    }
}
