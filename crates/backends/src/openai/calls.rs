//! Tool calls put together from their pieces, whatever the provider makes of indexes, ids and names.
//!
//! A piece belongs to the call of its index, else of its id, else to the last call. It begins a
//! call of its own where a name says so and what is there already is complete. The first id and the
//! first name stand. Costs the same for a piece however long the arguments are.
//!
//! Calls are told in the order of their indexes: one that comes too early is held back until those before
//! it have begun, or until something else is said.

/// Bytes of arguments after which a call is no longer held back for one with a lower index: the service
/// numbers its calls differently.
const HELD_MAX: usize = 4096;

/// A piece of a call, as it came.
#[derive(Debug, Default)]
pub(super) struct Piece<'a> {
    pub(super) index: Option<u64>,
    pub(super) id: &'a str,
    pub(super) name: &'a str,
    pub(super) arguments: &'a str,
    /// Its place in the list that it came in.
    pub(super) position: usize,
}

/// What a piece did.
#[derive(Debug, PartialEq)]
pub(super) enum News {
    /// A call is known by its name.
    Started(usize),
    Grown(usize, String),
}

#[derive(Debug, Default)]
pub(super) struct Calls {
    /// In the order in which they came.
    pub(super) calls: Vec<Call>,
    /// The same in the order in which they were told.
    told: Vec<usize>,
    /// The index that the next call should have.
    next_index: u64,
    /// Text came after the last piece: a name begins another call.
    interrupted: bool,
}

#[derive(Debug, Default)]
pub(super) struct Call {
    index: Option<u64>,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
    /// What the provider wants back with the call.
    pub(super) extra: Option<serde_json::Value>,
    json: JsonEnd,
    /// Nothing will be added to its name.
    is_named: bool,
    /// Its position among the emitted calls.
    number: Option<usize>,
    /// How much of the arguments has been told; nothing before the call is known by its name.
    told: Option<usize>,
}

impl Calls {
    /// Gives the call's number, unless the piece repeats what is there.
    pub(super) fn add(&mut self, piece: &Piece<'_>, tell: &mut Vec<News>) -> Option<usize> {
        let idx = match self.find(piece) {
            Some(idx) if self.calls[idx].is_repeated_by(piece) => return None,
            Some(idx) if !self.begins_another(&self.calls[idx], piece) => idx,
            _ => self.begin(piece, tell),
        };
        self.interrupted = false;
        self.calls[idx].add(piece);
        self.tell(idx, tell);
        Some(idx)
    }

    /// Something else came: whatever name a call has by now is its name.
    pub(super) fn interrupt(&mut self, tell: &mut Vec<News>) {
        self.interrupted = true;
        self.settle_names(tell);
        self.tell_held(|call| call.is_named, tell);
    }

    /// The end: calls that never got a name are told too.
    pub(super) fn finish(&mut self, tell: &mut Vec<News>) {
        self.tell_held(|_| true, tell);
        for idx in 0..self.calls.len() {
            self.tell_now(idx, tell);
        }
    }

    /// An id that the provider gave to two calls names only the first.
    pub(super) fn provider_id(&self, idx: usize) -> Option<&str> {
        let id = self.calls[idx].id.as_str();
        let mut before = self.told.iter().take_while(|it| **it != idx);
        let is_taken = before.any(|&it| self.calls[it].id == id);
        (!id.is_empty() && !is_taken).then_some(id)
    }

    /// From zero, in the order in which they were told.
    pub(super) fn number(&self, idx: usize) -> usize {
        self.calls[idx].number.unwrap_or_default()
    }

    pub(super) fn in_order(&self) -> impl Iterator<Item = &Call> {
        self.told.iter().map(|&idx| &self.calls[idx])
    }

    fn find(&self, piece: &Piece<'_>) -> Option<usize> {
        let last = |wanted: &dyn Fn(&Call) -> bool| self.calls.iter().rposition(wanted);
        if piece.index.is_some() {
            return last(&|call| call.index == piece.index);
        }
        if let Some(idx) = last(&|call| !piece.id.is_empty() && call.id == piece.id) {
            return Some(idx);
        }
        // In one list each entry is a call; and so is a name under an id not seen before.
        let is_new = piece.position > 0 || (!piece.id.is_empty() && !piece.name.is_empty());
        (!is_new).then(|| self.calls.len().checked_sub(1)).flatten()
    }

