// The page draws what the server sends (one snapshot after the other, as server-sent events) and sends back what is clicked.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const LEVELS = 8, HISTORY = 400, LABELLED_K = 4;
const NAMES = { "E>A": "edge to agg", "A>C": "agg to core", "C>A": "core to agg", "A>E": "agg to edge", "E>H": "edge to host" };
const $ = (id) => document.getElementById(id);
const links = [], hosts = [], rows = [], tiers = new Map(), trace = [];
let layout = null, latest = null, focused = 0;

function make(name, attributes = {}, parent = null) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (parent) parent.append(element);
  return element;
}

function html(name, text = "", className = "") {
  const element = document.createElement(name);
  element.textContent = text;
  if (className) element.className = className;
  return element;
}

function duration(ps) {
  if (ps === null || ps === undefined) return "–";
  const units = [[1e12, "s"], [1e9, "ms"], [1e6, "µs"], [1e3, "ns"]];
  for (const [size, unit] of units) if (Math.abs(ps) >= size) return `${(ps / size).toFixed(ps / size >= 100 ? 1 : 2)} ${unit}`;
  return ps === 0 ? "0" : `${ps} ps`;
}

const percent = (share) => `${Math.round(100 * share)} %`;
const packets = (count) => count.toFixed(1);
const level = (load) => Math.min(LEVELS - 1, Math.floor(load * LEVELS));

function say(text, isBad = false) {
  $("message").textContent = text;
  $("message").classList.toggle("bad", isBad);
}

async function send(path, body) {
  try {
    const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    const result = await answer.json();
    say(answer.ok ? result.message : result.error, !answer.ok);
  } catch (error) {
    say("the server does not answer", true);
  }
}

function toggle(index) {
  if (!latest) return;
  send("link", { link: layout.links[index].name, up: !latest.links[index][0] });
}

// Drawing, once

function strand(from, to, side) {
  const length = Math.hypot(to.x - from.x, to.y - from.y);
  const across = { x: ((to.y - from.y) / length) * side, y: (-(to.x - from.x) / length) * side };
  return `M${from.x + across.x} ${from.y + across.y}L${to.x + across.x} ${to.y + across.y}`;
}

function drawLink(group, link, index) {
  const from = layout.switches[link.lower], to = layout.switches[link.upper];
  const node = make("g", { class: "link", role: "button", tabindex: index === 0 ? "0" : "-1", "data-link": link.name }, group);
  const middle = { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 };
  make("path", { class: "hit", d: strand(from, to, 0) }, node);
  const gap = Math.min(3, 10 / layout.k);
  const up = make("path", { class: "strand", d: strand(from, to, gap) }, node);
  const down = make("path", { class: "strand second", d: strand(from, to, -gap) }, node);
  const title = make("title", {}, node);
  make("path", { class: "cross", d: `M${middle.x - 6} ${middle.y - 6}l12 12m0-12l-12 12` }, node);
  node.addEventListener("click", () => { focusLink(index); toggle(index); });
  node.addEventListener("keydown", (event) => onKey(event, index));
  links.push({ node, up, down, title });
}

function focusLink(index) {
  links[focused].node.setAttribute("tabindex", "-1");
  focused = (index + links.length) % links.length;
  links[focused].node.setAttribute("tabindex", "0");
  links[focused].node.focus({ preventScroll: true });
}

function onKey(event, index) {
  const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: layout.edge_links, ArrowDown: -layout.edge_links, Home: -index, End: links.length - 1 - index };
  if (event.key === "Enter" || event.key === " ") toggle(index);
  else if (event.key in steps) focusLink(index + steps[event.key]);
  else return;
  event.preventDefault();
}

function drawSwitch(group, place) {
  const isLabelled = layout.k <= LABELLED_K, width = isLabelled ? 66 : Math.min(22, 1000 / layout.switches.length * 2);
  const height = isLabelled ? 26 : Math.min(16, width);
  const node = make("g", { class: "node" }, group);
  make("rect", { x: place.x - width / 2, y: place.y - height / 2, width, height, rx: Math.min(7, height / 3) }, node);
  if (isLabelled) make("text", { x: place.x, y: place.y }, node).textContent = place.name;
  make("title", {}, node).textContent = place.name;
}

function drawTree() {
  const tree = $("tree");
  tree.setAttribute("viewBox", `0 0 ${layout.width} ${layout.height}`);
  const group = { drops: make("g", {}, tree), links: make("g", {}, tree), nodes: make("g", {}, tree) };
  for (const row of layout.rows) make("text", { class: "row", x: 0, y: row.y }, group.nodes).textContent = row.name;
  layout.hosts.forEach((host, index) => {
    const edge = layout.switches[Math.floor(index / layout.hosts_per_edge)];
    hosts.push(make("path", { class: "drop", d: strand(edge, host, 0) }, group.drops));
    const node = make("g", { class: "node" }, group.nodes);
    make("circle", { cx: host.x, cy: host.y, r: layout.k <= LABELLED_K ? 8 : Math.max(1.5, 300 / layout.hosts.length) }, node);
    make("title", {}, node).textContent = host.name;
  });
  layout.links.forEach((link, index) => drawLink(group.links, link, index));
  for (const place of layout.switches) drawSwitch(group.nodes, place);
}

