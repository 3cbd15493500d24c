// SPDX-License-Identifier: Apache-2.0
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const { rows, names, duration, left_out: leftOut } = data.timeline;
const canvas = document.getElementById("timeline");
const tip = document.getElementById("tip");
const ROW = 22, GROUP = 26, AXIS = 24, NAMES = window.innerWidth < 700 ? 100 : 190;

function formatTime(ns) {
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) {
    if (Math.abs(ns) >= size) return +(ns / size).toPrecision(4) + " " + unit;
  }
  return Math.round(ns) + " ns";
}

function formatSize(bytes) {
  for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
    if (bytes >= size) return +(bytes / size).toPrecision(3) + " " + unit;
  }
  return bytes + " bytes";
}

// A color for each name of an event; waits are gray.
function colorOf(label) {
  if (["create_stream_dependency", "wait_for_event"].includes(names[label])) {
    return "#c3c8d0";
  }
  let hash = 7;
  for (const c of names[label]) hash = (hash * 31 + c.charCodeAt(0)) % 3600;
  return `hsl(${hash / 10} 48% 52%)`;
}
const colors = names.map((_, label) => colorOf(label));

// The rows of one thread or stream: nested events go to rows below.
const lanes = [];
for (const row of rows) {
  const ends = [];
  const mine = [];
  for (let i = 0; i < row.begin.length; ++i) {
    let depth = ends.findIndex((end) => end <= row.begin[i]);
    if (depth < 0) depth = Math.min(ends.length, 3);
    ends[depth] = row.begin[i] + row.duration[i];
    (mine[depth] ??= { row, index: [] }).index.push(i);
  }
  mine.forEach((lane, depth) => lanes.push({ ...lane, isFirst: depth === 0 }));
}
let height = AXIS;
let group = null;
for (const lane of lanes) {
  if (lane.row.group !== group) height += GROUP;
  group = lane.row.group;
  lane.top = height;
  height += ROW;
}

let from = 0, to = Math.max(duration, 1);

function style(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name);
}

function step(span) {
  const rough = 10 ** Math.floor(Math.log10(span / 6));
  return [1, 2, 5, 10].map((n) => n * rough).find((n) => span / n <= 8);
}

// Draws the events of a lane. Those that share a pixel are drawn once.
function drawLane(context, lane, scale) {
  const { row, index } = lane;
  const end = (i) => row.begin[index[i]] + row.duration[index[i]];
  let low = 0, high = index.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (end(middle) < from) low = middle + 1; else high = middle;
  }
  let last = -1;
  for (let i = low; i < index.length && row.begin[index[i]] <= to; ++i) {
    const x = Math.max(NAMES, NAMES + (row.begin[index[i]] - from) * scale);
    const right = NAMES + (end(i) - from) * scale;
    if (right < last + 0.5) continue;
    const width = Math.max(right - x, 0.7);
    last = x + width;
    context.fillStyle = colors[row.label[index[i]]];
    context.fillRect(x, lane.top + 2, width, ROW - 4);
    if (width > 34) {
      context.fillStyle = "#fff";
      context.save();
      context.beginPath();
      context.rect(x, lane.top, width - 3, ROW);
      context.clip();
      context.fillText(names[row.label[index[i]]], x + 4, lane.top + ROW / 2);
      context.restore();
    }
  }
}

