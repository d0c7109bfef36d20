/** Conversations about one thing: what a file in `conversations` has, by `conversation.schema.json`. */
export interface Topic {
  readonly topic: string;
  readonly conversations: readonly Conversation[];
}

/** What a client is asked, what happens to its requests, and what it must report. */
export interface Conversation {
  readonly name: string;
  /** What would go wrong for whom. */
  readonly why: string;
  /** One after another, to the same server. */
  readonly calls: readonly Call[];
}

/** One call of a client. */
export interface Call {
  readonly ask: Ask;
  /** What happens to each attempt, in their order. No other may come. */
  readonly attempts: readonly Attempt[];
  readonly report: ExpectedReport;
  /** The report must be there so many milliseconds after the request; unless told, some time after the deadline. */
  readonly reportWithinMs?: number;
}

/** What the client is asked; what is missing is filled in from `shared.json`. */
export interface Ask {
  readonly call: 'createLead' | 'getLead' | 'listLeads' | 'allLeads';
  readonly capture?: object;
  readonly idempotencyKey?: string;
  readonly leadId?: string;
  readonly limit?: number;
  readonly cursor?: string;
  readonly cancelAfterMs?: number;
  readonly deadlineMs?: number;
  readonly attemptTimeoutMs?: number;
  /** What the client's `baseUrl` has behind host and port. */
  readonly basePath?: string;
}

/** What happens to an attempt: it is answered, or its connection breaks. */
export interface Attempt {
  /** By the name that it has in `shared.json`, or in full. */
  readonly answer?: string | Answer;
  /** How much of the answer is sent; negative: without so many bytes at its end; `each`: a conversation for every byte. */
  readonly cutAfterBytes?: number | 'each';
  /** What the server does where the answer is cut; unless told, it closes the connection. */
  readonly atCut?: 'close' | 'reset' | 'silence';
  /** Sends the answer byte by byte. */
  readonly byteEveryMs?: number;
  /** The connection may be used again after the answer. Unless told, the server closes it. */
  readonly keepsConnection?: boolean;
  readonly connection?: Breakage;
  /** This happens to all further attempts as well. */
  readonly again?: boolean;
  /** The clock of the client's machine is set forward, or back, as the attempt arrives. */
  readonly clockJumpsSeconds?: number;
}

/** How a connection breaks before anything is answered. */
export type Breakage =
  | 'refused'
  | 'closed-at-accept'
  | 'reset-at-accept'
  | 'closed-before-body'
  | 'closed'
  | 'reset'
  | 'silent';

/** An answer of HTTP. */
export interface Answer {
  /** The name, in `shared.json`, of the answer that this one is like. */
  readonly like?: string;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** The body, as JSON. Unless told, the media type is that of the service for the status. */
  readonly json?: unknown;
  /** The body, as it is. */
  readonly text?: string;
  /** How the body's end is told; unless told, by `Content-Length`. */
  readonly framing?: 'length' | 'chunked' | 'until-close';
  /** So many spaces follow the body: white space that JSON may have. */
  readonly spaces?: number;
  /** Whether `103 Early Hints` comes first. */
  readonly isAfterEarlyHints?: boolean;
}

/** What is to be reported: the answer's lead or leads, or an error. What the answer says of it must be in the report, too. */
export type ExpectedReport = 'result' | ExpectedError;

/** What a report must have of an error, besides what the last answer says. */
export interface ExpectedError {
  readonly kind: 'problem' | 'lead-already-open' | 'idempotency-conflict' | 'no-answer';
  readonly written: 'no' | 'unknown';
  readonly existingLeadId?: string;
}
