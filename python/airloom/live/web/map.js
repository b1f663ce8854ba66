// Maps as SVG: radio nodes where they are, in metres, and wired nodes as a diagram.
import { rate } from "./units.js";

const SVG = "http://www.w3.org/2000/svg";
const TRAIL = 120;
const LABELS = 80;

function add(parent, tag, attributes = {}, text = "") {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  parent.append(made);
  return made;
}

const put = (line, a, b) => {
  for (const [name, value] of Object.entries({ x1: a[0], y1: a[1], x2: b[0], y2: b[1] })) line.setAttribute(name, value);
};

export function colour(drawing, slice) {
  const names = [...new Set(Object.values(drawing.slices))];
  return `var(--s${names.indexOf(slice) % 8})`;
}

class Map_ {
  constructor(element, choose) {
    this.element = element;
    this.choose = choose;
    this.nodes = new Map();
    this.selected = null;
  }

  canvas(label, share) {
    const before = document.activeElement?.closest?.(".node");
    this.focused = before && this.element.contains(before) ? before.dataset.name : null;
    this.width = Math.max(240, this.element.clientWidth);
    this.height = Math.round(Math.min(460, Math.max(120, this.width * share)));
    this.nodes = new Map();
    this.svg = document.createElementNS(SVG, "svg");
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.svg.setAttribute("role", "group");
    this.svg.setAttribute("aria-label", label);
    this.element.replaceChildren(this.svg);
    this.below = add(this.svg, "g");
    this.above = add(this.svg, "g");
  }

  node(name, role, labelled) {
    const group = add(this.above, "g", { class: "node", tabindex: -1, role: "button", "aria-label": `Node ${name}` });
    group.dataset.name = name;
    const size = labelled ? 9 : 5;
    add(group, "circle", { class: "ring", r: size + 5 });
    if (role === "host") add(group, "rect", { class: "body", x: -size, y: -size, width: 2 * size, height: 2 * size, rx: 3 });
    else if (role === "router" || role === "radio") add(group, "circle", { class: "body", r: size });
    else add(group, "rect", { class: "body", x: -size * 1.3, y: -size * 0.8, width: size * 2.6, height: size * 1.6, rx: 2 });
    if (labelled) add(group, "text", { class: "halo", y: size + 16 }, name);
    group.addEventListener("click", () => this.choose(name));
    group.addEventListener("keydown", (event) => this.key(event, name));
    this.nodes.set(name, group);
    return group;
  }

  // Tab reaches one node of a map, the arrow keys all of them.
  key(event, name) {
    const names = [...this.nodes.keys()], index = names.indexOf(name);
    const to = { ArrowRight: index + 1, ArrowDown: index + 1, ArrowLeft: index - 1, ArrowUp: index - 1, Home: 0, End: -1 }[event.key];
    if (event.key === "Enter" || event.key === " ") this.choose(name);
    else if (to !== undefined) this.reach(names.at(to % names.length), true);
    else return;
    event.preventDefault();
  }

  reach(name, focus) {
    for (const [each, group] of this.nodes) group.setAttribute("tabindex", each === name ? 0 : -1);
    if (focus) this.nodes.get(name).focus();
  }

  done() {
    this.select(this.selected);
    const first = this.nodes.keys().next().value;
    const name = [this.focused, this.selected, first].find((one) => this.nodes.has(one));
    if (name) this.reach(name, name === this.focused);
  }

  select(name) {
    this.selected = name;
    for (const [each, group] of this.nodes) group.classList.toggle("selected", each === name);
    if (this.nodes.has(name)) this.reach(name, false);
  }

  place(group, at) {
    group.style.transform = `translate(${at[0]}px, ${at[1]}px)`;
  }
}

