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
  const ranges = useRef(new Map<string, [number, number]>()); // of one without bounds: as it was first seen, so that it stays
  return (
    <ul class="sliders" aria-label="Parameters">
      {params.map((param) => {
        const given = values[param.name];
        const value = given !== undefined && Number.isFinite(given) ? given : param.value;
        const [low, high] = range(param, ranges.current);
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

function range(
  { name, value, low, high }: Param,
  seen: Map<string, [number, number]>,
): [number, number] {
  if (low !== null && high !== null && low < high) return [low, high];
  const known = seen.get(name);
  if (known && known[0] <= value && value <= known[1]) return known;
  const size = 10 ** Math.ceil(Math.log10(Math.max(Math.abs(value), 1e-6) * 2));
  const found: [number, number] = [low ?? (value < 0 ? -size : 0), high ?? (value < 0 ? 0 : size)];
  if (found[0] >= found[1]) found[1] = found[0] + size;
  seen.set(name, found);
  return found;
}
