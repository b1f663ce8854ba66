// Consoles: xterm.js on a WebSocket. Loaded with the first console only.
const encoder = new TextEncoder();
const nonce = document.querySelector("script[nonce]").nonce;
let count = 0;

// The terminal makes style elements, which the page's policy admits with its nonce only.
const create = document.createElement.bind(document);
document.createElement = (tag, options) => {
  const element = create(tag, options);
  if (tag === "style") element.nonce = nonce;
  return element;
};

export function offer(choice, names) {
  const before = choice.value;
  choice.replaceChildren(...names.map((name) => new Option(name, name)));
  if (names.includes(before)) choice.value = before;
}

export async function open(parent, node) {
  const [{ Terminal }, { FitAddon }] = await Promise.all([import("./xterm/xterm.mjs"), import("./xterm/addon-fit.mjs")]);
  const box = create("div"), head = create("div"), title = create("h3"), status = create("span");
  const close = create("button"), inside = create("div");
  box.className = "terminal-box";
  head.className = "terminal-head";
  inside.className = "terminal";
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", `Console of ${node}`);
  title.id = `terminal-${++count}`;
  title.append(`${node} `, status);
  close.type = "button";
  close.textContent = "Close";
  close.setAttribute("aria-label", `Close the console of ${node}`);
  head.append(title, close);
  box.append(head, inside);
  parent.append(box);

  const terminal = new Terminal({ fontSize: 14, cursorBlink: false, screenReaderMode: true, theme: { background: "#000000", foreground: "#e7ebf0" } });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(inside);
  terminal.attachCustomKeyEventHandler((event) => {
    if (event.key !== "Escape" || !event.shiftKey) return true;
    if (event.type === "keydown") close.focus();
    return false;
  });

  const url = new URL(`console/${encodeURIComponent(node)}`, location.href);
  url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(url);
  socket.binaryType = "arraybuffer";
  const send = (octets) => { if (socket.readyState === WebSocket.OPEN) socket.send(octets); };
  const size = () => {
    fit.fit();
    send(JSON.stringify({ size: [terminal.cols, terminal.rows] }));
  };
  status.textContent = "connecting";
  socket.addEventListener("open", () => {
    status.textContent = "connected";
    size();
    terminal.focus();
  });
  socket.addEventListener("message", (event) => {
    if (typeof event.data !== "string") return terminal.write(new Uint8Array(event.data));
    const said = JSON.parse(event.data);
    status.textContent = said.error ?? `ended with exit code ${said.exited}`;
  });
  socket.addEventListener("close", () => {
    if (["connecting", "connected"].includes(status.textContent)) status.textContent = "closed";
    terminal.options.disableStdin = true;
  });
  // A paste may be longer than a message may be.
  terminal.onData((text) => {
    const octets = encoder.encode(text);
    for (let from = 0; from < octets.length; from += 16384) send(octets.subarray(from, from + 16384));
  });
  const watch = new ResizeObserver(size);
  watch.observe(inside);
  close.addEventListener("click", () => {
    watch.disconnect();
    socket.close();
    terminal.dispose();
    box.remove();
    document.getElementById("console-title").focus();
  });
  box.scrollIntoView({ block: "nearest" });
}
