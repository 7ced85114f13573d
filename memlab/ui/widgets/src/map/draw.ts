/**
 * Points on a canvas: with WebGL, which draws 100,000 points at each frame, or without it.
 *
 * Each point has a colour, a shape (for readers who do not see colours) and a size. Unselected points are pale when
 * others are selected. A view is a centre and a scale in the square from -1 to 1.
 */
export type View = { x: number; y: number; scale: number };
export type Cloud = {
  x: Float32Array;
  y: Float32Array;
  place: Uint8Array;
  value: Float32Array;
  picked: Uint8Array;
  some: boolean;
};
export type Ink = {
  places: [number, number, number][];
  low: [number, number, number];
  high: [number, number, number];
  none: [number, number, number];
};
export type Drawer = {
  kind: "webgl" | "canvas";
  load(cloud: Cloud, ink: Ink): void;
  draw(view: View): void;
  close(): void;
};

// Points that are drawn without WebGL: more would drop frames.
export const MOST_PLAIN = 5_000;
// The code of all words without a colour of their own, drawn as small dots.
const OTHERS = 7;

const VERTEX = `
attribute vec2 at; attribute vec3 tint; attribute vec3 look; // shape, size, whether it is picked
uniform vec3 view; uniform float size; uniform float some;
varying vec3 ink; varying float shape; varying float alpha;
void main() {
  vec2 seen = (at - view.xy) * view.z;
  gl_Position = vec4(seen, some * look.z * -0.5, 1.0);
  gl_PointSize = size * look.y * (some > 0.5 && look.z > 0.5 ? 1.5 : 1.0) * (look.x > 0.5 ? 1.25 : 1.0);
  ink = tint; shape = look.x; alpha = some > 0.5 && look.z < 0.5 ? 0.16 : 0.85;
}`;
const FRAGMENT = `
precision mediump float;
varying vec3 ink; varying float shape; varying float alpha;
float edge(float away) { return 1.0 - smoothstep(0.78, 0.98, away); }
void main() {
  vec2 p = gl_PointCoord * 2.0 - 1.0; vec2 a = abs(p); float away;
  if (shape < 0.5) away = length(p);                                        // disc
  else if (shape < 1.5) away = max(a.x, a.y) * 1.25;                        // square
  else if (shape < 2.5) away = max(a.x * 1.7 - p.y * 0.9, p.y + 0.2) * 0.98; // triangle; y goes down
  else if (shape < 3.5) away = (a.x + a.y) * 0.98;                          // diamond
  else if (shape < 4.5) away = min(a.x, a.y) < 0.3 ? max(a.x, a.y) : 2.0;   // plus
  else if (shape < 5.5) away = abs(length(p) - 0.68) * 3.0;                 // ring
  else away = max(a.x * 1.7 + p.y * 0.9, -p.y + 0.2) * 0.98;                // triangle, down
  float shown = edge(away) * alpha;
  if (shown < 0.02) discard;
  gl_FragColor = vec4(ink * shown, shown);
}`;
/** The shapes in the legend, in the order of the shader. */
export const SHAPES = ["●", "■", "▲", "◆", "✚", "○", "▼", "•"];

export function drawer(canvas: HTMLCanvasElement): Drawer {
  const gl = canvas.getContext("webgl", {
    antialias: false,
    premultipliedAlpha: true,
    preserveDrawingBuffer: true,
  });
  return gl ? drawWithWebGL(canvas, gl) : drawPlainly(canvas);
}

/** Return the colours of all points, and their shapes, sizes and selection. */
export function computeLooks(cloud: Cloud, ink: Ink) {
  const count = cloud.x.length;
  const tints = new Float32Array(3 * count);
  const looks = new Float32Array(3 * count);
  for (let at = 0; at < count; at++) {
    const place = cloud.place[at]!;
    const value = cloud.value[at]!;
    let tint = ink.none;
    let size = 0.8;
    if (place < OTHERS) [tint, size] = [ink.places[place]!, 1];
    else if (place === OTHERS) size = 0.75;
    else if (!Number.isNaN(value)) {
      tint = ink.low.map((low, part) => low + (ink.high[part]! - low) * value) as [
        number,
        number,
        number,
      ];
      size = 0.6 + 0.8 * value;
    } else size = 0.45;
    tints.set(tint, 3 * at);
    looks.set([place < OTHERS ? place : 0, size, cloud.picked[at]!], 3 * at);
  }
  return { tints, looks };
}

