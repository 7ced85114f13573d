/** A slider for every parameter of the text. */
import { useRef } from "preact/hooks";
import { visible } from "../shared/text";
import type { Param, Writer } from "./editor";

export type SlidersProps = {
  params: Param[];
  values: Record<string, number>;
  disabled: boolean;
  write: Writer;
};

export function Sliders({ params, values, disabled, write }: SlidersProps) {
  const ranges = useRef(new Map<string, [number, number]>()); // A parameter without bounds keeps its first range.
  return (
    <ul class="sliders" aria-label="Parameters">
      {params.map((param) => {
        const typed = values[param.name];
        const value = typed !== undefined && Number.isFinite(typed) ? typed : param.value;
        const [low, high] = sliderRange(param, ranges.current);
        const step = 10 ** Math.floor(Math.log10((high - low) / 50));
        const digits = Math.max(0, Math.round(-Math.log10(step)));
        return (
          <li key={param.name}>
            <label>
              <code>{visible(param.name)}</code>
              <input
                type="range"
                min={low}
                max={high}
                step={step}
                value={value}
                disabled={disabled}
                aria-label={visible(param.name)}
                onInput={(event) =>
                  write(
                    param.name,
                    String(Number(Number(event.currentTarget.value).toFixed(digits))),
                  )
                }
              />
              <output class="number">{String(value).replace("-", "−")}</output>
            </label>
          </li>
        );
      })}
    </ul>
  );
}

/** Return the range of a slider: the bounds of its parameter, or a range around its first value. */
export function sliderRange(
  { name, value, low, high }: Param,
  ranges: Map<string, [number, number]>,
): [number, number] {
  if (low !== null && high !== null && low < high) return [low, high];
  const earlier = ranges.get(name);
  if (earlier && earlier[0] <= value && value <= earlier[1]) return earlier;
  const size = 10 ** Math.ceil(Math.log10(Math.max(Math.abs(value), 1e-6) * 2));
  const range: [number, number] = [low ?? (value < 0 ? -size : 0), high ?? (value < 0 ? 0 : size)];
  if (range[0] >= range[1]) range[1] = range[0] + size;
  ranges.set(name, range);
  return range;
}
