"""What OpenAI's own client for Python makes of Callboard: one case a run, its outcome as JSON.

Its address and its key come from the environment, as the client wants them.
"""

import json
import sys

import openai

client = openai.OpenAI()
SESSION = "x-callboard-session"


def ask(text, model="demo", **more):
    return {"model": model, "messages": [{"role": "user", "content": text}], **more}


def create(body, **headers):
    return client.chat.completions.create(**body, extra_headers=headers)


def outcome(content, reason, usage):
    return {"content": content, "reason": reason, "usage": usage.model_dump(exclude_none=True)}


def models():
    return {"ids": [it.id for it in client.models.list()], "one": client.models.retrieve("demo").id}


def same():
    raw = client.chat.completions.with_raw_response.create(**ask("hello"))
    whole = raw.parse()
    content, reason = "", None
    options = {"include_usage": True}
    for chunk in create(ask("hello", stream=True, stream_options=options)):
        for choice in chunk.choices:
            content += choice.delta.content or ""
            reason = choice.finish_reason or reason
        usage = chunk.usage
    with client.chat.completions.stream(**ask("hello", stream_options=options)) as stream:
        heard = "".join(it.delta for it in stream if it.type == "content.delta")
        helped = stream.get_final_completion()
    choice = whole.choices[0]
    return {
        "whole": outcome(choice.message.content, choice.finish_reason, whole.usage),
        "chunks": outcome(content, reason, usage),
        "helped": outcome(heard, helped.choices[0].finish_reason, helped.usage),
        "session": raw.headers[SESSION],
    }


def reasoning_of(body, **headers):
    return getattr(create(body, **headers).choices[0].message, "reasoning_content", None)


def reasoning():
    question = ask("what time is it in Paris?")
    with client.chat.completions.stream(**ask("think about tea")) as stream:
        helped = stream.get_final_completion().choices[0].message.reasoning_content
    return {
        "thought": reasoning_of(ask("think about tea")),
        "helped": helped,
        "activity": reasoning_of(question),
        "hidden": reasoning_of(question, **{"x-callboard-tools": "hidden"}),
    }


def run_tools(session, complete):
    tools = [{"type": "function", "function": {"name": name}} for name in ("left", "right")]
    body = ask("both, please", model="model", tools=tools, extra_headers={SESSION: session})
    first = complete(body)
    message = first.choices[0].message.model_dump(exclude_none=True)
    body["messages"].append({key: message[key] for key in ("role", "content", "tool_calls")})
    for call in body["messages"][-1]["tool_calls"]:
        result = f"what {call['function']['name']} gave"
        body["messages"].append({"role": "tool", "tool_call_id": call["id"], "content": result})
        # The helper keeps more of a call than there is in the API.
        call["function"] = {key: call["function"][key] for key in ("name", "arguments")}
        call.pop("index", None)
    last = complete(body).choices[0].message
    body["messages"].append({"role": "assistant", "content": last.content})
    reason = first.choices[0].finish_reason
    return {"messages": body["messages"], "reason": reason, "session": session}


def tools():
    def streamed(body):
        with client.chat.completions.stream(**body) as stream:
            return stream.get_final_completion()

    at_once = run_tools("python-at-once", lambda body: client.chat.completions.create(**body))
    return [at_once, run_tools("python-streamed", streamed)]


def errors():
    stranger = openai.OpenAI(api_key="wrong")
    attempts = [
        lambda: create(ask("hello", model="gpt-9")),
        lambda: stranger.chat.completions.create(**ask("hello")),
        lambda: create(ask("hello", n=2)),
        lambda: create(ask("break")),
        lambda: list(create(ask("break", stream=True))),
    ]
    return [refusal(attempt) for attempt in attempts]


def refusal(attempt):
    try:
        attempt()
    except openai.APIError as error:
        status = getattr(error, "status_code", None)
        kind, code = type(error).__name__, error.code
        return {"kind": kind, "status": status, "code": code, "type": error.type, "param": error.param}
    raise AssertionError("it was not refused")


CASES = {it.__name__: it for it in (models, same, reasoning, tools, errors)}

if __name__ == "__main__":
    json.dump(CASES[sys.argv[1]](), sys.stdout)
