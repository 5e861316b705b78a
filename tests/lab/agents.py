"""The services that coding agents ask: as much of Anthropic's Messages API and of OpenAI's Responses API as Claude Code and
Codex need to come to an end, in streams of events as the services send them.

A prompt with <<COMMAND>> in it is answered with a call of the agent's tool for shell commands; what has the call's
result in it, and any other prompt, with ANSWER and a copy of the result. A request without the lab's secret is refused.
"""
import json
import re

from lab import websocket

ANSWER = "Hello from the lab."
MODEL = "gpt-5-codex"


def told(request):
    """The parsed body of a request."""
    return json.loads(request.body or b"{}")


def command_of(texts):
    found = [match for text in texts for match in re.findall(r"<<(.*?)>>", text)]
    return found[-1] if found else None


def events(connection, items):
    """A stream of (event, data) as a server sends it: one piece per event."""
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    for name, data in items:
        text = f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()
        connection.send(b"%x\r\n%s\r\n" % (len(text), text))
    connection.send(b"0\r\n\r\n")


# --- Messages -------------------------------------------------------------------------------------------------------------


def blocks(message):
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def results_of_messages(messages):
    found = []
    for block in (b for message in messages for b in blocks(message)):
        if block["type"] == "tool_result":
            content = block["content"]
            found.append(content if isinstance(content, str) else "".join(c.get("text", "") for c in content))
    return found


def message_block(body):
    """What the model says: a block of text, or the call of a tool."""
    results = results_of_messages(body["messages"])
    users = [b["text"] for m in body["messages"] if m["role"] == "user" for b in blocks(m) if b["type"] == "text"]
    command = command_of(users)
    if command and not results and any(tool.get("name") == "Bash" for tool in body.get("tools", ())):
        return {"type": "tool_use", "id": "toolu_lab1", "name": "Bash",
                "input": {"command": command, "description": "what the lab asked for"}}
    return {"type": "text", "text": " ".join([ANSWER, *results])}


def message_events(body):
    block = message_block(body)
    call = block["type"] == "tool_use"
    usage = {"input_tokens": 10, "output_tokens": 5}
    message = {"id": "msg_lab", "type": "message", "role": "assistant", "model": body["model"], "content": [],
               "stop_reason": None, "stop_sequence": None, "usage": usage}
    delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])} if call else {
        "type": "text_delta", "text": block["text"]}
    start = {**block, "input": {}} if call else {"type": "text", "text": ""}
    stop = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
    data = [{"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": start},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 5}},
            {"type": "message_stop"}]
    return [(item["type"], item) for item in data]


