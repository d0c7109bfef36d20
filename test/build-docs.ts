import { execFileSync } from 'node:child_process';

/** Builds the pages of `/docs` and the packages before all tests, as `npm start` does. */
export default function buildDocs(): void {
  execFileSync('npm', ['run', '--silent', 'prestart'], { cwd: `${import.meta.dirname}/..`, stdio: 'inherit' });
}
