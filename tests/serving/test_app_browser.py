"""The pages of MCP Apps in Chromium, in a host that speaks it: a sandboxed frame, JSON-RPC over postMessage."""

import pytest
from mcp import Client
from running import APPS, run_alone

from memlab.io.serving import lab_server

pytestmark = pytest.mark.browser

HOST = """<!doctype html><html lang="en"><title>A host</title><iframe sandbox="allow-scripts" title="app"></iframe>
<script>
  const frame = document.querySelector("iframe");
  const sent = [];
  const send = (message) => frame.contentWindow.postMessage({jsonrpc: "2.0", ...message}, "*");
  window.addEventListener("message", async ({source, data}) => {
    if (source !== frame.contentWindow) return;
    sent.push(data);
    if (data.method === "ui/initialize") {
      const styles = {variables: {"--color-text-primary": "rgb(1, 2, 3)", "--color-background-primary": "#111"}};
      const hostContext = {theme: "dark", styles, availableDisplayModes: ["inline", "fullscreen"]};
      const hostCapabilities = {serverTools: {}, serverResources: {}};
      const hostInfo = {name: "host", version: "1"};
      send({id: data.id, result: {protocolVersion: "2026-01-26", hostInfo, hostCapabilities, hostContext}});
    } else if (data.method === "ui/notifications/initialized") {
      send({method: "ui/notifications/tool-input", params: {arguments: window.given}});
      send({method: "ui/notifications/tool-result", params: window.result});
    } else if (data.method === "ui/request-display-mode") {
      send({id: data.id, result: {mode: data.params.mode}});
    } else if (data.method && data.id !== undefined) {
      const answer = await window.server(data.method, data.params);
      send({id: data.id, ...answer});
    }
  });
  window.open_app = (html, given, result) => { window.given = given; window.result = result; frame.srcdoc = html; };
</script></html>"""
POLICY = "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'"
POLICY += "; img-src 'self' data:; media-src 'self' data:; connect-src 'none'"
"""What a host has to allow a page that asks for nothing, and no more."""
TURNED = "(fn [similarity] (- similarity))"
HOSTILE = (
    "</p><script>parent.postMessage('owned', '*')</script><img src=x onerror=alert(1)> prefers tabs"
)


@pytest.fixture
def served(lab):
    """Return a function that forwards a message of a view to a server of the lab in a thread, with the official client."""
    server = lab_server(lab, viewer="user:ada")

    async def ask(method, params):
        async with Client(server, extensions=APPS) as client:
            if method == "resources/read":
                answer = await client.read_resource(params["uri"])
            else:
                answer = await client.call_tool(params["name"], params["arguments"])
            return {"result": answer.model_dump(mode="json", by_alias=True, exclude_none=True)}

    return lambda method, params: run_alone(ask(method, params))


@pytest.fixture
def host(browser, served):
    """Return a function that opens a page of the server in a host with the answer of a tool, and returns page and frame."""
    contexts, faults = [], []

    def opened(name, answer=None, result=None):
        context = browser.new_context(viewport={"width": 1000, "height": 1200})
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda line: faults.append(line.text) if line.type == "error" else None)
        page.expose_function("server", served)
        page.set_content(HOST)
        html = served("resources/read", {"uri": f"ui://memlab/{name}.html"})["result"]["contents"][
            0
        ]["text"]
        html = html.replace(
            "<title>", f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"><title>'
        )
        page.evaluate(
            "([html, given, result]) => open_app(html, given, result)", [html, answer or {}, result]
        )
        return page, page.frame_locator("iframe")

    yield opened
    for context in contexts:
        context.close()
    assert faults == []


@pytest.fixture
def show_in_host(host, served):
    """Return a function that runs a query and shows its answer in a host."""

    def show(query):
        result = served("tools/call", {"name": "recall", "arguments": {"query": query}})["result"]
        return host("recall", {"query": query}, result)

    return show


def test_a_recall_is_explained_and_judged_by_a_click(lab, show_in_host):
    lab.remember([HOSTILE, "Deploys go out on Tuesdays"])
    page, app = show_in_host("tabs or spaces?")
    app.get_by_role("heading", name="tabs or spaces?").wait_for()
    first = app.get_by_role("listitem").first
    assert first.locator(".text").inner_text() == HOSTILE
    assert app.locator("img, .text script").count() == 0
    assert first.locator(".text").evaluate("node => getComputedStyle(node).color") == "rgb(1, 2, 3)"
    first.locator("summary").click()
    drawn = first.locator("td.value").all_inner_texts()
    explained = lab.recall("tabs or spaces?", log=False)[0].explain()
    assert len(drawn) == len(explained.terms)
    assert lab.memories["success"].sum() == 0  # nothing is written before the user clicks
    # a click of a script is none
    first.get_by_role("button", name="It misled").evaluate("button => button.click()")
    first.get_by_role("button", name="It helped").click()
    first.get_by_role("status").get_by_text("success").wait_for()
    assert (lab.memories["success"].sum(), lab.memories["fail"].sum()) == (1, 0)
    methods = page.evaluate("sent.map((one) => one.method)")
    assert methods[0] in ("ui/initialize", "ui/notifications/size-changed")
    assert {
        "ui/initialize",
        "ui/notifications/initialized",
        "ui/notifications/size-changed",
    } <= set(methods)
    assert "owned" not in page.evaluate("sent")


def test_a_recall_that_found_nothing_says_so(show_in_host):
    _, app = show_in_host("tabs or spaces?")
    app.get_by_text("No memory matches this query.").wait_for()


def test_a_refusal_of_the_lab_is_shown(lab, show_in_host):
    lab.remember("The user prefers tabs")
    _, app = show_in_host("tabs or spaces?")
    app.get_by_role("heading", name="tabs or spaces?").wait_for()
    lab.close()
    app.get_by_role("button", name="It helped").click()
    app.get_by_role("status").get_by_text("closed").wait_for()
    assert app.get_by_role("button", name="It helped").is_enabled()
