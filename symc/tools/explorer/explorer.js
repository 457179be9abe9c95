// The page: draws the graph of a stage, and links values, the user's lines, kernels and steps of the plan.
"use strict";

const model = JSON.parse(document.getElementById("model").textContent);
const $ = id => document.getElementById(id);
/** An element with attributes and children; text is text, never HTML. */
function make(tag, attrs = {}, ...children) {
  const svg = ["g", "rect", "text", "path", "svg", "title", "line"].includes(tag);
  const e = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [k, v] of Object.entries(attrs)) {
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (v !== undefined && v !== null && v !== false) e.setAttribute(k, v === true ? "" : v);
  }
  e.append(...children.filter(c => c !== null && c !== undefined));
  return e;
}
const cut = (text, most) => text.length > most ? text.slice(0, most - 1) + "…" : text;
const bytes = n => n >= 1e9 ? (n / 1e9).toFixed(1) + " GB" : n >= 1e6 ? (n / 1e6).toFixed(1) + " MB"
  : n >= 1e3 ? (n / 1e3).toFixed(1) + " kB" : n + " B";
const time = s => s >= 1 ? s.toFixed(1) + " s" : s >= 1e-3 ? (s * 1e3).toFixed(1) + " ms" : (s * 1e6).toFixed(1) + " µs";

/** More rows than this are grouped by lines, where there are no scopes; fewer boxes than FEW are drawn at once. */
const MANY = 120, FEW = 40;
/** More boxes than this take the layout too long. */
const MOST = 500;
const state = { at: model.stages.length - 1, by: "scopes", open: new Set(), tab: "text", hits: [], hit: -1,
  values: new Set(), lines: new Set(), steps: new Set(), kernels: new Set(), buffers: new Set() };
const stage = () => model.stages[state.at], before = () => model.stages[state.at - 1];
const timed = Math.max(0, ...model.steps.map(s => s.seconds || 0));
const stepsOf = v => model.steps.flatMap((s, k) => s.value === v ? [k] : []);
const secondsOf = v => stepsOf(v).reduce((sum, k) => sum + (model.steps[k].seconds || 0), 0);

// --- what is chosen -------------------------------------------------------------------------------------------------

/** Rows of the stage, those in regions too, with the rows that they are in. */
function rowsOf(region = stage().region, outer = []) {
  const r = model.regions[region];
  return r.values.flatMap((v, k) => [{ value: v, lines: r.lines[k], left: r.left[k], outer },
    ...(model.values[v].regions || []).flatMap(q => rowsOf(q, [...outer, v]))]);
}
const sameLine = (a, b) => model.locs[a].file === model.locs[b].file && model.locs[a].line === model.locs[b].line;

/** Choose values, and all that belongs to them. */
function choose(values, only = {}) {
  state.values = new Set(values);
  const steps = only.steps || model.steps.flatMap((s, k) => state.values.has(s.value) ? [k] : []);
  const rows = rowsOf().filter(r => state.values.has(r.value) || only.inside && r.outer.some(v => state.values.has(v)));
  state.lines = new Set(only.lines || rows.flatMap(r => r.lines));
  state.steps = new Set(steps.length ? steps : model.steps.flatMap((s, k) => rows.some(r => r.outer.includes(s.value)) ? [k] : []));
  state.kernels = new Set([...state.steps].map(k => model.steps[k].kernel).filter(k => k !== null));
  state.buffers = new Set(only.buffers || [...state.steps].flatMap(k => model.steps[k].depth ? [] : model.steps[k].writes));
  mark(); panel(); chosen(); memory();
}
/** Choose a line of the user's: everything that was made on it. */
const chooseLine = loc => choose(rowsOf().filter(r => r.lines.some(n => sameLine(n, loc))).map(r => r.value),
  { lines: model.locs.flatMap((_, n) => sameLine(n, loc) ? [n] : []) });
/** Choose a step of the plan; values are those of the last stage. */
function chooseStep(k) {
  if (model.steps[k].value !== null && !rowsOf().some(r => r.value === model.steps[k].value)) show(model.stages.length - 1);
  choose([model.steps[k].value], { steps: [k] });
}
const chooseKernel = n => { const steps = model.steps.flatMap((s, k) => s.kernel === n ? [k] : []);
  if (steps.length) chooseStep(steps[0]); if (steps.length > 1) choose(steps.map(k => model.steps[k].value), { steps }); };

