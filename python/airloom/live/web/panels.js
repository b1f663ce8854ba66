// Tables and lists. Text of scenarios and nodes only becomes text nodes, never markup.
import { chart, drawn } from "./chart.js";
import { past } from "./curves.js";
import { colour } from "./map.js";
import { moment, percent, rate } from "./units.js";

const MINUTE = 120; // readings
const ROWS = 400;
const USERS = 8;
const running = new Map();
let drawing = null;

export function made(tag, text = "", className = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  if (className) element.className = className;
  return element;
}

export function begin(said) {
  drawing = said;
  for (const name of said.measurements) if (!running.has(name)) waiting(name);
}

export function slices(element, said) {
  const names = [...new Set(Object.values(said.slices))];
  const parts = names.map((name) => {
    const key = made("span", "", "key dot");
    key.style.background = colour(said, name);
    const part = made("span");
    part.append(key, ` ${name} `);
    return part;
  });
  if (parts.length > 0) parts.unshift("Slices: ");
  element.replaceChildren(...parts, parts.length > 0 ? made("br") : "", "Lines join radios that exchange frames now; red ones repeat more than 30 %. Dots show the way a node came.");
}

function waiting(name) {
  const item = made("li");
  item.append(made("strong", name), made("span", "waits", "what"));
  running.set(name, { item });
  document.getElementById("measurements").append(item);
}

export function entry(measurements, events, one) {
  if (one.kind === "point") {
    running.clear();
    measurements.replaceChildren();
  }
  if (["measuring", "measured", "failed"].includes(one.kind)) measurement(measurements, one);
  if (one.kind === "measuring" || one.kind === "measured" || one.kind === "phase") return;
  const line = made("li");
  line.append(made("time", one.at === null ? "" : moment(one.at)), made("span", one.text, one.kind === "failed" || one.kind === "problem" ? "bad" : ""));
  const atEnd = events.scrollTop + events.clientHeight >= events.scrollHeight - 8;
  events.append(line);
  while (events.children.length > 300) events.firstChild.remove();
  if (atEnd) events.scrollTop = events.scrollHeight;
}

function measurement(list, one) {
  if (!running.has(one.name)) waiting(one.name);
  const known = running.get(one.name);
  const head = [made("strong", one.name)];
  if (one.kind === "measuring") {
    const bar = made("progress");
    bar.setAttribute("aria-label", `Progress of ${one.name}`);
    bar.max = Math.max(one.expected, 1e8);
    Object.assign(known, { bar, from: one.at ?? 0, curve: made("div") });
    known.item.replaceChildren(...head, made("span", "runs", "what"), bar, known.curve);
    return;
  }
  known.bar = null;
  if (one.kind === "failed") {
    known.item.replaceChildren(...head, made("span", "failed", "what bad"), made("div", one.text));
    return;
  }
  known.item.replaceChildren(...head, made("span", "done", "what good"), figures(one.figures), known.curve ?? "");
  if (one.further.length === 0) return;
  const more = made("details");
  more.append(made("summary", `${one.further.length} more figures`), figures(one.further));
  known.item.append(more);
}

function figures(found) {
  const list = made("div", "", "figures");
  for (const [name, value] of found) {
    const part = made("span");
    part.append(made("span", `${name} `), value);
    list.append(part);
  }
  return list;
}

export function progress(at) {
  for (const { bar, from } of running.values()) if (bar) bar.value = Math.min(bar.max, at - from);
}

// The curves of measurements that run: `of` has the points of each so far.
export function values(said, of) {
  for (const name of Object.keys(said)) {
    const known = running.get(name), curve = of(name);
    if (!known?.curve || !curve) continue;
    known.curve.replaceChildren(chart(curve.title, [{ className: "first", points: curve.points }], curve.text));
  }
}

export function claims(list, part, said) {
  part.hidden = said.length === 0;
  list.replaceChildren(...said.map((one) => {
    const item = made("li");
    const good = one.outcome.startsWith("holds");
    item.append(made("strong", one.id), made("span", one.outcome, `what ${good ? "good" : one.outcome === "fails" ? "bad" : ""}`), made("div", one.statement));
    return item;
  }));
}

export function node(title, list, vertex, state, said) {
  title.textContent = `Node ${vertex.name}`;
  const rows = [["kind", vertex.kind ? `${vertex.kind}, ${vertex.role}` : vertex.role]];
  if (state && vertex.name in state.nodes) rows.push(["state", state.nodes[vertex.name]]);
  for (const address of vertex.addresses) rows.push(["address", address]);
  for (const [port, radio] of Object.entries(state?.radios ?? {})) {
    if (port.split(":")[0] !== vertex.name) continue;
    const place = radio.position.map((one) => one.toFixed(1)).join(", ");
    rows.push(["position", `${place} m`]);
    const of = radio.slice ? `, slice ${radio.slice}` : "";
    const off = radio.cut ? ", cut" : radio.on ? "" : ", off";
    rows.push([port.split(":")[1], `${radio.phy}, channel ${radio.channel} (${radio.mhz} MHz)${of}${off}`]);
  }
  const links = said.links.filter((one) => one.a === vertex.name || one.b === vertex.name);
  for (const link of links) {
    const now = state?.links[link.name];
    rows.push(["link", `${link.name}${now ? (now.up ? "" : ", down") : ""}`]);
  }
  list.replaceChildren(...rows.flatMap(([name, value]) => [made("dt", name), made("dd", value)]));
}

