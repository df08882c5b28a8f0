/** Where an answer has quantities: `true` for one, or a list or map of them; by field for objects and lists of objects. */
export type Quantities = true | {
    readonly [field: string]: Quantities;
};
/** The value of a JSON text. An integer is a bigint if a number can't hold it exactly. Throws SyntaxError. */
export declare function read(text: string): unknown;
/** JSON of a value. A bigint is written in full, a field that is undefined is left out. */
export declare function write(value: unknown): string;
/** The value with its quantities as bigint, whether they are small or large integers or decimal strings. */
export declare function withQuantities(value: unknown, where: Quantities): unknown;