function chip(text, go) { return make("span", { class: "chip", onclick: go, role: "link", tabindex: 0 }, text); }

function chosen() {
  const box = $("chosen");
  box.replaceChildren();
  const rows = rowsOf().filter(r => state.values.has(r.value)), inputs = stage().inputs.filter(i => state.values.has(i.value));
  if (!state.values.size && !state.lines.size) { box.append(make("span", { class: "dim" }, model.about)); return; }
  for (const i of inputs) box.append(make("div", {}, make("code", {}, (i.role === "state" ? "state " : "") + "%" + i.name + ": " + i.type)));
  for (const r of rows.slice(0, 3)) {
    const x = model.values[r.value];
    box.append(make("div", {}, make("code", {}, r.left + " = " + x.op + (x.label ? " (" + x.label + ")" : "") +
      (x.attrs ? " " + cut(x.attrs, 90) : "") + " : " + x.type)));
  }
  if (rows.length > 3) box.append(make("div", { class: "dim" }, "and " + (rows.length - 3) + " more values"));
  const links = make("div");
  for (const n of [...state.lines].slice(0, 8)) links.append(chip(lineOf(model, n), () => { chooseLine(n); tab("lines"); }));
  for (const k of state.kernels) links.append(chip("kernel " + model.kernels[k].name, () => { chooseKernel(k); tab("kernels"); }));
  for (const k of [...state.steps].slice(0, 8)) links.append(chip("step " + k + (model.steps[k].seconds ? ", " +
    time(model.steps[k].seconds) : ""), () => { chooseStep(k); tab("plan"); }));
  if (rows.length) links.append(chip("in the picture", () => reveal(rows[0])), chip("in the text", () => tab("text")));
  box.append(links);
}

// --- the drawing ----------------------------------------------------------------------------------------------------

let graph = null, shown = new Map(), worker = null, view = { x: 0, y: 0, k: 1 }, drawing = 0;
const sizeOf = n => [Math.max(30 + 6.9 * (cut(n.label, 28).length + (n.count ? 2 + String(n.count).length : 0)), 20 + 6.3 * cut(n.type, 28).length), n.type ? 34 : 22];