function draw() {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.height = height + "px";
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  const scale = (width - NAMES) / (to - from);
  const size = step(to - from);
  for (let t = Math.ceil(from / size) * size; t <= to; t += size) {
    const x = NAMES + (t - from) * scale;
    context.fillStyle = style("--line");
    context.fillRect(x, 0, 1, height);
    context.fillStyle = style("--faint");
    context.fillText(formatTime(t), x + 4, AXIS / 2);
  }
  let above = null;
  for (const lane of lanes) {
    if (lane.row.group !== above) {
      above = lane.row.group;
      context.fillStyle = style("--text");
      context.font = "600 13px system-ui, sans-serif";
      context.fillText(above, 0, lane.top - GROUP / 2);
      context.font = "12px system-ui, sans-serif";
    }
    context.fillStyle = style("--row");
    context.fillRect(NAMES, lane.top + 1, width - NAMES, ROW - 2);
    if (lane.isFirst) {
      context.fillStyle = style("--faint");
      context.fillText(lane.row.name, 8, lane.top + ROW / 2, NAMES - 16);
    }
    drawLane(context, lane, scale);
  }
}

// Returns the event below the pointer, or null.
function find(x, y) {
  const lane = lanes.find((lane) => y >= lane.top && y < lane.top + ROW);
  if (!lane || x < NAMES) return null;
  const scale = (to - from) / (canvas.clientWidth - NAMES);
  const time = from + (x - NAMES) * scale;
  const { row, index } = lane;
  let best = null, distance = 3 * scale;
  for (const i of index) {
    const away = Math.max(row.begin[i] - time, time - row.begin[i] - row.duration[i], 0);
    if (away < distance) { best = { row, i }; distance = away; }
    if (row.begin[i] > time + 3 * scale) break;
  }
  return best;
}

function zoom(x, factor) {
  const at = from + (x - NAMES) / (canvas.clientWidth - NAMES) * (to - from);
  const span = Math.min(Math.max((to - from) * factor, 200), duration * 1.05);
  from = at - (at - from) * span / (to - from);
  to = from + span;
  draw();
}

let dragged = null;
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  zoom(event.offsetX, event.deltaY > 0 ? 1.25 : 0.8);
}, { passive: false });
canvas.addEventListener("pointerdown", (event) => {
  dragged = event.offsetX;
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointerup", () => { dragged = null; });
canvas.addEventListener("dblclick", () => { from = 0; to = duration; draw(); });
canvas.addEventListener("pointerleave", () => { tip.style.visibility = "hidden"; });
canvas.addEventListener("pointermove", (event) => {
  if (dragged !== null) {
    const moved = (event.offsetX - dragged) * (to - from) / (canvas.clientWidth - NAMES);
    dragged = event.offsetX;
    from -= moved;
    to -= moved;
    return draw();
  }
  const found = find(event.offsetX, event.offsetY);
  tip.style.visibility = found ? "visible" : "hidden";
  if (!found) return;
  const { row, i } = found;
  tip.textContent = [names[row.label[i]], names[row.detail[i]],
    `${formatTime(row.duration[i])} at ${formatTime(row.begin[i])}`]
    .filter(Boolean).join(" · ");
  tip.style.left =
    Math.max(8, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = event.clientY + 16 + "px";
});
if (leftOut) {
  document.getElementById("left").textContent =
    `The ${leftOut.toLocaleString()} shortest events are left out.`;
}
addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
draw();

// Draws the bytes in use of each allocator as steps.
for (const { name, points } of data.memory) {
  const most = Math.max(...points.map((point) => point[1]), 1);
  const x = (time) => (time / duration * 1000).toFixed(2);
  const y = (bytes) => (100 - bytes / most * 92).toFixed(2);
  let path = `M${x(points[0][0])} 100`;
  for (const [time, bytes] of points) path += `H${x(time)}V${y(bytes)}`;
  path += `H${x(duration)}V100Z`;
  const chart = document.createElement("div");
  chart.className = "chart";
  chart.innerHTML = `<h3></h3><svg viewBox="0 0 1000 100" preserveAspectRatio="none">
    <path d="${path}" fill="var(--busy)" fill-opacity=".35" stroke="var(--busy)"
      vector-effect="non-scaling-stroke"/></svg>`;
  chart.firstChild.textContent =
    `${name}: at most ${formatSize(most)}, over ${formatTime(duration)}`;
  document.getElementById("memory").append(chart);
}
