// Explains in one sentence why `npm start` cannot run. It runs first, on any Node, so it uses only old syntax.
// biome-ignore lint/style/useNodejsImportProtocol: an old Node does not know the protocol.
const { existsSync } = require('fs');
const { engines } = require('../package.json');

const [major, minor] = process.versions.node.split('.').map(Number);
const isSupported = engines.node.split(' || ').some((range) => {
  const [, operator, first, second] = /^(\^|>=)(\d+)\.(\d+)/.exec(range);
  return major === Number(first) ? minor >= Number(second) : operator === '>=' && major > Number(first);
});

if (!existsSync(`${__dirname}/../node_modules/fastify`)) {
  stop('Lead Intake is not installed: run `npm ci` in this folder, then `npm start` again.');
} else if (!isSupported) {
  stop(`Lead Intake needs Node ${engines.node}, and this is ${process.version}: run \`npm ci\`, which installs one.`);
}

function stop(sentence) {
  console.error(sentence);
  process.exit(1);
}
