/** Represents a byte that is not UTF-8 in a typed text. */
export const NO_UTF8 = '\u{f0000}';

/** A visitor's input to the form of a recipe. */
export interface Typed {
  readonly name: string;
  readonly email: string;
  readonly message?: string;
}

/** The response to a sent form. */
export interface Answer {
  readonly status: number;
  /** The text of the page, without tags. */
  readonly text: string;
  /** The form on the page; undefined if it has none. */
  readonly form: Form | undefined;
}

/** A form that is open in a browser. */
export interface Form {
  /** The values of its fields. */
  readonly entered: Required<Typed>;
  /** The text of its page, without tags. */
  readonly text: string;
  /** The type of its email field. */
  readonly typeOfEmail: string;
  /**
   * Sends the form as a browser without JavaScript does. It can be sent several times.
   *
   * @param isKeyless whether to omit the hidden form key, as an old template does
   */
  send(typed: Typed, isKeyless?: boolean): Promise<Answer>;
}

/** Opens the page of a form. */
export async function openForm(url: string): Promise<Form> {
  const page = await fetch(url);
  const form = formIn(await page.text(), url, readCookie(page));
  if (form === undefined) throw new Error(`${url} has no form`);
  return form;
}

/** Returns the form of a page: its hidden fields, and one field each for name, email address and message. */
function formIn(html: string, url: string, cookie: string): Form | undefined {
  // Browsers also normalize line ends before they look for tags.
  const lines = html.replaceAll('\r\n', '\n').replaceAll(/<!--[\s\S]*?-->/g, '');
  const [, formTag = '', content = ''] = /<form\b([^>]*\bmethod="?post[^>]*)>([\s\S]*?)<\/form>/i.exec(lines) ?? [];
  if (content === '') return undefined;
  const fields = [...content.matchAll(/<input\b([^>]*)>|<textarea\b([^>]*)>\n?([\s\S]*?)<\/textarea>/gi)].map(
    ([, input, textarea, text = '']) => ({
      type:
        input === undefined
          ? 'textarea'
          : (readAttribute(input, 'type') ?? readAttribute(input, 'inputmode') ?? 'text'),
      name: readAttribute(input ?? textarea ?? '', 'name') ?? '',
      value: input === undefined ? decoded(text) : (readAttribute(input, 'value') ?? ''),
    }),
  );
  const email = fields.find(({ type, name }) => type === 'email' || /mail/i.test(name));
  const name = fields.find((field) => field.type === 'text' && field !== email);
  const message = fields.find(({ type }) => type === 'textarea');
  return {
    entered: { name: name?.value ?? '', email: email?.value ?? '', message: message?.value ?? '' },
    text: toText(html),
    typeOfEmail: /<input\b[^>]*\btype="email"/i.test(content) ? 'email' : 'text',
    async send(typed, isKeyless = false) {
      const isSent = ({ type, name }: { type: string; name: string }) =>
        type === 'hidden' && !(isKeyless && /(?:^|[[_])(?:key|formKey|page)\]?$/.test(name));
      const hidden = fields.filter(isSent).map((field) => [field.name, field.value]);
      const body = new URLSearchParams(hidden);
      body.set(name?.name ?? '', typed.name);
      body.set(email?.name ?? '', typed.email);
      // Browsers send each line break as two characters.
      body.set(message?.name ?? '', (typed.message ?? '').replaceAll(/\r\n?|\n/g, '\r\n'));
      const target = new URL(readAttribute(formTag, 'action') || url, url).href;
      const answer = await fetch(target, {
        method: 'POST',
        headers: { cookie, 'Content-Type': 'application/x-www-form-urlencoded' },
        body: body.toString().replaceAll(encodeURIComponent(NO_UTF8), '%FF'),
      });
      const text = await answer.text();
      return {
        status: answer.status,
        text: toText(text),
        form: formIn(text, answer.url, cookie),
      };
    },
  };
}

const toText = (html: string): string =>
  decoded(html.replaceAll(/<(style|script|title)[\s\S]*?<\/\1>|<[^>]*>/gi, ' ').replaceAll(/\s+/g, ' ')).trim();

const readAttribute = (attributes: string, name: string): string | undefined => {
  const [, value] = new RegExp(`(?:^|\\s)${name}="([^"]*)"`, 'i').exec(attributes) ?? [];
  return value === undefined ? undefined : decoded(value);
};

/** Decodes HTML entities in one pass, because `&#38;amp;` stands for `&amp;`. */
export const decoded = (html: string): string =>
  html.replaceAll(/&(?:#(?:x([\da-f]+)|(\d+))|(quot|lt|gt|amp));/gi, (entity, hex, decimal, name) => {
    if (name !== undefined) return { quot: '"', lt: '<', gt: '>', amp: '&' }[String(name).toLowerCase()] ?? entity;
    return String.fromCodePoint(hex ? Number.parseInt(hex, 16) : Number(decimal));
  });

const readCookie = (page: Response): string =>
  page.headers
    .getSetCookie()
    .map((each) => each.split(';')[0])
    .join('; ');
