//! The wishes of each message, one line per message.

use expect_test::{Expect, expect};

use super::{MAX_WISHES, Wish, understand};

#[test]
fn times() {
    check(
        &[
            "What time is it?",
            "time in Tokyo",
            "What's the time in new york now, please",
            "what time is it in Paris and Tokyo",
            "time in Paris, Rio de Janeiro and Atlantis",
            "Time in Europe/Paris. Thanks!",
            "what is the time in UTC",
        ],
        expect![[r#"
            What time is it?
                time{}
            time in Tokyo
                time{"zone":"Asia/Tokyo"}
            What's the time in new york now, please
                time{"zone":"America/New_York"}
            what time is it in Paris and Tokyo
                time{"zone":"Europe/Paris"}
                time{"zone":"Asia/Tokyo"}
            time in Paris, Rio de Janeiro and Atlantis
                time{"zone":"Europe/Paris"}
                time{"zone":"America/Sao_Paulo"}
                time{"zone":"Atlantis"}
            Time in Europe/Paris. Thanks!
                time{"zone":"Europe/Paris"}
            what is the time in UTC
                time{}"#]],
    );
}

#[test]
fn tools_of_the_client() {
    check(
        &[
            "use the client tool pick_colour",
            "please use the client tool pick_colour with {\"of\": \"wall\", \"and\": [1]}",
            "use the client tool pick_colour with care",
            "use the client tool",
            "use the client tool two words",
            "use the tool pick_colour",
        ],
        expect![[r#"
            use the client tool pick_colour
                pick_colour{}
            please use the client tool pick_colour with {"of": "wall", "and": [1]}
                pick_colour{"of":"wall","and":[1]}
            use the client tool pick_colour with care
                NotUnderstood { said: "use the client tool pick_colour with care" }
            use the client tool
                NotUnderstood { said: "use the client tool" }
            use the client tool two words
                NotUnderstood { said: "use the client tool two words" }
            use the tool pick_colour
                NotUnderstood { said: "use the tool pick_colour" }"#]],
    );
}

#[test]
fn agents_and_notes() {
    check(
        &[
            "list the agents",
            "Which agents are there?",
            "list files in agents",
            "list the agents, then read a.txt",
            "note: tea, then cake. And: more",
            "Note:",
            "take note: tea",
        ],
        expect![[r#"
            list the agents
                agents_list{}
            Which agents are there?
                agents_list{}
            list files in agents
                list_files{"path":"agents"}
            list the agents, then read a.txt
                agents_list{}
                read_file{"path":"a.txt"}
            note: tea, then cake. And: more
                callboard_note{"text":"tea, then cake. And: more"}
            Note:
                NotUnderstood { said: "Note" }
            take note: tea
                NotUnderstood { said: "take note tea" }"#]],
    );
}

#[test]
fn files() {
    check(
        &[
            "list the files",
            "LIST FILES IN src",
            "ls",
            "ls ..",
            "ls -la docs",
            "show me the files in `my folder`",
            "what files are there?",
            "list src and docs",
            "read README.md.",
            "Show me the file \"a b.txt\"",
            "cat 'notes.txt'; open src/main.rs",
            "read a.txt and b.txt then c.txt",
            "show me what you can do",
        ],
        expect![[r#"
            list the files
                list_files{"path":"."}
            LIST FILES IN src
                list_files{"path":"src"}
            ls
                list_files{"path":"."}
            ls ..
                list_files{"path":".."}
            ls -la docs
                list_files{"path":"docs"}
            show me the files in `my folder`
                list_files{"path":"my folder"}
            what files are there?
                list_files{"path":"."}
            list src and docs
                list_files{"path":"src"}
                list_files{"path":"docs"}
            read README.md.
                read_file{"path":"README.md"}
            Show me the file "a b.txt"
                read_file{"path":"a b.txt"}
            cat 'notes.txt'; open src/main.rs
                read_file{"path":"notes.txt"}
                read_file{"path":"src/main.rs"}
            read a.txt and b.txt then c.txt
                read_file{"path":"a.txt"}
                read_file{"path":"b.txt"}
                read_file{"path":"c.txt"}
            show me what you can do
                NotUnderstood { said: "show me what you can do" }"#]],
    );
}

#[test]
fn searches() {
    check(
        &[
            "search for TODO",
            "find \"some words\" in docs",
            "grep fn src",
            "grep main",
            "search src for the word time",
            "look for needles in the files",
            "search for foo and bar in src",
            "find 'in' in src",
            "search for \"a.b(c)\"",
            "search for",
        ],
        expect![[r#"
            search for TODO
                search_files{"query":"TODO"}
            find "some words" in docs
                search_files{"query":"some words","path":"docs"}
            grep fn src
                search_files{"query":"fn","path":"src"}
            grep main
                search_files{"query":"main"}
            search src for the word time
                search_files{"query":"time","path":"src"}
            look for needles in the files
                search_files{"query":"needles"}
            search for foo and bar in src
                search_files{"query":"foo"}
                search_files{"query":"bar","path":"src"}
            find 'in' in src
                search_files{"query":"in","path":"src"}
            search for "a.b(c)"
                search_files{"query":"a\\.b\\(c\\)"}
            search for
                NotUnderstood { said: "search for" }"#]],
    );
}

#[test]
fn words() {
    check(
        &[
            "think about life and death",
            "Think, then list the files",
            "tell me a story about time",
            "tell me a story",
            "write a report",
            "Write a report about cats, dogs and birds. What time is it?",
            "break",
            "help",
            "What can you do?",
            "good morning",
            "Hello, what time is it?",
            "please fix the bug",
        ],
        expect![[r#"
            think about life and death
                Think { about: "life and death" }
            Think, then list the files
                Think { about: "this" }
                list_files{"path":"."}
            tell me a story about time
                Story { about: Some("time") }
            tell me a story
                Story { about: None }
            write a report
                Report { about: None }
            Write a report about cats, dogs and birds. What time is it?
                Report { about: Some("cats and dogs and birds") }
                time{}
            break
                Break
            help
                Help
            What can you do?
                Help
            good morning
                Greeting
            Hello, what time is it?
                time{}
            please fix the bug
                NotUnderstood { said: "please fix the bug" }"#]],
    );
}

#[test]
fn several() {
    check(
        &["What time is it in Paris and list the files, then read notes.txt and search for plan."],
        expect![[r#"
            What time is it in Paris and list the files, then read notes.txt and search for plan.
                time{"zone":"Europe/Paris"}
                list_files{"path":"."}
                read_file{"path":"notes.txt"}
                search_files{"query":"plan"}"#]],
    );
}

#[test]
fn nothing() {
    for message in ["", "  \n", "thank you", "please, and thanks!"] {
        assert_eq!(understand(message), []);
    }
}

#[test]
fn long_messages_are_cut() {
    let wishes = understand(&"ls; ".repeat(1000));
    assert_eq!(wishes.len(), MAX_WISHES + 1);
    assert_eq!(wishes.last(), Some(&Wish::TooMany));
}

#[track_caller]
fn check(messages: &[&str], expect: Expect) {
    let lines: Vec<String> = messages.iter().map(|it| show(it)).collect();
    expect.assert_eq(&lines.join("\n"));
}

fn show(message: &str) -> String {
    let wishes: Vec<String> = understand(message)
        .iter()
        .map(|wish| match wish {
            Wish::Call(call) => format!("{}{}", call.tool_name(), call.arguments()),
            other => format!("{other:?}"),
        })
        .collect();
    format!("{message}\n    {}", wishes.join("\n    "))
}

#[test]
fn a_topic_can_refer_to_an_earlier_clause() {
    check(
        &["think about lighthouses, then write a report about them", "write a report about it"],
        expect![[r#"
            think about lighthouses, then write a report about them
                Think { about: "lighthouses" }
                Report { about: Some("lighthouses") }
            write a report about it
                Report { about: Some("it") }"#]],
    );
}
