//! Assembles tool calls from fragments, for every provider's use of indexes, ids and names.
//!
//! A fragment belongs to the call with its index, or else with its id, or else to the last call. It begins a
//! new call if it has a name and that call is complete. A call keeps its first id and its first name. The
//! cost of a fragment does not depend on the length of the arguments.
//!
//! Calls are emitted in the order of their indexes: a call that arrives too early is held back until the
//! calls before it have begun, or until something other than a call arrives.

/// Number of bytes of arguments above which a tool call is no longer held back for a call with a
/// lower index, because the model service seems to number its calls differently.
const HELD_MAX: usize = 4096;

/// A fragment of a tool call, as the model service sent it.
#[derive(Debug, Default)]
pub(super) struct Fragment<'a> {
    pub(super) index: Option<u64>,
    pub(super) id: &'a str,
    pub(super) name: &'a str,
    pub(super) arguments: &'a str,
    /// Position of the fragment in the list of tool calls of its chunk.
    pub(super) position: usize,
}

/// Change of a tool call by a fragment. The number is the index into [`Calls::calls`].
#[derive(Debug, PartialEq)]
pub(super) enum CallUpdate {
    /// The tool call has begun, and its name no longer changes.
    Started(usize),
    /// The arguments of the tool call have grown by this text.
    Grown(usize, String),
}

#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Tool calls of the answer in the order of their arrival.
    pub(super) calls: Vec<Call>,
    /// Indexes into `calls`, in the order in which the tool calls were emitted.
    emitted: Vec<usize>,
    /// Index of the model service that the next tool call to emit should have.
    next_index: u64,
    /// Whether something other than a tool call came after the last fragment. A new name or id then
    /// begins another call.
    interrupted: bool,
}

#[derive(Debug, Default)]
pub(super) struct Call {
    index: Option<u64>,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
    /// Data that the model service requires back with the tool call.
    pub(super) extra: Option<serde_json::Value>,
    json: JsonEnd,
    /// Whether the tool call has its complete name.
    is_named: bool,
    /// Position of the tool call among the emitted ones, from zero. `None` before it is emitted.
    number: Option<usize>,
    /// Number of bytes of the arguments that were emitted. `None` before the tool call is emitted.
    emitted: Option<usize>,
}

impl Calls {
    /// Adds a fragment, and returns the index of its tool call. `None` if the fragment repeats a
    /// whole call.
    pub(super) fn add(
        &mut self,
        fragment: &Fragment<'_>,
        update: &mut Vec<CallUpdate>,
    ) -> Option<usize> {
        let idx = match self.find(fragment) {
            Some(idx) if self.calls[idx].is_repeated_by(fragment) => return None,
            Some(idx) if !self.begins_another(&self.calls[idx], fragment) => idx,
            _ => self.begin(fragment, update),
        };
        self.interrupted = false;
        self.calls[idx].add(fragment);
        self.update(idx, update);
        Some(idx)
    }

    /// Notes that something other than a tool call arrived. The names so far are complete, and
    /// named calls that were held back are emitted.
    pub(super) fn interrupt(&mut self, update: &mut Vec<CallUpdate>) {
        self.interrupted = true;
        self.settle_names(update);
        self.update_held(|call| call.is_named, update);
    }

    /// Emits the tool calls that are left at the end of the answer, even those without a name.
    pub(super) fn finish(&mut self, update: &mut Vec<CallUpdate>) {
        self.update_held(|_| true, update);
        for idx in 0..self.calls.len() {
            self.update_now(idx, update);
        }
    }

    /// Returns the model service's id of a tool call. `None` if the call has no id, or if an
    /// earlier call has the same id.
    pub(super) fn provider_id(&self, idx: usize) -> Option<&str> {
        let id = self.calls[idx].id.as_str();
        let mut before = self.emitted.iter().take_while(|it| **it != idx);
        let is_taken = before.any(|&it| self.calls[it].id == id);
        (!id.is_empty() && !is_taken).then_some(id)
    }

    /// Returns the position of a tool call among the emitted ones, from zero.
    pub(super) fn number(&self, idx: usize) -> usize {
        self.calls[idx].number.unwrap_or_default()
    }

    pub(super) fn in_order(&self) -> impl Iterator<Item = &Call> {
        self.emitted.iter().map(|&idx| &self.calls[idx])
    }

    fn find(&self, fragment: &Fragment<'_>) -> Option<usize> {
        let last = |wanted: &dyn Fn(&Call) -> bool| self.calls.iter().rposition(wanted);
        if fragment.index.is_some() {
            return last(&|call| call.index == fragment.index);
        }
        if let Some(idx) = last(&|call| !fragment.id.is_empty() && call.id == fragment.id) {
            return Some(idx);
        }
        // Each entry of a list is a call of its own, and a name with a new id begins a call.
        let is_new =
            fragment.position > 0 || (!fragment.id.is_empty() && !fragment.name.is_empty());
        (!is_new).then(|| self.calls.len().checked_sub(1)).flatten()
    }

    fn begins_another(&self, call: &Call, fragment: &Fragment<'_>) -> bool {
        if fragment.name.is_empty() {
            return false;
        }
        let id_is_new = !fragment.id.is_empty() && !call.id.is_empty() && fragment.id != call.id;
        let name_is_new = !call.name.is_empty() && fragment.name != call.name;
        let is_complete = call.json.is_complete();
        (name_is_new && (is_complete || id_is_new))
            || (is_complete && fragment.arguments.trim_start().starts_with('{'))
            || (self.interrupted && (id_is_new || name_is_new))
    }

