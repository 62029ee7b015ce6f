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
  return ps === 0 ? "0 s" : `${ps} ps`;
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

// From the table: a link to a quarter of its rate, and back.
const SLOW = 0.25;
function slow(index) {
  if (!latest) return;
  send("rate", { link: layout.links[index].name, rate: latest.links[index][6] < 1 ? 1 : SLOW });
}

// Drawing, once

function beside(from, to, side) {
  const length = Math.hypot(to.x - from.x, to.y - from.y);
  const across = { x: ((to.y - from.y) / length) * side, y: (-(to.x - from.x) / length) * side };
  return [from, to].map((end) => ({ x: end.x + across.x, y: end.y + across.y }));
}

function strand(from, to, side) {
  const [one, other] = beside(from, to, side);
  return `M${one.x} ${one.y}L${other.x} ${other.y}`;
}

// Parallel links lie side by side, with twice the room between two that a link's strands have.
const member = (link, from, to, gap) => beside(from, to, link.aside * 6 * gap);

// Crosses lie above all links, and not at their middles, where those of a pod cross each other.
function crossAt(from, to) {
  const x = from.x + (to.x - from.x) / 3, y = from.y + (to.y - from.y) / 3;
  return `M${x - 6} ${y - 6}l12 12m0-12l-12 12`;
}

function drawLink(group, crosses, link, index) {
  const node = make("g", { class: link.is_parallel ? "link parallel" : "link", role: "button", tabindex: index === 0 ? "0" : "-1", "data-link": link.name }, group);
  const [ring, hit, up, down] = ["ring", "hit", "strand", "strand second"].map((name) => make("path", { class: name }, node));
  const cross = make("path", { class: "cross" }, crosses);
  node.addEventListener("keydown", (event) => onKey(event, index));
  links.push({ node, ring, hit, up, down, cross, ends: [] });
}

function focusLink(index) {
  links[focused].node.setAttribute("tabindex", "-1");
  // Links of folded pods are passed over.
  const step = index < focused ? links.length - 1 : 1;
  let next = (index + links.length) % links.length;
  for (let tries = links.length; tries && links[next].node.classList.contains("folded"); tries -= 1) next = (next + step) % links.length;
  focused = next;
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
  node.dataset.name = place.name;
  if (podOf(place.name) === null) node.classList.add("core");
}

function drawTree() {
  const tree = $("tree");
  tree.setAttribute("viewBox", `0 0 ${layout.width} ${layout.height}`);
  const group = { drops: make("g", {}, tree), links: make("g", {}, tree), crosses: make("g", {}, tree), nodes: make("g", {}, tree) };
  make("path", { class: "mark" }, group.crosses);
  tree.addEventListener("click", onClick);
  tree.addEventListener("pointermove", (event) => aim(event.pointerType === "touch" ? null : linkAt(event), event));
  tree.addEventListener("pointerleave", () => aim(null));
  for (const row of layout.rows) make("text", { class: "row", x: 0, y: row.y }, group.nodes).textContent = row.name;
  layout.hosts.forEach((host, index) => {
    const edge = layout.switches[Math.floor(index / layout.hosts_per_edge)];
    const drop = make("path", { class: "drop", d: strand(edge, host, 0), "data-name": host.name }, group.drops);
    hosts.push(drop);
    const node = make("g", { class: "node" }, group.nodes);
    make("circle", { cx: host.x, cy: host.y, r: layout.k <= LABELLED_K ? 8 : Math.max(1.5, 300 / layout.hosts.length) }, node);
    make("title", {}, node).textContent = host.name;
    node.dataset.name = host.name;
  });
  layout.links.forEach((link, index) => drawLink(group.links, group.crosses, link, index));
  for (const place of layout.switches) drawSwitch(group.nodes, place);
  make("rect", { rx: 6 }, make("g", { class: "node band folded" }, group.nodes));
}

function drawTable() {
  layout.links.forEach((link, index) => {
    const row = document.createElement("tr"), cells = Array.from({ length: 7 }, () => row.insertCell());
    const button = html("button", ""), pace = html("button", ""), buttons = html("span");
    button.type = pace.type = "button";
    button.addEventListener("click", () => toggle(index));
    pace.addEventListener("click", () => slow(index));
    buttons.append(button, " ", pace);
    cells[0].append(buttons, " ", html("span", link.name));
    $("rows").append(row);
    rows.push({ row, button, pace, cells });
  });
}