    fn begins_another(&self, call: &Call, piece: &Piece<'_>) -> bool {
        if piece.name.is_empty() {
            return false;
        }
        let id_is_new = !piece.id.is_empty() && !call.id.is_empty() && piece.id != call.id;
        let name_is_new = !call.name.is_empty() && piece.name != call.name;
        let is_complete = call.json.is_complete();
        (name_is_new && (is_complete || id_is_new))
            || (is_complete && piece.arguments.trim_start().starts_with('{'))
            || (self.interrupted && (id_is_new || name_is_new))
    }

    fn begin(&mut self, piece: &Piece<'_>, tell: &mut Vec<News>) -> usize {
        self.settle_names(tell);
        self.calls.push(Call { index: piece.index, ..Call::default() });
        self.calls.len() - 1
    }

    /// A name may come in pieces, so it is settled only by arguments or by what comes after it.
    fn tell(&mut self, idx: usize, tell: &mut Vec<News>) {
        let call = &mut self.calls[idx];
        call.is_named |= !call.name.is_empty() && !call.arguments.is_empty();
        self.tell_in_order(idx, tell);
    }

    fn settle_names(&mut self, tell: &mut Vec<News>) {
        // Earlier ones were settled when the last began.
        if let Some(idx) = self.calls.len().checked_sub(1)
            && !self.calls[idx].name.is_empty()
        {
            self.calls[idx].is_named = true;
            self.tell_in_order(idx, tell);
        }
    }

    /// Emits a call, and the calls held back for it, unless one with a lower index is still missing.
    fn tell_in_order(&mut self, idx: usize, tell: &mut Vec<News>) {
        if !self.may_begin(idx) {
            return;
        }
        self.tell_now(idx, tell);
        while self.told.len() < self.calls.len() {
            let held = (0..self.calls.len()).filter(|&it| self.calls[it].number.is_none());
            let next = held.filter(|&it| self.may_begin(it)).min_by_key(|&it| self.calls[it].index);
            let Some(next) = next else { return };
            self.tell_now(next, tell);
        }
    }

    fn may_begin(&self, idx: usize) -> bool {
        let Call { index, is_named, number, arguments, .. } = &self.calls[idx];
        let is_next = index.is_none_or(|it| it <= self.next_index) || arguments.len() > HELD_MAX;
        number.is_some() || (*is_named && is_next)
    }

    fn tell_held(&mut self, wanted: impl Fn(&Call) -> bool, tell: &mut Vec<News>) {
        let held = |it: &usize| self.calls[*it].number.is_none() && wanted(&self.calls[*it]);
        let mut held: Vec<usize> = (0..self.calls.len()).filter(held).collect();
        held.sort_by_key(|&it| self.calls[it].index);
        held.into_iter().for_each(|it| self.tell_now(it, tell));
    }

    fn tell_now(&mut self, idx: usize, tell: &mut Vec<News>) {
        let call = &mut self.calls[idx];
        if call.number.is_none() {
            call.number = Some(self.told.len());
            self.told.push(idx);
            self.next_index = self.next_index.max(call.index.map_or(0, |it| it.saturating_add(1)));
        }
        call.tell(idx, tell);
    }
}

impl Call {
    pub(super) fn is_complete(&self) -> bool {
        self.json.is_complete() || self.arguments.trim().is_empty()
    }

    fn add(&mut self, piece: &Piece<'_>) {
        if self.id.is_empty() {
            piece.id.clone_into(&mut self.id);
        }
        let may_grow = self.told.is_none() && self.arguments.is_empty();
        if self.name.is_empty() || (may_grow && self.name != piece.name) {
            self.name.push_str(piece.name);
        }
        self.arguments.push_str(piece.arguments);
        self.json.feed(piece.arguments);
    }

    /// Some send the whole call again once it has been streamed.
    fn is_repeated_by(&self, piece: &Piece<'_>) -> bool {
        let same_id = piece.id == self.id || (piece.id.is_empty() && !self.id.is_empty());
        same_id
            && !self.id.is_empty()
            && piece.name == self.name
            && self.json.is_complete()
            && piece.arguments == self.arguments
    }

    fn tell(&mut self, idx: usize, tell: &mut Vec<News>) {
        if self.told.is_none() {
            tell.push(News::Started(idx));
        }
        let told = self.told.unwrap_or(0);
        if told < self.arguments.len() {
            tell.push(News::Grown(idx, self.arguments[told..].to_owned()));
        }
        self.told = Some(self.arguments.len());
    }
}

/// Notices where a JSON object or list ends, byte by byte.
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
    /// Something follows that does not belong to it.
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