export class WiredMap extends Map_ {
  draw(drawing) {
    if (drawing.links.length === 0) return;
    const placed = drawing.vertices.filter((one) => one.place);
    const flat = new Set(placed.map((one) => one.place[1])).size === 1;
    this.canvas("Map of wired nodes", flat ? 0 : placed.length > 12 ? 0.6 : 0.45);
    this.places = new Map();
    const margin = 48;
    for (const vertex of placed) {
      const [x, y] = vertex.place;
      const at = [margin + x * (this.width - 2 * margin), margin - 10 + (1 - y) * (this.height - 2 * margin)];
      this.places.set(vertex.name, at);
      const group = this.node(vertex.name, vertex.role, placed.length <= LABELS);
      group.classList.add("plain");
      this.place(group, at);
    }
    this.wires = new Map();
    for (const link of drawing.links) {
      const [a, b] = [this.places.get(link.a), this.places.get(link.b)];
      const line = add(this.below, "line", { class: "wire" });
      put(line, a, b);
      const title = add(line, "title");
      const middle = [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
      const label = drawing.links.length <= 24
        ? add(this.above, "text", { class: "small halo", x: middle[0], y: middle[1] - 6 }) : null;
      this.wires.set(link.name, { line, title, label });
    }
    this.done();
  }

  update(state) {
    if (!this.wires) return;
    for (const [name, { line, title, label }] of this.wires) {
      const link = state.links[name];
      if (!link) continue;
      const ways = [link.forward, link.backward];
      const most = Math.max(...ways.map((way) => way.bit_s));
      const load = Math.max(...ways.map((way) => (way.rate ? way.bit_s / way.rate : 0)));
      const how = !link.up ? "down" : load > 0.9 ? "full" : most > 0 ? "busy" : "";
      line.setAttribute("class", `wire ${how}`);
      const said = link.up ? rate(most) : "down";
      title.textContent = `${name}: ${said}`;
      if (label) label.textContent = link.up && most === 0 ? "" : said;
    }
    for (const [name, group] of this.nodes) mark(group, name, state);
  }
}

export class RadioMap extends Map_ {
  draw(drawing) {
    if (drawing.radios.length === 0) return;
    if (this.generation !== drawing.generation) {
      this.trails = new Map();
      this.range = null;
      this.share = 0.6;
    }
    this.generation = drawing.generation;
    this.drawing = drawing;
    this.canvas("Map of radio nodes", this.share);
    const names = [...new Set(drawing.radios.map((port) => port.split(":")[0]))];
    for (const name of names) {
      const group = this.node(name, "radio", names.length <= LABELS);
      const port = drawing.radios.find((one) => one.split(":")[0] === name);
      const slice = drawing.slices[port];
      if (slice) group.querySelector(".body").style.fill = colour(drawing, slice);
      else group.classList.add("plain");
    }
    this.lines = new Map();
    this.paths = new Map();
    this.bar = add(this.below, "line", { class: "scale" });
    this.metres = add(this.below, "text", { class: "small" });
    this.done();
  }

  // Nodes at one place, such as the slivers of one device, stand below each other.
  spread(where) {
    const groups = new Map();
    for (const [name, at] of where) {
      const key = at.map((one) => Math.round(one / 8)).join(" ");
      groups.set(key, [...(groups.get(key) ?? []), name]);
    }
    for (const names of groups.values()) {
      names.forEach((name, index) => {
        const at = where.get(name), shift = (index - (names.length - 1) / 2) * 36;
        where.set(name, [at[0], at[1] + shift]);
      });
    }
  }

  // Each name stands below its node, or else above it, or farther away, where no other name is.
  label(where) {
    const taken = [];
    for (const [name, at] of where) {
      const text = this.nodes.get(name)?.querySelector("text");
      if (!text) continue;
      const half = 4 * name.length;
      const free = (y) => taken.every((one) => Math.abs(one.x - at[0]) > one.half + half || Math.abs(one.y - at[1] - y) > 13);
      const y = [25, -15, 39, -29, 53, -43].find(free) ?? 25;
      taken.push({ x: at[0], y: at[1] + y, half });
      text.setAttribute("y", y);
    }
  }

  // A map of nodes in a row is low.
  shape(span) {
    const share = Math.min(0.6, Math.max(0.28, span[0] > 0 ? span[1] / span[0] + 0.2 : 0.6));
    if (Math.abs(share - this.share) < 0.08) return;
    this.share = share;
    this.draw(this.drawing);
  }

