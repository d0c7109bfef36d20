import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

/** A client as a generator makes it; by which command, docs/how-to/generate-a-client.md says. */
interface GeneratedClient {
  /** Commands that succeed where the machine has what it takes. */
  readonly tools: readonly string[];
  /** What the language builds before it runs. */
  readonly build: string;
  /** Runs the program that stands in the folder of the generator's name. */
  readonly use: string;
  /** The names of the types that it has for schemas. */
  readonly typesOf: (folder: string) => readonly string[];
}

/** Names of files, without their ending. */
const filesIn =
  (pattern: string, ...others: readonly string[]) =>
  (folder: string): string[] =>
    globSync(pattern, { cwd: folder })
      .map((path) => basename(path).replace(/\.\w+$/, ''))
      .filter((name) => !others.includes(name));

const GENERATOR = ['command -v openapi-generator-cli'];
/** The Python that openapi-python-client runs on: it has what the clients are built on, too. */
const PYTHON = '"$(dirname "$(realpath "$(command -v openapi-python-client)")")/python"';
const HAS_PYTHON = `${PYTHON} -c 'import dateutil, httpx, pydantic, urllib3'`;

/** The clients, by the generators' names, which are also those of the folders and of the marks in the docs. */
export const CLIENTS: Readonly<Record<string, GeneratedClient>> = {
  'openapi-generator-python': {
    tools: [...GENERATOR, HAS_PYTHON],
    build: '',
    use: `PYTHONPATH=client ${PYTHON} use_client.py`,
    typesOf: filesIn('client/lead_intake/models/*.py', '__init__'),
  },
  'openapi-generator-php': {
    tools: [
      ...GENERATOR,
      `php -r 'exit(extension_loaded("mbstring") && stream_resolve_include_path("GuzzleHttp/autoload.php") ? 0 : 1);'`,
    ],
    build: '',
    use: 'php use-client.php',
    typesOf: filesIn('client/lib/Model/*.php', 'ModelInterface'),
  },
  'openapi-generator-java': {
    tools: [...GENERATOR, 'mvn --version', 'javac --version'],
    build: [
      'mvn --quiet --batch-mode --file client dependency:build-classpath -DincludeScope=compile -Dmdep.outputFile=classpath',
      'javac -nowarn -d classes -classpath "$(cat client/classpath)" $(find client/src/main UseClient.java -name "*.java")',
    ].join('\n'),
    use: 'java -classpath "classes:$(cat client/classpath)" UseClient',
    typesOf: filesIn('client/src/main/java/leadintake/model/*.java', 'AbstractOpenApiSchema'),
  },
  'openapi-generator-go': {
    tools: [...GENERATOR, 'go version'],
    build: 'go mod tidy\ngo build -o use-client .',
    use: './use-client',
    typesOf: (folder) => filesIn('client/model_*.go')(folder).map((name) => name.replace('model_', '')),
  },
  'openapi-python-client': {
    tools: ['command -v openapi-python-client', HAS_PYTHON],
    build: '',
    use: `${PYTHON} use_client.py`,
    // The type of `fields` alone has a name that is made up.
    typesOf: filesIn('lead_intake/models/*.py', '__init__', 'problem_details_fields'),
  },
  'oapi-codegen': {
    tools: ['command -v oapi-codegen', 'go version'],
    build: 'go build -o use-client .',
    use: './use-client',
    typesOf: (folder) => {
      const code = readFileSync(join(folder, 'leadintake/leadintake.gen.go'), 'utf8');
      return [...code.matchAll(/^\/\/ \w+ defines model for (\w+)\.$/gm)].map(([, name = '']) => name);
    },
  },
};
