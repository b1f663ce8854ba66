// The live page: receives server-sent events and hands them to the maps, the panels and the consoles.
import { RadioMap, WiredMap } from "./map.js";
import * as panels from "./panels.js";
import { offer, open } from "./console.js";
import * as curves from "./curves.js";

const find = (id) => document.getElementById(id);
const page = { drawing: null, state: null, last: null, selected: null, entries: 0, operator: false };
const maps = [new RadioMap(find("radio-map"), choose), new WiredMap(find("wired-map"), choose)];

function choose(name) {
  page.selected = name;
  for (const map of maps) map.select(name);
  showNode();
}

function showNode() {
  const vertex = page.drawing?.vertices.find((one) => one.name === page.selected);
  find("node-part").hidden = !vertex;
  if (!vertex) return;
  panels.node(find("node-title"), find("node"), vertex, page.state, page.drawing);
  find("node-console").hidden = !(page.operator && vertex.kind && page.state);
  find("node-console").setAttribute("aria-label", `Open a console in ${vertex.name}`);
}

function drawing(said) {
  page.drawing = said;
  document.title = `${said.scenario} - Airloom live`;
  find("scenario").textContent = said.scenario;
  const point = Object.entries(said.point).map(([path, value]) => `${path} = ${value}`).join(", ");
  find("description").textContent = [said.description, point].filter(Boolean).join(" ");
  find("radio-part").hidden = said.radios.length === 0;
  find("channels-part").hidden = said.radios.length === 0;
  find("wired-part").hidden = find("links-part").hidden = find("link-part").hidden = said.links.length === 0;
  panels.begin(said);
  curves.begin(said, find("link-choice"));
  panels.slices(find("radio-legend"), said);
  for (const map of maps) map.draw(said);
  offer(find("console-node"), said.vertices.filter((one) => one.kind).map((one) => one.name));
}

function state(said) {
  page.state = page.last = said;
  find("phase").textContent = said.running ? "running" : "starting";
  find("time").textContent = `${(said.at / 1e9).toFixed(1)} s`;
  find("delivered").textContent = said.ledger.delivered.toLocaleString("en");
  find("lost").textContent = said.ledger.host_lost.toLocaleString("en");
  if (said.verdict) verdict(said.verdict);
  for (const map of maps) map.update(said);
  panels.links(find("links"), said, page.drawing);
  panels.channels(find("channels"), said);
  panels.violations(find("violations"), find("violations-part"), said.violations);
  panels.progress(said.at);
  curves.take(said);
  panels.values(said.values, curves.of);
  showCurves();
  showNode();
}

function showCurves() {
  if (!page.last) return;
  const link = page.drawing.links.find((one) => one.name === find("link-choice").value);
  curves.link(find("link-charts"), find("link-legend"), link, page.last);
  curves.line(find("timeline"), find("timeline-part"), page.last.at);
}

function verdict(said) {
  find("verdict").textContent = said.status;
  find("verdict").className = `chip ${said.status}`;
  find("reasons").replaceChildren(...said.reasons.map((text) => panels.made("li", text)));
  find("reasons-part").hidden = said.reasons.length === 0;
}

function entries(said) {
  for (const one of said) {
    if (one.number <= page.entries) continue;
    page.entries = one.number;
    if (one.kind === "phase") find("phase").textContent = one.text;
    panels.entry(find("measurements"), find("events"), one);
    curves.entry(one);
  }
}

function ended(said) {
  source.close();
  find("phase").textContent = "ended";
  find("verdict-name").textContent = "Verdict";
  verdict(said);
  panels.claims(find("claims"), find("claims-part"), said.claims);
  page.state = null;
  showCurves();
  find("console-form").hidden = true;
  showNode();
}

find("node-console").addEventListener("click", () => open(find("terminals"), page.selected));
find("console-form").addEventListener("submit", (event) => {
  event.preventDefault();
  open(find("terminals"), find("console-node").value);
});
find("link-choice").addEventListener("change", showCurves);
addEventListener("resize", () => {
  if (!page.drawing) return;
  showCurves();
  for (const map of maps) {
    map.draw(page.drawing);
    if (page.last) map.update(page.last);
  }
});

const source = new EventSource("events");
const on = (kind, act) => source.addEventListener(kind, (event) => act(JSON.parse(event.data)));
on("role", (said) => {
  page.operator = said.role === "operator";
  find("console-form").hidden = !page.operator;
  find("console-refused").hidden = page.operator;
});
on("drawing", drawing);
on("entries", entries);
on("state", state);
on("ended", ended);
source.addEventListener("error", () => {
  if (source.readyState !== EventSource.CLOSED) find("phase").textContent = "connection lost, trying again";
  else find("phase").textContent = "connection lost";
});
