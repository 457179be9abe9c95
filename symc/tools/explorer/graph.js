// From the model of the page to the graph that is drawn: which nodes, groups and arrows are to be seen. No DOM in here.
"use strict";

/** Text of the user's line number `loc` of the model. */
const lineOf = (model, loc) => `${model.locs[loc].role} ${model.locs[loc].short}`.trim();

/** More rows than this in one group, or in none, are put into parts of PART. */
const CROWD = 100, PART = 50;
/** More states than this are a group. */
const STATES = 16;
const grouped = new WeakMap();

/** Names of the groups that each row of a stage is in, outermost first. `by`: "scopes", "lines" or "". */
function groupsOf(model, stage, by) {
  const known = grouped.get(stage);
  if (known && known.by === by) return known.rows;
  const rows = model.regions[stage.region].lines.map(lines => {
    if (!by || !lines.length) return [];
    const own = lines.find(n => !model.locs[n].role) ?? lines[0], loc = model.locs[own];
    const names = by === "lines" || !loc.path.length ? [loc.short] : [...loc.path];
    if (loc.role) names[0] = loc.role + " " + names[0];
    return names;
  });
  joinChains(rows);
  const members = new Map();
  for (const names of rows) members.set(names.join("/"), (members.get(names.join("/")) || 0) + 1);
  const met = new Map();
  for (const names of rows) {
    const key = names.join("/"), count = members.get(key), k = met.get(key) || 0, from = k - k % PART;
    met.set(key, k + 1);
    if (count > (key ? CROWD : 6 * CROWD)) names.push(`${from + 1} to ${Math.min(from + PART, count)} of ${count}`);
  }
  grouped.set(stage, { by, rows });
  return rows;
}

/** Make one group of groups that have nothing but one another in them. */
function joinChains(rows) {
  const inside = new Map();  // what is in each group: rows, or names of groups
  for (const names of rows) names.forEach((_, k) => {
    const key = names.slice(0, k + 1).join("/");
    if (!inside.has(key)) inside.set(key, new Set());
    inside.get(key).add(names[k + 1]);
  });
  for (const names of rows) {
    const keys = names.map((_, k) => names.slice(0, k + 1).join("/"));
    for (let k = names.length - 2; k >= 0; k--) if (inside.get(keys[k]).size === 1) names.splice(k, 2, names[k] + "/" + names[k + 1]);
  }
}

/**
 * The visible graph of a stage. `open`: keys of kernels, loops and groups that are open.
 * Nodes: {key, label, type, family, value, lines, fresh, parent, box (an open one), count (of a closed group)};
 * edges: {from, to, back}. Keys: "12" is the value 12, "12/0/3" the value 3 in its first region, "g:a/b" a group.
 */
function graphOf(model, stage, by, open) {
  const fresh = new Set(stage.change.new), nodes = new Map(), edges = new Map();
  const groups = groupsOf(model, stage, by);
  const add = node => { nodes.set(node.key, node); return node.key; };

  /** What stands for a row inside of groups: itself, or the outermost closed group. */
  function place(key, names, lines, isNew) {
    let outer = null;
    for (let k = 0; k < names.length; k++) {
      const group = "g:" + names.slice(0, k + 1).join("/");
      if (!nodes.has(group)) add({ key: group, label: names[k], type: "", family: "group", parent: outer, count: 0,
        box: open.has(group), values: [], lines, group: true });
      const g = nodes.get(group);
      g.count++; g.values.push(+key);
      if (isNew) g.fresh = true;
      if (!open.has(group)) return { parent: outer, closed: group };
      outer = group;
    }
    return { parent: outer };
  }

  function link(sources, to, back) {
    for (const s of sources) if (s !== to) {
      const key = s + ">" + to + (back ? "<" : "");
      edges.set(key, { from: s, to, back: !!back });
    }
  }

  function expand(region, prefix, given, parent, roles) {
    const r = model.regions[region], from = new Map();
    r.params.forEach((p, k) => {
      if (prefix && !roles[k]) { from.set(p, [given[k]]); return; }
      const input = prefix ? { name: roles[k], type: model.values[p].type } : stage.inputs[k];
      const at = !prefix && input.role === "state" && stage.updates.length > STATES ? place(p, ["states"], [], false) : { parent };
      const key = at.closed || add({ key: prefix + p, label: input.name, type: input.type, family: "leaf", value: p, parent: at.parent, lines: [] });
      from.set(p, [[key]]);
      if (prefix) link(given[k], key);
    });
    const flow = v => {  // the keys that a value comes from
      const x = model.values[v];
      if (x.number !== undefined) return [];
      if (x.get !== undefined) { const parts = from.get(x.in[0]); return parts ? parts[x.get % parts.length] : []; }
      return (from.get(v) || [[]])[0];
    };
    r.values.forEach((v, row) => {
      const x = model.values[v], key = prefix + v, lines = r.lines[row], isNew = !prefix && fresh.has(row);
      const at = prefix ? { parent } : place(key, groups[row], lines, isNew);
      const shown = at.closed || key, operands = x.in.map(flow);
      if (x.regions && open.has(key) && !at.closed) {
        add({ key, label: x.label || x.op, type: "", family: x.family, value: v, parent: at.parent, box: true, lines, fresh: isNew });
        const bodies = x.regions.map((q, k) => {
          const skipped = operands.length - model.regions[q].params.length;
          return expand(q, key + "/" + k + "/", model.regions[q].params.map((_, i) => operands[i + skipped] || []), key, x.roles);
        });
        const last = bodies[bodies.length - 1], branches = bodies.filter(b => b.length === last.length);
        from.set(v, last.map((_, k) => branches.flatMap(b => b[k])));
        return;
      }
      if (!at.closed) add({ key, label: x.label || x.op, type: x.type, family: x.family, value: v, parent: at.parent, lines,
        fresh: isNew, opens: !!x.regions });
      operands.forEach(sources => link(sources, shown));
      from.set(v, [[shown]]);
    });
    const results = r.results.map(flow);
    const carries = roles.flatMap((role, k) => role.startsWith("carry") ? [k] : []);
    if (results.length >= carries.length) carries.forEach((k, n) => link(results[n], prefix + r.params[k], true));
    return results;
  }

  const results = expand(stage.region, "", [], null, []);
  results.forEach((sources, k) => {
    const label = k < stage.outputs ? "output " + k : "new " + stage.updates[k - stage.outputs];
    const at = k >= stage.outputs && stage.updates.length > STATES ? place("", ["new states"], [], false) : { parent: null };
    link(sources, at.closed || add({ key: "result " + k, label, type: "", family: "result", parent: at.parent, lines: [] }));
  });
  return { nodes, edges: [...edges.values()] };
}