export function links(body, state, said) {
  const rows = [];
  const names = said.links.filter((one) => one.name in state.links).slice(0, ROWS / 2);
  for (const { name, a, b } of names) {
    const link = state.links[name];
    for (const [direction, from, to] of [["forward", a, b], ["backward", b, a]]) {
      const way = link[direction];
      const rates = past(name, direction, "bit_s").slice(-MINUTE).map(([, value]) => value);
      const row = made("tr");
      const first = direction === "forward";
      row.append(
        made("td", first ? name : ""),
        made("td", first ? (link.up ? "up" : "down") : "", first ? (link.up ? "good" : "bad") : ""),
        made("td", `${from} → ${to}`),
        made("td", rate(way.bit_s), "number"),
        cell(spark(rates, way.rate)),
        made("td", way.queue ? `${way.queue}` : "0", "number"),
        made("td", way.dropped.toLocaleString("en"), way.dropping > 0 ? "number bad" : "number"),
        made("td", way.text),
      );
      rows.push(row);
    }
  }
  body.replaceChildren(...rows);
}

function cell(content) {
  const made_ = made("td");
  made_.append(content);
  return made_;
}

function spark(values, limit) {
  const svg = drawn("svg", { class: "spark", viewBox: `0 0 ${MINUTE} 20`, preserveAspectRatio: "none", "aria-hidden": "true" });
  const most = Math.max(limit ?? 0, ...values) || 1;
  const from = MINUTE - values.length;
  const points = values.map((one, index) => `${from + index},${(19 - (18 * one) / most).toFixed(1)}`).join(" ");
  svg.append(drawn("polyline", { "vector-effect": "non-scaling-stroke", points }));
  return svg;
}

export function channels(element, state) {
  const cards = state.channels.map((one) => {
    const card = made("div", "", "card");
    card.append(made("h3", `Channel ${one.channel} (${one.mhz} MHz) of ${one.medium}`));
    const bar = made("div", "", "bar");
    for (const share of [one.busy, one.overlapped]) {
      const part = made("i");
      part.style.width = `${100 * share}%`;
      bar.append(part);
    }
    const overlap = one.overlapped > 0.0005 ? `, overlapping ${percent(one.overlapped)}` : "";
    card.append(bar, made("p", `busy ${percent(one.busy)}${overlap}, ${Math.round(one.frames_s).toLocaleString("en")} frames/s`, "legend"));
    const users = made("ul", "", "radios");
    const here = Object.entries(state.radios).filter(([, radio]) => radio.medium === one.medium && radio.mhz === one.mhz);
    const busiest = new Set([...here].sort((a, b) => b[1].airtime - a[1].airtime).slice(0, USERS).map(([port]) => port));
    users.append(...here.filter(([port]) => busiest.has(port)).map(([port, radio]) => user(port, radio)));
    card.append(users);
    if (here.length > USERS) card.append(made("p", `and ${here.length - USERS} more radios, which send less`, "legend"));
    return card;
  });
  element.replaceChildren(...cards);
  if (cards.length === 0) element.append(made("p", "No radio has sent yet.", "legend"));
}

function user(port, radio) {
  const item = made("li");
  const name = made("span", "", "name");
  if (radio.slice) {
    const key = made("span", "", "key dot");
    key.style.background = colour(drawing, radio.slice);
    name.append(key, " ");
  }
  const state = radio.cut ? " (cut)" : radio.on ? "" : " (off)";
  name.append(`${port}${radio.slice ? `, ${radio.slice}` : ""}${state}`);
  const bar = made("div", "", "bar"), part = made("i");
  part.style.width = `${100 * radio.airtime}%`;
  bar.append(part);
  item.append(name, bar, made("span", percent(radio.airtime), "share"));
  item.title = `sends ${percent(radio.airtime)} of the time; ${radio.queued} frames wait`;
  return item;
}

export function violations(body, part, said) {
  part.hidden = said.count === 0;
  body.replaceChildren(...said.last.slice().reverse().map((one) => {
    const row = made("tr");
    const amount = one.amount ? `${one.amount} ${one.unit}` : "";
    for (const text of [moment(one.t_ns), one.slice, one.radio, one.what, amount, one.channel, one.frames]) row.append(made("td", `${text}`));
    return row;
  }));
}
