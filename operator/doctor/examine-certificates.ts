import { createPrivateKey, X509Certificate } from 'node:crypto';
import { inOneLine } from '../../common/in-one-line.ts';
import type { Secret } from '../../common/secret.ts';
import { DAY_MS } from '../../common/units.ts';
import { type Finding, Notes } from './finding.ts';

/** How long before its end a certificate is to be renewed; days. */
const RENEW_DAYS = 30;

/** Looks at the certificate that a process shows, and at its key; PEM. */
export function examineCertificate(
  what: string,
  cert: string | undefined,
  key: Secret | undefined,
): readonly Finding[] {
  if (cert === undefined) return [];
  const notes = new Notes(what);
  try {
    const certificate = new X509Certificate(cert);
    const [from, until] = [certificate.validFromDate, certificate.validToDate];
    const daysLeft = Math.floor((until.getTime() - Date.now()) / DAY_MS);
    if (key && !certificate.checkPrivateKey(createPrivateKey(key.reveal())))
      notes.fault('its key belongs to another certificate');
    if (from.getTime() > Date.now()) notes.fault(`is not valid before ${from.toISOString()}`);
    if (daysLeft < 0) notes.fault(`has expired at ${until.toISOString()}: renew it, and restart the process`);
    else if (daysLeft < RENEW_DAYS) notes.warning(`expires in ${daysLeft} days: renew it, and restart the process`);
    if (notes.findings.length === 0) notes.well(`is valid until ${until.toISOString()}`);
  } catch (error) {
    notes.fault(`cannot be read: ${inOneLine(error)}`);
  }
  return notes.findings;
}
