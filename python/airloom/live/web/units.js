// Values as text.

export function rate(bits) {
  const units = [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"]];
  const [factor, unit] = units.find(([one]) => bits >= one) ?? [1, "bit/s"];
  return `${(bits / factor).toPrecision(3).replace(/e\+.*/, "")} ${unit}`.replace(/^0\.00 /, "0 ");
}

export const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;
export const moment = (ns) => `${(ns / 1e9).toFixed(1)} s`;
export const milliseconds = (ns) => `${(ns / 1e6).toPrecision(3)} ms`;
export const frames = (count) => `${Math.round(count).toLocaleString("en")} frames`;
