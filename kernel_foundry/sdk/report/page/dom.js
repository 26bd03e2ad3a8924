// DOM from data. Every text becomes a text node, and attributes come from a short list: nothing that
// a model or a candidate wrote is ever markup, a script, a style or an address.

const SVG = "http://www.w3.org/2000/svg";

const ATTRIBUTES = new Set([
  "class", "id", "role", "type", "title", "for", "scope", "tabindex", "placeholder", "value", "name",
  "disabled", "checked", "selected", "open", "rows", "maxlength", "colspan",
  "viewBox", "width", "height", "d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "rx",
  "points", "text-anchor", "transform",
]);

/** An HTML element; children are nodes or texts, and null is left out. */
export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/** A link within the page. */
export function link(hash, attributes, ...children) {
  const made = el("a", attributes, ...children);
  made.setAttribute("href", `#${hash}`);
  return made;
}

/** What scrolls sideways where it is too wide, by keys too. */
export function wide(label, ...children) {
  return el("div", { class: "wide", role: "group", tabindex: "0", "aria-label": label }, children);
}

/** Put other children in place of those of `parent`. */
export function refill(parent, ...children) {
  parent.replaceChildren(...nodes(children));
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (ATTRIBUTES.has(name) || name.startsWith("aria-") || name.startsWith("data-")) {
      element.setAttribute(name, value === true ? "" : value);
    } else {
      throw new Error(`attribute ${name} is not for data`);
    }
  }
  element.append(...nodes(children));
  return element;
}

function nodes(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(String(child))));
}