/** Return the size of a point in pixels, which grows with the zoom and shrinks with the count. */
function pointSize(count: number, view: View): number {
  return (
    Math.max(3, Math.min(16, (26 / Math.max(1, count) ** 0.2) * Math.sqrt(view.scale))) *
    Math.min(2, devicePixelRatio)
  );
}

function drawWithWebGL(canvas: HTMLCanvasElement, gl: WebGLRenderingContext): Drawer {
  const program = gl.createProgram()!;
  for (const [kind, source] of [
    [gl.VERTEX_SHADER, VERTEX],
    [gl.FRAGMENT_SHADER, FRAGMENT],
  ] as const) {
    const shader = gl.createShader(kind)!;
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS) && !gl.isContextLost())
      throw new Error(gl.getShaderInfoLog(shader) ?? "shader");
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  gl.useProgram(program);
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  const uniform = (name: string) => gl.getUniformLocation(program, name);
  const where = {
    view: uniform("view"),
    size: uniform("size"),
    some: uniform("some"),
  };
  const buffers: Record<string, WebGLBuffer> = {};
  const fill = (name: string, width: number, values: Float32Array) => {
    buffers[name] ??= gl.createBuffer()!;
    gl.bindBuffer(gl.ARRAY_BUFFER, buffers[name]!);
    gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
    const at = gl.getAttribLocation(program, name);
    gl.enableVertexAttribArray(at);
    gl.vertexAttribPointer(at, width, gl.FLOAT, false, 0, 0);
  };
  let count = 0;
  let some = false;
  return {
    kind: "webgl",
    load(cloud, ink) {
      count = cloud.x.length;
      some = cloud.some;
      const places = new Float32Array(2 * count);
      for (let at = 0; at < count; at++) places.set([cloud.x[at]!, cloud.y[at]!], 2 * at);
      const { tints, looks: look } = computeLooks(cloud, ink);
      fill("at", 2, places);
      fill("tint", 3, tints);
      fill("look", 3, look);
    },
    draw(view) {
      gl.viewport(0, 0, canvas.width, canvas.height);
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT);
      gl.uniform3f(where.view, view.x, view.y, view.scale);
      gl.uniform1f(where.size, pointSize(count, view));
      gl.uniform1f(where.some, some ? 1 : 0);
      if (count) gl.drawArrays(gl.POINTS, 0, count);
    },
    close() {
      for (const buffer of Object.values(buffers)) gl.deleteBuffer(buffer);
      gl.deleteProgram(program);
      gl.getExtension("WEBGL_lose_context")?.loseContext(); // Browsers limit the contexts of a page.
    },
  };
}

function drawPlainly(canvas: HTMLCanvasElement): Drawer {
  const pen = canvas.getContext("2d")!;
  let cloud: Cloud | null = null;
  let tints = new Float32Array(0);
  let look = new Float32Array(0);
  return {
    kind: "canvas",
    load(points, ink) {
      cloud = points;
      ({ tints, looks: look } = computeLooks(points, ink));
    },
    draw(view) {
      pen.clearRect(0, 0, canvas.width, canvas.height);
      if (!cloud) return;
      const step = Math.max(1, Math.ceil(cloud.x.length / MOST_PLAIN));
      const [wide, high] = [(view.scale * canvas.width) / 2, (view.scale * canvas.height) / 2];
      const size = pointSize(cloud.x.length / step, view);
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      for (let at = 0; at < cloud.x.length; at += step) {
        const [red, green, blue] = [0, 1, 2].map((part) => Math.round(255 * tints[3 * at + part]!));
        pen.fillStyle = `rgb(${red} ${green} ${blue} / ${cloud.some && !cloud.picked[at] ? 0.16 : 0.85})`;
        pen.font = `${1.3 * size * look[3 * at + 1]!}px sans-serif`;
        pen.fillText(
          SHAPES[look[3 * at]!]!,
          canvas.width / 2 + (cloud.x[at]! - view.x) * wide,
          canvas.height / 2 - (cloud.y[at]! - view.y) * high,
        );
      }
    },
    close() {},
  };
}
