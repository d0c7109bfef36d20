/* All scenarios: plans choose from these exports. */

export * from './callers-file.ts';
export * from './clocks.ts';
export * from './drains.ts';
export * from './erasures.ts';
export * from './exports.ts';
export * from './faults.ts';
export * from './key-ends.ts';
export * from './late-requests.ts';
export * from './moved-files.ts';
export * from './named-consumers.ts';
export * from './odd-records.ts';
export * from './operations.ts';
export * from './other-clients.ts';
export * from './outbox.ts';
export * from './own-studios.ts';
export * from './read-at-once.ts';
export * from './restore.ts';
export * from './retention.ts';
export * from './stalled-consumers.ts';
export * from './test-studios.ts';
export * from './transfers.ts';
export * from './website.ts';