// On a narrow page, and from k = 8 on, where links are too thin to tell apart, one pod is shown in full beside the cores,
// which are a band then: every pod folds to a bar as dark as its links, and unfolds when it is chosen.
const POD_K = 8, NARROW = 700;
let openPod = 0;

const podOf = (index) => { const match = /^(?:edge|agg|h)(\d+)_/.exec(index); return match ? Number(match[1]) : null; };

function drawPods() {
  const count = new Set(layout.switches.map((place) => podOf(place.name)).filter((pod) => pod !== null)).size;
  for (let pod = 0; pod < count; pod += 1) {
    const button = html("button", "", "pod");
    button.type = "button";
    button.append(html("span", `pod ${pod}`), html("i"), html("small"));
    button.addEventListener("click", () => { openPod = openPod === pod ? null : pod; fold(); });
    $("pods").append(button);
  }
  const narrow = matchMedia(`(max-width: ${NARROW}px)`);
  narrow.addEventListener("change", fold);
  fold();
}

function isFolding() { return $("pods").children.length > 1 && (layout.k >= POD_K || matchMedia(`(max-width: ${NARROW}px)`).matches); }

function fold() {
  const folding = isFolding(), tree = $("tree");
  $("pods").hidden = !folding;
  $("scroll").hidden = folding && openPod === null;
  [...$("pods").children].forEach((button, pod) => button.setAttribute("aria-expanded", String(folding && pod === openPod)));
  const shown = (name) => { const pod = podOf(name); return !folding || pod === null || pod === openPod; };
  layout.links.forEach((link, index) => { for (const part of [links[index].node, links[index].cross]) part.classList.toggle("folded", !shown(link.name)); });
  tree.querySelectorAll(".node, .drop").forEach((node) => node.classList.toggle("folded", !shown(node.dataset.name || "")));
  tree.querySelector(".band").classList.toggle("folded", !folding);
  tree.querySelectorAll(".core").forEach((node) => node.classList.toggle("folded", folding));
  tree.classList.toggle("narrow", folding);
  tree.setAttribute("viewBox", folding && openPod !== null ? podBox() : `0 0 ${layout.width} ${layout.height}`);
  aim(null);
  scatter();
  if (folding && openPod !== null) gather(); else setRows(0);
}

function podEnds() {
  const places = [...layout.hosts, ...layout.switches].filter((place) => podOf(place.name) === openPod).map((place) => place.x);
  return [Math.min(...places), Math.max(...places)];
}

// The pod's own box; links to cores end on the band above it.
function podBox() {
  const [left, right] = podEnds();
  const room = Math.max(64, (right - left) * 0.2);
  setRows(left - room);
  return `${left - room} 0 ${right - left + 2 * room} ${layout.height}`;
}

function setRows(x) { $("tree").querySelectorAll("text.row").forEach((text) => text.setAttribute("x", x)); }

function gather() {
  const [left, right] = podEnds(), gap = Math.min(3, 10 / layout.k);
  const band = $("tree").querySelector(".band rect"), top = layout.rows[0].y;
  const ups = layout.links.map((link, index) => [link, index]).filter(([link]) => podOf(link.name) === openPod && podOf(layout.switches[link.upper].name) === null);
  for (const [key, value] of Object.entries({ x: left - 28, y: top - 10, width: right - left + 56, height: 20 })) band.setAttribute(key, value);
  const width = (right - left) / Math.max(1, ups.length - 1), names = ups.map(([link]) => layout.switches[link.upper].name);
  ups.forEach(([link, index], place) => move(index, layout.switches[link.lower], { x: left + place * width, y: top + 10 }, gap / 2));
  // Each core above the end of its link, or, where these are too many, which ones they are.
  const texts = layout.k <= LABELLED_K ? names.map((name, place) => [left + place * width, name]) : [[(left + right) / 2, `${names[0]} to ${names[names.length - 1]}`]];
  band.parentNode.replaceChildren(band, ...texts.map(([x, name]) => { const text = make("text", { x, y: top }); text.textContent = name; return text; }));
}

