"use strict";
// The page asks the REST API with the user's token, which it keeps for this tab only.

const HOUR = 3600 * 1000;
const find = (id) => document.getElementById(id);
const state = { token: sessionStorage.getItem("token"), nodes: [], taken: [], from: Date.now() - HOUR };

function say(text, kind = "") {
  find("message").textContent = text;
  find("message").className = kind;
}

async function call(method, path, body) {
  const headers = { Authorization: `Bearer ${state.token}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(`/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
  const said = await answer.json();
  if (answer.ok) return said;
  const error = new Error([said.where, said.message, said.cure && `(${said.cure})`].filter(Boolean).join(" "));
  error.status = answer.status;
  error.nearest = said.nearest;
  throw error;
}

// A time with seconds, which is how calls write times.
const stamp = (time) => new Date(Math.round(time / 1000) * 1000).toISOString().replace(".000", "");

function local(time) {
  const shown = new Date(time - new Date(time).getTimezoneOffset() * 60000);
  return shown.toISOString().slice(0, 16);
}

function show(loggedIn) {
  for (const id of ["calendar", "request", "list", "violations", "logout"]) find(id).hidden = !loggedIn;
  find("login").hidden = loggedIn;
}

function draw() {
  const wanted = find("filter").value.trim().toLowerCase();
  const nodes = state.nodes.filter((name) => name.toLowerCase().includes(wanted));
  drawCalendar(find("rows"), nodes, state.taken, state.from, state.from + find("hours").value * HOUR);
}

function cell(row, text) {
  const made = row.insertCell();
  made.textContent = text;
  return made;
}

function act(text, label, does) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = text;
  button.setAttribute("aria-label", label);
  button.addEventListener("click", () => attempt(does));
  return button;
}

function link(text, label, url) {
  const made = document.createElement("a");
  made.textContent = text;
  made.setAttribute("aria-label", label);
  made.href = url;
  made.target = "_blank";
  made.rel = "noopener noreferrer";
  return made;
}

function listed(reservations) {
  const body = find("list").querySelector("tbody");
  const focused = body.contains(document.activeElement) && document.activeElement.getAttribute("aria-label");
  body.replaceChildren();
  for (const one of reservations) {
    const row = body.insertRow(), grant = one.grant;
    cell(row, one.slice);
    cell(row, one.project);
    cell(row, one.state);
    cell(row, new Date(one.start).toLocaleString());
    cell(row, new Date(one.end).toLocaleString());
    const nodes = grant ? Object.entries(grant.radios).map(([name, radios]) => `${name}:${radios.join("+")}`) : [];
    const more = nodes.length > 6 ? ` and ${nodes.length - 6} more` : "";
    cell(row, grant ? `${nodes.slice(0, 6).join(" ")}${more}; channel ${grant.channels.join(", ")}` : "waits");
    const does = cell(row, "");
    if (one.live) does.append(link("Live", `Watch the run of ${one.slice}`, one.live), " ");
    if (grant) does.append(act("+1 h", `Extend ${one.slice} by an hour`, async () => {
      await call("POST", `/reservations/${one.id}/extend`, { end: stamp(Date.parse(one.end) + HOUR) });
      return `${one.slice} ends an hour later`;
    }), " ");
    does.append(act("Release", `Release ${one.slice}`, async () => {
      await call("POST", `/reservations/${one.id}/release`);
      return `${one.slice} is released`;
    }));
  }
  // New buttons replace the old ones: who uses the keyboard stays where they were.
  if (focused) body.querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
}

function violated(found) {
  const body = find("violations").querySelector("tbody");
  body.replaceChildren();
  find("no-violations").hidden = found.length > 0;
  find("violations").querySelector("table").hidden = found.length === 0;
  for (const one of found) {
    const row = body.insertRow();
    cell(row, new Date(one.at).toLocaleString());
    cell(row, one.slice);
    cell(row, one.project);
    cell(row, one.radio);
    cell(row, one.what === "channel" ? `channel ${one.channel}` : one.what);
    cell(row, one.unit ? `${Number(one.amount.toPrecision(3))} ${one.unit}` : "");
    cell(row, one.frames);
  }
}

async function load() {
  const to = state.from + find("hours").value * HOUR;
  const query = `from=${encodeURIComponent(stamp(state.from))}&to=${encodeURIComponent(stamp(to))}`;
  const asked = [`/calendar?${query}`, "/reservations", "/violations"];
  const [taken, reservations, found] = await Promise.all(asked.map((path) => call("GET", path)));
  state.taken = taken;
  draw();
  listed(reservations);
  violated(found);
}

async function attempt(does) {
  try {
    const done = await does() || "";
    await load();
    say(done, "good");
  } catch (error) {
    if (error.status === 401) logout();
    say(error.message, "bad");
    const nearest = error.nearest;
    if (nearest) find("request-form").elements.start.value = local(Date.parse(nearest.start));
  }
}

async function enter() {
  const [me, testbed, projects] = await Promise.all(["/me", "/inventory", "/projects"].map((path) => call("GET", path)));
  state.nodes = Object.keys(testbed.nodes);
  find("testbed").textContent = testbed.name;
  find("who").textContent = `${me.user}${me.admin ? ", administrator" : ""}; channels ${testbed.channels.join(", ")}; ${testbed.slots.frame} slots`;
  const choice = find("request-form").elements.project;
  choice.replaceChildren(...projects.map((one) => new Option(one.name, one.name)));
  find("request-form").elements.start.value = local(Date.now() + 60000);
  sessionStorage.setItem("token", state.token);
  show(true);
}

function logout() {
  sessionStorage.removeItem("token");
  state.token = null;
  show(false);
  find("token").focus();
}

const words = (text) => text.split(/[\s,]+/).filter(Boolean);
const number = (text) => text === "" ? null : Number(text);

find("login-form").addEventListener("submit", (event) => {
  event.preventDefault();
  state.token = find("token").value.trim();
  find("token").value = "";
  attempt(enter);
});

find("request-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const form = event.target.elements, start = new Date(form.start.value).getTime();
  const begin = Math.max(start, Math.ceil(Date.now() / 1000) * 1000 + 1000);
  const channels = words(form.channels.value).map(Number);
  const body = {
    project: form.project.value, slice: form.slice.value, nodes: words(form.nodes.value),
    count: Math.max(number(form.count.value), words(form.nodes.value).length), radios: number(form.radios.value),
    channels, slots: number(form.slots.value), power_dbm: number(form.power.value),
    start: stamp(begin), end: stamp(begin + form.hours.value * HOUR), wait: form.wait.checked,
  };
  const check = event.submitter && event.submitter.name === "check";
  if (!check) body.key = crypto.getRandomValues(new Uint32Array(4)).join("-");
  attempt(async () => {
    const said = await call("POST", check ? "/reservations/check" : "/reservations", body);
    if (!said.grant) return `${body.slice} waits in the queue`;
    return `${body.slice} ${check ? "could have" : "has"} ${Object.keys(said.grant.radios).join(" ")} on channel ${said.grant.channels.join(", ")}`;
  });
});

find("logout").addEventListener("click", () => { logout(); say("logged out"); });
find("filter").addEventListener("input", draw);
find("hours").addEventListener("change", () => attempt(async () => ""));
for (const [id, move] of [["earlier", -1], ["later", 1]]) {
  find(id).addEventListener("click", () => attempt(async () => { state.from += move * find("hours").value * HOUR / 2; }));
}
find("now").addEventListener("click", () => attempt(async () => { state.from = Date.now() - HOUR; }));

show(false);
if (state.token) attempt(enter);
