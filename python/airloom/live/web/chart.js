// Curves and the time line, drawn as SVG. Text only becomes text nodes, never markup.

const SPACE = "http://www.w3.org/2000/svg";
const WIDTH = 320, HEIGHT = 96, LEFT = 4, RIGHT = 4, TOP = 6, BOTTOM = 4;

export function drawn(tag, attributes = {}, text = "") {
  const element = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text) element.textContent = text;
  return element;
}

function line(tag, text, className = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  if (className) element.className = className;
  return element;
}

const seconds = (ns) => `${(ns / 1e9).toFixed(ns < 1e10 ? 1 : 0)} s`;

// Curves over time in ns. `curves`: [{ className, points: [[at, value]] }], where null is a gap;
// `text` says a value; `limit` is a value that the axis has at least, such as the rate of a link.
export function chart(title, curves, text, limit = 0) {
  const times = curves.flatMap((one) => one.points.map(([at]) => at));
  const values = curves.flatMap((one) => one.points.map(([, value]) => value)).filter((one) => one !== null);
  const from = Math.min(...times), to = Math.max(...times, from + 1), most = Math.max(limit, ...values);
  const figure = document.createElement("figure");
  figure.className = "chart";
  const caption = document.createElement("figcaption");
  const last = curves.map((one) => one.points.at(-1)?.[1]).filter((one) => one !== null && one !== undefined);
  caption.append(line("span", title), line("strong", last.map(text).join(", ") || "–"));
  const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
  svg.setAttribute("aria-label", `${title}: ${last.map(text).join(", ") || "no value"} now, ${values.length ? text(most) : "no value"} at most on the axis`);
  const x = (at) => LEFT + ((WIDTH - LEFT - RIGHT) * (at - from)) / (to - from);
  const y = (value) => HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * value) / (most || 1);
  for (const value of [0, 0.5, 1]) svg.append(drawn("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value * (most || 1)), y2: y(value * (most || 1)) }));
  for (const { className, points } of curves) {
    for (const part of parts(points)) {
      const place = part.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`);
      if (place.length === 1) place.push(place[0]);
      svg.append(drawn("polyline", { class: `curve ${className}`, points: place.join(" ") }));
    }
  }
  const axis = line("div", "", "axis");
  if (values.length) axis.append(line("span", seconds(from)), line("span", `0 to ${text(most)}`), line("span", seconds(to)));
  figure.append(caption, svg, axis);
  return figure;
}

// The stretches of points without a gap.
function parts(points) {
  const found = [];
  let current = null;
  for (const point of points) {
    if (point[1] === null) current = null;
    else if (current) current.push(point);
    else found.push((current = [point]));
  }
  return found;
}

// The time line: a bar for each measurement, a mark for each event. `until`: now in ns.
export function timeline(element, bars, marks, until) {
  const end = Math.max(until, 1e9), row = 22, width = Math.max(element.clientWidth, 260), label = 8;
  const lanes = bars.length + 1, height = lanes * row + 24;
  const svg = drawn("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img" });
  svg.setAttribute("aria-label", `Time line: ${bars.length} measurements and ${marks.length} events until ${seconds(until)}; the events are listed under Events`);
  const x = (at) => label + ((width - 2 * label) * Math.min(at, end)) / end;
  const step = nice(end / Math.max(2, Math.floor(width / 110)));
  for (let at = 0; at <= end; at += step) {
    svg.append(drawn("line", { class: "grid", x1: x(at), x2: x(at), y1: 0, y2: lanes * row }));
    svg.append(drawn("text", { class: `small ${at === 0 ? "start" : x(at) > width - 40 ? "end" : ""}`, x: x(at), y: height - 8 }, seconds(at)));
  }
  bars.forEach((bar, lane) => {
    const top = lane * row + 3, to = bar.to ?? until;
    const one = drawn("rect", { class: `bar-of ${bar.state}`, x: x(bar.from), y: top, width: Math.max(2, x(to) - x(bar.from)), height: row - 6, rx: 3 });
    one.append(drawn("title", {}, `${bar.name}, ${bar.state}: ${seconds(bar.from)} to ${seconds(to)}`));
    const right = x(bar.from) > width / 2;
    const name = drawn("text", { class: `halo ${right ? "end" : "start"}`, x: right ? x(bar.from) - 5 : x(bar.from) + 5, y: top + row - 10 }, bar.name);
    svg.append(one, name);
  });
  for (const mark of marks) {
    const one = drawn("circle", { class: mark.bad ? "mark bad" : "mark", cx: x(mark.at), cy: bars.length * row + row / 2, r: 5 });
    one.append(drawn("title", {}, `${seconds(mark.at)}: ${mark.text}`));
    svg.append(one);
  }
  element.replaceChildren(svg);
}

function nice(step) {
  const power = 10 ** Math.floor(Math.log10(step));
  return power * [1, 2, 5, 10].find((one) => one * power >= step);
}