function drawTable() {
  layout.links.forEach((link, index) => {
    const row = document.createElement("tr"), cells = Array.from({ length: 7 }, () => row.insertCell());
    const button = html("button", "");
    button.type = "button";
    button.addEventListener("click", () => toggle(index));
    cells[0].append(button, ` ${link.name}`);
    $("rows").append(row);
    rows.push({ row, button, cells });
  });
}

function drawTiers() {
  for (const [layer, name] of Object.entries(NAMES)) {
    const row = html("div", "", "tier"), label = html("b", layer), output = html("output");
    const svg = make("svg", { viewBox: `0 0 ${HISTORY} 100`, preserveAspectRatio: "none", role: "img" });
    row.title = name;
    tiers.set(layer, { marks: make("path", { class: "mark" }, svg), line: make("polyline", {}, svg), output, svg });
    row.append(label, svg, output);
    $("tiers").append(row);
  }
}

function drawControls() {
  for (const [slug, label] of layout.policies) $("policy").append(new Option(label, slug));
  $("start").addEventListener("click", () => send("start", { policy: $("policy").value }));
  $("pause").addEventListener("click", () => setPace(!latest.paused));
  $("speed").addEventListener("change", () => setPace(latest.paused));
}

const setPace = (paused) => send("pace", { factor: Number($("speed").value), paused });

// Updating, with every snapshot

function updateLinks() {
  latest.links.forEach(([isUp, up, down, queueUp, queueDown, lost], index) => {
    const { node, up: first, down: second, title } = links[index], name = layout.links[index].name;
    node.classList.toggle("down", !isUp);
    node.dataset.load = Math.max(up, down);
    for (const [path, load, className] of [[first, up, "strand"], [second, down, "strand second"]]) {
      path.setAttribute("class", isUp ? `${className} l${level(load)}` : className);
      path.style.strokeWidth = isUp ? (1.4 + 3.2 * load) * Math.min(1, 4 / layout.k) : "";
    }
    const label = isUp ? `${name}, up ${percent(up)}, down ${percent(down)}: fail it` : `${name} has failed: mend it`;
    node.setAttribute("aria-label", label);
    title.textContent = isUp ? `${name}\nload up ${percent(up)}, down ${percent(down)}\nqueue up ${packets(queueUp)}, down ${packets(queueDown)} packets` : `${name} has failed, ${lost} packets lost`;
  });
  if ($("table").open) latest.links.forEach(updateRow);
  latest.hosts.forEach((load, index) => hosts[index].setAttribute("class", `drop l${level(load)}`));
}

function updateRow([isUp, up, down, queueUp, queueDown, lost], index) {
  const { row, button, cells } = rows[index];
  row.className = isUp ? "" : "down";
  button.textContent = isUp ? "fail" : "mend";
  button.setAttribute("aria-label", `${isUp ? "fail" : "mend"} ${layout.links[index].name}`);
  [isUp ? "up" : "failed", percent(up), percent(down), packets(queueUp), packets(queueDown), lost].forEach((text, column) => { cells[column + 1].textContent = text; });
}

function remember(point) {
  const last = trace[trace.length - 1];
  if (last && point[0] < last[0]) trace.length = 0;
  if (!last || point[0] !== last[0]) trace.push(point);
  if (trace.length > HISTORY) trace.shift();
}

function updateTiers() {
  const most = Math.max(4, ...latest.tiers.map((tier) => tier.longest_queue)), start = trace.length ? trace[0][0] : 0;
  const span = Math.max(1, trace.length ? trace[trace.length - 1][0] - start : 1);
  const at = (time) => ((time - start) / span * HISTORY).toFixed(1);
  const failures = latest.changes.filter((change) => change.at_ps >= start).map((change) => `M${at(change.at_ps)} 0V100`).join("");
  latest.tiers.forEach((tier, index) => {
    const { line, marks, output, svg } = tiers.get(tier.layer);
    marks.setAttribute("d", failures);
    line.setAttribute("points", trace.map(([time, queues]) => `${at(time)},${(98 - queues[index] / most * 94).toFixed(1)}`).join(" "));
    svg.setAttribute("aria-label", `${NAMES[tier.layer]}: ${packets(tier.queue)} packets now, ${packets(tier.longest_queue)} at most`);
    output.replaceChildren(html("b", packets(tier.queue)), html("small", ` / ${packets(tier.longest_queue)}`));
    output.title = `mean load ${percent(tier.load)}, highest ${percent(tier.highest_load)}, ${tier.drops} dropped`;
  });
}