function scatter() {
  const gap = Math.min(3, 10 / layout.k);
  layout.links.forEach((link, index) => move(index, layout.switches[link.lower], layout.switches[link.upper], gap));
}

function move(index, lower, upper, gap) {
  const [from, to] = member(layout.links[index], lower, upper, gap);
  const { ring, hit, up, down, cross } = links[index];
  links[index].ends = [from, to];
  for (const [path, side] of [[ring, 0], [hit, 0], [up, gap], [down, -gap]]) path.setAttribute("d", strand(from, to, side));
  cross.setAttribute("d", crossAt(from, to));
}

function updatePods() {
  const loads = [...$("pods").children].map(() => ({ sum: 0, count: 0, failed: 0 }));
  latest.links.forEach(([isUp, up, down], index) => {
    const pod = loads[podOf(layout.links[index].name)];
    if (!pod) return;
    pod.sum += isUp ? up + down : 0; pod.count += 2; pod.failed += isUp ? 0 : 1;
  });
  [...$("pods").children].forEach((button, pod) => {
    const { sum, count, failed } = loads[pod], [, bar, words] = button.children;
    bar.className = `l${level(sum / Math.max(1, count))}`;
    words.textContent = failed ? `${failed} failed` : percent(sum / Math.max(1, count));
    button.classList.toggle("bad", failed > 0);
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
  $("tiers").append(html("p", "", "scale"));
}

function drawControls() {
  for (const [slug, label] of layout.policies) $("policy").append(new Option(label, slug));
  $("policy").addEventListener("change", () => { say(isChosen() ? "" : `this run is still one of ${latest.label}`); updateControls(); });
  $("start").addEventListener("click", () => send("start", { policy: $("policy").value }));
  $("pause").addEventListener("click", () => setPace(!latest.paused));
  $("speed").addEventListener("change", () => setPace(latest.paused));
}

const isChosen = () => $("policy").value === latest.policy;
const setPace = (paused) => send("pace", { factor: Number($("speed").value), paused });

// Updating, with every snapshot

function updateLinks() {
  latest.links.forEach(([isUp, up, down, , , , rate], index) => {
    const { node, up: first, down: second, cross } = links[index], name = layout.links[index].name;
    for (const part of [node, cross]) part.classList.toggle("down", !isUp);
    node.classList.toggle("slow", isUp && rate < 1);
    node.dataset.load = Math.max(up, down);
    for (const [path, load, className] of [[first, up, "strand"], [second, down, "strand second"]]) {
      path.setAttribute("class", isUp ? `${className} l${level(load)}` : className);
      path.style.strokeWidth = isUp ? (1.4 + 3.2 * load) * Math.min(1, 4 / layout.k) : "";
    }
    const label = isUp ? `${name}, up ${percent(up)}, down ${percent(down)}: fail it` : `${name} has failed: mend it`;
    node.setAttribute("aria-label", label);
  });
  if ($("table").open) latest.links.forEach(updateRow);
  latest.hosts.forEach((load, index) => hosts[index].setAttribute("class", `drop l${level(load)}${hosts[index].classList.contains("folded") ? " folded" : ""}`));
  updatePods();
  updateAim();
}

function updateRow([isUp, up, down, queueUp, queueDown, lost, rate], index) {
  const { row, button, pace, cells } = rows[index];
  row.className = isUp ? "" : "down";
  button.textContent = isUp ? "fail" : "mend";
  button.setAttribute("aria-label", `${isUp ? "fail" : "mend"} ${layout.links[index].name}`);
  pace.textContent = rate < 1 ? "restore" : "slow";
  pace.setAttribute("aria-label", rate < 1 ? `give ${layout.links[index].name} its rate back` : `let ${layout.links[index].name} run at ${percent(SLOW)} of its rate`);
  [!isUp ? "failed" : rate < 1 ? `at ${percent(rate)}` : "up", ...[up, down].map((load) => (isUp ? Math.round(100 * load) : "–")), packets(queueUp), packets(queueDown), lost].forEach((text, column) => { cells[column + 1].textContent = text; });
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
  const scale = $("tiers").querySelector(".scale");
  scale.replaceChildren(html("span", `each line: 0 to ${packets(most)} packets`), html("span", trace.length ? `${duration(start)} to ${duration(start + span)}` : ""));
  const failures = latest.changes.filter((change) => change.at_ps >= start).map((change) => `M${at(change.at_ps)} 0V100`).join("");
  latest.tiers.forEach((tier, index) => {
    const { line, marks, output, svg } = tiers.get(tier.layer);
    marks.setAttribute("d", failures);
    line.setAttribute("points", trace.map(([time, queues]) => `${at(time)},${(98 - queues[index] / most * 94).toFixed(1)}`).join(" "));
    svg.setAttribute("aria-label", `${NAMES[tier.layer]}: ${packets(tier.queue)} packets now, ${packets(tier.longest_queue)} at most`);
    output.replaceChildren(html("b", packets(tier.queue)), html("small", ` / ${packets(tier.longest_queue)}`));
    output.title = `mean load ${percent(tier.load)}, highest ${percent(tier.highest_load)}, ${tier.dropped} dropped`;
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
    const time = phase.cct_ps === null ? "running" : `complete in ${duration(phase.cct_ps)}`;
    return item(title, `${phase.done} of ${phase.flows} flows`, [["done", phase.acked / phase.packets]], `${phase.acked} of ${phase.packets} packets; ${time}`);
  }));
}

const told = (change) => `${change.links.length > 4 ? `${change.links.length} links` : change.links.join(", ")} ${change.word}`;
const isPlanned = (change) => layout.planned.some((each) => each.at_ps === change.at_ps && told(each) === told(change));

// What the file does is told before it happens, and then told apart from what was clicked.
function drawPlanned() {
  const shown = layout.planned.slice(0, 3).map((change) => `${told(change)} at ${duration(change.at_ps)}`), more = layout.planned.length - shown.length;
  $("planned").textContent = shown.length ? `Events of the experiment's file: ${shown.join("; ")}${more ? `; ${more} more` : ""}.` : "";
}

function changeItem(change) {
  const what = told(change) + (isPlanned(change) ? ", by the file" : "");
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
  $("what").textContent = `${run.label} on ${run.name}, ${run.fabric}, seed ${run.seed}, ${run.network === "virtual" ? "virtual time" : run.network}`;
  document.title = `${run.label}: ${run.state} – Ofan live`;
  $("state").textContent = run.state;
  $("time").textContent = duration(run.time_ps);
  $("cct").textContent = run.cct_ps === null && run.state !== "idle" ? "running" : duration(run.cct_ps);
  $("acked").textContent = percent(run.progress);
  $("dropped").textContent = run.dropped;
  $("lost").textContent = run.lost_to_failure;
  $("bar").value = run.progress;
}

function updateControls() {
  const run = latest;
  $("pacing").hidden = run.speed === null;
  $("pause").textContent = run.paused ? "Go on" : "Pause";
  $("pause").classList.toggle("next", run.paused);
  $("start").classList.toggle("next", !isChosen());
  $("start").textContent = isChosen() ? "Start again" : `Start with ${$("policy").selectedOptions[0].text}`;
  $("speed").title = `${duration(run.speed * 1e12)} of virtual time a second`;
  $("strain").textContent = run.reached === null ? "" : `this machine cannot keep up: ${duration(run.reached * 1e12)} a second, not ${duration(run.speed * 1e12)}`;
}

function show(snapshot) {
  // What another viewer has chosen is shown here too.
  if (latest?.policy !== snapshot.policy) $("policy").value = snapshot.policy;
  if (latest?.factor !== snapshot.factor) $("speed").value = snapshot.factor;
  if (latest && latest.state !== "complete" && snapshot.state === "complete") {
    const rest = snapshot.tiers.some((tier) => tier.queue) ? "; what is still queued is needed no more, and leaves" : "";
    say(`${snapshot.label} is complete after ${duration(snapshot.cct_ps)}${rest}`);
  }
  latest = snapshot;
  remember([snapshot.time_ps, snapshot.tiers.map((tier) => tier.queue)]);
  for (const update of [updateNumbers, updateControls, updateLinks, updateTiers, updatePhases, updateChanges]) update();
}

async function begin() {
  layout = await (await fetch("layout")).json();
  for (const draw of [drawTree, drawPods, drawTable, drawTiers, drawPlanned, drawControls]) draw();
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