    fn begin(&mut self, fragment: &Fragment<'_>, update: &mut Vec<CallUpdate>) -> usize {
        self.settle_names(update);
        self.calls.push(Call { index: fragment.index, ..Call::default() });
        self.calls.len() - 1
    }

    /// Emits the changes of a tool call, if they may be emitted. A name may arrive in fragments, so
    /// it is complete only when arguments or something else follows.
    fn update(&mut self, idx: usize, update: &mut Vec<CallUpdate>) {
        let call = &mut self.calls[idx];
        call.is_named |= !call.name.is_empty() && !call.arguments.is_empty();
        self.update_in_order(idx, update);
    }

    fn settle_names(&mut self, update: &mut Vec<CallUpdate>) {
        // The names of earlier calls were settled when the last call began.
        if let Some(idx) = self.calls.len().checked_sub(1)
            && !self.calls[idx].name.is_empty()
        {
            self.calls[idx].is_named = true;
            self.update_in_order(idx, update);
        }
    }

    /// Emits a tool call, and the calls that were held back for it, unless a call with a lower
    /// index is missing.
    fn update_in_order(&mut self, idx: usize, update: &mut Vec<CallUpdate>) {
        if !self.may_begin(idx) {
            return;
        }
        self.update_now(idx, update);
        while self.emitted.len() < self.calls.len() {
            let held = (0..self.calls.len()).filter(|&it| self.calls[it].number.is_none());
            let next = held.filter(|&it| self.may_begin(it)).min_by_key(|&it| self.calls[it].index);
            let Some(next) = next else { return };
            self.update_now(next, update);
        }
    }

    fn may_begin(&self, idx: usize) -> bool {
        let Call { index, is_named, number, arguments, .. } = &self.calls[idx];
        let is_next = index.is_none_or(|it| it <= self.next_index) || arguments.len() > HELD_MAX;
        number.is_some() || (*is_named && is_next)
    }

    fn update_held(&mut self, wanted: impl Fn(&Call) -> bool, update: &mut Vec<CallUpdate>) {
        let held = |it: &usize| self.calls[*it].number.is_none() && wanted(&self.calls[*it]);
        let mut held: Vec<usize> = (0..self.calls.len()).filter(held).collect();
        held.sort_by_key(|&it| self.calls[it].index);
        held.into_iter().for_each(|it| self.update_now(it, update));
    }

    fn update_now(&mut self, idx: usize, update: &mut Vec<CallUpdate>) {
        let call = &mut self.calls[idx];
        if call.number.is_none() {
            call.number = Some(self.emitted.len());
            self.emitted.push(idx);
            self.next_index = self.next_index.max(call.index.map_or(0, |it| it.saturating_add(1)));
        }
        call.update(idx, update);
    }
}

impl Call {
    pub(super) fn is_complete(&self) -> bool {
        self.json.is_complete() || self.arguments.trim().is_empty()
    }

    fn add(&mut self, fragment: &Fragment<'_>) {
        if self.id.is_empty() {
            fragment.id.clone_into(&mut self.id);
        }
        let may_grow = self.emitted.is_none() && self.arguments.is_empty();
        if self.name.is_empty() || (may_grow && self.name != fragment.name) {
            self.name.push_str(fragment.name);
        }
        self.arguments.push_str(fragment.arguments);
        self.json.feed(fragment.arguments);
    }

    /// Returns whether the fragment repeats the whole tool call, as some services send it again
    /// after streaming it.
    fn is_repeated_by(&self, fragment: &Fragment<'_>) -> bool {
        let same_id = fragment.id == self.id || (fragment.id.is_empty() && !self.id.is_empty());
        same_id
            && !self.id.is_empty()
            && fragment.name == self.name
            && self.json.is_complete()
            && fragment.arguments == self.arguments
    }

    fn update(&mut self, idx: usize, update: &mut Vec<CallUpdate>) {
        if self.emitted.is_none() {
            update.push(CallUpdate::Started(idx));
        }
        let emitted = self.emitted.unwrap_or(0);
        if emitted < self.arguments.len() {
            update.push(CallUpdate::Grown(idx, self.arguments[emitted..].to_owned()));
        }
        self.emitted = Some(self.arguments.len());
    }
}

/// Detects where the JSON object or list of a tool call's arguments ends, byte by byte.
#[derive(Debug, Default)]
struct JsonEnd {
    depth: usize,
    in_string: bool,
    escaped: bool,
    state: JsonState,
}

#[derive(Debug, Default, PartialEq)]
enum JsonState {
    #[default]
    Before,
    Within,
    Complete,
    /// The text is not one JSON object or list: other text precedes or follows it.
    Broken,
}

impl JsonEnd {
    fn is_complete(&self) -> bool {
        self.state == JsonState::Complete
    }

    fn feed(&mut self, text: &str) {
        for byte in text.bytes() {
            match self.state {
                JsonState::Within if self.in_string => self.within_string(byte),
                JsonState::Within => self.within(byte),
                _ if byte.is_ascii_whitespace() => (),
                JsonState::Before if matches!(byte, b'{' | b'[') => {
                    (self.state, self.depth) = (JsonState::Within, 1);
                }
                _ => self.state = JsonState::Broken,
            }
        }
    }

    fn within_string(&mut self, byte: u8) {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' => self.escaped = true,
            b'"' => self.in_string = false,
            _ => (),
        }
    }

    fn within(&mut self, byte: u8) {
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth -= 1;
                if self.depth == 0 {
                    self.state = JsonState::Complete;
                }
            }
            _ => (),
        }
    }
}
