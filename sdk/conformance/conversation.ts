/** Conversations on one topic: the content of a file in `conversations`, described by `conversation.schema.json`. */
export interface Topic {
  readonly topic: string;
  readonly conversations: readonly (Omit<Conversation, 'calls'> & { readonly calls: readonly WrittenCall[] })[];
}

/** A call as in a file: without a request it creates a lead, and without a report it must succeed. */
export type WrittenCall = Pick<Call, 'attempts'> & Partial<Call>;

/** The calls of a client, what happens to its requests, and the reports it must return. */
export interface Conversation {
  readonly name: string;
  /** The harm to prevent, and the user who would suffer it. */
  readonly why: string;
  /** Made sequentially, to the same server. */
  readonly calls: readonly Call[];
}

/** One call of a client. */
export interface Call {
  readonly request: CallArguments;
  /** The fate of each attempt, in order. Any further attempt is a fault. */
  readonly attempts: readonly Attempt[];
  readonly report: ExpectedReport;
  /** The timeout of the report, from the request on; ms. Default: the deadline plus a margin. */
  readonly reportWithinMs?: number;
}

/** A call and its arguments; missing ones default to those of `shared.json`. */
export interface CallArguments {
  readonly call: 'createLead' | 'getLead' | 'listLeads' | 'allLeads' | 'check';
  readonly capture?: object;
  /** The value that the caller passes instead of the lead. */
  readonly captureAs?: 'nothing' | 'text' | 'list' | 'not-a-number' | 'infinite';
  /** Whether the caller has closed the client. */
  readonly isClosed?: true;
  readonly allowHttp?: true;
  readonly idempotencyKey?: string;
  readonly leadId?: string;
  readonly limit?: number;
  readonly cursor?: string;
  readonly cancelAfterMs?: number;
  /** The deadline of this call, instead of that of the client; ms. */
  readonly callDeadlineMs?: number;
  readonly deadlineMs?: number;
  readonly attemptTimeoutMs?: number;
  readonly apiKey?: string;
  readonly baseUrl?: string;
  /** The path of the client's `baseUrl`. */
  readonly basePath?: string;
}

/** The fate of an attempt: it receives a response, or its connection breaks. */
export interface Attempt {
  /** A name in `shared.json`, or the complete response. */
  readonly answer?: string | Answer;
  /** The number of response bytes sent; negative: the number omitted at the end; `each`: one variant for every byte. */
  readonly cutAfterBytes?: number | 'each';
  /** The server's action where the response is cut. Default: it closes the connection. */
  readonly atCut?: 'close' | 'reset' | 'silence';
  /** Sends the response byte by byte, at this interval. */
  readonly byteEveryMs?: number;
  /** Keeps the connection alive after the response. Default: the server closes it. */
  readonly keepsConnection?: boolean;
  readonly connection?: Breakage;
  /** Whether the attempt is missing if the client can read the previous response. */
  readonly mayBeMissing?: true;
  /** Applies to all further attempts as well. */
  readonly again?: boolean;
  /** When the attempt arrives, sets the clock of the client's machine forward, or back if negative. */
  readonly clockJumpsSeconds?: number;
}

/** How a connection breaks before any response. */
export type Breakage =
  | 'unresolved'
  | 'refused'
  | 'untrusted'
  | 'not-tls'
  | 'tls-refused'
  | 'tls-closed'
  | 'closed-at-accept'
  | 'reset-at-accept'
  | 'closed-before-body'
  | 'closed'
  | 'reset'
  | 'silent';

/** An HTTP response. */
export interface Answer {
  /** The name, in `shared.json`, of the response that this one extends. */
  readonly like?: string;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** The body, as JSON. Default media type: the one that the service uses for the status. */
  readonly json?: unknown;
  /** Fields of the lead in the body that differ from those of the response that this one extends. */
  readonly lead?: object;
  /** The body, verbatim. */
  readonly text?: string;
  /** How the end of the body is marked. Default: by `Content-Length`. */
  readonly framing?: 'length' | 'chunked' | 'until-close';
  /** The number of spaces after the body, where JSON allows white space. */
  readonly spaces?: number;
  /** The header `Date`: how far it is ahead of this machine's clock; seconds. Default: no such header. */
  readonly dateAheadSeconds?: number;
  /** The `Content-Encoding` by which the body is encoded. */
  readonly encoding?: 'gzip' | 'deflate' | 'br' | 'zstd';
  /** Encodes the body only for a client that asks for it. */
  readonly ifAsked?: true;
  /** Whether `103 Early Hints` precedes the response. */
  readonly isAfterEarlyHints?: boolean;
}

/**
 * The expected report: the lead or leads of the response, an error, the findings of a check, or that the client refuses its options.
 * A report must also match the details of the response.
 */
export type ExpectedReport = 'result' | 'refused' | ExpectedError | ExpectedFindings;

/** The expected findings of a check by part, keys of `check-findings.json`; others are `not_checked`. */
export interface ExpectedFindings {
  readonly found: { readonly [part in Part]?: string };
  /** The fault of the key, in the words of all clients. */
  readonly because?: string;
}

export const PARTS = ['address', 'key', 'leads.create', 'leads.read', 'clock'] as const;
type Part = (typeof PARTS)[number];

/** The expected parts of an error report, in addition to those of the last response. */
export interface ExpectedError {
  readonly kind: 'problem' | 'lead-already-open' | 'idempotency-conflict' | 'no-answer';
  readonly written: 'no' | 'unknown';
  readonly existingLeadId?: string;
  /** Why there is no response, in the words of all clients. */
  readonly because?: string;
}