  fit(places) {
    const range = this.range ?? { low: [Infinity, Infinity], high: [-Infinity, -Infinity] };
    for (const place of places) {
      for (const axis of [0, 1]) {
        range.low[axis] = Math.min(range.low[axis], place[axis]);
        range.high[axis] = Math.max(range.high[axis], place[axis]);
      }
    }
    this.range = range;
    const margin = 52;
    const span = [0, 1].map((axis) => range.high[axis] - range.low[axis]);
    this.shape(span);
    const most = Math.max(...span) || 1;
    this.scale = Math.min((this.width - 2 * margin) / (span[0] || most / 10), (this.height - 2 * margin) / (span[1] || most / 10));
    this.middle = [0, 1].map((axis) => (range.high[axis] + range.low[axis]) / 2);
  }

  at(place) {
    return [
      this.width / 2 + (place[0] - this.middle[0]) * this.scale,
      this.height / 2 - 8 - (place[1] - this.middle[1]) * this.scale,
    ];
  }

  update(state) {
    if (!this.lines) return;
    const metres = new Map();
    for (const [port, radio] of Object.entries(state.radios)) metres.set(port.split(":")[0], radio.position);
    if (metres.size === 0) return;
    this.fit(metres.values());
    const where = new Map([...metres].map(([name, place]) => [name, this.at(place)]));
    this.spread(where);
    this.label(where);
    for (const [name, at] of where) {
      const group = this.nodes.get(name);
      if (!group) continue;
      this.place(group, at);
      group.dataset.east = metres.get(name)[0].toFixed(2);
      this.trail(name, metres.get(name));
      mark(group, name, state);
    }
    this.pairs(state, where);
    this.ruler();
  }

  trail(name, place) {
    const trail = this.trails.get(name) ?? [];
    const last = trail.at(-1);
    if (!last || last[0] !== place[0] || last[1] !== place[1]) trail.push(place);
    if (trail.length > TRAIL) trail.shift();
    this.trails.set(name, trail);
    if (trail.length < 2) return;
    if (!this.paths.has(name)) this.paths.set(name, add(this.below, "polyline", { class: "trail" }));
    this.paths.get(name).setAttribute("points", trail.map((one) => this.at(one).join(",")).join(" "));
  }

  pairs(state, where) {
    const active = new Set();
    for (const [port, radio] of Object.entries(state.radios)) {
      for (const [other, peer] of Object.entries(radio.peers)) {
        const [a, b] = [where.get(port.split(":")[0]), where.get(other.split(":")[0])];
        if (!a || !b) continue;
        const key = [port, other].sort().join(" ");
        active.add(key);
        if (!this.lines.has(key)) this.lines.set(key, add(this.below, "line", { class: "pair" }));
        const line = this.lines.get(key);
        put(line, a, b);
        line.setAttribute("class", `pair ${peer.retries > 0.3 ? "retrying" : ""}`);
        line.setAttribute("stroke-width", Math.min(7, 1 + Math.log10(1 + peer.frames_s) * 1.6).toFixed(1));
        const slice = radio.slice;
        line.style.stroke = slice && peer.retries <= 0.3 ? colour(this.drawing, slice) : "";
      }
    }
    for (const [key, line] of this.lines) line.style.display = active.has(key) ? "" : "none";
  }

  ruler() {
    const wanted = 90 / this.scale, power = 10 ** Math.floor(Math.log10(wanted));
    const metres = [5, 2, 1].map((one) => one * power).find((one) => one <= wanted) ?? power;
    const y = this.height - 10;
    put(this.bar, [14, y], [14 + metres * this.scale, y]);
    this.metres.setAttribute("x", 14 + (metres * this.scale) / 2);
    this.metres.setAttribute("y", y - 6);
    this.metres.textContent = `${metres >= 1 ? metres : metres.toPrecision(1)} m`;
  }
}

function mark(group, name, state) {
  const on = !(name in state.nodes) || state.nodes[name] === "up";
  group.classList.toggle("off", !on);
  group.setAttribute("aria-label", `Node ${name}${on ? "" : `, ${state.nodes[name]}`}`);
}
