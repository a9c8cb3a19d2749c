import type { Packed } from "./data";

/** The integers as they are. */
function integers({ bits, data }: Packed): Uint8Array | Uint16Array | Uint32Array {
  const text = atob(data);
  const bytes = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index += 1) bytes[index] = text.charCodeAt(index);
  if (bits === 8) return bytes;
  const view = new DataView(bytes.buffer);
  const size = bits / 8;
  const whole = bits === 16 ? new Uint16Array(bytes.length / size) : new Uint32Array(bytes.length / size);
  for (let index = 0; index < whole.length; index += 1) {
    whole[index] = bits === 16 ? view.getUint16(index * size, true) : view.getUint32(index * size, true);
  }
  return whole;
}

/** Values, NaN where there is nothing. */
export function unpack(packed: Packed): Float64Array {
  const whole = integers(packed);
  const nothing = packed.gaps ? 2 ** packed.bits - 1 : -1;
  return Float64Array.from(whole, (integer) => (integer === nothing ? NaN : packed.low + integer * packed.step));
}

/** Indices, which were packed without a scale, or with one that keeps them whole. */
export function unpackIndices(packed: Packed): Uint32Array {
  return Uint32Array.from(unpack(packed), Math.round);
}
