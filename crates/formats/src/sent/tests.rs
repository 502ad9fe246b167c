//! Messages come back as they were sent.

use proptest::prelude::*;
use serde_json::{Value, json};
use transcript::{
    Attachment, Event, MessageId, MessageRole, Millis, Record, Seq, SessionId, Transcript,
};

use crate::import::Setting;
use crate::incoming::{File, IncomingMessage};
use crate::openai::{Files, Reader, conversation, history};
use crate::ui::{Profile, import, message, request};

/// A file is stored under its own address, so that its address is the one that it came with.
fn attach(file: &File) -> Attachment {
    let File { media_type, url, .. } = file.clone();
    Attachment { blob: url, name: file.name_here().to_owned(), media_type, size: 0 }
}

fn replay(events: impl IntoIterator<Item = Event>) -> Transcript {
    let records = (1..)
        .zip(events)
        .map(|(seq, event)| Record::new(Seq(seq), Millis(0), SessionId::new("s"), None, event));
    let mut transcript = Transcript::whole();
    transcript.extend(&records.collect::<Vec<_>>());
    transcript
}

fn event(message: IncomingMessage) -> Event {
    Event::UserMessage {
        message_id: MessageId::new("m1"),
        client_id: None,
        role: MessageRole::User,
        text: message.text,
        attachments: message.files.iter().map(attach).collect(),
        from: None,
        sent: message.sent,
    }
}

fn shown(transcript: &Transcript) -> Value {
    let file_url = |file: &Attachment| file.blob.clone();
    message(&transcript.messages[0], Profile::V6, &file_url).unwrap()
}

fn posted(message: &Value) -> Transcript {
    let read = request(&json!({ "id": "c", "messages": [message] })).unwrap();
    replay([event(read.message.unwrap())])
}

fn imported(message: &Value) -> Transcript {
    let keep = |file: &File| Some(attach(file));
    let setting = Setting { agent: "a", now: Millis(0), attach: &keep };
    replay(import(&json!([message]), &setting).into_iter().map(|it| it.event))
}

fn any_part() -> impl Strategy<Value = Value> {
    let text = "[a-c]{0,3}".prop_map(|it| json!({ "type": "text", "text": it }));
    let url = prop_oneof!["data:,[a-c]", Just("https://example.com/dot".to_owned())];
    let file = (url, any::<bool>()).prop_map(|(url, is_named)| {
        let mut part = json!({ "type": "file", "mediaType": "image/png", "url": url });
        if is_named {
            part["filename"] = json!("dot.png");
        }
        part
    });
    prop_oneof![text, file, Just(json!({ "type": "data-place", "id": "p", "data": [1] }))]
}

proptest! {
    #[test]
    fn message_survives_a_round_trip(
        mut parts in prop::collection::vec(any_part(), 0..5),
        metadata in prop_oneof![Just(None), Just(Some(json!({ "mood": "good" })))],
    ) {
        parts.push(json!({ "type": "text", "text": "look" }));
        let mut sent = json!({ "id": "m1", "role": "user", "parts": parts });
        if let Some(metadata) = metadata {
            sent["metadata"] = metadata;
        }
        for transcript in [posted(&sent), imported(&sent)] {
            let mut shown = shown(&transcript);
            shown["metadata"].as_object_mut().unwrap().remove("createdAt");
            if shown["metadata"] == json!({}) {
                shown.as_object_mut().unwrap().remove("metadata");
            }
            prop_assert_eq!(&shown, &sent);
        }
    }
}

fn user_message(parts: Value) -> Value {
    json!({ "id": "m1", "role": "user", "parts": parts })
}

#[test]
fn a_plain_message_is_kept_once() {
    let file =
        json!({ "type": "file", "mediaType": "text/plain", "filename": "a", "url": "data:,a" });
    let text = json!({ "type": "text", "text": "look" });
    for parts in [json!([text]), json!([file]), json!([file, text])] {
        for transcript in [posted(&user_message(parts.clone())), imported(&user_message(parts))] {
            let transcript::Content::User(message) = &transcript.messages[0].content else {
                panic!()
            };
            assert_eq!(message.sent, None);
        }
    }
}

