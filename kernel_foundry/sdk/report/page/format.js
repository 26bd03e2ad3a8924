// Numbers and names as people read them; the same forms as on the command line.

/** "1.72 ms" of nanoseconds. */
export function duration(ns) {
  if (typeof ns !== "number" || !Number.isFinite(ns)) return "–";
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) {
    if (ns >= size) return `${threeDigits(ns / size)} ${unit}`;
  }
  return `${ns.toFixed(0)} ns`;
}

/** "1.83×". */
export function times(value) {
  return typeof value === "number" ? `${value.toFixed(2)}×` : "–";
}

/** "1.83× (1.79–1.88)"; "no clear gain: 1.02× (0.97–1.08)" where the interval contains 1. */
export function speedup(value, interval) {
  const first = isUnclear(interval) ? "no clear gain: " : "";
  return interval ? `${first}${times(value)} ${between(interval)}` : times(value);
}

/** Whether the interval of a speed-up contains 1. */
export function isUnclear(interval) {
  return Boolean(interval) && interval[0] <= 1 && interval[1] >= 1;
}

/** "(1.79–1.88)". */
export function between(interval) {
  return `(${interval[0].toFixed(2)}–${interval[1].toFixed(2)})`;
}

/** "83 %" of 0.83. */
export function percent(share) {
  return typeof share === "number" ? `${(100 * share).toFixed(0)} %` : "–";
}

/** "2026-01-31 14:05", in the reader's zone. */
export function date(unixSeconds) {
  const at = new Date(unixSeconds * 1000);
  const two = (number) => String(number).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}`;
}

/** "compile error" of "COMPILE_ERROR". */
export function words(name) {
  return String(name).replaceAll("_", " ").toLowerCase();
}

/** A number with few digits; what JSON lacks comes as a word. */
export function figure(value) {
  if (typeof value !== "number") return String(value);
  return Number.isInteger(value) && Math.abs(value) < 1e9 ? String(value) : String(Number(value.toPrecision(4)));
}

/** "2.40 USD". */
export function dollars(value) {
  return `${value.toFixed(value < 0.1 && value > 0 ? 4 : 2)} USD`;
}

function threeDigits(value) {
  return String(Number(value.toPrecision(3)));
}

/** "1 run" or "3 runs". */
export function counted(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
