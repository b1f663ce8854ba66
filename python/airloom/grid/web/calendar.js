"use strict";
// Draws the calendar of nodes by time as SVG. Text reaches the page as text only, never as markup.

const SVG = "http://www.w3.org/2000/svg";
const ROW = 22, HEAD = 24, NAMES = 90, WIDE = 1100;

function shape(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// What was taken, as a sentence for the pointer and for screen readers.
function told(node, radios, one) {
  const when = `${new Date(one.start).toLocaleString()} to ${new Date(one.end).toLocaleString()}`;
  const what = `${node}: ${radios.join(", ")}, channel ${one.channels.join(", ")}`;
  return `${what}, ${when}${one.mine ? `, ${one.slice} of ${one.project}` : ""}`;
}

function drawCalendar(place, nodes, taken, from, to) {
  const height = HEAD + ROW * nodes.length + 4;
  const chart = shape("svg", { viewBox: `0 0 ${WIDE} ${height}`, role: "img", "aria-label":
    `${taken.length} reservations on ${nodes.length} nodes` });
  const at = (time) => NAMES + (WIDE - NAMES) * (Math.min(Math.max(time, from), to) - from) / (to - from);
  const steps = 6;
  for (let step = 0; step < steps; step++) {
    const time = from + (to - from) * step / steps;
    const options = { weekday: "short", hour: "2-digit", minute: "2-digit" };
    chart.append(shape("text", { x: at(time) + 3, y: 16 }, new Date(time).toLocaleString([], options)));
    chart.append(shape("line", { x1: at(time), x2: at(time), y1: 0, y2: height, class: "grid" }));
  }
  const rows = new Map(nodes.map((name, number) => [name, HEAD + ROW * number]));
  for (const [name, y] of rows) {
    chart.append(shape("text", { x: 4, y: y + 15 }, name));
    chart.append(shape("line", { x1: 0, x2: WIDE, y1: y, y2: y, class: "grid" }));
  }
  for (const one of taken) {
    const left = at(Date.parse(one.start)), right = at(Date.parse(one.end));
    for (const [node, radios] of Object.entries(one.radios)) {
      if (!rows.has(node) || right <= left) continue;
      const bar = shape("rect", { x: left, y: rows.get(node) + 3, width: Math.max(2, right - left),
        height: ROW - 6, rx: 3, class: one.mine ? "mine" : "other" });
      bar.append(shape("title", {}, told(node, radios, one)));
      chart.append(bar);
    }
  }
  const now = Date.now();
  if (from < now && now < to) chart.append(shape("line", { x1: at(now), x2: at(now), y1: 0, y2: height, class: "now" }));
  place.replaceChildren(chart);
}
