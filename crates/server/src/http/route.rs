//! A route: its address, what answers there, and what is said about it.

use std::future::Future;

use axum::handler::Handler;
use axum::http::{Method, StatusCode};
use axum::routing::{MethodFilter, MethodRouter, on};
use schemars::json_schema;

use super::App;
use super::error::RequestCode;
use super::openapi::{Gives, Operation, Takes};

pub(super) struct Route {
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) summary: &'static str,
    pub(super) handler: MethodRouter<App>,
    /// What the handler's own types say.
    describe_handler: fn(&mut Operation<'_>),
    /// What they do not say.
    refusals: &'static [RequestCode],
    answers: Vec<(StatusCode, &'static str)>,
}

impl Route {
    fn new<H, T, D>(
        method: Method,
        filter: MethodFilter,
        path: &'static str,
        handler: H,
        summary: &'static str,
    ) -> Self
    where
        H: Handler<T, App> + Described<D>,
        T: 'static,
    {
        let handler = on(filter, handler);
        let describe_handler = H::describe;
        Self {
            method,
            path,
            summary,
            handler,
            describe_handler,
            refusals: &[],
            answers: Vec::new(),
        }
    }

    /// Codes that the handler itself may refuse with.
    pub(super) fn refuses(mut self, codes: &'static [RequestCode]) -> Self {
        self.refusals = codes;
        self
    }

    /// For a handler that puts its answer together by hand; without a body if the type is empty. More
    /// than once for one that answers in different ways.
    pub(super) fn gives(mut self, status: StatusCode, media_type: &'static str) -> Self {
        self.answers.push((status, media_type));
        self
    }

    /// A name for generated clients: `get_api_sessions`.
    pub(super) fn id(&self) -> String {
        let path = if self.path == "/" { "home" } else { self.path };
        let words = path.split(|c: char| !c.is_ascii_alphanumeric());
        let words = words.filter(|word| !word.is_empty()).map(str::to_owned);
        let method = self.method.as_str().to_lowercase();
        [method].into_iter().chain(words).collect::<Vec<_>>().join("_")
    }

    pub(super) fn describe(&self, operation: &mut Operation<'_>) {
        (self.describe_handler)(operation);
        operation.refuses(self.refusals);
        for &(status, media_type) in &self.answers {
            let content = match media_type {
                "" => None,
                "*/*" => Some((media_type, json_schema!({}))),
                _ => Some((media_type, json_schema!({ "type": "string" }))),
            };
            operation.gives(status, content);
        }
    }
}

macro_rules! methods {
    ($($name:ident $method:ident)*) => {
        impl Route {
            $(pub(super) fn $name<H, T, D>(
                path: &'static str,
                handler: H,
                summary: &'static str,
            ) -> Self
            where
                H: Handler<T, App> + Described<D>,
                T: 'static,
            {
                Self::new(Method::$method, MethodFilter::$method, path, handler, summary)
            })*
        }
    };
}

methods! { get GET post POST patch PATCH delete DELETE }

/// A function whose arguments and result describe themselves. `D` tells functions of different
/// length apart.
pub(super) trait Described<D> {
    fn describe(operation: &mut Operation<'_>);
}

macro_rules! described {
    ($($argument:ident)*) => {
        impl<F, Fut, $($argument: Takes,)* R: Gives> Described<($($argument,)* R,)> for F
        where
            F: FnOnce($($argument),*) -> Fut,
            Fut: Future<Output = R>,
        {
            fn describe(operation: &mut Operation<'_>) {
                $($argument::describe(operation);)*
                R::describe(operation);
            }
        }
    };
}

described! {}
described! { A }
described! { A B }
described! { A B C }
described! { A B C D }
