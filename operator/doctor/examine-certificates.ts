import { createPrivateKey, type X509Certificate } from 'node:crypto';
import { errorSummary } from '../../common/error-summary.ts';
import { certificatesIn, pemOf, type TlsFiles } from '../../common/tls-credentials.ts';
import { DAY_MS } from '../../common/units.ts';
import { type Finding, Notes } from './finding.ts';

/** How long before its end a certificate is to be renewed; days. */
const RENEW_DAYS = 30;

/** What to do about one that ends. A process reads its files again by itself. */
const REMEDY = 'renew it, in the same file';

/**
 * Looks at the certificates in the files that a process speaks TLS with, and at its key. A chain is as good as the worst of it,
 * authorities as the best: those to come stand beside those that go.
 */
export function examineCertificates(whose: string, files: TlsFiles): readonly Finding[] {
  const { cert, key, ca } = pemOf(files);
  return [
    ...examine(`${whose}'s certificate`, cert, (notes, chain) => {
      if (key && !chain[0]?.checkPrivateKey(createPrivateKey(key)))
        notes.fault('its key belongs to another certificate');
      examineDates(notes, Math.max(...chain.map(beginOf)), Math.min(...chain.map(endOf)));
    }),
    ...examine(`${whose}'s authorities`, ca, (notes, authorities) =>
      examineDates(notes, Math.min(...authorities.map(beginOf)), Math.max(...authorities.map(endOf))),
    ),
  ];
}

const beginOf = ({ validFromDate }: X509Certificate): number => validFromDate.getTime();
const endOf = ({ validToDate }: X509Certificate): number => validToDate.getTime();

type Look = (notes: Notes, certificates: readonly X509Certificate[]) => void;

/** Looks at the certificates of a text (PEM). */
function examine(what: string, pem: string | undefined, look: Look): readonly Finding[] {
  if (pem === undefined) return [];
  const notes = new Notes(what);
  try {
    look(notes, certificatesIn(pem));
  } catch (error) {
    notes.fault(`cannot be read: ${errorSummary(error)}`);
  }
  return notes.findings;
}

/** Times are in milliseconds since 1970. */
function examineDates(notes: Notes, from: number, until: number): void {
  const daysLeft = Math.floor((until - Date.now()) / DAY_MS);
  const end = new Date(until).toISOString();
  if (from > Date.now()) notes.fault(`is not valid before ${new Date(from).toISOString()}`);
  else if (daysLeft < 0) notes.fault(`has expired at ${end}: ${REMEDY}`);
  else if (daysLeft < RENEW_DAYS) notes.warning(`expires in ${daysLeft} days: ${REMEDY}`);
  else notes.well(`is valid for ${daysLeft} days, until ${end}`);
}