function track(parts) {
  const bar = html("div", "", "track");
  for (const [className, share] of parts) {
    const part = html("i", "", className);
    part.style.width = `${Math.max(0, 100 * share)}%`;
    bar.append(part);
  }
  return bar;
}

function item(left, right, parts, below) {
  const line = document.createElement("li"), head = html("div", "", "head");
  head.append(html("span", left), html("span", right));
  line.append(head, track(parts), html("p", below));
  return line;
}

function updatePhases() {
  const shown = latest.phases.filter((phase) => phase.acked || phase.number === 0);
  $("phase-list").replaceChildren(...shown.reverse().map((phase) => {
    const title = latest.phases.length > 1 ? `Phase ${phase.number + 1} of ${latest.phases.length}` : "All flows";
    const time = phase.cct_ps === null ? "no flow complete yet" : `${phase.done === phase.flows ? "complete in" : "slowest so far"} ${duration(phase.cct_ps)}`;
    return item(title, `${phase.done} of ${phase.flows} flows`, [["done", phase.acked / phase.packets]], `${phase.acked} of ${phase.packets} packets; ${time}`);
  }));
}

function changeItem(change) {
  const what = `${change.links.join(", ")} ${change.up ? "mended" : "failed"}`;
  const marks = [change.at_ps, change.detected_ps, change.planned_ps, change.installed_ps];
  const names = ["detect", "plan", "install"], known = marks.filter((mark) => mark !== null), end = known[known.length - 1];
  const whole = Math.max(1, (marks[3] ?? latest.time_ps) - change.at_ps);
  const isAtOnce = marks[3] === change.at_ps;
  const parts = isAtOnce ? [["install", 1]] : names.map((name, index) => [name, marks[index + 1] === null ? 0 : (marks[index + 1] - marks[index]) / whole]);
  if (marks[3] === null && latest.converges) parts.push(["open", (latest.time_ps - end) / whole]);
  const steps = names.map((name, index) => (marks[index + 1] === null ? null : `${name} ${duration(marks[index + 1] - marks[index])}`)).filter(Boolean);
  const rest = marks[3] === null ? (latest.converges ? "new schedules are on their way" : "routes never change in this experiment") : `${change.updates} updates on ${change.switches} switches`;
  return item(what, change.at_ps < 0 ? `${duration(-change.at_ps)} before this run` : `at ${duration(change.at_ps)}`, parts, [...steps, rest].join(", "));
}

function updateChanges() {
  const items = [...latest.changes].reverse().map(changeItem);
  $("change-list").replaceChildren(...(items.length ? items : [html("li", "No link has changed yet.", "empty")]));
}

function updateNumbers() {
  const run = latest;
  $("what").textContent = `${run.label} on ${run.name}, k = ${run.k}, seed ${run.seed}, ${run.network === "virtual" ? "virtual time" : run.network}`;
  document.title = `${run.label}: ${run.state} – Ofan live`;
  $("state").textContent = run.state;
  $("time").textContent = duration(run.time_ps);
  $("cct").textContent = duration(run.cct_ps);
  $("acked").textContent = percent(run.progress);
  $("dropped").textContent = run.dropped;
  $("lost").textContent = run.lost;
  $("bar").value = run.progress;
  $("pacing").hidden = run.speed === null;
  $("pause").textContent = run.paused ? "Go on" : "Pause";
  $("pause").setAttribute("aria-pressed", String(run.paused));
}

function show(snapshot) {
  const isOther = latest && latest.policy !== snapshot.policy;
  if (!latest || isOther) $("policy").value = snapshot.policy;
  latest = snapshot;
  remember([snapshot.time_ps, snapshot.tiers.map((tier) => tier.queue)]);
  for (const update of [updateNumbers, updateLinks, updateTiers, updatePhases, updateChanges]) update();
}

async function begin() {
  layout = await (await fetch("layout")).json();
  for (const draw of [drawTree, drawTable, drawTiers, drawControls]) draw();
  $("table").addEventListener("toggle", () => latest && latest.links.forEach(updateRow));
  const events = new EventSource("events");
  events.addEventListener("history", (event) => { trace.splice(0, trace.length, ...JSON.parse(event.data)); });
  events.addEventListener("snapshot", (event) => show(JSON.parse(event.data)));
  events.addEventListener("ended", (event) => { events.close(); $("state").textContent = "ended"; say(JSON.parse(event.data), true); });
  events.addEventListener("open", () => { if ($("message").textContent === LOST) say(""); });
  events.addEventListener("error", () => say(LOST, true));
}

const LOST = "the connection to the server is lost";
begin();
