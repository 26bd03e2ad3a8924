// A logarithmic axis.

/** A function from values to pixels, with `margin` (a factor) around the least and the largest. */
export function logScale(values, from, to, margin) {
  const least = values.reduce((low, value) => Math.min(low, value), Infinity) / margin;
  const most = values.reduce((high, value) => Math.max(high, value), -Infinity) * margin;
  const span = Math.log(most / least) || 1;
  return (value) => Math.round((from + (Math.log(value / least) / span) * (to - from)) * 10) / 10;
}