def messages(connection, request):
    body = told(request)
    if body.get("stream"):
        events(connection, message_events(body))
        return
    block = message_block(body)
    connection.answer(json.dumps({
        "id": "msg_lab", "type": "message", "role": "assistant", "model": body["model"], "content": [block],
        "stop_reason": "tool_use" if block["type"] == "tool_use" else "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5}}).encode(), kind="application/json")


# --- Responses ------------------------------------------------------------------------------------------------------------


def texts_of(item):
    content = item.get("content", item.get("output", ""))
    return [content] if isinstance(content, str) else [part.get("text", "") for part in content or ()]


def message(text):
    return {"type": "message", "id": "msg_lab", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]}


def tools_of(tools):
    """All names, of namespaces too."""
    return {name for tool in tools for name in ([tool.get("name")] if "tools" not in tool else tools_of(tool["tools"]))}


def tool_call(body, command):
    """The call of the tool for commands: Codex has it by itself, or within the one that runs JavaScript."""
    more = [item["tools"] for item in body["input"] if item.get("type") == "additional_tools"]
    names = tools_of(sum(more, body.get("tools", [])))
    asked = {"cmd": command, "yield_time_ms": 30000}
    call = {"id": "call_lab", "call_id": "call_lab", "status": "completed"}
    if "exec_command" in names:
        return {**call, "type": "function_call", "name": "exec_command", "arguments": json.dumps(asked)}
    if "exec" in names:
        script = f"const done = await tools.exec_command({json.dumps(asked)}); text(done.output);"
        return {**call, "type": "custom_tool_call", "name": "exec", "namespace": "functions", "input": script}
    return message(f"no tool for commands among {sorted(names)}")


def response_item(body):
    items = body["input"]
    results = ["".join(texts_of(item)) for item in items if item.get("type") in ("function_call_output", "custom_tool_call_output")]
    command = command_of([text for item in items if item.get("role") == "user" for text in texts_of(item)])
    if command and not results:
        return tool_call(body, command)
    return message(" ".join([ANSWER, *results]))


def response_events(body):
    items = [response_item(body)] if body.get("generate", True) else []  # else it only wants to be remembered
    response = {"id": "resp_lab", "object": "response", "status": "in_progress", "model": body.get("model", MODEL),
                "output": []}
    usage = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
             "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15}
    data = [{"type": "response.created", "response": response}]
    for item in items:
        data.append({"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"}})
        if item["type"] == "message":
            data.append({"type": "response.output_text.delta", "item_id": "msg_lab", "output_index": 0, "content_index": 0,
                         "delta": item["content"][0]["text"]})
        data.append({"type": "response.output_item.done", "output_index": 0, "item": item})
    data.append({"type": "response.completed", "response": {**response, "status": "completed", "output": items,
                                                            "usage": usage}})
    return [(each["type"], each) for each in data]


def over_websocket(connection, request, told_bodies):
    """Each message from the client is a request, each event a message (response.create)."""
    websocket.accept(connection, request)
    while (message := websocket.read(connection)) is not None:
        body = json.loads(message)
        told_bodies.append(body)
        for _, event in response_events(body):
            websocket.send(connection, json.dumps(event).encode())


# --- the sites ------------------------------------------------------------------------------------------------------------


class Agents:
    """Puts both services into a world.World, in front of what answers at their names already.

    offers_websocket   whether the Responses API can be had over a WebSocket too
    messages           what came that way
    """

    def __init__(self, world, is_known):
        self.is_known = is_known
        self.offer_websocket(False)
        sites = world.servers.sites
        for name, serve in (("api.anthropic.com", self.anthropic), ("api.openai.com", self.openai)):
            sites[name] = self.guard(serve, sites[name])

    def offer_websocket(self, offers):
        self.offers_websocket, self.messages = offers, []

    def guard(self, serve, otherwise):
        def site(connection, request):
            if not request.target.startswith("/v1/"):
                return otherwise(connection, request)
            if not self.is_known(request):
                error = {"type": "error", "error": {"type": "authentication_error", "message": "who are you?"}}
                connection.answer(json.dumps(error).encode(), "401 Unauthorized", kind="application/json")
                return True
            return serve(connection, request, request.target.partition("?")[0])
        return site

    @staticmethod
    def anthropic(connection, request, path):
        if path == "/v1/messages":
            messages(connection, request)
        elif path == "/v1/messages/count_tokens":
            connection.answer(b'{"input_tokens": 10}', kind="application/json")
        else:
            connection.answer(b'{"type": "error", "error": {"type": "not_found_error", "message": "no such page"}}',
                              "404 Not Found", kind="application/json")
        return True

    def openai(self, connection, request, path):
        if path == "/v1/responses" and request.method == "POST":
            events(connection, response_events(told(request)))
        elif path == "/v1/responses" and self.offers_websocket and request.get("upgrade"):
            over_websocket(connection, request, self.messages)
            return False
        elif path == "/v1/responses":
            connection.answer(b'{"error": {"message": "Method Not Allowed"}}', "426 Upgrade Required", ["Allow: POST"],
                              kind="application/json")
        else:
            connection.answer(b'{"error": {"message": "no such page"}}', "404 Not Found", kind="application/json")
        return True
