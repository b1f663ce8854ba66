// What is kept of the run over time since the page was opened: links, measurements, events.
import { chart, timeline } from "./chart.js";
import { frames, milliseconds, percent, rate } from "./units.js";

const MOST = 1200; // readings, twice a second: ten minutes
const links = new Map();
const measured = new Map();
let bars = new Map();
let marks = [];
let generation = null;

export function begin(said, choice) {
  if (generation !== null && generation !== said.generation) links.clear();
  generation = said.generation;
  const before = choice.value;
  choice.replaceChildren(...said.links.map((one) => new Option(one.name, one.name)));
  if (said.links.some((one) => one.name === before)) choice.value = before;
}

function keep(points, at, value) {
  points.push([at, value]);
  if (points.length > MOST) points.shift();
}

// Keeps a reading.
export function take(state) {
  for (const [name, link] of Object.entries(state.links)) {
    for (const direction of ["forward", "backward"]) {
      const way = link[direction], key = `${name} ${direction}`;
      if (!links.has(key)) links.set(key, { bit_s: [], queue: [], utilization: [], dropping: [] });
      for (const [kind, points] of Object.entries(links.get(key))) keep(points, state.at, way[kind]);
    }
  }
  for (const [name, value] of Object.entries(state.values)) {
    if (!measured.has(name)) measured.set(name, { title: value.name, points: [], unit: value.unit });
    keep(measured.get(name).points, state.at, value.value);
  }
}

// The points of a link's direction: [[at, value]].
export const past = (name, direction, kind) => links.get(`${name} ${direction}`)?.[kind] ?? [];

// The curve of a measurement.
export function of(name) {
  const known = measured.get(name);
  return known && { ...known, text: known.unit === "ns" ? milliseconds : rate };
}

// The charts of one link.
export function link(element, legend, chosen, state) {
  const now = chosen && state.links[chosen.name];
  if (!now) {
    element.replaceChildren();
    legend.textContent = "";
    return;
  }
  const both = (kind) => [
    { className: "first", points: past(chosen.name, "forward", kind) },
    { className: "second", points: past(chosen.name, "backward", kind) },
  ];
  const rated = now.forward.rate !== null || now.backward.rate !== null;
  const charts = [chart("Rate", both("bit_s"), rate, Math.max(now.forward.rate ?? 0, now.backward.rate ?? 0))];
  if (rated) {
    charts.push(chart("Utilization", both("utilization"), percent, 1));
    charts.push(chart("Queue", both("queue"), frames, 1));
  }
  charts.push(chart("Drops", both("dropping"), frames, 1));
  element.replaceChildren(...charts);
  legend.replaceChildren(key("first"), ` ${chosen.a} → ${chosen.b} `, key("second"), ` ${chosen.b} → ${chosen.a}`);
}

function key(className) {
  const element = document.createElement("span");
  element.className = `key ${className}`;
  return element;
}

// Keeps an entry of the journal.
export function entry(one) {
  if (one.kind === "point") {
    bars = new Map();
    marks = [];
    measured.clear();
  }
  if (one.at === null) return;
  if (one.kind === "measuring") bars.set(one.name, { name: one.name, from: one.at, state: "running" });
  else if (one.kind === "measured" || one.kind === "failed") {
    const bar = bars.get(one.name) ?? { name: one.name, from: one.at };
    bars.set(one.name, { ...bar, to: one.at, state: one.kind === "failed" ? "failed" : "done" });
  } else if (one.kind === "event" || one.kind === "problem") {
    marks.push({ at: one.at, text: one.text, bad: one.kind === "problem" });
    if (marks.length > MOST) marks.shift();
  }
}

// The time line until now.
export function line(element, part, at) {
  part.hidden = bars.size + marks.length === 0;
  if (!part.hidden) timeline(element, [...bars.values()], marks, at);
}