/** Keys of all groups of a stage, and with `regions` of what has regions. */
function openable(model, stage, by, regions) {
  const found = new Set(), visit = (region, prefix) => {
    const r = model.regions[region];
    r.values.forEach((v, row) => {
      if (!prefix) {
        const names = groupsOf(model, stage, by)[row];
        names.forEach((_, k) => found.add("g:" + names.slice(0, k + 1).join("/")));
      }
      const x = model.values[v];
      if (regions && x.regions) {
        found.add(prefix + v);
        x.regions.forEach((q, k) => visit(q, prefix + v + "/" + k + "/"));
      }
    });
  };
  visit(stage.region, "");
  if (regions) found.add("g:states").add("g:new states");
  return found;
}

/** Rows of text of a stage, those that a pass took away among them: {text, value, row, in, state}. */
function textOf(model, stage, before) {
  const rows = [], spelled = new Map();
  const written = region => {
    if (!spelled.has(region)) spelled.set(region, spelling(region));
    return spelled.get(region);
  };
  const spelling = region => {
    const r = model.regions[region], names = new Map();
    r.params.forEach((p, k) => names.set(p, r.names[k]));
    r.values.forEach((v, k) => names.set(v, r.left[k]));
    return v => {
      const x = model.values[v];
      if (x.number !== undefined) return x.number;
      return x.get !== undefined ? names.get(x.in[0]).split(", ")[x.get] : names.get(v);
    };
  };
  const line = (region, k) => {
    const r = model.regions[region], v = r.values[k], x = model.values[v], name = written(region);
    return r.left[k] + " = " + x.op + (x.in.length ? " " + x.in.map(name).join(", ") : "") +
      (x.attrs ? " " + x.attrs : "") + " : " + x.type + (x.regions ? " {" : "") +
      (r.lines[k].length ? "  // " + [...new Set(r.lines[k].map(n => lineOf(model, n)))].join(", ") : "");
  };
  const block = (region, depth, state) => {
    const r = model.regions[region], top = depth === 0;
    const fresh = new Set(top ? stage.change.new : []), gone = top ? [...stage.change.gone] : [];
    const removed = k => { while (gone.length && gone[0][1] <= k)
      rows.push({ text: line(before.region, gone.shift()[0]), in: depth, state: "gone" }); };
    r.values.forEach((v, k) => {
      removed(k);
      const own = fresh.has(k) ? "new" : state, x = model.values[v];
      rows.push({ text: line(region, k), value: v, row: k, in: depth, state: own, lines: r.lines[k] });
      (x.regions || []).forEach((q, n) => {
        const inner = model.regions[q], types = inner.params.map((p, i) => inner.names[i] + ": " + model.values[p].type);
        if (n) rows.push({ text: "} {", in: depth, state: own });
        rows.push({ text: "^(" + types.join(", ") + "):", in: depth, state: own });
        block(q, depth + 1, own);
        rows.push({ text: "yield " + inner.yields.join(", "), in: depth + 1, state: own });
      });
      if (x.regions) rows.push({ text: "}", in: depth, state: own });
    });
    removed(Infinity);
  };
  block(stage.region, 0, "");
  const r = model.regions[stage.region];
  rows.push({ text: "return " + r.yields.slice(0, stage.outputs).join(", ") + (stage.updates.length ? " update (" +
    stage.updates.map((n, k) => "%" + n + " = " + r.yields[stage.outputs + k]).join(", ") + ")" : ""), in: 0, state: "" });
  return rows;
}