/** The layout of Dagre, in a worker where there can be one. */
function layout(g, done) {
  const task = { nodes: [...g.nodes.values()].map(n => [n.key, ...(n.box ? [0, 0] : sizeOf(n)), n.parent]), edges: g.edges.map(e =>
    e.back ? [e.to, e.from] : [e.from, e.to]) };
  if (worker) worker.terminate();
  $("busy").hidden = false;
  const finish = found => { $("busy").hidden = true; done(found); };
  try {
    const code = $("dagre").textContent + "\n" + placed + "\nonmessage = e => postMessage(placed(dagre, e.data));";
    worker = new Worker(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
    worker.onmessage = e => finish(e.data);
    worker.onerror = () => finish(placed(dagre, task));
    worker.postMessage(task);
  } catch (e) { worker = null; finish(placed(dagre, task)); }
}
function placed(dagre, task) {
  const g = new dagre.graphlib.Graph({ compound: true });
  g.setGraph({ nodesep: 14, ranksep: 28, edgesep: 8, marginx: 8, marginy: 8 });
  for (const [key, width, height] of task.nodes) g.setNode(key, width ? { width, height } : { width: 60, height: 24 });
  for (const [key, , , parent] of task.nodes) if (parent) g.setParent(key, parent);
  for (const [a, b] of task.edges) g.setEdge(a, b, {});
  dagre.layout(g);
  return { nodes: g.nodes().map(k => [k, g.node(k)]).map(([k, n]) => [k, n.x, n.y, n.width, n.height]),
    edges: task.edges.map(([a, b]) => g.edge(a, b).points.map(p => [p.x, p.y])) };
}

function draw(keep, then) {
  const at = stage(), now = ++drawing;
  graph = graphOf(model, at, state.by, state.open);
  layout(graph, found => { if (now === drawing) { render(found); if (!keep) fit(); mark(); if (then) then(); } });
}

function render(found) {
  const paint = $("view");
  paint.replaceChildren();
  shown = new Map();
  const byDepth = found.nodes.map(p => [graph.nodes.get(p[0]), p]).sort((a, b) => !!b[0].box - !!a[0].box || b[1][4] - a[1][4]);
  for (const [n, [key, x, y, w, h]] of byDepth) if (n.box) paint.append(box(n, x, y, w, h));
  const parents = new Map([...graph.nodes.values()].map(n => [n.key, n]));
  graph.edges.forEach((e, k) => {
    const p = e.back ? [...found.edges[k]].reverse() : found.edges[k];
    let d = "M" + p[0];
    for (let i = 1; i < p.length - 1; i++) d += "Q" + p[i] + " " + [(p[i][0] + p[i + 1][0]) / 2, (p[i][1] + p[i + 1][1]) / 2];
    const line = make("path", { class: "edge" + (e.back ? " back" : ""), d: d + "L" + p[p.length - 1], "marker-end": "url(#arrow)" });
    e.line = line; paint.append(line);
  });
  for (const [n, [key, x, y, w, h]] of byDepth) if (!n.box) paint.append(box(n, x, y, w, h));
  const ends = [...found.nodes.map(([, x, y, w, h]) => [x + w / 2, y + h / 2]), ...found.edges.flat()];
  view.bounds = ends.reduce((b, p) => [Math.max(b[0], p[0]), Math.max(b[1], p[1])], [1, 1]);
  $("graph").dataset.nodes = graph.nodes.size;
}

function box(n, x, y, w, h) {
  if (n.box) { y -= 8; h += 16; }  // room for its name
  const g = make("g", { class: "node " + n.family + (n.box ? " cluster" : "") + (n.fresh ? " new" : ""), "data-key": n.key,
    transform: `translate(${x - w / 2} ${y - h / 2})`, onclick: e => { e.stopPropagation(); pickNode(n); },
    ondblclick: e => { e.stopPropagation(); toggle(n); } },
    make("title", {}, [n.label, n.type, ...n.lines.map(l => lineOf(model, l))].filter(Boolean).join("\n")),
    make("rect", { class: "box", width: w, height: h, rx: n.family === "leaf" || n.family === "result" ? h / 3 : 5 }));
  const share = timed && n.value !== undefined ? secondsOf(n.value) / timed : 0;
  if (share > 0.01) g.append(make("rect", { class: "heat", y: h - 3, width: w * share, height: 3 }));
  const sign = n.group || n.opens || n.box && n.value !== undefined ? (n.box ? "▾ " : "▸ ") : "";
  g.append(make("text", { x: 8, y: 14 }, sign + cut(n.label, n.box ? 60 : 28) + (n.count && !n.box ? " ×" + n.count : "")));
  if (n.type && !n.box) g.append(make("text", { class: "type", x: 8, y: 28 }, cut(n.type, 28)));
  shown.set(n.key, { g, n, x, y });
  return g;
}
function pickNode(n) {
  if (n.group) choose(n.values);
  else if (n.value !== undefined) choose([n.value], { inside: true });
}
/** Open or close a group, a kernel or a loop. */
function toggle(n) {
  if (!n.group && !n.opens && !n.box) return;
  const open = new Set(state.open);
  if (!open.delete(n.key)) open.add(n.key);
  reopen(open, true);
}
/** Open what is in `open`, unless that is too much to draw. */
function reopen(open, keep) {
  const count = graphOf(model, stage(), state.by, open).nodes.size;
  if (count > MOST && open.size > state.open.size) {
    $("help").textContent = `${count} boxes at once are too many to draw: open groups one by one, by a double click`;
    return;
  }
  state.open = open;
  draw(keep);
}
/** Show a row in the picture: open what it is in, and go there. */
function reveal(row) {
  const top = row.outer[0] ?? row.value, r = model.regions[stage().region], k = r.values.indexOf(top);
  const names = k < 0 ? [] : groupsOf(model, stage(), state.by)[k];
  let changed = false;
  names.forEach((_, i) => { const key = "g:" + names.slice(0, i + 1).join("/"); changed ||= !state.open.has(key); state.open.add(key); });
  const go = () => { const at = shown.get(String(top)); if (at) { center(at); } };
  if (changed) draw(true, go); else go();
}

// --- moving about ---------------------------------------------------------------------------------------------------

function moved() { $("view").setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.k})`); }
function fit() {
  const [w, h] = view.bounds || [1, 1], r = $("graph").getBoundingClientRect();
  view.k = Math.max(0.05, Math.min(1.2, r.width / (w + 16), r.height / (h + 16)));
  if (view.k < 0.35) { view.k = 0.6; }  // too small to read: begin at the top
  view.x = Math.max((r.width - w * view.k) / 2, r.width > w * view.k ? 0 : -Infinity); view.y = 8;
  moved();
}
function center(at) {
  const r = $("graph").getBoundingClientRect();
  view.k = Math.max(view.k, 0.7);
  view.x = r.width / 2 - at.x * view.k; view.y = r.height / 2 - at.y * view.k;
  moved();
}
function mark() {
  const hits = new Set(state.hits.map(r => String(r.outer[0] ?? r.value)));
  const picked = n => n.group ? n.values.some(v => state.values.has(v)) && !n.box : state.values.has(n.value);
  for (const { g, n } of shown.values()) {
    g.classList.toggle("pick", picked(n));
    g.classList.toggle("hit", n.group ? !n.box && n.values.some(v => hits.has(String(v))) : hits.has(n.key));
  }
  for (const e of graph ? graph.edges : []) if (e.line) e.line.classList.toggle("pick",
    picked(graph.nodes.get(e.from)) || picked(graph.nodes.get(e.to)));
}

// --- texts ----------------------------------------------------------------------------------------------------------

const tabs = { text: "IR", lines: "your lines", kernels: "kernels", plan: "plan" };
function tab(name) { state.tab = name; panel(); }
function panel() {
  $("tabs").replaceChildren(...Object.entries(tabs).map(([k, t]) =>
    make("button", { class: k === state.tab ? "on" : "", onclick: () => tab(k) }, t)));
  const box = $("panel"), top = box.dataset.tab === state.tab + state.at ? box.scrollTop : 0;
  box.dataset.tab = state.tab + state.at;
  box.replaceChildren(...({ text, lines, kernels, plan }[state.tab])());
  box.scrollTop = top;
  box.querySelector(".pick")?.scrollIntoView({ block: "center" });
}
const bar = (s, most) => s && most ? make("span", { class: "bar", style: `width:${Math.max(2, 60 * s / most)}px`, title: time(s) }) : null;
function text() {
  const hits = new Set(state.hits.map(r => r.value)), at = stage();
  const head = at.doc ? [make("h2", {}, at.name + ": " + at.doc)] : [];
  if (at.rules.length) head.push(folded(at.rules.length + (at.rules.length > 1 ? " rules" : " rule") + " fired",
    at.rules.map(([r, n]) => make("div", { class: "row plain" }, n + " × " + r))));
  const row = r => make("div", { class: "row " + r.state + (state.values.has(r.value) ? " pick" : "") +
    (hits.has(r.value) ? " hit" : "") + (r.value === undefined && !r.state ? " plain" : ""), style: `--in:${r.in}`,
    onclick: r.value !== undefined ? () => choose([r.value]) : undefined }, (r.state === "gone" ? "− " : r.state === "new" ? "+ " : "  ") + r.text);
  const found = [], rows = textOf(model, at, before());
  for (let k = 0, end; k < rows.length; k = end) {
    for (end = k + 1; end < rows.length && rows[k].state === "gone" && rows[end].state === "gone"; end++);
    const part = rows.slice(k, end).map(row);
    found.push(...(part.length > 6 ? [folded("− " + part.length + " values gone", part)] : part));
  }
  return [...head, ...found];
}
const folded = (title, rows) => make("details", {}, make("summary", { class: "row plain" }, title), ...rows);
function lines() {
  const most = Math.max(0, ...Object.values(model.lineSeconds)), rows = rowsOf();
  return Object.entries(model.files).flatMap(([file, found]) => [make("h2", {}, file), ...found.map(([n, code]) => {
    const loc = model.locs.findIndex(l => l.file === file && l.line === n);
    const on = loc >= 0 && [...state.lines].some(k => sameLine(k, loc)), used = loc >= 0 && rows.some(r => r.lines.some(k => sameLine(k, loc)));
    const seconds = loc >= 0 ? model.lineSeconds[model.locs[loc].short] : 0;
    return make("div", { class: "row" + (on ? " pick" : "") + (used ? "" : " plain"), onclick: used ? () => chooseLine(loc) : undefined },
      String(n).padStart(5) + "  ", most ? make("span", { class: "slot" }, bar(seconds, most)) : null, code);
  })]);
}
function kernels() {
  if (!model.kernels.length) return [make("pre", {}, model.source || "no kernels: run op by op")];
  return model.kernels.map((k, n) => make("details", { class: "kernel-text" + (state.kernels.has(n) ? " pick" : ""), open: state.kernels.has(n) },
    make("summary", { onclick: () => chooseKernel(n) }, k.name, make("span", { class: "dim" }, k.launches > 1 ? "  ×" + k.launches : "")),
    make("pre", {}, k.source)));
}
function plan() {
  if (!model.steps.length) return [make("pre", { class: "dim" }, "no plan: run op by op")];
  return [...model.steps.map((s, k) => make("div", { class: "row" + (state.steps.has(k) ? " pick" : ""), style: `--in:${s.depth}`,
    onclick: () => chooseStep(k) }, String(k).padStart(3) + "  ", timed ? make("span", { class: "slot" }, bar(s.seconds, timed)) : null,
    s.seconds ? time(s.seconds).padStart(8) + "  " : "", s.writes.join(", ") + " ← " + s.label + " " + s.reads.join(", ") + (s.inPlace ? "  in place" : "") + (s.runs > 1 ? "  ×" + s.runs : ""))),
    folded("the plan as text", [make("pre", {}, model.plan || "")])];
}

// --- memory and time ------------------------------------------------------------------------------------------------

function memory() {
  const m = model.memory, box = $("memory");
  if (!m || !m.steps) { box.hidden = true; return; }
  const W = 1000, H = 92, results = m.rows.filter(r => r[1] === "result"), temps = m.rows.filter(r => r[1] === "temp");
  const total = Math.max(1, m.arena + results.reduce((s, r) => s + r[2], 0)), x = t => t * W / m.steps, y = b => b * H / total;
  let above = m.arena;
  const svg = make("svg", { viewBox: `0 0 ${W} ${H + 40}`, preserveAspectRatio: "none" });
  const top = model.steps.flatMap((s, k) => s.depth ? [] : [k]);
  for (const k of state.steps) svg.append(make("rect", { class: "here", x: x(model.steps[k].at), width: Math.max(2, x(1)), height: H + 40 }));
  for (const [name, kind, size, offset, first, last] of [...temps, ...results]) {
    const low = offset ?? (above += size) - size;
    svg.append(make("rect", { class: "buffer " + kind + (state.buffers.has(name) ? " pick" : ""), x: x(first), width: Math.max(1, x(last + 1 - first)),
      y: H - y(low + size), height: Math.max(1.5, y(size)), onclick: () => chooseBuffer(name) },
      make("title", {}, `${name}: ${bytes(size)}, ${kind}, steps ${first}–${last}` + (offset !== null ? `, at ${offset} of the arena` : ""))));
  }
  top.forEach(k => {  // with those of loops inside
    const s = model.steps.reduce((sum, q) => sum + (q.at === model.steps[k].at ? q.seconds || 0 : 0), 0), h = timed ? Math.min(34, Math.max(1, 34 * s / timed)) : 6;
    svg.append(make("rect", { class: s ? "time" : "temp", x: x(model.steps[k].at) + .5, width: Math.max(1, x(1) - 1), y: H + 39 - h, height: h,
      onclick: () => chooseStep(k) }, make("title", {}, `step ${k}: ${model.steps[k].label}` + (s ? ", " + time(s) : ""))));
  });
  const kept = m.rows.filter(r => r[1] !== "temp" && r[1] !== "result").reduce((s, r) => s + r[2], 0);
  const sizes = Object.entries(m.sizes).map(([n, k]) => `${n} = ${k}`).join(", ");
  box.replaceChildren(make("div", {}, make("b", {}, "memory and time, step by step  "), make("span", { class: "dim" },
    `peak ${bytes(m.peak)}: arena ${bytes(m.arena)}, inputs, states and constants ${bytes(kept)}; without reuse ${bytes(m.naive)}` +
    (sizes ? ` (${m.assumed.length ? "assumed " : ""}${sizes})` : "") + (timed ? "" : "; no times: to_html(path, *arguments) measures them"))), svg);
}
function chooseBuffer(name) {
  const steps = model.steps.flatMap((s, k) => s.writes.includes(name) && !s.depth ? [k] : []);
  if (steps.length && !rowsOf().some(r => r.value === model.steps[steps[0]].value)) show(model.stages.length - 1);
  choose(steps.map(k => model.steps[k].value), { steps, buffers: [name] });
}

// --- search, stages, start ------------------------------------------------------------------------------------------

function search() {
  const word = $("search").value.trim().toLowerCase();
  const says = r => [r.left, model.values[r.value].op, model.values[r.value].label || "", model.values[r.value].type,
    ...r.lines.map(n => lineOf(model, n) + " " + source(n)), ...stepsOf(r.value).map(k => model.steps[k].label)].some(t => t.toLowerCase().includes(word));
  const inputs = word ? stage().inputs.filter(i => i.name.toLowerCase().includes(word)).map(i => ({ value: i.value, lines: [], left: i.name, outer: [] })) : [];
  state.hits = word ? [...inputs, ...rowsOf().filter(says)] : [];
  state.hit = -1;
  $("hits").textContent = word ? state.hits.length + (state.hits.length === 1 ? " match" : " matches") : "";
  mark();
}
const source = n => (model.files[model.locs[n].file] || []).find(([k]) => k === model.locs[n].line)?.[1] || "";
function nextHit() {
  if (!state.hits.length) return;
  const r = state.hits[state.hit = (state.hit + 1) % state.hits.length];
  choose([r.value]); reveal(r);
  $("hits").textContent = `${state.hit + 1} of ${state.hits.length}`;
}
function show(at) {
  state.at = Math.max(0, Math.min(model.stages.length - 1, at));
  const s = stage(), change = s.change;
  $("at").value = state.at; $("stage").textContent = s.name; $("stage").title = s.doc;
  $("counts").textContent = `${model.regions[s.region].values.length} values` + (before() ? `, ${change.new.length} new, ${change.gone.length} gone` : "");
  regroup();
}
/** Groups begin open, level by level, as far as there are few boxes. */
function regroup() {
  const groups = [...openable(model, stage(), state.by, false)], depth = key => key.split("/").length;
  state.open = new Set();
  for (let d = 1; d <= Math.max(0, ...groups.map(depth)); d++) {
    const open = new Set(groups.filter(key => depth(key) <= d));
    if (graphOf(model, stage(), state.by, open).nodes.size > FEW) break;
    state.open = open;
  }
  draw(); search(); panel(); chosen(); memory();
}
function start() {
  $("title").textContent = model.name; $("title").title = model.about;
  $("at").max = model.stages.length - 1;
  if (!model.locs.some(l => l.path.length)) { state.by = ""; $("group").querySelector("[value=scopes]").remove(); }
  if (!state.by && model.regions[stage().region].values.length > MANY) state.by = "lines";  // too many to be seen at once
  $("group").value = state.by;
  $("at").oninput = e => show(+e.target.value);
  $("back").onclick = () => show(state.at - 1); $("next").onclick = () => show(state.at + 1);
  $("group").onchange = e => { state.by = e.target.value; regroup(); };
  $("fold").onclick = () => reopen(new Set());
  $("unfold").onclick = () => reopen(openable(model, stage(), state.by, true));
  $("fit").onclick = fit;
  $("search").oninput = () => { search(); if (state.tab === "text") panel(); };
  $("search").onkeydown = e => { if (e.key === "Enter") nextHit(); if (e.key === "Escape") { e.target.value = ""; search(); panel(); } };
  document.onkeydown = e => {
    if (e.target.tagName === "INPUT" || e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === "ArrowLeft") show(state.at - 1);
    if (e.key === "ArrowRight") show(state.at + 1);
    if (e.key === "/") { e.preventDefault(); $("search").focus(); }
    if (e.key === "Enter" && e.target.classList.contains("chip")) e.target.click();
  };
  let drag = null;
  const svg = $("graph");
  svg.onpointerdown = e => { drag = [e.clientX - view.x, e.clientY - view.y, false]; };
  svg.onpointermove = e => { if (drag && e.buttons) { view.x = e.clientX - drag[0]; view.y = e.clientY - drag[1]; moved(); } };
  svg.onpointerup = () => { drag = null; };
  svg.onclick = e => { if (e.target === svg) { state.lines = new Set(); choose([]); } };
  svg.addEventListener("wheel", e => {
    e.preventDefault();
    const r = svg.getBoundingClientRect(), k = Math.min(3, Math.max(0.03, view.k * Math.exp(-e.deltaY / 400)));
    view.x = e.clientX - r.left - (e.clientX - r.left - view.x) * k / view.k;
    view.y = e.clientY - r.top - (e.clientY - r.top - view.y) * k / view.k;
    view.k = k; moved();
  }, { passive: false });
  show(model.stages.length - 1);
}
start();
