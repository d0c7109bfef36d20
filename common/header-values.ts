/** Returns the values of a header, once for each time that it was sent. `headersDistinct` would collect those of all headers. */
export const headerValues = ({ rawHeaders }: { readonly rawHeaders: readonly string[] }, name: string): string[] =>
  rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name);
