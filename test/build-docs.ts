import { execFileSync } from 'node:child_process';

/** Before all tests, builds the pages of `/docs`, and the packages that contain some of them, as `npm start` does. */
export default function buildDocs(): void {
  execFileSync('npm', ['run', '--silent', 'prestart'], { cwd: `${import.meta.dirname}/..`, stdio: 'inherit' });
}
