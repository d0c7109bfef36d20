import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

/** A generated client; docs/how-to/generate-a-client.md has the command that generates it. */
interface GeneratedClient {
  /** Commands that succeed on a machine that has the tools. */
  readonly tools: readonly string[];
  /** Builds the client and the program. */
  readonly build: string;
  /** Runs the program in the folder with the generator's name. */
  readonly use: string;
  /** Returns the names of its types for schemas. */
  readonly listTypes: (folder: string) => readonly string[];
}

/** Returns a function that lists file names without extensions. */
const filesIn =
  (pattern: string, ...others: readonly string[]) =>
  (folder: string): string[] =>
    globSync(pattern, { cwd: folder })
      .map((path) => basename(path).replace(/\.\w+$/, ''))
      .filter((name) => !others.includes(name));

const GENERATOR = ['command -v openapi-generator-cli'];
/** The Python into which `.ci/install-client-generators` installs the clients' libraries. */
const PYTHON = '/usr/local/lib/client-generators/python/bin/python';

/** The clients by generator name, which is also the name of the folder and of the block in the docs. */
export const CLIENTS: Readonly<Record<string, GeneratedClient>> = {
  'openapi-generator-python': {
    tools: [...GENERATOR, `${PYTHON} -c 'import dateutil, pydantic, urllib3'`],
    build: '',
    use: `PYTHONPATH=client ${PYTHON} use_client.py`,
    listTypes: filesIn('client/lead_intake/models/*.py', '__init__'),
  },
  'openapi-generator-php': {
    tools: [
      ...GENERATOR,
      `php -r 'exit(extension_loaded("mbstring") && stream_resolve_include_path("GuzzleHttp/autoload.php") ? 0 : 1);'`,
    ],
    build: '',
    use: 'php use-client.php',
    listTypes: filesIn('client/lib/Model/*.php', 'ModelInterface'),
  },
  'openapi-generator-java': {
    tools: [...GENERATOR, 'mvn --version', 'javac --version'],
    build: [
      'mvn --quiet --batch-mode --file client dependency:build-classpath -DincludeScope=compile -Dmdep.outputFile=classpath',
      'javac -nowarn -d classes -classpath "$(cat client/classpath)" $(find client/src/main UseClient.java -name "*.java")',
    ].join('\n'),
    use: 'java -classpath "classes:$(cat client/classpath)" UseClient',
    listTypes: filesIn('client/src/main/java/leadintake/model/*.java', 'AbstractOpenApiSchema'),
  },
  'oapi-codegen': {
    tools: ['command -v oapi-codegen', 'go version'],
    build: 'go build -o use-client .',
    use: './use-client',
    listTypes: (folder) => {
      const code = readFileSync(join(folder, 'leadintake/leadintake.gen.go'), 'utf8');
      return [...code.matchAll(/^\/\/ \w+ defines model for (\w+)\.$/gm)].map(([, name = '']) => name);
    },
  },
};