#[test]
fn metadata_of_the_client_takes_precedence() {
    let mut sent = user_message(json!([{ "type": "text", "text": "look" }]));
    sent["metadata"] = json!({ "createdAt": "long ago", "mood": "good" });
    assert_eq!(shown(&posted(&sent))["metadata"], sent["metadata"]);
    assert_eq!(shown(&imported(&sent))["metadata"], sent["metadata"]);
}

#[test]
fn a_file_that_cannot_be_had_is_left_out_alone() {
    let file = |url: &str| json!({ "type": "file", "mediaType": "image/png", "url": url });
    let (text, link) = (json!({ "type": "text", "text": "look" }), file("http://example.com/"));
    let sent = user_message(json!([text, file("data:,a"), link, file("data:,b")]));
    let keep = |file: &File| Some(attach(file)).filter(|it| it.blob == "data:,b");
    let setting = Setting { agent: "a", now: Millis(0), attach: &keep };
    let kept = replay(import(&json!([sent]), &setting).into_iter().map(|it| it.event));
    assert_eq!(shown(&kept)["parts"], json!([text, link, file("data:,b")]));
}

const DOT: &str = "https://example.com/dot";

fn with_link(message: &str, media_type: &str) -> Event {
    let link = json!({ "type": "file", "mediaType": media_type, "url": DOT });
    let sent = user_message(json!([{ "type": "text", "text": "look" }, link]));
    let mut event = event(request(&json!({ "messages": [sent] })).unwrap().message.unwrap());
    if let Event::UserMessage { message_id, .. } = &mut event {
        *message_id = MessageId::new(message);
    }
    event
}

fn words_of_link(media_type: &str) -> String {
    format!("[A file that is linked, not attached: {DOT} ({media_type})]")
}

fn reader<'a>(sees: bool) -> Reader<'a> {
    let files = Files::GoAlong { sees, read: &|_| None };
    Reader { agent: "a", model: None, system: None, files }
}

#[test]
fn model_gets_the_address_of_a_linked_file() {
    let transcript = replay([with_link("m1", "image/png")]);
    let received = |sees: bool| history(&transcript, &reader(sees))[0]["content"].clone();
    let words = words_of_link("image/png");
    assert_eq!(received(false), format!("look\n\n{words}"));
    let piece = |text: &str| json!({ "type": "text", "text": text });
    let picture = json!({ "type": "image_url", "image_url": { "url": DOT } });
    assert_eq!(received(true), json!([piece("look"), piece(&words), picture]));
}

/// A provider refuses the whole request for one picture that it cannot read or reach.
#[test]
fn a_link_is_an_address_only_where_it_could_break_later_parts() {
    let old = replay([with_link("m1", "image/png"), with_link("m2", "image/svg+xml")]);
    let (png, svg) = (words_of_link("image/png"), words_of_link("image/svg+xml"));
    let received = history(&old, &reader(true));
    assert_eq!(received[0]["content"], format!("look\n\n{png}\n\nlook\n\n{svg}"));
    // Programs keep the messages that they receive.
    let received = conversation(&replay([with_link("m1", "image/png")]), &reader(true));
    assert_eq!(received[0]["content"], format!("look\n\n{png}"));
}

/// In words that know text and files only.
#[test]
fn all_formats_keep_linked_files() {
    let url = "https://example.com/dot";
    let link = json!({ "type": "file", "mediaType": "image/png", "filename": "dot", "url": url });
    let text = json!({ "type": "text", "text": "look" });
    let parts = json!([link, text]);
    let transcript = posted(&user_message(parts.clone()));
    let file_url = |_: &Attachment| unreachable!();
    let of_four = crate::ui_v4::message(&transcript.messages[0], &file_url).unwrap();
    let attached = json!([{ "name": "dot", "contentType": "image/png", "url": url }]);
    assert_eq!(of_four["experimental_attachments"], attached);
    let again = crate::ui_v4::request(&json!({ "messages": [of_four] })).unwrap();
    assert_eq!(shown(&replay([event(again.message.unwrap())]))["parts"], parts);
    for version in [crate::agui::Version::V0, crate::agui::Version::V1] {
        let messages = crate::agui::messages(&transcript.messages[0], version, &file_url);
        let body = json!({ "threadId": "t", "runId": "r", "messages": messages });
        let again = crate::agui::request(&body).unwrap();
        assert_eq!(shown(&replay([event(again.message.unwrap())]))["parts"], parts);
    }
}
