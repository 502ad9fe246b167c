//! Look-ups in the store on behalf of commands.

use session::{Found, Lookup};
use store::{MessageKind, MessageRow, Store, Window};
use transcript::{MessageId, Record, RunMessage, SessionId};

use super::Driver;

/// Maximum number of messages that are read from the store to find an answer.
const ROWS_READ: usize = 50;

impl Driver {
    pub(super) async fn find(&mut self, lookup: Lookup) -> Result<Found, store::Error> {
        let (store, id) = (&self.parts.store, &self.id);
        Ok(match lookup {
            Lookup::MessageOfClient(key) => {
                Found::Message(store.message_of_client_id(id, &key).await?)
            }
            Lookup::MessageOfPerson(named) => {
                let row = store.message_row(id, named.as_str()).await?;
                let is_said = |it: &MessageRow| it.kind == MessageKind::Said && !it.superseded;
                Found::Message(row.filter(is_said).map(|it| MessageId::new(it.id)))
            }
            Lookup::LastAnswer => Found::Answer(last_answer(store, id).await?),
            Lookup::AnswerAt(named) => Found::Answer(answer_at(store, id, &named).await?),
            Lookup::Call(call_id) => {
                let run = call_id.run_to_search();
                let stored = store.records_of_run(id, &run).await?;
                let records: Vec<Record> = stored.iter().map(store::Stored::record).collect();
                let message = RunMessage::replay(&run, &records);
                Found::Call(message.call(&call_id).cloned().map(Box::new))
            }
            Lookup::Grant(covers) => Found::Granted(store.is_granted(&covers).await?),
        })
    }
}

/// Returns the id of the answer at the end of the conversation. `None` if the last message is not
/// an answer or is superseded.
async fn last_answer(store: &Store, id: &SessionId) -> Result<Option<String>, store::Error> {
    let window = Window { before: None, limit: ROWS_READ };
    let mut rows = store.messages(id, window).await?.into_iter();
    let last = rows.rfind(|it| it.kind != MessageKind::Aside);
    Ok(last.filter(is_answer).filter(|it| !it.superseded).map(|it| it.id))
}

/// Returns the id of the answer with this id, or of the answer to the message with this id. `None`
/// if there is none or it is superseded.
async fn answer_at(
    store: &Store,
    id: &SessionId,
    named: &str,
) -> Result<Option<String>, store::Error> {
    let Some(named) = store.message_row(id, named).await? else {
        return Ok(None);
    };
    if named.kind == MessageKind::Answer {
        return Ok(Some(named).filter(|it| !it.superseded).map(|it| it.id));
    }
    let window = store.window_after(id, named.first, ROWS_READ).await?;
    let rows = store.messages(id, window).await?.into_iter();
    let mut counting = rows.filter(|it| !it.superseded && it.first > named.first);
    Ok(counting.find(|it| it.kind != MessageKind::Aside).filter(is_answer).map(|it| it.id))
}

fn is_answer(row: &MessageRow) -> bool {
    row.kind == MessageKind::Answer
}
