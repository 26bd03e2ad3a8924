// How wide a plot is drawn: its letters keep their size on narrow screens.

const AROUND = 46; // pixels beside a plot in one column

/** `most` units, or as many as the screen has pixels. */
export function plotWidth(most) {
  return Math.max(Math.min(most, document.documentElement.clientWidth - AROUND), 280);
}
